//! Who votes, for people: promotions and demotions as events.
//!
//! The membership of the consensus side is what counts; this row says what the leader last noted of
//! it, and trails behind it.

use alloc::format;
use alloc::vec::Vec;

use minicbor::{Decode, Encode};

use super::{present, shown};
use crate::context::{Context, Stop};
use crate::entry::NodeId;
use crate::event::Event;
use crate::rejection::Rejection;
use crate::reply::Reply;
use crate::store::{Fault, Read, Store};
use crate::{events, limits, tables};

/// Who votes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Voters {
    /// Their ids, in order.
    #[n(0)]
    pub(crate) voters: Vec<NodeId>,
}

/// Returns who votes, as the leader last noted it, in the order of ids.
///
/// # Errors
/// A fault when the state cannot be read.
pub fn voters(state: &impl Read) -> Result<Vec<NodeId>, Fault> {
    Ok(tables::VOTERS.get(state, ())?.unwrap_or_default().voters)
}

pub(super) fn note(
    state: &mut impl Store,
    context: &Context<'_>,
    wanted: &[NodeId],
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    let ordered = wanted.iter().zip(wanted.iter().skip(1)).all(|(one, next)| one < next);
    if wanted.is_empty() || wanted.len() > limits::VOTERS_MAX || !ordered {
        let rule = "must be 1 to 16 node ids, each once and in order";
        return Err(Rejection::invalid("voters", rule).into());
    }
    for node in wanted {
        present(state, *node)?;
    }
    let known = voters(state)?;
    if known == wanted {
        return Ok(Reply::Done);
    }
    let new = wanted.iter().filter(|node| !known.contains(node)).map(|node| (node, "node.promote"));
    let old = known.iter().filter(|node| !wanted.contains(node)).map(|node| (node, "node.demote"));
    for (node, action) in new.chain(old) {
        let name = shown(state, *node)?;
        let detail = format!("node {node}, {} voters", wanted.len());
        events::record(state, context, action, Some(name), Some(detail))?;
        told.push(Event::Members { node: *node });
    }
    tables::VOTERS.put(state, (), &Voters { voters: wanted.into() })?;
    Ok(Reply::Done)
}

/// Takes a removed node out.
pub(super) fn forget(state: &mut impl Store, node: NodeId) -> Result<(), Fault> {
    let mut row = Voters { voters: voters(state)? };
    if row.voters.contains(&node) {
        row.voters.retain(|voter| *voter != node);
        tables::VOTERS.put(state, (), &row)?;
    }
    Ok(())
}
