//! What must hold between inboxes, their messages, notices, wishes and timers.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{count, is_due, rows, timers};
use crate::command::DueKind;
use crate::command::presence::NodeState;
use crate::due::{self, Due};
use crate::mail::{Inbox, wanted_timer, wanted_wait};
use crate::store::{Direction, Fault, Read};
use crate::{clock, conversations, limits, tables};

pub(super) fn check(state: &impl Read, found: &mut Vec<String>) -> Result<(), Fault> {
    inboxes(state, found)?;
    messages(state, found)?;
    nodes(state, found)?;
    notices(state, found)?;
    watches(state, found)
}

fn inboxes(state: &impl Read, found: &mut Vec<String>) -> Result<(), Fault> {
    let (mut waiting, mut kept, mut texts, mut bytes): (u64, u64, u64, u64) = (0, 0, 0, 0);
    let mut standing = BTreeMap::new();
    for Due { due, id, .. } in timers(state, DueKind::Mail)? {
        if standing.insert(id.clone(), due).is_some() {
            found.push(format!("inbox of {id}: has two timers"));
        }
    }
    for row in rows!(tables::INBOXES, state) {
        let (id, inbox) = row?;
        check_marks(&id, &inbox, found);
        kept = kept.saturating_add(inbox.last.saturating_sub(inbox.gone));
        texts = texts.saturating_add(inbox.last.saturating_sub(inbox.swept));
        bytes = bytes.saturating_add(inbox.bytes);
        waiting = waiting.saturating_add(u64::from(inbox.waits.is_some()));
        let Some(reader) = conversations::conversation(state, &id)? else {
            found.push(format!("inbox of {id}: there is no such conversation"));
            continue;
        };
        if wanted_wait(state, (&id, reader.home), &inbox)? != inbox.waits {
            found.push(format!("inbox of {id}: waits at {:?}", inbox.waits));
        }
        if let Some(waits) = inbox.waits
            && !tables::UNREAD.has(state, (waits.node, waits.due, &id))?
        {
            found.push(format!("inbox of {id}: is not in the index of what lies unread"));
        }
        let wanted = wanted_timer(state, &id, &inbox)?;
        let late = wanted.is_some_and(|wanted| inbox.due.is_none_or(|due| due > wanted));
        let stands = standing.remove(&id);
        if late || stands != inbox.due {
            let due = inbox.due;
            found.push(format!("inbox of {id}: wants {wanted:?}, has {due:?}, stands {stands:?}"));
        }
    }
    for (id, due) in standing {
        found.push(format!("timer {due} of the inbox of {id}: there is no such inbox"));
    }
    let totals = tables::MAIL_TOTALS.get(state, ())?.unwrap_or_default();
    for (what, number, expected) in [
        ("index of unread", count(state, &tables::UNREAD)?, waiting),
        ("total", totals.kept, kept),
        ("bytes", totals.bytes, bytes),
        ("envelopes", count(state, &tables::ENVELOPES)?, kept),
        ("texts", count(state, &tables::TEXTS)?, texts),
        ("ids", count(state, &tables::MAIL_IDS)?, kept),
        ("sent", count(state, &tables::SENT)?, kept),
    ] {
        if number != expected {
            found.push(format!("mail: {what} is {number} and should be {expected}"));
        }
    }
    Ok(())
}

fn check_marks(id: &str, inbox: &Inbox, found: &mut Vec<String>) {
    let cursor = inbox.cursor;
    let order = [
        inbox.gone,
        inbox.swept,
        inbox.sweep_to,
        cursor.seen,
        cursor.taken,
        cursor.offered,
        inbox.last,
    ];
    let between = |mark: u64| (inbox.gone..=inbox.last).contains(&mark);
    if !order.is_sorted() || !between(inbox.announced) || !between(inbox.told) {
        found.push(format!("inbox of {id}: its marks are out of order: {inbox:?}"));
    }
    if inbox.last.saturating_sub(inbox.swept) > limits::INBOX_MESSAGES_MAX
        || inbox.bytes > limits::INBOX_BYTES_MAX
    {
        found.push(format!("inbox of {id}: holds too much: {inbox:?}"));
    }
}

fn messages(state: &impl Read, found: &mut Vec<String>) -> Result<(), Fault> {
    let mut bytes: BTreeMap<String, u64> = BTreeMap::new();
    for row in rows!(tables::ENVELOPES, state) {
        let ((owner, number), envelope) = row?;
        let inbox = tables::INBOXES.get(state, &owner)?.unwrap_or_default();
        if number <= inbox.gone || number > inbox.last {
            found.push(format!("message {number} of {owner}: lies outside of {inbox:?}"));
        }
        let place = tables::MAIL_IDS.get(state, envelope.id)?;
        if place.is_none_or(|place| place.owner != owner || place.number != number) {
            found.push(format!("message {number} of {owner}: its id does not find it"));
        }
        if !tables::SENT.has(state, (&envelope.from, envelope.id))? {
            found.push(format!("message {number} of {owner}: is not in its sender's list"));
        }
        let text = tables::TEXTS.get(state, (&owner, number))?;
        if text.is_some() != (number > inbox.swept) {
            found.push(format!("message {number} of {owner}: its text does not fit {inbox:?}"));
        }
        if let Some(text) = text {
            let length = u64::try_from(text.text.len()).unwrap_or(u64::MAX);
            if length != envelope.bytes {
                found.push(format!("message {number} of {owner}: its text has {length} bytes"));
            }
            let sum = bytes.entry(owner).or_default();
            *sum = sum.saturating_add(length);
        }
    }
    for row in rows!(tables::INBOXES, state) {
        let (id, inbox) = row?;
        let sum = bytes.get(&id).copied().unwrap_or_default();
        if inbox.bytes != sum {
            found.push(format!("inbox of {id}: has {sum} bytes, counted {}", inbox.bytes));
        }
    }
    Ok(())
}

fn nodes(state: &impl Read, found: &mut Vec<String>) -> Result<(), Fault> {
    let tick = clock::clock(state)?.tick;
    for row in rows!(tables::NODES, state) {
        let (node, noted) = row?;
        if noted.due.is_none() && !tables::MEMBERS.has(state, node)? {
            found.push(format!("node {node}: is noted as {noted:?} and is no member"));
        }
        if let Some(due) = noted.due {
            let timer = Due { due, kind: DueKind::Unread, id: format!("{node}"), generation: 1 };
            if !due::stands(state, &timer)? {
                found.push(format!("node {node}: its timer for unread mail does not stand"));
            }
        }
    }
    for key in tables::UNREAD.keys(state, tables::UNREAD.all(), Direction::Forward) {
        let (node, due, _) = key?;
        let noted = conversations::nodes::row(state, node)?;
        let wanted = tick.saturating_add(due.saturating_sub(noted.awake(tick)));
        let late = noted.due.is_none_or(|due| due > wanted);
        if noted.state == NodeState::Up && late {
            found.push(format!("node {node}: unread mail of {wanted} has the timer {noted:?}"));
        }
    }
    Ok(())
}

fn notices(state: &impl Read, found: &mut Vec<String>) -> Result<(), Fault> {
    let mut kept: u64 = 0;
    for row in rows!(tables::NOTICE_WINDOWS, state) {
        let (id, window) = row?;
        let number = window.last.saturating_sub(window.gone);
        kept = kept.saturating_add(number);
        let many = usize::try_from(number).map_or(true, |number| number > limits::NOTICES_MAX);
        if window.gone > window.last || window.noticed > window.last || many {
            found.push(format!("notices of {id}: {window:?}"));
        }
        if conversations::conversation(state, &id)?.is_none() {
            found.push(format!("notices of {id}: there is no such conversation"));
        }
    }
    for row in rows!(tables::NOTICES, state) {
        let ((id, number), notice) = row?;
        let window = tables::NOTICE_WINDOWS.get(state, &id)?.unwrap_or_default();
        if notice.number != number || number <= window.gone || number > window.last {
            found.push(format!("notice {number} of {id}: {notice:?} in {window:?}"));
        }
    }
    let number = count(state, &tables::NOTICES)?;
    if number != kept {
        found.push(format!("notices: {number} are there and should be {kept}"));
    }
    Ok(())
}

fn watches(state: &impl Read, found: &mut Vec<String>) -> Result<(), Fault> {
    let mut waiting: BTreeMap<String, usize> = BTreeMap::new();
    for row in rows!(tables::WATCHES, state) {
        let ((conversation, subscriber), watch) = row?;
        let timer = conversations::turns::lapse(&conversation, &subscriber, &watch);
        if !due::stands(state, &timer)? {
            found.push(format!("wish of {subscriber} about {conversation}: nothing ends it"));
        }
        if conversations::conversation(state, &conversation)?.is_none() {
            found.push(format!("wish of {subscriber}: there is no conversation {conversation}"));
        }
        let number = waiting.entry(conversation).or_default();
        *number = number.saturating_add(1);
    }
    for (conversation, number) in waiting {
        if number > limits::WATCHES_MAX {
            found.push(format!("{number} wait for {conversation}"));
        }
    }
    for row in rows!(tables::TURNS, state) {
        let (index, ended) = row?;
        if ended.turns.is_empty() || !is_due(state, DueKind::Turns, &format!("{index}"))? {
            found.push(format!("turns of entry {index}: nobody is told of {ended:?}"));
        }
    }
    Ok(())
}
