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

use nexus_domain::Fault;
use openraft::ReadPolicy;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::core::Core;
use crate::rpc::message::{Answer, Call};
use crate::store::lock;
use crate::store::state::View;

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
        // Before the view is taken: what it says holds for views of later states only.
        let stale = (!confirmed).then(|| self.staleness());
        let (value, applied) = self.state.view(|view| Ok((query(view)?, view.applied()?)))?;
        Ok(Fresh { value, applied, stale })
    }

    /// Waits until the local state holds everything that was answered before now; false when no
    /// quorum says so in time.
    pub(crate) async fn confirm(self: &std::sync::Arc<Self>) -> bool {
        let patience = self.profile.patience();
        let begun = Instant::now();
        if self.hopeless() {
            // Known for longer than the bound: answer at once, and look again beside.
            self.probe();
            return false;
        }
        while begun.elapsed() < patience {
            let left = patience.saturating_sub(begun.elapsed());
            match tokio::time::timeout(left, self.round()).await {
                Ok(Ok(round)) => {
                    let left = patience.saturating_sub(begun.elapsed());
                    return self.wait_applied(round.index, left).await;
                }
                Ok(Err(())) => tokio::time::sleep(ROUND_PAUSE).await,
                Err(_elapsed) => return false,
            }
        }
        false
    }

    /// Returns whether it is known for longer than a failover takes that no leader answers.
    pub(crate) fn hopeless(&self) -> bool {
        self.freshness.failing_for().is_some_and(|failing| failing >= self.profile.patience())
    }

    /// Looks beside whether a leader answers again.
    pub(crate) fn probe(self: &std::sync::Arc<Self>) {
        let core = self.clone();
        self.jobs.spawn("read probe", async move {
            let _probed = core.round().await;
        });
    }

    fn staleness(&self) -> Stale {
        let as_of = self.freshness.as_of();
        let note = match as_of {
            Some(_) => "not confirmed by a leader; this is what this node knew then".to_owned(),
            None => {
                let at = self.progress.applied.borrow().clock.at;
                format!(
                    "a time before this node's start; its last entry is of {at} (ms since 1970)"
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
            let began = self.clock.boot_millis();
            let asked = tokio::time::timeout(self.profile.round(), self.ask_index()).await;
            let round = match asked.unwrap_or_else(|_elapsed| Err("no answer in time".to_owned())) {
                Ok(index) => {
                    self.freshness.confirmed(index, began);
                    Ok(Round { index })
                }
                Err(text) => {
                    tracing::debug!("read index: {text}");
                    self.freshness.failed();
                    Err(())
                }
            };
            for waiter in waiting {
                // Who stopped waiting does not want to know.
                let _gone = waiter.send(round);
            }
        }
    }

    async fn ask_index(&self) -> Result<u64, String> {
        if self.leads() {
            return self.lead_index().await;
        }
        match self.ask_leader(&Call::ReadIndex, self.profile.round()).await? {
            Answer::ReadIndex { index } => Ok(index),
            _ => Err("the leader answered something else".to_owned()),
        }
    }

    /// The leader's part: confirms its leadership with a quorum and returns its read index.
    async fn lead_index(&self) -> Result<u64, String> {
        let linearizer = self.raft().get_read_linearizer(ReadPolicy::ReadIndex).await;
        let linearizer = linearizer.map_err(|error| error.to_string())?;
        Ok(linearizer.read_log_id().index())
    }
}
