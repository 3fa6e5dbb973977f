//! What the stores promise: openraft's suite, models, crashes, damage, equal digests, bounded disk.

mod crash;
mod damage;
mod digests;
mod disk;
mod log_model;
mod measure;
mod suite;

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use nexus_domain::codec::encode_entry;
use nexus_domain::digest::{self, Digests};
use nexus_domain::{Entry, MemoryStore, SUPPORTED, testing};
use nexus_rt::{Jobs, SystemClock};
use openraft::entry::RaftEntry as _;
use openraft::storage::{IOFlushed, RaftLogStorage as _, RaftStateMachine as _, StorageHelper};
use openraft::type_config::TypeConfigExt as _;
use openraft::type_config::alias::OneshotReceiverOf;

use super::log::LogStore;
use super::rocks;
use super::state::StateStore;
use crate::machine::{Machine, Progress};
use crate::snapshot::Snapshots;
use crate::types::{LogData, LogEntry, LogId, Payload, TypeConfig, log_id};

/// The node that writes all logs here.
const NODE: u64 = 1;

/// Open stores of one folder.
struct Stores {
    log: LogStore,
    state: Arc<StateStore>,
    snapshots: Arc<Snapshots>,
    machine: Machine,
}

impl Stores {
    /// Opens a folder as a node does; what cannot be opened is told in words.
    fn open(data: &Path) -> Result<Self, String> {
        let cache = rocks::cache();
        let log = LogStore::open(data, &cache).map_err(|error| error.to_string())?;
        let state = StateStore::open(data, &cache).map_err(|error| error.to_string())?;
        let state = Arc::new(state);
        let snapshots = Snapshots::open(state.root(), Jobs::new()).map_err(|e| e.to_string())?;
        let snapshots = Arc::new(snapshots);
        let progress = Arc::new(Progress::new());
        let clock = Arc::new(SystemClock);
        let machine = Machine::new(state.clone(), log.clone(), snapshots.clone(), progress, clock)
            .map_err(|error| error.to_string())?;
        Ok(Self { log, state, snapshots, machine })
    }

    /// Lets openraft look at the stores as at a start: it applies what is committed, and checks.
    async fn start(&mut self) -> Result<(), String> {
        let mut helper = StorageHelper::new(&mut self.log, &mut self.machine).with_id(NODE);
        helper.get_initial_state().await.map(drop).map_err(|error| error.to_string())
    }

    /// Appends and waits for the disk.
    async fn append(&mut self, entries: Vec<LogEntry>) {
        self.append_soon(entries).await.await.unwrap().unwrap();
    }

    /// Appends and returns what waits for the disk.
    async fn append_soon(
        &mut self,
        entries: Vec<LogEntry>,
    ) -> OneshotReceiverOf<TypeConfig, std::io::Result<()>> {
        let (done, wait) = TypeConfig::oneshot();
        self.log.append(entries, IOFlushed::signal(done)).await.unwrap();
        wait
    }

    /// Applies entries as openraft does.
    async fn apply(&mut self, entries: Vec<LogEntry>) {
        let entries = entries.into_iter().map(|entry| Ok((entry, None)));
        self.machine.apply(futures::stream::iter(entries)).await.unwrap();
    }

    fn applied(&self) -> Option<LogId> {
        self.state.current().position().unwrap().0
    }

    /// Returns the digests, after comparing them with what a scan of all rows gives.
    fn digests(&self) -> Digests {
        let generation = self.state.current();
        let kept = digest::read(&*generation).unwrap();
        assert_eq!(
            kept,
            digest::recompute(&*generation).unwrap(),
            "kept digests differ from a scan"
        );
        kept
    }

    /// Builds a snapshot as openraft has it built; returns its index.
    async fn build(&mut self) -> u64 {
        use openraft::RaftSnapshotBuilder as _;
        let mut builder = self.machine.get_snapshot_builder().await;
        builder.build_snapshot().await.unwrap().snapshot.manifest().index()
    }
}

/// A log whose commands come from a seed, in front of it what consensus itself writes.
struct Script {
    entries: Vec<Entry>,
}

impl Script {
    fn new(seed: u64, count: usize) -> Self {
        let mut entries = testing::entries(seed, count);
        for entry in &mut entries {
            // What needs a newer program stops a node, and no leader lets it into the log.
            entry.proposal.version = entry.proposal.version.min(SUPPORTED);
        }
        Self { entries }
    }

    /// Returns the last index.
    fn last(&self) -> u64 {
        self.entries.last().unwrap().index
    }

    /// Returns the entry at an index, as a leader of this term wrote it.
    fn entry(&self, term: u64, index: u64) -> LogEntry {
        let payload = match self.entries.iter().find(|entry| entry.index == index) {
            Some(entry) => {
                let bytes = encode_entry(&entry.stamp, &entry.proposal);
                Payload::Normal(LogData(Bytes::from(bytes)))
            }
            None => Payload::Blank,
        };
        LogEntry::new(log_id(term, NODE, index), payload)
    }

    fn range(&self, term: u64, range: std::ops::Range<u64>) -> Vec<LogEntry> {
        range.map(|index| self.entry(term, index)).collect()
    }

    /// Returns the digests behind each index, from a state in memory; 0 and 1 are consensus' own.
    fn digests(&self) -> Vec<Digests> {
        let mut state = MemoryStore::default();
        let mut all = vec![Digests::default(); 2];
        for entry in &self.entries {
            testing::apply_batch(&mut state, std::slice::from_ref(entry)).unwrap();
            all.push(digest::read(&state).unwrap());
        }
        all
    }
}

/// Returns the names in a folder that begin so.
fn names(folder: &Path, prefix: &str) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with(prefix))
        .collect();
    names.sort();
    names
}

/// Copies a folder with everything in it.
fn copy_all(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_all(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}
