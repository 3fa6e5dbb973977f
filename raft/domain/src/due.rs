//! What is due and when: an index ordered by tick, with a generation that fences old timers
//! (traps.md 4).
//!
//! The leader waits for [`first`] and proposes `Fire` with exactly what stands there. `apply`
//! refuses it when the row is gone or another generation's, or when it comes early.

use alloc::format;
use alloc::string::String;

use crate::clock::Clock;
use crate::command::DueKind;
use crate::context::Stop;
use crate::event::Event;
use crate::rejection::Rejection;
use crate::store::{Direction, Fault, Read, Store};
use crate::tables;

/// One due thing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Due {
    /// The tick at which it is due.
    pub due: u64,
    /// What kind of thing.
    pub kind: DueKind,
    /// Which one.
    pub id: String,
    /// The generation that the timer was set for.
    pub generation: u64,
}

impl Due {
    /// Returns the timer of what one firing leaves: due at once, of the next generation.
    pub(crate) fn again(&self) -> Self {
        Self { generation: self.generation.saturating_add(1), ..self.clone() }
    }

    /// Makes the refusal of a timer whose name says nothing.
    pub(crate) fn misnamed(&self, of: &str) -> Rejection {
        Rejection::Impossible { what: format!("a timer of {of} named {}", self.id) }
    }
}

/// Returns what is due first, if anything is.
///
/// # Errors
/// A fault when the state cannot be read.
pub fn first(state: &impl Read) -> Result<Option<Due>, Fault> {
    let range = tables::DUE.all();
    let Some(row) = state.scan(range, Direction::Forward).next() else { return Ok(None) };
    let (key, _) = row?;
    let (due, kind, id, generation) = tables::DUE.parse(&key)?;
    let kind = kind_of(kind).ok_or_else(|| Fault::at(&key, "the kind of due thing is unknown"))?;
    Ok(Some(Due { due, kind, id, generation }))
}

/// Sets a timer.
pub(crate) fn arm(
    state: &mut impl Store,
    due: &Due,
    events: &mut alloc::vec::Vec<Event>,
) -> Result<(), Fault> {
    events.push(Event::Due);
    tables::DUE.put(state, (due.due, number(due.kind), &due.id, due.generation), &())
}

/// Sets a timer that is far off, without waking the leader: it looks now and then by itself.
pub(crate) fn arm_quietly(state: &mut impl Store, due: &Due) -> Result<(), Fault> {
    tables::DUE.put(state, (due.due, number(due.kind), &due.id, due.generation), &())
}

/// Takes a timer back.
pub(crate) fn disarm(state: &mut impl Store, due: &Due) -> Result<(), Fault> {
    tables::DUE.delete(state, (due.due, number(due.kind), &due.id, due.generation))
}

/// Returns whether a timer stands as given.
pub(crate) fn stands(state: &impl Read, due: &Due) -> Result<bool, Fault> {
    tables::DUE.has(state, (due.due, number(due.kind), &due.id, due.generation))
}

/// Takes down the timer that fires, or refuses.
pub(crate) fn take(state: &mut impl Store, now: Clock, due: &Due) -> Result<(), Stop> {
    if due.due > now.tick {
        return Err(Rejection::conflict("timer: is not due yet; wait for its tick").into());
    }
    if !stands(state, due)? {
        return Err(Rejection::conflict("timer: fired or was set anew; look what is due").into());
    }
    Ok(disarm(state, due)?)
}

/// Returns the kind's number in the index; numbers are for ever.
pub(crate) fn number(kind: DueKind) -> u8 {
    match kind {
        DueKind::Invite => 0,
        DueKind::Requests => 1,
        DueKind::Removal => 2,
        DueKind::Upload => 3,
        DueKind::Sweep => 4,
        DueKind::Reminder => 5,
        DueKind::Meeting => 6,
        DueKind::MeetingRest => 7,
        DueKind::Task => 8,
        DueKind::Unread => 9,
        DueKind::Mail => 10,
        DueKind::Watch => 11,
        DueKind::Turns => 12,
        DueKind::Chat => 13,
        DueKind::Closed => 14,
    }
}

/// Returns the kind of a number in the index.
pub(crate) fn kind_of(number: u8) -> Option<DueKind> {
    match number {
        0 => Some(DueKind::Invite),
        1 => Some(DueKind::Requests),
        2 => Some(DueKind::Removal),
        3 => Some(DueKind::Upload),
        4 => Some(DueKind::Sweep),
        5 => Some(DueKind::Reminder),
        6 => Some(DueKind::Meeting),
        7 => Some(DueKind::MeetingRest),
        8 => Some(DueKind::Task),
        9 => Some(DueKind::Unread),
        10 => Some(DueKind::Mail),
        11 => Some(DueKind::Watch),
        12 => Some(DueKind::Turns),
        13 => Some(DueKind::Chat),
        14 => Some(DueKind::Closed),
        _ => None,
    }
}
