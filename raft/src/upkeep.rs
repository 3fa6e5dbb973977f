//! Snapshots and purging by our own rules (traps.md 18), and what peers showed, written down.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use openraft::EntryPayload;
use openraft::async_runtime::WatchReceiver as _;
use tokio::time::Instant;

use crate::core::Core;
use crate::machine::gauge;
use crate::retention::{self, KEEP_BYTES_MAX, KEEP_TICKS, Known};
use crate::store::log::LogStore;

/// How often upkeep looks.
const LOOK_EVERY: Duration =
    if cfg!(test) { Duration::from_millis(100) } else { Duration::from_secs(2) };
/// How often it looks how old the log is: some twenty reads of single entries.
const LOOK_AT_AGE_EVERY: Duration = Duration::from_secs(if cfg!(test) { 0 } else { 60 });
/// Entries without a time that may stand side by side: an election each.
const UNTIMED_ENTRIES_MAX: u64 = 64;

/// What upkeep remembers between two looks.
#[derive(Debug)]
struct Marks {
    /// The index of the newest snapshot, and of the one before: what followers keep their log from.
    newest: u64,
    before: u64,
    /// When the newest came to be, or another was tried last; `None`: not since the start.
    quiet_since: Option<Instant>,
    /// The last entry that is too old to be kept for anybody, and when that was looked at.
    aged: u64,
    aged_at: Option<Instant>,
}

/// Runs until the node stops.
pub(crate) async fn run(core: Arc<Core>) {
    let newest = core.newest_snapshot();
    let mut marks = Marks { newest, before: newest, quiet_since: None, aged: 0, aged_at: None };
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        core.book.applied(core.applied());
        core.note_acknowledgements();
        core.record_gauges();
        let saver = core.clone();
        if let Err(error) = core.jobs.blocking("save peers", move || saver.book.save()).await {
            tracing::debug!("peers: {error}");
        }
        let newest = core.newest_snapshot();
        if newest > marks.newest {
            (marks.before, marks.newest) = (marks.newest, newest);
            marks.quiet_since = Some(Instant::now());
        }
        let quiet = marks.quiet_since.map(|since| since.elapsed());
        if retention::snapshot_due(core.log.bytes_behind(marks.newest), quiet) {
            // What comes of it shows in the newest snapshot; openraft may put it off.
            marks.quiet_since = Some(Instant::now());
            core.snapshot().await;
        }
        core.purge(&mut marks).await;
    }
}

impl Core {
    /// Returns the index of the newest snapshot on this disk, 0 without one.
    fn newest_snapshot(&self) -> u64 {
        self.snapshots.newest_folder().map_or(0, |folder| folder.manifest().index())
    }

    /// Asks for a snapshot: first a flush in the background, so that the checkpoint's own is small.
    ///
    /// It may be put off, or fail; only the newest snapshot tells.
    pub(crate) async fn snapshot(&self) {
        let generation = self.state.current();
        let flushed = self.jobs.blocking("state flush", move || generation.flush()).await;
        let failed = match flushed {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.into_string()),
            Err(error) => Some(error.to_string()),
        };
        if let Some(text) = failed {
            // The checkpoint would flush in the worker, with everybody waiting, and fail there.
            tracing::warn!("state: flush failed: {text}; the snapshot is put off");
            return;
        }
        if let Err(error) = self.raft().trigger().snapshot().await {
            tracing::warn!("snapshot: {error}");
        }
    }

    /// Purges log that a snapshot holds durably and nobody known needs any more.
    async fn purge(&self, marks: &mut Marks) {
        let purged = self.log.purged().map_or(0, |id| id.index);
        let looked = marks.aged_at.is_some_and(|at| at.elapsed() < LOOK_AT_AGE_EVERY);
        if purged < marks.newest && !looked {
            marks.aged_at = Some(Instant::now());
            match self.aged_log(purged.max(marks.aged), marks.newest).await {
                Ok(aged) => marks.aged = aged,
                Err(error) => tracing::warn!("log: its age cannot be told: {error}"),
            }
        }
        let known = Known {
            purged,
            newest: marks.newest,
            before: marks.before,
            slowest: self.slowest_matched(),
            beyond: self.log.beyond_bytes(KEEP_BYTES_MAX),
            aged: marks.aged,
        };
        let Some(upto) = retention::purge_upto(&known) else { return };
        tracing::debug!(upto, ?known, "log: purged");
        if let Err(error) = self.raft().trigger().purge_log(upto).await {
            tracing::warn!("log: purge failed: {error}");
        }
    }

    /// Returns the last entry of `(after, upto]` that is older than log is kept.
    ///
    /// The cluster's clock goes on while nothing is written, so the log of an idle cluster ages.
    pub(crate) async fn aged_log(&self, after: u64, upto: u64) -> io::Result<u64> {
        let now = self.progress.applied.borrow().tick_now(self.clock.boot_millis());
        let Some(limit) = now.checked_sub(KEEP_TICKS) else { return Ok(after) };
        let log = self.log.clone();
        let look = move || retention::last_older(after, upto, limit, |index| tick_at(&log, index));
        self.jobs.blocking("log age", look).await.map_err(io::Error::other)?
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

/// Returns the tick of an entry, or of the next one that has any: what consensus writes for itself
/// has no time.
fn tick_at(log: &LogStore, index: u64) -> io::Result<Option<u64>> {
    for index in index..index.saturating_add(UNTIMED_ENTRIES_MAX) {
        let Some(entry) = log.entry(index)? else { return Ok(None) };
        if let EntryPayload::Normal(data) = &entry.payload {
            let entry = nexus_domain::codec::decode_entry(index, &data.0);
            return entry.map(|entry| Some(entry.stamp.tick)).map_err(io::Error::other);
        }
    }
    Ok(None)
}
