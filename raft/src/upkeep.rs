//! Snapshots and purging by our own rules (traps.md 18), and what peers showed, written down.

use std::sync::Arc;
use std::time::Duration;

use openraft::async_runtime::WatchReceiver as _;
use tokio::time::Instant;

use crate::core::Core;
use crate::machine::gauge;

/// How often upkeep looks.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Log bytes since the last snapshot that make another one due.
const SNAPSHOT_LOG_BYTES: u64 = 64 << 20;
/// The least time between two snapshots.
const SNAPSHOT_EVERY_MIN: Duration = Duration::from_secs(60);
/// Log that is kept for the slowest known member.
const KEEP_BYTES_MAX: u64 = 512 << 20;
/// Entries that are purged at once at least: each purge is a range tombstone.
const PURGE_ENTRIES_MIN: u64 = 1000;

/// What upkeep remembers between two looks.
#[derive(Debug)]
struct Marks {
    bytes_at_snapshot: u64,
    snapshot_at: Instant,
    /// The index of the snapshot before the newest: what followers keep their log from.
    before: u64,
    newest: u64,
}

/// Runs until the node stops.
pub(crate) async fn run(core: Arc<Core>) {
    let newest = core.snapshots.newest_folder().map_or(0, |folder| folder.manifest().index());
    let mut marks =
        Marks { bytes_at_snapshot: 0, snapshot_at: Instant::now(), before: newest, newest };
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        core.book.applied(core.applied());
        core.note_acknowledgements();
        core.record_gauges();
        let saver = core.clone();
        if let Err(error) = core.jobs.blocking("save peers", move || saver.book.save()).await {
            tracing::debug!("peers: {error}");
        }
        let written = core.log.appended_bytes().saturating_sub(marks.bytes_at_snapshot);
        if written >= SNAPSHOT_LOG_BYTES && marks.snapshot_at.elapsed() >= SNAPSHOT_EVERY_MIN {
            marks.bytes_at_snapshot = core.log.appended_bytes();
            marks.snapshot_at = Instant::now();
            core.snapshot().await;
        }
        let newest = core.snapshots.newest_folder().map_or(0, |folder| folder.manifest().index());
        if newest > marks.newest {
            (marks.before, marks.newest) = (marks.newest, newest);
        }
        core.purge(&marks).await;
    }
}

impl Core {
    /// Takes a snapshot: first a flush in the background, so that the checkpoint's own is small.
    pub(crate) async fn snapshot(&self) {
        let generation = self.state.current();
        let flushed = self.jobs.blocking("state flush", move || generation.flush()).await;
        match flushed {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!("state: flush failed: {}", error.into_string()),
            Err(error) => tracing::warn!("state: flush failed: {error}"),
        }
        if let Err(error) = self.raft().trigger().snapshot().await {
            tracing::warn!("snapshot: {error}");
        }
    }

    /// Purges log that a snapshot holds durably and nobody known needs any more.
    async fn purge(&self, marks: &Marks) {
        let purged = self.log.purged().map_or(0, |id| id.index);
        let crowded = self.log.disk_bytes() > KEEP_BYTES_MAX;
        let upto = if crowded {
            marks.newest
        } else {
            self.slowest_matched().map_or(marks.before, |slowest| slowest.min(marks.newest))
        };
        if upto < purged.saturating_add(PURGE_ENTRIES_MIN) {
            return;
        }
        if let Err(error) = self.raft().trigger().purge_log(upto).await {
            tracing::warn!("log: purge failed: {error}");
        }
    }

    /// Returns up to where the slowest member has the log, while this node leads.
    fn slowest_matched(&self) -> Option<u64> {
        let metrics = self.raft().metrics();
        let metrics = metrics.borrow_watched();
        let replication = metrics.replication.as_ref()?;
        let matched = |id: &Option<crate::types::LogId>| id.map_or(0, |id| id.index);
        replication.values().map(matched).min()
    }

    /// Notes what members acknowledged to this node as leader (traps.md 23).
    fn note_acknowledgements(&self) {
        let metrics = self.raft().metrics();
        let metrics = metrics.borrow_watched();
        for (node, matched) in metrics.replication.iter().flatten() {
            if let Some(id) = matched
                && *node != self.node
            {
                self.book.acknowledged(*node, id.leader_id.term, id.index);
            }
        }
    }

    fn record_gauges(&self) {
        let status = self.local_status();
        metrics::gauge!("nexus_term").set(gauge(status.term));
        metrics::gauge!("nexus_tolerance").set(gauge(status.tolerance));
        for member in &status.members {
            let node = member.id.to_string();
            metrics::gauge!("nexus_member_lag_entries", "node" => node).set(gauge(member.lag));
        }
    }
}
