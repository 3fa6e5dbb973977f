//! Computing the status: the leader's view, or what this node alone can say.

use std::sync::Arc;
use std::time::Duration;

use nexus_domain::NodeId;

use crate::core::Core;
use crate::rpc::message::{Answer, Call};
use crate::status::{MemberRole, MemberState, MemberStatus, Status};
use crate::store::lock;
use openraft::Instant as _;
use openraft::async_runtime::WatchReceiver as _;

/// How long a member counts as up after its last sign, while no leader is heard: some turns of
/// `seek`, which asks everybody each second, slow answers and lost packets included.
const SIGN_LASTS: Duration = Duration::from_secs(10);

impl Core {
    /// Returns the leader's status, asked from it; a local view marked stale without one.
    pub(crate) async fn status(self: &Arc<Self>) -> Status {
        if let Some(status) = self.lead_status() {
            return status;
        }
        // Known for longer than the bound: answer at once, and look again beside.
        if self.hopeless() {
            self.probe();
        } else {
            let limit = self.profile.round();
            let asked = tokio::time::timeout(limit, self.ask_leader(&Call::Status, limit));
            if let Ok(Ok(Answer::Status(status))) = asked.await {
                return Status { node: self.node, ..status };
            }
        }
        // Before the state is looked at: what it says holds for later states only.
        let as_of = self.freshness.as_of();
        Status { stale: true, as_of, refused: self.refused(), ..self.local_status() }
    }

    /// Returns the status if this node leads and a quorum has acknowledged it lately.
    pub(crate) fn lead_status(&self) -> Option<Status> {
        self.leads_quorum().then(|| self.local_status())
    }

    /// Returns whether this node leads and a quorum has acknowledged it lately.
    pub(crate) fn leads_quorum(&self) -> bool {
        if !self.leads() {
            return false;
        }
        let metrics = self.raft().metrics();
        let acknowledged = metrics.borrow_watched().last_quorum_acked;
        let patience = self.profile.patience();
        // A sole voter needs nobody's acknowledgement.
        let alone = metrics.borrow_watched().membership_config.voter_ids().eq([self.node]);
        alone || acknowledged.is_none_or(|instant| instant.elapsed() < patience)
    }

    /// Returns what this node alone can say.
    pub(crate) fn local_status(&self) -> Status {
        let rows = self.state.view(|view| nexus_domain::cluster::members(view)).unwrap_or_default();
        let metrics = self.raft().metrics().borrow_watched().clone();
        let membership = metrics.membership_config.membership();
        let voters: Vec<NodeId> = membership.voter_ids().collect();
        let leads = metrics.current_leader == Some(self.node);
        let members: Vec<MemberStatus> = rows
            .into_iter()
            .map(|row| {
                let role =
                    if voters.contains(&row.id) { MemberRole::Voter } else { MemberRole::Learner };
                let (state, since) = self.member_state(row.id, leads, row.boot);
                MemberStatus {
                    id: row.id,
                    name: row.name,
                    role,
                    state,
                    addresses: row.addresses,
                    version: row.software,
                    lag: self.lag(row.id).unwrap_or(0),
                    since,
                }
            })
            .collect();
        let quorum = voters.len() / 2 + 1;
        let up = members
            .iter()
            .filter(|member| member.role == MemberRole::Voter && member.state == MemberState::Up)
            .count();
        Status {
            cluster: self.book.myself().cluster.clone(),
            node: self.node,
            leader: metrics.current_leader,
            term: metrics.current_term,
            applied: self.applied(),
            quorum: u64::try_from(quorum).unwrap_or(0),
            tolerance: u64::try_from(up.saturating_sub(quorum)).unwrap_or(0),
            stale: false,
            as_of: None,
            members,
            differs: lock(&self.difference).clone(),
            refused: None,
        }
    }

    fn member_state(&self, node: NodeId, leads: bool, boot: u64) -> (MemberState, u64) {
        if node == self.node {
            return (MemberState::Up, 0);
        }
        let sighting = lock(&self.sightings).get(&node).copied();
        match sighting {
            _ if boot == 0 => (MemberState::Joining, 0),
            Some(sighting) if leads => {
                let state = if sighting.up { MemberState::Up } else { MemberState::Down };
                (state, sighting.since_wall_millis)
            }
            // A new leader has not heard from everybody yet; a follower asks the leader.
            Some(_) | None if self.hears_leader() => (MemberState::Up, 0),
            // Raft goes on naming a leader that died: what counts is who answers `seek`.
            Some(_) | None if self.reach.gave_sign(node, SIGN_LASTS) => (MemberState::Up, 0),
            Some(_) | None => (MemberState::Down, 0),
        }
    }
}
