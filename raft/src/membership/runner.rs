//! Does what the planner says, on the leader, one change at a time.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use nexus_domain::command::ClusterCommand;
use nexus_domain::{Actor, Command, Fault, NodeId};
use openraft::Instant as _;
use openraft::async_runtime::WatchReceiver as _;
use openraft::{ChangeMembers, EmptyNode};
use tokio::time::Instant;

use super::plan::{Member, Step, View, plan};
use crate::core::{Core, Sighting};
use crate::propose::Request;
use crate::store::lock;
use crate::transport::Transport as _;

/// How often the planner looks when nothing wakes it.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long one change may take before the runner looks again.
const CHANGE_LIMIT: Duration = Duration::from_secs(10);
/// A member that is this many entries behind or fewer is caught up.
const CAUGHT_UP_ENTRIES: u64 = 64;
/// For how long a machine that was invited without a word must be steady before it votes.
const STEADY: Duration = Duration::from_secs(600);
/// A member that acknowledged within this time is up.
pub(super) const UP_WITHIN: Duration = Duration::from_secs(10);
/// After a failed change the runner pauses.
const FAILED_PAUSE: Duration = Duration::from_secs(1);

/// Runs until the node stops.
pub(crate) async fn run(core: Arc<Core>) {
    let mut leads = false;
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let now_leads = core.leads();
        if now_leads != leads {
            leads = now_leads;
            metrics::gauge!("nexus_leads").set(if leads { 1.0 } else { 0.0 });
            lock(&core.sightings).clear();
        }
        if !leads {
            continue;
        }
        core.sight();
        core.note_voters().await;
        core.note_nodes().await;
        let view = match core.planner_view() {
            Ok(view) => view,
            Err(fault) => {
                tracing::error!("membership: {fault}");
                continue;
            }
        };
        let Some(step) = plan(&view) else { continue };
        tracing::info!(?step, "membership: next step");
        match tokio::time::timeout(CHANGE_LIMIT, core.take_step(&step)).await {
            Ok(Ok(())) => tracing::info!(?step, "membership: done"),
            Ok(Err(text)) => {
                tracing::warn!(?step, "membership: {text}");
                tokio::time::sleep(FAILED_PAUSE).await;
            }
            Err(_elapsed) => tracing::warn!(?step, "membership: still under way, looking again"),
        }
    }
}

impl Core {
    /// Notes which members acknowledge, as the leader sees it.
    fn sight(&self) {
        let heard = self.heard_within(UP_WITHIN);
        let now = Instant::now();
        let wall = self.clock.wall_millis();
        let mut sightings = lock(&self.sightings);
        for (node, up) in heard {
            let first = Sighting { up, heard: up, since_wall_millis: wall, since: now };
            let entry = sightings.entry(node).or_insert(first);
            if entry.up != up {
                *entry = Sighting { heard: true, ..first };
            }
        }
    }

    /// Writes into the state who votes, when Raft's settled membership says otherwise: so
    /// promotions are events that people see.
    async fn note_voters(&self) {
        let voters: Vec<NodeId> = {
            let metrics = self.raft().metrics();
            let metrics = metrics.borrow_watched();
            let committed = metrics.committed_membership_config.membership();
            match committed.get_joint_config().as_slice() {
                [voters] => voters.iter().copied().collect(),
                _ => return,
            }
        };
        let members = |view: &crate::store::state::View<'_>| {
            let rows = nexus_domain::cluster::members(view)?;
            Ok((nexus_domain::cluster::voters(view)?, rows))
        };
        let Ok((noted, rows)) = self.state.view(members) else { return };
        let all_known = voters.iter().all(|id| rows.iter().any(|row| row.id == *id));
        if noted == voters || !all_known {
            return;
        }
        let command = Command::Cluster(ClusterCommand::Voters { voters });
        let noted = self.propose(Request { actor: Actor::Node, id: None, command }).await;
        if let Err(error) = noted {
            tracing::warn!("membership: voters cannot be noted: {error}");
        }
    }

    /// Returns for each member whether the leader heard an acknowledgement of it lately.
    fn heard_within(&self, limit: Duration) -> BTreeMap<NodeId, bool> {
        let metrics = self.raft().metrics();
        let metrics = metrics.borrow_watched();
        let mut heard = BTreeMap::new();
        for (id, _) in metrics.membership_config.nodes() {
            let acknowledged = metrics
                .heartbeat
                .as_ref()
                .and_then(|heartbeat| heartbeat.get(id))
                .and_then(|instant| instant.as_ref())
                .is_some_and(|instant| instant.elapsed() < limit);
            heard.insert(*id, *id == self.node || acknowledged);
        }
        heard
    }

    /// Returns how many entries a member is behind, as the leader knows it.
    pub(crate) fn lag(&self, node: NodeId) -> Option<u64> {
        if node == self.node {
            return Some(0);
        }
        let last = self.raft().metrics().borrow_watched().last_log_index.unwrap_or(0);
        Some(last.saturating_sub(self.matched(node)?))
    }

    /// Returns up to where a member has the log, as the leader knows it.
    pub(crate) fn matched(&self, node: NodeId) -> Option<u64> {
        let metrics = self.raft().metrics();
        let metrics = metrics.borrow_watched();
        let matched = metrics.replication.as_ref()?.get(&node)?;
        Some(matched.as_ref().map_or(0, |id| id.index))
    }

    fn planner_view(&self) -> Result<View, Fault> {
        let rows = self.state.view(|view| nexus_domain::cluster::members(view))?;
        let metrics = self.raft().server_metrics();
        let membership = metrics.borrow_watched().membership_config.clone();
        let sightings = lock(&self.sightings).clone();
        let members = rows
            .into_iter()
            .map(|row| {
                let sighting = sightings.get(&row.id).filter(|sighting| sighting.up);
                let near = self.lag(row.id).is_some_and(|lag| lag <= CAUGHT_UP_ENTRIES);
                Member {
                    id: row.id,
                    wish: row.role,
                    host: row.host,
                    caught_up: near && sighting.is_some(),
                    steady: near && sighting.is_some_and(|it| it.since.elapsed() >= STEADY),
                }
            })
            .collect();
        Ok(View {
            leader: self.node,
            voters: membership.membership().get_joint_config().clone(),
            learners: membership.membership().learner_ids().collect(),
            members,
        })
    }

    async fn take_step(&self, step: &Step) -> Result<(), String> {
        let raft = self.raft();
        let change = match step {
            Step::HandOver(to) => {
                let handed = raft.trigger().transfer_leader(*to).await;
                return handed.map_err(|error| error.to_string());
            }
            Step::AddLearner(id) => {
                let added = raft.add_learner(*id, EmptyNode::new(), false).await;
                return added.map(drop).map_err(|error| error.to_string());
            }
            Step::Finish(voters) | Step::SetVoters(voters) => {
                ChangeMembers::ReplaceAllVoters(voters.clone())
            }
            Step::RemoveLearner(id) => ChangeMembers::RemoveNodes(BTreeSet::from([*id])),
        };
        let changed = raft.change_membership(change, true).await;
        if let Step::RemoveLearner(id) = step {
            self.link.disconnect(*id);
        }
        changed.map(drop).map_err(|error| error.to_string())
    }
}
