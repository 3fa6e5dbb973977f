//! Names and activity: the rows that follow a conversation's row.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use crate::clock::Clock;
use crate::command::{Client, Status};
use crate::context::{Context, Stop};
use crate::conversations::{Conversation, closed, turns};
use crate::entry::NodeId;
use crate::event::Event;
use crate::rejection::Rejection;
use crate::store::{Direction, Fault, Read, Store};
use crate::{limits, mail, names, tables};

/// Writes a conversation with the rows that follow it; `before` is what stands there now.
pub(super) fn save(
    state: &mut impl Store,
    before: Option<&Conversation>,
    after: &Conversation,
) -> Result<(), Fault> {
    if before == Some(after) {
        return Ok(());
    }
    let (old, new) = (before.and_then(Conversation::held_name), after.held_name());
    if old != new {
        if let Some(old) = old {
            tables::NAMES.delete(state, old)?;
        }
        if let Some(new) = new {
            tables::NAMES.put(state, new, &after.id)?;
        }
    }
    let old = before.map(|before| before.last_active_tick);
    if old != Some(after.last_active_tick) {
        if let Some(old) = old {
            tables::ACTIVITY.delete(state, (old, &after.id))?;
        }
        tables::ACTIVITY.put(state, (after.last_active_tick, &after.id), &())?;
    }
    let was_offline = before.is_some_and(|before| before.status == Status::Offline);
    if after.status == Status::Offline && !was_offline {
        closed::look_in_a_month(state)?;
    }
    tables::CONVERSATIONS.put(state, &after.id, after)
}

/// Notes activity, at most once a minute.
pub(super) fn touch(conversation: &mut Conversation, now: Clock) {
    if is_stale(conversation, now) {
        conversation.last_active_at = now.at;
        conversation.last_active_tick = now.tick;
    }
}

fn is_stale(conversation: &Conversation, now: Clock) -> bool {
    now.tick.saturating_sub(conversation.last_active_tick) >= limits::TOUCH_TICKS
}

/// Notes that the speaker spoke: what it had taken arrived, and it is back when it was taken for
/// offline; returns its row as it stands then.
pub(crate) fn active<'a>(
    state: &mut impl Store,
    context: &'a Context<'_>,
    told: &mut Vec<Event>,
) -> Result<Cow<'a, Conversation>, Stop> {
    let before = context.speaker()?;
    mail::arrived(state, before, context.now.tick, told)?;
    let offline = before.status == Status::Offline;
    if !offline && !is_stale(before, context.now) {
        return Ok(Cow::Borrowed(before));
    }
    let mut after = before.clone();
    if offline {
        come_back(state, &mut after, Status::Working)?;
        told.push(Event::Conversation { id: after.id.clone() });
    }
    touch(&mut after, context.now);
    save(state, Some(before), &after)?;
    Ok(Cow::Owned(after))
}

/// Turns conversations of a removed node offline: looks at a bounded number of those behind
/// `after`, and returns the last one that it looked at (none: there are no more) and how many it
/// turned.
pub(crate) fn leave(
    state: &mut impl Store,
    context: &Context<'_>,
    (node, after): (NodeId, &str),
    told: &mut Vec<Event>,
) -> Result<(Option<String>, usize), Fault> {
    let mut range = tables::CONVERSATIONS.all();
    if !after.is_empty() {
        range.start = tables::CONVERSATIONS.key(after);
    }
    let rows: Vec<_> = tables::CONVERSATIONS
        .rows(state, range, Direction::Forward)
        .filter(|row| row.as_ref().map_or(true, |(id, _)| id != after))
        .take(limits::REMOVAL_ROWS_MAX)
        .collect::<Result<_, Fault>>()?;
    let mut turned: usize = 0;
    let mut ended = Vec::new();
    for (id, before) in &rows {
        if before.home == node && before.status != Status::Offline {
            let mut offline = before.clone();
            offline.status = Status::Offline;
            save(state, Some(before), &offline)?;
            turns::note(state, before, &offline, &mut ended)?;
            told.push(Event::Conversation { id: id.clone() });
            turned = turned.saturating_add(1);
        }
    }
    turns::keep(state, (context.index, context.now), ended, told)?;
    Ok((rows.last().map(|(id, _)| id.clone()), turned))
}

/// Ends being offline: the name is its own again, or gets a number when another one took it.
pub(super) fn come_back(
    state: &impl Read,
    conversation: &mut Conversation,
    status: Status,
) -> Result<(), Stop> {
    conversation.status = status;
    if conversation.client != Client::Instance {
        conversation.name = free_name(state, &conversation.name)?;
    }
    Ok(())
}

/// Returns the wanted name, or one with a number behind it when it is taken.
pub(super) fn free_name(state: &impl Read, wanted: &str) -> Result<String, Stop> {
    let base = names::base(wanted, '#');
    let free = names::free(wanted, base, '#', limits::NAME_CHARS_MAX, |name| {
        tables::NAMES.has(state, name)
    })?;
    Ok(free.ok_or_else(|| Rejection::conflict("name: is taken up to #1000, choose another"))?)
}

/// Returns the name that a new conversation wants: `<client>@<last part of its directory>`.
pub(super) fn first_name(client: Client, cwd: &str) -> String {
    let word = match client {
        Client::Claude => "claude",
        Client::Codex => "codex",
        Client::Instance => return String::new(),
    };
    // Clients on Windows write either separator.
    let separators = ['/', '\\'];
    let last = cwd.trim_end_matches(separators).rsplit(separators).next().unwrap_or_default();
    let mut name = String::from(word);
    if !last.is_empty() {
        name.push('@');
        name.push_str(&names::clean(last));
    }
    name.truncate(limits::NAME_CHARS_MAX);
    name
}
