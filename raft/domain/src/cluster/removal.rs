//! Removing a member: at once for what it may say, in bounded steps for what it leaves behind.
//!
//! First its conversations turn offline, so that their names are free and nobody waits for them;
//! any other node may bring them back. Then its request records go. Its id is never given again.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{invites, members, present, voters};
use crate::command::DueKind;
use crate::context::{Context, Stop};
use crate::due::{self, Due};
use crate::entry::NodeId;
use crate::event::Event;
use crate::rejection::Rejection;
use crate::reply::Reply;
use crate::store::{Fault, Store};
use crate::{conversations, events, requests, tables};

pub(super) fn remove(
    state: &mut impl Store,
    context: &Context<'_>,
    node: NodeId,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    let member = present(state, node)?;
    if members(state)?.len() == 1 {
        let what = format!("node {node}: is the last member; a cluster cannot be without one");
        return Err(Rejection::conflict(what).into());
    }
    if voters(state)? == [node] {
        let what = format!(
            "node {node}: is the only voter, without it nothing can be written any more; bring a \
             third machine in first (nexus invite --voter), then three vote and one may go"
        );
        return Err(Rejection::conflict(what).into());
    }
    // The event names the actor, so it comes before the row goes.
    let detail = format!("node {node}");
    events::record(state, context, "node.remove", Some(member.name), Some(detail))?;
    invites::withdraw_all(state, node)?;
    voters::forget(state, node)?;
    tables::MEMBERS.delete(state, node)?;
    requests::retire(state, node)?;
    conversations::nodes::forget_node(state, node, context.now.tick, told)?;
    let step = Step { node, after: String::new() };
    let (due, id) = (context.now.tick, step.name());
    due::arm(state, &Due { due, kind: DueKind::Removal, id, generation: 1 }, told)?;
    told.push(Event::Members { node });
    Ok(Reply::Done)
}

/// How far a removal has come: conversations up to `after` were looked at.
struct Step {
    node: NodeId,
    after: String,
}

impl Step {
    /// Reads it from a timer's name: the node, and a conversation's id behind a `/`.
    fn read(name: &str) -> Option<Self> {
        let (node, after) = name.split_once('/').unwrap_or((name, ""));
        Some(Self { node: node.parse().ok()?, after: after.to_string() })
    }

    fn name(&self) -> String {
        if self.after.is_empty() {
            self.node.to_string()
        } else {
            format!("{}/{}", self.node, self.after)
        }
    }
}

/// Returns the node that a timer of a removal is about; for the invariants.
pub(crate) fn removed_node(name: &str) -> Option<NodeId> {
    Step::read(name).map(|step| step.node)
}

/// Takes the next step, and is due again at once until all is gone.
pub(crate) fn removal_goes_on(
    state: &mut impl Store,
    context: &Context<'_>,
    due: &Due,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    let Some(mut step) = Step::read(&due.id) else {
        return Err(due.misnamed("a removal").into());
    };
    let changed = take_step(state, context, &mut step, told)?;
    if tables::FLOORS.has(state, step.node)? {
        due::arm(state, &Due { id: step.name(), ..due.again() }, told)?;
    }
    Ok(Reply::fired(changed))
}

fn take_step(
    state: &mut impl Store,
    context: &Context<'_>,
    step: &mut Step,
    told: &mut Vec<Event>,
) -> Result<usize, Fault> {
    let (last, changed) = conversations::leave(state, context, (step.node, &step.after), told)?;
    if let Some(last) = last {
        step.after = last;
        return Ok(changed);
    }
    requests::forget_node(state, step.node)
}
