//! Whether a leader with a quorum is at work, for whoever asks this node before it sends calls.

use crate::cluster::Cluster;

impl Cluster {
    /// Returns why writes and fresh reads fail at present, and what to do about it; `None` while a
    /// leader with a quorum was at work a moment ago, as far as this node knows. It asks nobody.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        let core = &self.core;
        // A leader may be heard that has lost its quorum: then reads have failed for long.
        if core.cluster_works() && !core.hopeless() && core.refused().is_none() {
            return None;
        }
        Some(core.who_is_missing())
    }

    /// Looks whether a leader answers again, without waiting for it: [`Self::trouble`] would else
    /// go on until somebody reads or writes.
    pub fn look_for_leader(&self) {
        self.core.probe();
    }
}
