//! Conversations that nobody used for 30 days go, with what hangs on them (n2n-nexus §8.4); those
//! of whose messages something is left wait for its end. What one left in meetings is theirs (its
//! part, its place, its word) and goes with them: no list of approvers changes because somebody was
//! silent, and who comes back under its id goes on where it was.
//!
//! A conversation that turns offline sets the timer of a day a month ahead, one for all of that
//! day. At each the index of activity is walked from its old end, in bounded steps.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{Conversation, turns};
use crate::command::DueKind;
use crate::context::Stop;
use crate::due::{self, Due};
use crate::event::Event;
use crate::reply::Reply;
use crate::store::{Direction, Fault, KeyRange, Read, Store};
use crate::{chat, clock, limits, mail, notices, tables};

/// Has the conversations looked at when this day's have been silent for 30 days.
pub(super) fn look_in_a_month(state: &mut impl Store) -> Result<(), Fault> {
    let now = clock::clock(state)?;
    let month = limits::CLOSED_TICKS.saturating_add(limits::DAY_TICKS);
    look(state, now.tick.saturating_add(month))
}

/// Has the conversations looked at on the next day, because one may go that had to wait.
pub(crate) fn look_tomorrow(state: &mut impl Store, tick: u64) -> Result<(), Fault> {
    look(state, tick.saturating_add(limits::DAY_TICKS))
}

/// Sets the timer of the day in which a tick lies, at its beginning, if it has none.
fn look(state: &mut impl Store, tick: u64) -> Result<(), Fault> {
    let day = tick.checked_div(limits::DAY_TICKS).unwrap_or_default();
    let due = day.saturating_mul(limits::DAY_TICKS);
    let due = Due { due, kind: DueKind::Closed, id: day.to_string(), generation: 1 };
    if due::stands(state, &due)? { Ok(()) } else { due::arm_quietly(state, &due) }
}

/// How far a walk has come: the day of its timer, and the row that it looked at last.
struct Walk {
    day: u64,
    last: Option<(u64, String)>,
}

impl Walk {
    /// Reads it from a timer's name; no conversation's id has a `/`.
    fn read(name: &str) -> Option<Self> {
        let mut parts = name.split('/');
        let day = parts.next()?.parse().ok()?;
        let last = match (parts.next(), parts.next()) {
            (Some(tick), Some(id)) => Some((tick.parse().ok()?, id.to_string())),
            (Some(_), None) => return None,
            (None, _) => None,
        };
        Some(Self { day, last })
    }

    fn name(&self) -> String {
        match &self.last {
            Some((tick, id)) => format!("{}/{tick}/{id}", self.day),
            None => self.day.to_string(),
        }
    }
}

/// Walks on: removes what may go, and is due again at once until the end of what is old.
pub(crate) fn close(
    state: &mut impl Store,
    due: &Due,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    let Some(mut walk) = Walk::read(&due.id) else {
        return Err(due.misnamed("closed conversations").into());
    };
    let tick = clock::clock(state)?.tick;
    let found = old(state, walk.last.as_ref(), tick)?;
    let more = found.len() >= limits::CLOSED_LOOKED_MAX;
    let (mut changed, mut rows, mut done): (usize, usize, bool) = (0, 0, !more);
    for (active, id) in found {
        let row = tables::CONVERSATIONS.must(state, &id)?;
        if mail::is_empty(state, &id)? {
            // The most that one may need fits a step, so every step moves on.
            if rows > 0 && rows.saturating_add(weight(state, &id)?) > limits::CLOSED_ROWS_MAX {
                done = false;
                break;
            }
            rows = rows.saturating_add(forget(state, &row)?);
            changed = changed.saturating_add(1);
            told.push(Event::Conversation { id: id.clone() });
        }
        walk.last = Some((active, id));
    }
    if !done {
        due::arm(state, &Due { id: walk.name(), ..due.again() }, told)?;
    }
    Ok(Reply::fired(changed))
}

/// Returns the conversations that were silent for 30 days, behind the one that was looked at last.
fn old(
    state: &impl Read,
    last: Option<&(u64, String)>,
    tick: u64,
) -> Result<Vec<(u64, String)>, Fault> {
    let KeyRange { start, end } = tables::ACTIVITY.all();
    let start = last.map_or(start, |(tick, id)| tables::ACTIVITY.key((*tick, id)));
    let keys = tables::ACTIVITY.keys(state, KeyRange { start, end }, Direction::Forward);
    let mut found = Vec::new();
    for key in keys {
        let key = key?;
        if last == Some(&key) {
            continue;
        }
        let silent = tick.saturating_sub(key.0) >= limits::CLOSED_TICKS;
        if !silent || found.len() >= limits::CLOSED_LOOKED_MAX {
            break;
        }
        found.push(key);
    }
    Ok(found)
}

/// Returns how many rows a removal changes at most.
fn weight(state: &impl Read, id: &str) -> Result<usize, Fault> {
    let range = tables::NOTICES.beginning::<String>(id);
    let notices = tables::NOTICES.count(state, range, limits::NOTICES_MAX.saturating_add(1))?;
    let range = tables::WATCHES.beginning::<String>(id);
    let watches = tables::WATCHES.count(state, range, limits::WATCHES_MAX)?;
    Ok(watches.saturating_mul(2).saturating_add(notices).saturating_add(8))
}

/// Removes a conversation with what hangs on it; returns how many rows went.
fn forget(state: &mut impl Store, row: &Conversation) -> Result<usize, Fault> {
    let id = &row.id;
    if let Some(name) = row.held_name() {
        tables::NAMES.delete(state, name)?;
    }
    tables::ACTIVITY.delete(state, (row.last_active_tick, id))?;
    tables::CONVERSATIONS.delete(state, id)?;
    let mut totals = tables::TOTALS.get(state, ())?.unwrap_or_default();
    totals.count = totals.count.saturating_sub(1);
    tables::TOTALS.put(state, (), &totals)?;
    chat::forget_reader(state, id)?;
    mail::forget(state, id)?;
    let notices = notices::forget(state, id)?;
    let watches = turns::forget(state, id)?;
    Ok(notices.saturating_add(watches).saturating_add(7))
}
