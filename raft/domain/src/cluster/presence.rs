//! Which members are away, and since when: for what waits for all of them (traps.md 3).
//!
//! The leader notes a member once it has not been heard for a while, and takes the note back as
//! soon as it is heard. The tick of the note outlives leaders and restarts, and comes after the
//! last word of the member: so nobody is ever counted as gone too early. A leader that changes too
//! often to note anybody only makes the others wait longer.

use alloc::vec::Vec;

use super::present;
use crate::context::{Context, Stop};
use crate::entry::NodeId;
use crate::event::Event;
use crate::limits;
use crate::reply::Reply;
use crate::store::{Direction, Fault, Read, Store};
use crate::tables;

/// Returns which members are away, by id, and the tick at which that was noted.
///
/// # Errors
/// A fault when the state cannot be read.
pub fn away(state: &impl Read) -> Result<Vec<(NodeId, u64)>, Fault> {
    tables::AWAY.rows(state, tables::AWAY.all(), Direction::Forward).collect()
}

/// Returns whether a member that was noted at a tick has been away for so long that the others do
/// not wait for it any more.
#[must_use]
pub fn is_gone(since_tick: u64, now_tick: u64) -> bool {
    now_tick.saturating_sub(since_tick) >= limits::GONE_TICKS
}

pub(super) fn note(
    state: &mut impl Store,
    context: &Context<'_>,
    node: NodeId,
    is_away: bool,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    present(state, node)?;
    let noted = tables::AWAY.has(state, node)?;
    if is_away && !noted {
        tables::AWAY.put(state, node, &context.now.tick)?;
        told.push(Event::Members { node });
    } else if !is_away {
        back(state, node, told)?;
    }
    Ok(Reply::Done)
}

/// Takes the note back: the member is heard, or is none any more.
pub(crate) fn back(
    state: &mut impl Store,
    node: NodeId,
    told: &mut Vec<Event>,
) -> Result<(), Fault> {
    if tables::AWAY.has(state, node)? {
        tables::AWAY.delete(state, node)?;
        told.push(Event::Members { node });
    }
    Ok(())
}
