//! Until when what this node knows is known to have been everything (traps.md 19).
//!
//! Two things show it: a read index that was asked for at a time, and a quorum's acknowledgement of
//! the leader, of which the leader tells with its heartbeats. Both name an index; they count once
//! the state has applied it.
//!
//! Times are on this node's suspend-aware clock, and are never later than the truth. A leader's
//! word may be old when it is read, by hours after a sleep, so its arrival says nothing. Instead a
//! follower says its own time with each acknowledgement, and the leader tells how much later than
//! one of these, that had reached it before, the quorum's acknowledgement was. Delays on the way
//! and a leader that slept only make the result earlier.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use nexus_domain::NodeId;
use nexus_rt::Clock;
use openraft::async_runtime::WatchReceiver as _;
use openraft::metrics::RaftMetrics;
use openraft::type_config::alias::WatchReceiverOf;
use openraft::{Instant as _, TokioInstant};
use tokio::time::Instant;

use crate::machine::Progress;
use crate::rpc::message::{Moment, WireQuorum};
use crate::store::lock;
use crate::types::{LeaderId, TypeConfig};

/// Facts that wait for their index: with one a heartbeat those of some seconds. When there are
/// more, the newest takes the place of the one before.
const WAITING_MAX: usize = 64;
/// Acknowledgements remembered of each member: with one a heartbeat those of a second or more. A
/// quorum's acknowledgement that is older than all of them is not told: an earlier word did.
const ECHOES_MAX: usize = 16;

type Metrics = WatchReceiverOf<TypeConfig, RaftMetrics<TypeConfig>>;

/// What is known of how fresh the local state is, and what this node as leader tells others of it.
pub(crate) struct Freshness {
    node: NodeId,
    boot: u64,
    clock: Arc<dyn Clock>,
    progress: Arc<Progress>,
    /// Set once, when Raft is made.
    metrics: OnceLock<Metrics>,
    facts: Mutex<Facts>,
    /// What members said of their clocks, and when it came in, oldest first.
    echoes: Mutex<BTreeMap<NodeId, VecDeque<(Moment, TokioInstant)>>>,
    /// Since when rounds have failed without a success.
    failing_since: Mutex<Option<Instant>>,
}

impl std::fmt::Debug for Freshness {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Freshness").field("facts", &self.facts).finish_non_exhaustive()
    }
}

/// Everything that was answered before a time stands at or below an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fact {
    index: u64,
    millis: u64,
}

#[derive(Debug, Default)]
struct Facts {
    /// The latest time of those whose index was applied.
    known: Option<u64>,
    /// The others, by index and by time alike.
    waiting: VecDeque<Fact>,
}

impl Facts {
    fn learn(&mut self, fact: Fact) {
        let says_less = |last: &Fact| last.index >= fact.index && last.millis <= fact.millis;
        while self.waiting.back().is_some_and(says_less) {
            self.waiting.pop_back();
        }
        if self.waiting.back().is_some_and(|last| last.millis >= fact.millis) {
            return;
        }
        if self.waiting.len() >= WAITING_MAX {
            self.waiting.pop_back();
        }
        self.waiting.push_back(fact);
    }

    /// Takes what counts now, and returns the latest time.
    fn known(&mut self, applied: u64) -> Option<u64> {
        while let Some(first) = self.waiting.front().filter(|first| first.index <= applied) {
            self.known = self.known.max(Some(first.millis));
            self.waiting.pop_front();
        }
        self.known
    }
}

impl Freshness {
    /// Knows nothing yet.
    pub(crate) fn new(
        node: NodeId,
        boot: u64,
        clock: Arc<dyn Clock>,
        progress: Arc<Progress>,
    ) -> Self {
        Self {
            node,
            boot,
            clock,
            progress,
            metrics: OnceLock::new(),
            facts: Mutex::default(),
            echoes: Mutex::default(),
            failing_since: Mutex::default(),
        }
    }

    /// Sets where Raft reports; a second one is ignored.
    pub(crate) fn set_metrics(&self, metrics: Metrics) {
        drop(self.metrics.set(metrics));
    }

    /// Notes that a round which began then (on the suspend-aware clock) gave this index.
    pub(crate) fn confirmed(&self, index: u64, began_millis: u64) {
        self.learn(Fact { index, millis: began_millis });
        self.hopeful();
    }

    fn learn(&self, fact: Fact) {
        let mut facts = lock(&self.facts);
        // What counts already makes room first.
        facts.known(self.progress.applied.borrow().index());
        facts.learn(fact);
    }

    /// Returns the wall time until which any view of the state that is taken from now on is known
    /// to be complete.
    pub(crate) fn as_of(&self) -> Option<u64> {
        let known = lock(&self.facts).known(self.progress.applied.borrow().index())?;
        let ago = self.clock.boot_millis().saturating_sub(known);
        Some(self.clock.wall_millis().saturating_sub(ago))
    }

    /// Notes that a round failed.
    pub(crate) fn failed(&self) {
        lock(&self.failing_since).get_or_insert_with(Instant::now);
    }

    /// Forgets that rounds failed: there is a leader again, or a quorum has shown itself.
    pub(crate) fn hopeful(&self) {
        *lock(&self.failing_since) = None;
    }

    /// Returns for how long rounds have failed without a success.
    pub(crate) fn failing_for(&self) -> Option<Duration> {
        lock(&self.failing_since).map(|since| since.elapsed())
    }

    /// Returns what an acknowledgement says of this node's clock.
    pub(crate) fn moment(&self) -> Moment {
        Moment { boot: self.boot, millis: self.clock.boot_millis() }
    }

    /// Takes a leader's word.
    pub(crate) fn told(&self, word: WireQuorum) {
        if word.echo.boot != self.boot {
            return;
        }
        let millis = word.echo.millis.saturating_add(word.after_millis);
        if millis <= self.clock.boot_millis() {
            self.learn(Fact { index: word.commit, millis });
        }
    }

    /// Notes what a member said of its clock in an acknowledgement that has just come in.
    pub(crate) fn heard(&self, member: NodeId, moment: Moment) {
        self.heard_at(member, moment, TokioInstant::now());
    }

    fn heard_at(&self, member: NodeId, moment: Moment, at: TokioInstant) {
        let mut echoes = lock(&self.echoes);
        let kept = echoes.entry(member).or_default();
        if kept.len() >= ECHOES_MAX {
            kept.pop_front();
        }
        kept.push_back((moment, at));
    }

    /// Forgets members that are gone.
    pub(crate) fn forget(&self, gone: &[NodeId]) {
        lock(&self.echoes).retain(|member, _| !gone.contains(member));
    }

    /// Returns this leader's word for a member, and takes it itself.
    pub(crate) fn word_for(&self, member: NodeId) -> Option<WireQuorum> {
        let (acknowledged, commit) = self.quorum()?;
        // The leader is a member like any other; what it says of its clock comes in at once.
        self.heard(self.node, self.moment());
        if let Some(own) = self.word(self.node, acknowledged, commit) {
            self.told(own);
        }
        self.word(member, acknowledged, commit)
    }

    fn word(&self, member: NodeId, acknowledged: TokioInstant, commit: u64) -> Option<WireQuorum> {
        let echoes = lock(&self.echoes);
        let before = echoes.get(&member)?.iter().rev().find(|(_, came)| *came <= acknowledged);
        let (echo, came) = *before?;
        let after = (acknowledged - came).as_millis();
        Some(WireQuorum { commit, echo, after_millis: u64::try_from(after).unwrap_or(0) })
    }

    /// Returns when a quorum last acknowledged this node as leader, and what is committed.
    ///
    /// Both are of one report, so the index is at least what was committed at that time. It covers
    /// what earlier leaders answered only once something of this leadership is committed.
    fn quorum(&self) -> Option<(TokioInstant, u64)> {
        let metrics = self.metrics.get()?;
        let metrics = metrics.borrow_watched();
        let commit = metrics.local_committed?;
        let own = LeaderId { term: metrics.current_term, node_id: self.node };
        if metrics.current_leader != Some(self.node) || commit.leader_id != own {
            return None;
        }
        Some((metrics.last_quorum_acked?.into_inner(), commit.index))
    }
}

#[cfg(test)]
mod tests;
