//! Which nodes are awake, and for how long: a day in which a machine slept is no day for its mail
//! (traps.md 13).
//!
//! Whom an upgrade does not wait for is noted apart, in `cluster::presence`: there a member counts
//! that was not heard for an hour, here a lid that closes.
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
use crate::store::{Fault, Read, Store};
use crate::{limits, mail, tables};

/// What was noted of a node; a node without a row was always up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub(crate) struct NodeRow {
    /// What it does.
    #[n(0)]
    pub(crate) state: NodeState,
    /// The tick since when.
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
        let before = row(state, change.node)?;
        if before.state == change.state {
            continue;
        }
        let after =
            NodeRow { state: change.state, since: tick, away: before.away(tick), due: before.due };
        put(state, change.node, &after)?;
        if change.state == NodeState::Up {
            mail::retime(state, change.node, tick, told)?;
        }
        told.push(Event::Members { node: change.node });
    }
    Ok(Reply::Done)
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
