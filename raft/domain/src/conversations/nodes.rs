//! Which nodes are up, and for how long: a day in which a machine slept is no day for its mail
//! (traps.md 13), and what waits for all members does not wait for one that is gone (traps.md 3).
//!
//! The leader notes what it sees; the tick of a note outlives leaders and restarts, and comes after
//! the last word of the node: so nobody is ever counted as gone too early. A leader that changes
//! too often to note anybody only makes the others wait longer.
//!
//! A node of which nothing was noted is up. A conversation's time away is that of the nodes it was
//! at home on, added up, so it goes on counting right when the conversation moves.

use alloc::vec::Vec;

use minicbor::{Decode, Encode};

use crate::command::presence::{NodeChange, NodeState};
use crate::context::{Context, Stop};
use crate::entry::NodeId;
use crate::event::Event;
use crate::rejection::Rejection;
use crate::reply::Reply;
use crate::store::{Direction, Fault, Read, Store};
use crate::{limits, mail, tables};

/// What was noted of a node; a node without a row was always up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub(crate) struct NodeRow {
    /// What it does.
    #[n(0)]
    pub(crate) state: NodeState,
    /// The tick since when it is up, or is not: asleep and down are one absence.
    #[n(1)]
    pub(crate) since: u64,
    /// How many ticks it was not up before that.
    #[n(2)]
    pub(crate) away: u64,
    /// The tick of its timer for unread mail, if one stands.
    #[n(3)]
    pub(crate) due: Option<u64>,
}

impl NodeRow {
    /// Returns for how many ticks it was not up until now.
    pub(crate) fn away(&self, tick: u64) -> u64 {
        let now = match self.state {
            NodeState::Up => 0,
            NodeState::Asleep | NodeState::Down => tick.saturating_sub(self.since),
        };
        self.away.saturating_add(now)
    }

    /// Returns for how many ticks of the cluster's life it was up.
    pub(crate) fn awake(&self, tick: u64) -> u64 {
        tick.saturating_sub(self.away(tick))
    }
}

/// What the leader noted of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noted {
    /// Which one.
    pub node: NodeId,
    /// What it does.
    pub state: NodeState,
    /// The tick since when it is up, or is not.
    pub since: u64,
}

impl Noted {
    /// Returns whether it has been away for so long that the others do not wait for it any more.
    #[must_use]
    pub fn is_gone(&self, now_tick: u64) -> bool {
        self.state != NodeState::Up && now_tick.saturating_sub(self.since) >= limits::GONE_TICKS
    }
}

/// Returns what was noted of nodes, by id. One that is not among them was always up.
///
/// # Errors
/// A fault when the state cannot be read.
pub fn nodes(state: &impl Read) -> Result<Vec<Noted>, Fault> {
    let rows = tables::NODES.rows(state, tables::NODES.all(), Direction::Forward);
    let noted = |(node, row): (NodeId, NodeRow)| Noted { node, state: row.state, since: row.since };
    rows.map(|row| row.map(noted)).collect()
}

/// Returns what a node is doing, as the leader noted it last: `Up` when it noted nothing.
///
/// # Errors
/// A fault when the state cannot be read.
pub fn node_state(state: &impl Read, node: NodeId) -> Result<NodeState, Fault> {
    Ok(row(state, node)?.state)
}

pub(crate) fn row(state: &impl Read, node: NodeId) -> Result<NodeRow, Fault> {
    Ok(tables::NODES.get(state, node)?.unwrap_or_default())
}

/// Writes a node's row; one that says nothing is none.
pub(crate) fn put(state: &mut impl Store, node: NodeId, row: &NodeRow) -> Result<(), Fault> {
    let nothing = row.state == NodeState::Up && row.away == 0 && row.due.is_none();
    if nothing { tables::NODES.delete(state, node) } else { tables::NODES.put(state, node, row) }
}

pub(super) fn note(
    state: &mut impl Store,
    context: &Context<'_>,
    changes: &[NodeChange],
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    if changes.len() > limits::MEMBERS_MAX {
        return Err(Rejection::invalid("changes", "must be at most 128").into());
    }
    let tick = context.now.tick;
    for change in changes {
        // One that was removed meanwhile does not hold up the others.
        if !tables::MEMBERS.has(state, change.node)? {
            continue;
        }
        set(state, *change, tick, told)?;
    }
    Ok(Reply::Done)
}

/// Notes that a node is up, because it has just started.
pub(crate) fn here(
    state: &mut impl Store,
    node: NodeId,
    tick: u64,
    told: &mut Vec<Event>,
) -> Result<(), Fault> {
    set(state, NodeChange { node, state: NodeState::Up }, tick, told)
}

fn set(
    state: &mut impl Store,
    change: NodeChange,
    tick: u64,
    told: &mut Vec<Event>,
) -> Result<(), Fault> {
    let NodeChange { node, state: now } = change;
    let before = row(state, node)?;
    if before.state == now {
        return Ok(());
    }
    let mut after = NodeRow { state: now, ..before };
    // From asleep to down, or back, is the same absence.
    if before.state == NodeState::Up || now == NodeState::Up {
        after.since = tick;
        after.away = before.away(tick);
    }
    put(state, node, &after)?;
    if now == NodeState::Up {
        mail::retime(state, node, tick, told)?;
    }
    told.push(Event::Members { node });
    Ok(())
}

/// Forgets a removed node: nobody waits for its return, so it counts as having been awake all
/// along.
pub(crate) fn forget_node(
    state: &mut impl Store,
    node: NodeId,
    tick: u64,
    told: &mut Vec<Event>,
) -> Result<(), Fault> {
    let before = row(state, node)?;
    put(state, node, &NodeRow { due: before.due, ..NodeRow::default() })?;
    mail::retime(state, node, tick, told)
}
