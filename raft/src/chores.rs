//! The leader's and the node's small duties: timers, the people's clock, versions, and what each
//! node says of itself after a start.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use nexus_domain::command::ClusterCommand;
use nexus_domain::{Actor, Command, NodeId, SUPPORTED, SystemCommand};
use openraft::async_runtime::WatchReceiver as _;

use crate::core::Core;
use crate::propose::Request;
use crate::rpc::message::{Answer, Call};
use crate::store::lock;
use crate::transport::Transport as _;

/// How long the leader sleeps at most before it looks at the first due thing again.
const LOOK_AT_LEAST_EVERY: Duration = Duration::from_secs(30);
/// How often a node without a leader asks where the others are.
const SEEK_EVERY: Duration = Duration::from_secs(1);
/// How many are asked at once: all of a small cluster, and in a large one dead members, which take
/// their whole time, hold up no more than a few.
const SEEK_AT_ONCE: usize = 8;
/// How long a member may take to say it.
const SEEK_LIMIT: Duration = Duration::from_secs(1);
/// The pause after a proposal of its own failed.
const FAILED_PAUSE: Duration = Duration::from_secs(2);
/// A clock that differs by more than this from another member's is not trusted with a step.
const CLOCKS_AGREE_MILLIS: u64 = 60_000;

/// Renews what is kept in memory beside the state, as members change.
pub(crate) async fn follow_state(core: Arc<Core>) {
    let mut members = core.progress.members.subscribe();
    loop {
        core.renew_book();
        if members.changed().await.is_err() {
            return;
        }
    }
}

/// Fires what is due, steps the people's clock and raises the state version, while this node leads.
pub(crate) async fn lead(core: Arc<Core>) {
    let mut duties = core.progress.duties.subscribe();
    loop {
        // Before it looks: what changes meanwhile makes it look again.
        duties.mark_unchanged();
        let Some(wait) = core.next_duty().await else {
            core.leader_change(core.leader(), LOOK_AT_LEAST_EVERY).await;
            continue;
        };
        let _earlier = tokio::time::timeout(wait, duties.changed()).await;
    }
}

/// While this node knows no leader, does not hear it or does not reach it directly, asks the
/// members where the others are: two whose addresses both changed find each other through a third.
/// The leader is asked too, and its answer ends the use of a relay.
pub(crate) async fn seek(core: Arc<Core>) {
    loop {
        tokio::time::sleep(SEEK_EVERY).await;
        let leader = core.leader();
        let lost = leader.is_none() || core.reach.lost() == leader || !core.hears_leader();
        if !lost && core.freshness.failing_for().is_none() {
            continue;
        }
        let mut members = core.book.others();
        members.sort_by_key(|member| Some(*member) != leader);
        let asking = futures::stream::iter(members);
        asking.for_each_concurrent(SEEK_AT_ONCE, |member| core.ask_addresses(member)).await;
    }
}

/// Says once that this node has started, and what it is, and keeps trying until it is in the log.
pub(crate) async fn announce(
    core: Arc<Core>,
    founding: Option<ClusterCommand>,
    describe: ClusterCommand,
) {
    let myself = core.book.myself();
    let started = Command::System(SystemCommand::Started {
        boot: myself.boot,
        nonce: myself.nonce,
        supports: SUPPORTED,
        software: myself.software.clone(),
    });
    let founded = core.state.view(|view| nexus_domain::cluster::info(view));
    let founding = founding.filter(|_| matches!(founded, Ok(None)));
    let describe = Command::Cluster(describe);
    let commands = [founding.map(Command::Cluster), Some(started), Some(describe)];
    for command in commands.into_iter().flatten() {
        let kind = command.kind();
        loop {
            let request = Request { actor: Actor::Node, id: None, command: command.clone() };
            match core.propose(request).await {
                Ok(_) => break,
                Err(crate::propose::ProposeError::Rejected(rejection)) => {
                    tracing::error!("{kind}: {rejection}");
                    break;
                }
                Err(error) => {
                    tracing::debug!("{kind}: {error}");
                    core.leader_change(core.leader(), FAILED_PAUSE).await;
                }
            }
        }
    }
}

impl Core {
    /// Asks a member where the others are, and notes what it says.
    async fn ask_addresses(&self, member: NodeId) {
        let answer = self.ask(member, &Call::Addresses, SEEK_LIMIT).await;
        let Ok(Answer::Addresses(all)) = answer else { return };
        for place in all {
            let addresses: Vec<SocketAddr> =
                place.addresses.iter().filter_map(|address| address.parse().ok()).collect();
            if place.node != self.node {
                self.book.hint(Some(place.node), &addresses);
            }
        }
    }

    fn renew_book(&self) {
        match self.book.renew(&self.state) {
            // Who was removed is cut off at once, long streams included.
            Ok(gone) => {
                self.reach.forget(&gone);
                self.freshness.forget(&gone);
                gone.into_iter().for_each(|node| self.link.disconnect(node));
            }
            Err(fault) => tracing::error!("members: {fault}"),
        }
    }

    /// Does what is due now and returns for how long nothing is; `None` when this node does not
    /// lead.
    async fn next_duty(&self) -> Option<Duration> {
        if !self.leads() {
            return None;
        }
        // The term's own first entry must be applied: only then is the index what the leader sees.
        if !self.first_entry_applied() {
            return Some(Duration::from_millis(20));
        }
        match self.duty() {
            Ok(Ok(command)) => {
                let kind = command.kind();
                let request = Request { actor: Actor::Node, id: None, command };
                match self.propose(request).await {
                    Ok(_) => Some(Duration::ZERO),
                    Err(error) => {
                        tracing::debug!("{kind}: {error}");
                        Some(FAILED_PAUSE)
                    }
                }
            }
            Ok(Err(wait)) => Some(wait),
            Err(fault) => {
                tracing::error!("timers: {fault}");
                Some(LOOK_AT_LEAST_EVERY)
            }
        }
    }

    fn first_entry_applied(&self) -> bool {
        // The whole id: one term can have two leaders, one after the other.
        let leader = self.raft().server_metrics().borrow_watched().vote.leader_id;
        self.progress.applied.borrow().id.is_some_and(|id| id.leader_id == leader)
    }

    /// Returns the command that is due, or for how long none is.
    fn duty(&self) -> Result<Result<Command, Duration>, nexus_domain::Fault> {
        let wall = self.clock.wall_millis();
        let (tick, at) = self.stamp();
        let now = nexus_domain::clock::Clock { tick, at };
        let (first, supported, version) = self.state.view(|view| {
            Ok((
                nexus_domain::due::first(view)?,
                nexus_domain::system::supported_by_all(view, tick)?,
                nexus_domain::system::state_version(view)?,
            ))
        })?;
        if let Some(at) = nexus_domain::clock::needs_step(now, wall)
            && self.clocks_agree()
        {
            return Ok(Ok(Command::System(SystemCommand::ClockStep { at })));
        }
        // Never beyond what this program itself can apply, whatever an older start of it said.
        if supported.min(SUPPORTED) > version {
            let to = version.saturating_add(1);
            return Ok(Ok(Command::System(SystemCommand::Upgrade { to })));
        }
        let Some(due) = first else { return Ok(Err(LOOK_AT_LEAST_EVERY)) };
        if due.due > tick {
            let wait = Duration::from_millis(due.due.saturating_sub(tick));
            return Ok(Err(wait.min(LOOK_AT_LEAST_EVERY)));
        }
        Ok(Ok(Command::System(SystemCommand::Fire {
            due: due.due,
            kind: due.kind,
            id: due.id,
            generation: due.generation,
        })))
    }

    /// Returns whether the clocks of most members that are up agree with ours (traps.md 4).
    fn clocks_agree(&self) -> bool {
        let up: Vec<u64> = lock(&self.sightings)
            .iter()
            .filter(|(node, sighting)| **node != self.node && sighting.up)
            .map(|(node, _)| *node)
            .collect();
        let clocks = self.book.clocks();
        let agree = up
            .iter()
            .filter(|node| {
                clocks.get(node).is_some_and(|ahead| ahead.unsigned_abs() <= CLOCKS_AGREE_MILLIS)
            })
            .count();
        // Ours agrees with itself.
        agree.saturating_add(1).saturating_mul(2) > up.len().saturating_add(1)
    }
}
