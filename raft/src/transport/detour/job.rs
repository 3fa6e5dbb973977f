//! The job that looks after one way: it takes the detour, replaces it, and goes back.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::{Shared, silent_for};
use crate::store::lock;
use crate::transport::{NodeId, Transport as _};

/// How often the direct way is tried while there is a detour.
const PROBE_EVERY: Duration = Duration::from_secs(1);
/// A detour that nobody has used for so long is given up.
const UNUSED_MAX: Duration = Duration::from_secs(600);

/// The job that looks after one way, from the first silence until the node answers directly again
/// or nobody calls it any more.
pub(super) struct Watch {
    shared: Arc<Shared>,
    node: NodeId,
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut ways = lock(&self.shared.ways);
        let Some(way) = ways.get_mut(&self.node) else { return };
        (way.watched, way.detour) = (false, false);
    }
}

impl Watch {
    pub(super) fn new(shared: Arc<Shared>, node: NodeId) -> Self {
        Self { shared, node }
    }

    /// Runs until the way needs nobody.
    pub(super) async fn run(self) {
        let (shared, node) = (&self.shared, self.node);
        let (probed, mut found) = futures::join!(shared.probe(node), shared.find(node));
        if probed.is_ok() {
            return self.answers();
        }
        if let Err(text) = &found {
            tracing::debug!(node, "no way around was found: {text}");
            return self.pause();
        }
        self.begin();
        while found.is_ok() {
            self.next_look().await;
            let probed;
            (probed, found) = futures::join!(shared.probe(node), shared.find(node));
            if probed.is_ok() {
                tracing::info!(node, "answers directly again");
                return self.answers();
            }
            if self.is_unused() {
                tracing::debug!(node, "the way around is not used any more");
                return self.end();
            }
        }
        tracing::info!(node, "no way around is left: {}", found.err().unwrap_or_default());
        self.end();
        self.pause();
    }

    /// Takes the detour from now on: what still waits on the direct way is broken off.
    fn begin(&self) {
        let by = self.shared.circuits.newest(self.node).map(|(_, by)| by);
        tracing::info!(node = self.node, by, "does not answer directly: reached through a relay");
        metrics::counter!("nexus_detours_total").increment(1);
        {
            let mut ways = lock(&self.shared.ways);
            let way = ways.entry(self.node).or_default();
            (way.detour, way.carried) = (true, Some(Instant::now()));
            way.pause.reset();
        }
        self.shared.begun.send_modify(|begun| *begun = begun.wrapping_add(1));
        self.shared.direct.redial(self.node);
    }

    /// Goes directly again.
    fn answers(&self) {
        {
            let mut ways = lock(&self.shared.ways);
            let way = ways.entry(self.node).or_default();
            (way.answered, way.look_after) = (Some(Instant::now()), None);
            way.pause.reset();
        }
        self.end();
    }

    fn end(&self) {
        {
            let mut ways = lock(&self.shared.ways);
            ways.entry(self.node).or_default().detour = false;
        }
        self.shared.circuits.end_ours(self.node);
        self.shared.around.redial(self.node);
    }

    fn pause(&self) {
        let mut ways = lock(&self.shared.ways);
        let way = ways.entry(self.node).or_default();
        let pause = way.pause.next();
        way.look_after = Some(Instant::now() + pause);
    }

    /// Waits until it is time to try the direct way, or the circuit has ended or is in doubt.
    async fn next_look(&self) {
        let mut changes = self.shared.circuits.changes();
        let lost = async {
            while self.has_circuit() {
                if changes.changed().await.is_err() {
                    return;
                }
            }
        };
        // In time or not: both are a reason to look.
        let _lost = timeout(PROBE_EVERY, lost).await;
    }

    /// Returns whether there is a circuit that nobody doubts.
    fn has_circuit(&self) -> bool {
        let doubt = lock(&self.shared.ways).get(&self.node).is_some_and(|way| way.doubt);
        self.shared.circuits.newest(self.node).is_some() && !doubt
    }

    fn is_unused(&self) -> bool {
        let ways = lock(&self.shared.ways);
        ways.get(&self.node).is_none_or(|way| silent_for(way.used, UNUSED_MAX))
    }
}
