//! What happens to messages by themselves: their senders are told of a day unread, texts go when
//! they were read, and everything goes after 30 days.

use alloc::vec::Vec;

use super::inbox::{BySender, Owner, count, save};
use super::{Inbox, MailTotals, retime};
use crate::command::presence::NodeState;
use crate::context::Stop;
use crate::conversations::{self, nodes};
use crate::due::Due;
use crate::event::Event;
use crate::notices::{self, Fact, Telling};
use crate::reply::Reply;
use crate::store::{Direction, Fault, Store};
use crate::{clock, limits, tables};

/// A node's timer: senders are told what lay unread there for a day, one inbox at a time.
pub(crate) fn unread_ends(
    state: &mut impl Store,
    due: &Due,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    let Ok(node) = due.id.parse() else {
        return Err(due.misnamed("unread mail").into());
    };
    let now = clock::clock(state)?;
    let mut row = nodes::row(state, node)?;
    row.due = None;
    nodes::put(state, node, &row)?;
    // While the node is not up nothing is due; the timer is set anew when it is back.
    if row.state != NodeState::Up {
        return Ok(Reply::fired(0));
    }
    let range = tables::UNREAD.beginning::<u64>(node);
    let first = tables::UNREAD.keys(state, range, Direction::Forward).next().transpose()?;
    let mut changed: usize = 0;
    if let Some((_, due, owner)) = first
        && due <= row.awake(now.tick)
    {
        changed = tell_senders(state, (&owner, row.awake(now.tick)), told)?;
    }
    retime(state, node, now.tick, told)?;
    Ok(Reply::fired(changed))
}

/// Tells the senders of messages in one inbox; returns of how many messages.
fn tell_senders(
    state: &mut impl Store,
    (owner, awake): (&str, u64),
    told: &mut Vec<Event>,
) -> Result<usize, Fault> {
    let now = clock::clock(state)?;
    let (before, home) = stored(state, owner)?;
    let mut after = before;
    let mut senders = BySender::new();
    let mut changed: usize = 0;
    let first = before.told.max(before.cursor.offered).saturating_add(1);
    for number in (first..=before.last).take(limits::UNREAD_TOLD_MAX) {
        let envelope = tables::ENVELOPES.must(state, (owner, number))?;
        if before.unread_at(&envelope) > awake {
            break;
        }
        count(&mut senders, &envelope);
        after.told = number;
        changed = changed.saturating_add(1);
    }
    save(state, Owner { id: owner, home }, (Some(&before), after), now.tick, told)?;
    for (sender, (first, count)) in senders {
        let fact = Fact::Unread { to: owner.into(), first, count };
        notices::tell(state, &sender, Telling { at: now.at, fact, wake: false }, told)?;
    }
    Ok(changed)
}

/// Returns an inbox that an index or a timer names, and its reader's home.
fn stored(state: &impl Store, owner: &str) -> Result<(Inbox, u64), Fault> {
    let inbox = tables::INBOXES.must(state, owner)?;
    Ok((inbox, tables::CONVERSATIONS.must(state, owner)?.home))
}

/// An inbox's timer: texts that were seen a day ago go, else messages of 30 days; what is left is
/// due again at once.
pub(crate) fn inbox_ends(
    state: &mut impl Store,
    due: &Due,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    let owner = due.id.as_str();
    if !tables::INBOXES.has(state, owner)? {
        return Ok(Reply::fired(0));
    }
    let now = clock::clock(state)?;
    let (before, home) = stored(state, owner)?;
    let mut after = Inbox { due: None, ..before };
    let mut totals = tables::MAIL_TOTALS.get(state, ())?.unwrap_or_default();
    let counted = totals;
    let mut senders = BySender::new();
    let changed = if before.swept < before.sweep_to && before.sweep_at <= now.tick {
        let upto = after.sweep_to.min(after.swept.saturating_add(limits::MAIL_SWEPT_MAX));
        sweep(state, owner, (&mut after, &mut totals), (upto, now.tick))?
    } else {
        expire(state, (owner, now.tick), (&mut after, &mut totals), &mut senders)?
    };
    if totals != counted {
        tables::MAIL_TOTALS.put(state, (), &totals)?;
    }
    save(state, Owner { id: owner, home }, (Some(&before), after), now.tick, told)?;
    if after.gone >= after.last {
        conversations::look_tomorrow(state, now.tick)?;
    }
    for (sender, (first, count)) in senders {
        let fact = Fact::Deleted { to: owner.into(), first, count };
        notices::tell(state, &sender, Telling { at: now.at, fact, wake: false }, told)?;
    }
    Ok(Reply::fired(changed))
}

/// Deletes the texts up to a number, and as many of the oldest envelopes when more than a thousand
/// without a text are kept; returns how many messages it changed.
pub(super) fn sweep(
    state: &mut impl Store,
    owner: &str,
    (inbox, totals): (&mut Inbox, &mut MailTotals),
    (upto, tick): (u64, u64),
) -> Result<usize, Fault> {
    let mut changed: usize = 0;
    while inbox.swept < upto {
        let number = inbox.swept.saturating_add(1);
        delete_text(state, owner, (inbox, totals), number)?;
        inbox.swept = number;
        changed = changed.saturating_add(1);
    }
    inbox.sweep_to = inbox.sweep_to.max(inbox.swept);
    if inbox.sweep_to == inbox.swept && inbox.cursor.seen > inbox.swept {
        inbox.plan_sweep(tick);
    }
    for _ in 0..changed {
        if inbox.swept.saturating_sub(inbox.gone) <= limits::RECEIPTS_MAX {
            break;
        }
        let oldest = inbox.gone.saturating_add(1);
        delete_envelope(state, owner, totals, oldest)?;
        inbox.go(oldest);
    }
    Ok(changed)
}

/// Deletes messages of 30 days, and notes the senders of those that nobody had taken.
fn expire(
    state: &mut impl Store,
    (owner, tick): (&str, u64),
    (inbox, totals): (&mut Inbox, &mut MailTotals),
    senders: &mut BySender,
) -> Result<usize, Fault> {
    let mut changed: usize = 0;
    while changed < limits::MAIL_EXPIRED_MAX && inbox.gone < inbox.last {
        let oldest = inbox.gone.saturating_add(1);
        let envelope = tables::ENVELOPES.must(state, (owner, oldest))?;
        if envelope.tick.saturating_add(limits::MAIL_KEPT_TICKS) > tick {
            break;
        }
        if oldest > inbox.swept {
            delete_text(state, owner, (inbox, totals), oldest)?;
        }
        if oldest > inbox.cursor.offered {
            count(senders, &envelope);
        }
        delete_envelope(state, owner, totals, oldest)?;
        inbox.go(oldest);
        changed = changed.saturating_add(1);
    }
    Ok(changed)
}

fn delete_text(
    state: &mut impl Store,
    owner: &str,
    (inbox, totals): (&mut Inbox, &mut MailTotals),
    number: u64,
) -> Result<(), Fault> {
    let bytes = tables::ENVELOPES.must(state, (owner, number))?.bytes;
    tables::TEXTS.delete(state, (owner, number))?;
    inbox.bytes = inbox.bytes.saturating_sub(bytes);
    totals.bytes = totals.bytes.saturating_sub(bytes);
    Ok(())
}

fn delete_envelope(
    state: &mut impl Store,
    owner: &str,
    totals: &mut MailTotals,
    number: u64,
) -> Result<(), Fault> {
    let envelope = tables::ENVELOPES.must(state, (owner, number))?;
    tables::ENVELOPES.delete(state, (owner, number))?;
    tables::MAIL_IDS.delete(state, envelope.id)?;
    tables::SENT.delete(state, (&envelope.from, envelope.id))?;
    totals.kept = totals.kept.saturating_sub(1);
    Ok(())
}
