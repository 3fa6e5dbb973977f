//! The membership planner: what is known in, at most one step out. Pure.
//!
//! Rules: a joint configuration is finished first. Who was admitted becomes a learner; who was
//! removed goes. One voter for one or two machines; three, in one change, when two more are ready;
//! never an even number of voters for longer than a change takes. Machines on hosts of their own
//! are preferred.

use std::collections::BTreeSet;

use nexus_domain::NodeId;
use nexus_domain::command::Role;

/// Voters that a cluster has by default.
pub const VOTERS: usize = 3;

/// What is known of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// The leader: the node that plans.
    pub leader: NodeId,
    /// Raft's voters; two sets while a change is under way.
    pub voters: Vec<BTreeSet<NodeId>>,
    /// Raft's learners.
    pub learners: BTreeSet<NodeId>,
    /// The members that the state records.
    pub members: Vec<Member>,
}

/// A member as the planner sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its id.
    pub id: NodeId,
    /// What it was invited to be.
    pub wish: Role,
    /// What tells its machine from others.
    pub host: String,
    /// Whether it acknowledges now and is at most a few entries behind.
    pub caught_up: bool,
    /// Whether it has been so for ten minutes.
    pub steady: bool,
}

/// One step: one membership change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Finish a change that was left half-done: the set that it was going to.
    Finish(BTreeSet<NodeId>),
    /// Replicate to a machine that was admitted.
    AddLearner(NodeId),
    /// Let exactly these vote; who loses the vote stays as learner.
    SetVoters(BTreeSet<NodeId>),
    /// Stop replicating to a machine that was removed.
    RemoveLearner(NodeId),
    /// The leader itself was removed: another one must lead.
    HandOver(NodeId),
}

/// Returns the next step, if one is due.
#[must_use]
pub fn plan(view: &View) -> Option<Step> {
    if let [_, .., target] = view.voters.as_slice() {
        return Some(Step::Finish(target.clone()));
    }
    let voters = view.voters.first()?;
    let is_member = |id: &NodeId| view.members.iter().any(|member| member.id == *id);
    let removed: BTreeSet<NodeId> = voters.iter().copied().filter(|id| !is_member(id)).collect();
    if removed.contains(&view.leader) {
        let successor = voters.iter().copied().find(|id| is_member(id) && ready(view, *id))?;
        return Some(Step::HandOver(successor));
    }
    if !removed.is_empty() {
        let rest: BTreeSet<NodeId> = voters.difference(&removed).copied().collect();
        return Some(Step::SetVoters(odd(view, rest)));
    }
    if let Some(id) = view.learners.iter().copied().find(|id| !is_member(id)) {
        return Some(Step::RemoveLearner(id));
    }
    let known = |id: NodeId| voters.contains(&id) || view.learners.contains(&id);
    if let Some(member) = view.members.iter().find(|member| !known(member.id)) {
        return Some(Step::AddLearner(member.id));
    }
    let target = odd(view, voters.clone());
    (target != *voters).then_some(Step::SetVoters(target))
}

/// Fills a voter set up to the default, if that makes it odd; else takes one away to make it odd.
fn odd(view: &View, mut voters: BTreeSet<NodeId>) -> BTreeSet<NodeId> {
    let candidates = candidates(view, &voters);
    let mut filled = voters.clone();
    filled.extend(candidates.iter().take(VOTERS.saturating_sub(voters.len())));
    if filled.len() % 2 == 1 {
        return filled;
    }
    if voters.len().is_multiple_of(2) {
        // Whoever is not ready first, then the highest id; never the leader.
        let spare = voters
            .iter()
            .rev()
            .copied()
            .filter(|id| *id != view.leader)
            .min_by_key(|id| ready(view, *id));
        if let Some(spare) = spare {
            voters.remove(&spare);
        }
    }
    voters
}

/// Returns who may become a voter, best first: own hosts before shared ones, then by id.
fn candidates(view: &View, voters: &BTreeSet<NodeId>) -> Vec<NodeId> {
    let mut hosts: BTreeSet<&str> = view
        .members
        .iter()
        .filter(|member| voters.contains(&member.id))
        .map(|member| member.host.as_str())
        .collect();
    let mut own = Vec::new();
    let mut shared = Vec::new();
    for member in &view.members {
        let eligible = member.caught_up
            && match member.wish {
                Role::Voter => true,
                Role::Auto => member.steady,
                Role::Learner => false,
            };
        if !eligible || voters.contains(&member.id) {
            continue;
        }
        if hosts.insert(member.host.as_str()) {
            own.push(member.id);
        } else {
            shared.push(member.id);
        }
    }
    own.extend(shared);
    own
}

fn ready(view: &View, id: NodeId) -> bool {
    id == view.leader || view.members.iter().any(|member| member.id == id && member.caught_up)
}
