//! Linearizable reads on any node: ask the leader for its index once, wait for it, look.
//!
//! Rounds are shared: one is in flight per node, and a read joins only a round that starts after it
//! arrived (traps.md 19). Leases are never used: their clock stops while a laptop sleeps. When no
//! quorum answers in time the local state answers, and says from when it is.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "whatever was not expected here is answered in one way, whichever it is"
)]

use std::future::Future;
use std::sync::Mutex;
use std::time::Duration;

use nexus_domain::{Fault, NodeId};
use openraft::ReadPolicy;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::core::Core;
use crate::rpc::message::{Answer, Call};
use crate::store::lock;
use crate::store::state::View;
use crate::transport::{Lane, Transport as _};
use crate::wire::{decode, encode};

/// How long one round may take before another is begun.
const ROUND_LIMIT: Duration = Duration::from_secs(2);
/// The pause after a round that failed.
const ROUND_PAUSE: Duration = Duration::from_millis(50);

/// Why a read failed.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The local state cannot be read.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// A value, and how fresh it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fresh<T> {
    /// What the query returned.
    pub value: T,
    /// The index of the last entry that it saw.
    pub applied: u64,
    /// Set when no quorum confirmed it.
    pub stale: Option<Stale>,
}

/// What is known of a stale answer's age.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stale {
    /// Until when the answer is known to have been true (milliseconds since 1970).
    pub as_of: Option<u64>,
    /// The same in words.
    pub note: String,
}

/// The rounds of this node.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    running: bool,
    waiting: Vec<oneshot::Sender<Result<Round, ()>>>,
}

/// A round that a quorum confirmed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    /// What a read must wait for.
    pub(crate) index: u64,
    /// When the round began.
    started_wall_millis: u64,
}

impl Core {
    /// Runs a query linearizably, or on the local state when no quorum answers in time.
    ///
    /// # Errors
    /// When the local state cannot be read.
    pub(crate) async fn read<T>(
        self: &std::sync::Arc<Self>,
        query: impl FnOnce(&View<'_>) -> Result<T, Fault> + Send,
    ) -> Result<Fresh<T>, ReadError> {
        let confirmed = self.confirm().await;
        let (value, applied) = self.state.view(|view| Ok((query(view)?, view.applied()?)))?;
        let stale = (!confirmed).then(|| self.staleness());
        Ok(Fresh { value, applied, stale })
    }

    /// Waits until the local state holds everything that was answered before now; false when no
    /// quorum says so in time.
    pub(crate) async fn confirm(self: &std::sync::Arc<Self>) -> bool {
        let patience = self.profile.patience();
        let begun = Instant::now();
        let failing = lock(&self.freshness).failing_since;
        if failing.is_some_and(|since| since.elapsed() >= patience) {
            // Known for longer than the bound: answer at once, and look again beside.
            let core = self.clone();
            self.jobs.spawn("read probe", async move {
                let _probed = core.round().await;
            });
            return false;
        }
        while begun.elapsed() < patience {
            let left = patience.saturating_sub(begun.elapsed());
            match tokio::time::timeout(left, self.round()).await {
                Ok(Ok(round)) => {
                    let left = patience.saturating_sub(begun.elapsed());
                    let applied = self.wait_applied(round.index, left).await;
                    if applied {
                        let mut freshness = lock(&self.freshness);
                        let known = freshness.confirmed_wall_millis;
                        freshness.confirmed_wall_millis =
                            known.max(Some(round.started_wall_millis));
                    }
                    return applied;
                }
                Ok(Err(())) => tokio::time::sleep(ROUND_PAUSE).await,
                Err(_elapsed) => return false,
            }
        }
        false
    }

    fn staleness(&self) -> Stale {
        let as_of = lock(&self.freshness).confirmed_wall_millis;
        let note = match as_of {
            Some(_) => "no quorum answers; this is what this node knew then".to_owned(),
            None => {
                let at = self.progress.applied.borrow().clock.at;
                format!(
                    "not known since this node's start; its last entry is of {at} (ms since 1970)"
                )
            }
        };
        Stale { as_of, note }
    }

    /// Joins the next round: returns the index that a read must wait for.
    pub(crate) fn round(
        self: &std::sync::Arc<Self>,
    ) -> impl Future<Output = Result<Round, ()>> + use<> {
        let (done, wait) = oneshot::channel();
        let mut queue = lock(&self.rounds.queue);
        queue.waiting.push(done);
        if !queue.running {
            queue.running = true;
            let core = self.clone();
            self.jobs.spawn("read index", async move { core.run_rounds().await });
        }
        drop(queue);
        async move { wait.await.map_err(|_gone| ()).and_then(|index| index) }
    }

    /// Runs rounds while somebody waits for one.
    async fn run_rounds(&self) {
        loop {
            let waiting = {
                let mut queue = lock(&self.rounds.queue);
                if queue.waiting.is_empty() {
                    queue.running = false;
                    return;
                }
                std::mem::take(&mut queue.waiting)
            };
            let started_wall = self.clock.wall_millis();
            let asked = tokio::time::timeout(ROUND_LIMIT, self.ask_index()).await;
            let index = asked.unwrap_or_else(|_elapsed| Err("no answer in time".to_owned()));
            {
                let mut freshness = lock(&self.freshness);
                match &index {
                    Ok(_) => freshness.failing_since = None,
                    Err(text) => {
                        tracing::debug!("read index: {text}");
                        freshness.failing_since.get_or_insert_with(Instant::now);
                    }
                }
            }
            for waiter in waiting {
                let index = match &index {
                    Ok(index) => Ok(Round { index: *index, started_wall_millis: started_wall }),
                    Err(_told) => Err(()),
                };
                // Who stopped waiting does not want to know.
                let _gone = waiter.send(index);
            }
        }
    }

    async fn ask_index(&self) -> Result<u64, String> {
        match self.leader() {
            None => Err("no leader is known".to_owned()),
            Some(leader) if leader == self.node => self.lead_index().await,
            Some(leader) => self.ask_leader(leader).await,
        }
    }

    /// The leader's part: confirms its leadership with a quorum and returns its read index.
    async fn lead_index(&self) -> Result<u64, String> {
        let linearizer = self.raft().get_read_linearizer(ReadPolicy::ReadIndex).await;
        let linearizer = linearizer.map_err(|error| error.to_string())?;
        Ok(linearizer.read_log_id().index())
    }

    async fn ask_leader(&self, leader: NodeId) -> Result<u64, String> {
        let call = encode(&Call::ReadIndex);
        let answer = self.link.call(leader, Lane::Rpc, call, ROUND_LIMIT).await;
        let bytes = answer.map_err(|error| error.to_string())?;
        match decode::<Answer>(&bytes)? {
            Answer::ReadIndex { index } => Ok(index),
            Answer::Failed { text, .. } => Err(text),
            _ => Err(format!("node {leader} answered something else")),
        }
    }
}
