//! openraft's state machine over the domain: decode, apply, write one batch, answer, tell.
//!
//! Nothing is applied before its log entry is on this disk (traps.md 1). A batch ends at 64
//! entries, at an index that is a multiple of 64 (digests are compared there, traps.md 22), at 4
//! MiB, or when no further entry is ready. A fault drops the batch and stops the node (traps.md
//! 11).

use std::io;
use std::sync::Arc;

use futures::{FutureExt as _, Stream, StreamExt as _};
use nexus_domain::{Event, Overlay};
use openraft::entry::RaftEntry as _;
use openraft::storage::{ApplyResponder, EntryResponder, RaftStateMachine};
use openraft::{EntryPayload, OptionalSend};
use tokio::sync::{broadcast, watch};

use nexus_rt::Clock;

use crate::cluster::fatal_text;
use crate::snapshot::{Builder, SnapshotFolder, Snapshots};
use crate::store::StoreError;
use crate::store::log::LogStore;
use crate::store::rocks::Direct;
use crate::store::state::{Generation, StateStore};
use crate::types::{LogEntry, LogId, Outcome, SnapshotMeta, StoredMembership, TypeConfig};

/// Entries of one write batch: digests are taken at multiples of it.
const BATCH_ENTRIES: u64 = 64;
/// Bytes of one write batch.
const BATCH_BYTES_MAX: usize = 4 << 20;
/// Hints that a slow listener may fall behind; then it gets a reset instead.
const HINTS_MAX: usize = 1024;

/// What changed, for those who wait: a hint, never the truth (traps.md 10).
#[derive(Clone, Debug)]
pub enum Hint {
    /// Entries were applied.
    Applied {
        /// The first of them.
        first: u64,
        /// The last of them.
        last: u64,
        /// What they say to have changed.
        events: Arc<[Event]>,
    },
    /// Anything may have changed: a start, an installed snapshot.
    Reset,
}

/// Where the state stands, and when it got there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Applied {
    pub(crate) id: Option<LogId>,
    /// Suspend-aware milliseconds at which the last entry was applied here.
    pub(crate) boot_millis: u64,
    /// The cluster's clock after it.
    pub(crate) clock: nexus_domain::clock::Clock,
}

impl Applied {
    /// Returns the applied index, 0 before the first.
    pub(crate) fn index(&self) -> u64 {
        self.id.map_or(0, |id| id.index)
    }

    /// Returns the cluster's tick as this node counts on from the last entry; `boot_millis` is its
    /// suspend-aware clock now.
    pub(crate) fn tick_now(&self, boot_millis: u64) -> u64 {
        self.clock.tick.saturating_add(boot_millis.saturating_sub(self.boot_millis))
    }
}

/// What the state machine tells the rest of the node.
#[derive(Debug)]
pub(crate) struct Progress {
    pub(crate) applied: watch::Sender<Applied>,
    hints: broadcast::Sender<Hint>,
    /// Told when members, names, addresses or invites may have changed: few wait for every entry.
    pub(crate) members: watch::Sender<()>,
    /// Told when the leader may have something else to do next.
    pub(crate) duties: watch::Sender<()>,
    pub(crate) fatal: watch::Sender<Option<String>>,
    /// Whether a test keeps the state machine waiting.
    #[cfg(test)]
    pub(crate) stalled: watch::Sender<bool>,
    /// How many snapshots were put off.
    #[cfg(test)]
    pub(crate) put_off: watch::Sender<u64>,
}

impl Progress {
    /// Makes the channels.
    pub(crate) fn new() -> Self {
        Self {
            applied: watch::Sender::new(Applied::default()),
            hints: broadcast::Sender::new(HINTS_MAX),
            members: watch::Sender::new(()),
            duties: watch::Sender::new(()),
            fatal: watch::Sender::new(None),
            #[cfg(test)]
            stalled: watch::Sender::new(false),
            #[cfg(test)]
            put_off: watch::Sender::new(0),
        }
    }

    /// Returns hints of what changes from now on.
    pub(crate) fn hints(&self) -> broadcast::Receiver<Hint> {
        self.hints.subscribe()
    }

    /// Tells everybody whom a hint concerns.
    fn tell(&self, hint: Hint) {
        let (members, duties) = match &hint {
            Hint::Applied { events, .. } => {
                let members = events.iter().any(|event| matches!(event, Event::Members { .. }));
                let due = |event: &Event| matches!(event, Event::Due | Event::Version);
                (members, members || events.iter().any(due))
            }
            Hint::Reset => (true, true),
        };
        if members {
            self.members.send_replace(());
        }
        if duties {
            self.duties.send_replace(());
        }
        // Nobody listening is no error.
        drop(self.hints.send(hint));
    }

    /// Has the node stopped with a message; the first one stays.
    pub(crate) fn stop(&self, text: String) {
        self.fatal.send_if_modified(|fatal| {
            let first = fatal.is_none();
            fatal.get_or_insert(text);
            first
        });
    }
}

/// openraft's state machine.
#[derive(Debug)]
pub(crate) struct Machine {
    state: Arc<StateStore>,
    log: LogStore,
    snapshots: Arc<Snapshots>,
    progress: Arc<Progress>,
    clock: Arc<dyn Clock>,
    membership: StoredMembership,
}

/// One entry of a batch and who waits for it.
type Item = (LogEntry, Option<ApplyResponder<TypeConfig>>);

impl Machine {
    /// Makes the state machine over open stores.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when the state cannot be read, or does not fit the log: then this
    /// member must be replaced; [`StoreError::TooNew`] when another program has gone on with it.
    pub(crate) fn new(
        state: Arc<StateStore>,
        log: LogStore,
        snapshots: Arc<Snapshots>,
        progress: Arc<Progress>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        let generation = state.current();
        let path = generation.path();
        let damaged = |text: String| StoreError::Damaged { path: path.to_owned(), text };
        let (applied, membership) =
            generation.position().map_err(|error| damaged(error.to_string()))?;
        let snapshot = snapshots.newest_folder().map(|folder| folder.manifest().index());
        fits(applied.map(|id| id.index), &log, snapshot).map_err(damaged)?;
        nexus_domain::system::known_version(&*generation)
            .map_err(|fault| StoreError::fault(path, &fault))?;
        let machine = Self { state, log, snapshots, progress, clock, membership };
        machine.show_applied(applied).map_err(|fault| StoreError::fault(path, &fault))?;
        Ok(machine)
    }

    /// Shows where the state stands now, and what its clock says.
    fn show_applied(&self, id: Option<LogId>) -> Result<(), nexus_domain::Fault> {
        let clock = nexus_domain::clock::clock(&*self.state.current())?;
        let before = *self.progress.applied.borrow();
        // Blank entries carry no time: the tick goes on from the last entry that did.
        let same = before.id.is_some() && before.clock == clock;
        let boot_millis = if same { before.boot_millis } else { self.clock.boot_millis() };
        self.progress.applied.send_replace(Applied { id, boot_millis, clock });
        Ok(())
    }

    fn fault_error(&self, fault: &nexus_domain::Fault) -> io::Error {
        fault_error(&self.state.current(), fault)
    }

    /// Applies one batch and answers.
    async fn apply_batch(&mut self, batch: Vec<Item>) -> io::Result<()> {
        let Some((first, last)) = batch
            .first()
            .zip(batch.last())
            .map(|((first, _), (last, _))| (first.log_id.index, last.log_id))
        else {
            return Ok(());
        };
        self.log.flusher().entry_on_disk(last.index).await?;
        #[cfg(test)]
        drop(self.progress.stalled.subscribe().wait_for(|stalled| !stalled).await);
        // The second copy's hold (traps.md 5) belongs here: before anything of the batch shows.
        let mut events = Vec::new();
        let outcomes = match self.write_batch(&batch, last, &mut events) {
            Ok(outcomes) => outcomes,
            Err(error) => {
                tracing::error!("state: stopped at entry {}: {error}", last.index);
                self.progress.stop(fatal_text(&error.to_string()));
                return Err(error);
            }
        };
        metrics::gauge!("nexus_applied_index").set(gauge(last.index));
        self.show_applied(Some(last)).map_err(|fault| self.fault_error(&fault))?;
        for ((_, responder), outcome) in batch.into_iter().zip(outcomes) {
            if let Some(responder) = responder {
                responder.send(outcome);
            }
        }
        self.progress.tell(Hint::Applied { first, last: last.index, events: events.into() });
        Ok(())
    }

    /// Applies the entries to an overlay and writes it in one batch with the new position.
    fn write_batch(
        &mut self,
        batch: &[Item],
        last: LogId,
        events: &mut Vec<Event>,
    ) -> io::Result<Vec<Outcome>> {
        let generation = self.state.current();
        let mut overlay = Overlay::new(Direct(&generation));
        let mut outcomes = Vec::with_capacity(batch.len());
        for (entry, _) in batch {
            let outcome = match &entry.payload {
                EntryPayload::Blank => Outcome::Nothing,
                EntryPayload::Membership(membership) => {
                    self.membership = StoredMembership::new(Some(entry.log_id), membership.clone());
                    Outcome::Nothing
                }
                EntryPayload::Normal(data) => {
                    let entry = nexus_domain::codec::decode_entry(entry.log_id.index, &data.0)
                        .map_err(|error| undecodable(entry.log_id, &error))?;
                    let outcome = nexus_domain::apply(&mut overlay, &entry, events)
                        .map_err(|fault| fault_error(&generation, &fault))?;
                    Outcome::Done(outcome)
                }
            };
            outcomes.push(outcome);
        }
        nexus_domain::digest::seal(&mut overlay, last.index)
            .map_err(|fault| fault_error(&generation, &fault))?;
        generation.write(overlay.changes(), last, &self.membership)?;
        Ok(outcomes)
    }
}

/// Checks what the order of writes makes impossible: a state ahead of its log, or entries missing
/// between the two (traps.md 1). Says what was found instead.
fn fits(applied: Option<u64>, log: &LogStore, snapshot: Option<u64>) -> Result<(), String> {
    let purged = log.purged().map(|id| id.index);
    let last = log.last().map(|id| id.index);
    let text = if purged > applied {
        "the log begins behind the state"
    } else if applied > last && applied > snapshot {
        // An installed snapshot may be ahead: the log is purged up to it only afterwards.
        "the state is ahead of the log"
    } else {
        return Ok(());
    };
    let shown = |index: Option<u64>| index.map_or("none".to_owned(), |index| index.to_string());
    let [applied, purged, last, snapshot] = [applied, purged, last, snapshot].map(shown);
    Err(format!("{text}: applied {applied}, log after {purged} up to {last}, snapshot {snapshot}"))
}

/// Turns an index into a metric's value; metrics are floats, and lose nothing below 2^53.
#[expect(clippy::cast_precision_loss, reason = "a gauge is a float by definition")]
pub(crate) fn gauge(value: u64) -> f64 {
    value as f64
}

fn undecodable(id: LogId, error: &nexus_domain::codec::DecodeError) -> io::Error {
    io::Error::other(format!("log entry {}: {error}", id.index))
}

fn fault_error(generation: &Generation, fault: &nexus_domain::Fault) -> io::Error {
    if fault.is_too_old() {
        // The disk is well: nobody must be told to replace it.
        return io::Error::other(fault.what.clone());
    }
    io::Error::other(format!(
        "{}: {fault}; replace this member: remove it from another node, then join again",
        generation.path().display()
    ))
}

/// Returns whether a batch must end behind an entry.
fn ends_batch(index: u64, bytes: usize) -> bool {
    index.is_multiple_of(BATCH_ENTRIES) || bytes >= BATCH_BYTES_MAX
}

impl RaftStateMachine<TypeConfig> for Machine {
    type SnapshotData = SnapshotFolder;
    type SnapshotBuilder = Builder;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, StoredMembership), io::Error> {
        self.state.current().position()
    }

    async fn apply<S>(&mut self, mut entries: S) -> Result<(), io::Error>
    where
        S: Stream<Item = Result<EntryResponder<TypeConfig>, io::Error>> + Unpin + OptionalSend,
    {
        let mut batch: Vec<Item> = Vec::new();
        let mut bytes = 0_usize;
        loop {
            let next = if batch.is_empty() {
                entries.next().await
            } else if let Some(ready) = entries.next().now_or_never() {
                ready
            } else {
                self.apply_batch(std::mem::take(&mut batch)).await?;
                bytes = 0;
                continue;
            };
            let Some(item) = next else {
                return self.apply_batch(batch).await;
            };
            let (entry, responder) = item?;
            let index = entry.log_id().index;
            if let EntryPayload::Normal(data) = &entry.payload {
                bytes = bytes.saturating_add(data.0.len());
            }
            batch.push((entry, responder));
            if ends_batch(index, bytes) {
                self.apply_batch(std::mem::take(&mut batch)).await?;
                bytes = 0;
            }
        }
    }

    /// Waits with the next one while one of before is still sent: no third folder is made.
    async fn try_create_snapshot_builder(&mut self, force: bool) -> Option<Builder> {
        if !force && self.snapshots.crowded() {
            tracing::info!("snapshot: put off, the one before is still being sent");
            #[cfg(test)]
            self.progress.put_off.send_modify(|count| *count += 1);
            return None;
        }
        Some(self.get_snapshot_builder().await)
    }

    /// Takes the checkpoint here, in the worker: nothing is applied meanwhile, so it has a
    /// position.
    async fn get_snapshot_builder(&mut self) -> Builder {
        self.snapshots.checkpoint(&self.state.current())
    }

    async fn install_snapshot(
        &mut self,
        meta: &SnapshotMeta,
        snapshot: SnapshotFolder,
    ) -> Result<(), io::Error> {
        self.log.flusher().all_on_disk().await?;
        let state = self.state.clone();
        if let Err(error) = self.snapshots.install(state, meta.clone(), snapshot).await {
            tracing::error!("state: stopped at a snapshot: {error}");
            self.progress.stop(fatal_text(&error.to_string()));
            return Err(error);
        }
        self.membership = meta.last_membership.clone();
        self.show_applied(meta.last_log_id).map_err(|fault| self.fault_error(&fault))?;
        self.progress.tell(Hint::Reset);
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<crate::types::Snapshot>, io::Error> {
        self.snapshots.newest()
    }
}
