//! The log store against a model: random appends, truncations, purges, votes, reads and restarts.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures::StreamExt as _;
use nexus_domain::testing::Random;
use openraft::entry::RaftEntry as _;
use openraft::storage::{IOFlushed, RaftLogReader as _, RaftLogStorage as _};

use super::NODE;
use crate::store::log::{LogStore, READ_BYTES_MAX};
use crate::store::rocks;
use crate::types::{LogData, LogEntry, LogId, Payload, Vote, log_id};
use crate::wire::{WireEntry, seal};

/// By how much the log's own count of its bytes may be too high.
const COUNT_STEP: u64 = 256 << 10;

/// What the log must hold.
#[derive(Debug, Default)]
struct Model {
    entries: BTreeMap<u64, LogEntry>,
    purged: Option<LogId>,
    vote: Option<Vote>,
    committed: Option<LogId>,
    term: u64,
}

impl Model {
    fn last(&self) -> Option<LogId> {
        self.entries.last_key_value().map(|(_, entry)| entry.log_id).or(self.purged)
    }

    fn next(&self) -> u64 {
        self.last().map_or(0, |id| id.index + 1)
    }
}

struct Trial {
    data: tempfile::TempDir,
    cache: rocksdb::Cache,
    log: LogStore,
    model: Model,
    random: Random,
}

impl Trial {
    fn new(seed: u64) -> Self {
        let (data, cache) = (tempfile::tempdir().unwrap(), rocks::cache());
        let log = LogStore::open(data.path(), &cache).unwrap();
        Self { data, cache, log, model: Model::default(), random: Random::new(seed) }
    }

    fn entry(&mut self, index: u64, heavy: bool) -> LogEntry {
        let payload = match self.random.below(20) {
            0 => Payload::Blank,
            1 => Payload::Membership(
                openraft::Membership::new(
                    vec![[1, 2, self.random.below(9)].into()],
                    BTreeMap::from_iter((0..9).map(|id| (id, openraft::EmptyNode::new()))),
                )
                .unwrap(),
            ),
            _ => {
                let most = if heavy { 128 << 10 } else { 300 };
                let length = usize::try_from(self.random.below(most)).unwrap();
                let byte = u8::try_from(self.random.below(256)).unwrap();
                Payload::Normal(LogData(Bytes::from(vec![byte; length])))
            }
        };
        LogEntry::new(log_id(self.model.term, NODE, index), payload)
    }

    async fn append(&mut self) {
        let heavy = self.random.chance(15);
        let first = self.model.next();
        let count = 1 + self.random.below(if heavy { 60 } else { 25 });
        let entries: Vec<LogEntry> = (first..first + count).map(|i| self.entry(i, heavy)).collect();
        self.log.append(entries.clone(), IOFlushed::noop()).await.unwrap();
        self.model.entries.extend(entries.into_iter().map(|entry| (entry.log_id.index, entry)));
    }

    /// Takes the tail away; what comes next is of another term.
    async fn truncate(&mut self) {
        let first = self.model.purged.map_or(0, |id| id.index + 1);
        let next = self.model.next();
        let keep = first + self.random.below(next - first + 1);
        let last = match keep.checked_sub(1) {
            None => None,
            Some(index) => match self.model.entries.get(&index) {
                Some(entry) => Some(entry.log_id),
                None => self.model.purged,
            },
        };
        self.log.truncate_after(last).await.unwrap();
        self.model.entries.split_off(&keep);
        self.model.term += 1;
    }

    /// Purges within the log, up to its end, or beyond it as after an installed snapshot.
    async fn purge(&mut self) {
        let first = self.model.purged.map_or(0, |id| id.index + 1);
        let beyond = if self.random.chance(20) { self.random.below(30) } else { 0 };
        let Some(length) = (self.model.next() - first + beyond).checked_sub(1) else { return };
        let index = first + self.random.below(length + 1);
        let known = self.model.entries.get(&index).map(|entry| entry.log_id);
        let upto = known.unwrap_or(log_id(self.model.term, NODE, index));
        self.log.purge(upto).await.unwrap();
        self.model.entries = self.model.entries.split_off(&(index + 1));
        self.model.purged = Some(upto);
    }

    async fn reads(&mut self) {
        let next = self.model.next();
        let start = self.random.below(next + 3);
        let end = start + self.random.below(next + 3);
        let expected: Vec<LogEntry> =
            self.model.entries.range(start..end).map(|(_, entry)| entry.clone()).collect();
        let found = self.log.try_get_log_entries(start..end).await.unwrap();
        assert_eq!(found, expected, "{start}..{end}");
        let streamed: Vec<LogEntry> =
            self.log.entries_stream(start..end).await.map(Result::unwrap).collect().await;
        assert_eq!(streamed, expected, "stream {start}..{end}");
        let limited = self.log.limited_get_log_entries(start, end).await.unwrap();
        assert_eq!(limited, expected[..limited.len()], "limited {start}..{end}");
        assert_eq!(limited.is_empty(), expected.is_empty());
        let bytes = |entries: &[LogEntry]| -> usize {
            entries
                .iter()
                .map(|entry| match &entry.payload {
                    Payload::Normal(data) => data.0.len(),
                    Payload::Blank | Payload::Membership(_) => 0,
                })
                .sum()
        };
        assert!(bytes(&limited) <= READ_BYTES_MAX || limited.len() == 1);
        let all = self.log.try_get_log_entries(..).await.unwrap();
        assert!(all.iter().eq(self.model.entries.values()), "all of it");
    }

    async fn check(&mut self) {
        let state = self.log.get_log_state().await.unwrap();
        assert_eq!(state.last_purged_log_id, self.model.purged);
        assert_eq!(state.last_log_id, self.model.last());
        assert_eq!(self.log.read_vote().await.unwrap(), self.model.vote);
        assert_eq!(self.log.read_committed().await.unwrap(), self.model.committed);
        self.check_bytes();
    }

    /// Compares the log's count of its bytes with the bytes of its entries: never too low, and too
    /// high by a step at most, whatever was truncated, purged or opened again.
    fn check_bytes(&self) {
        let bytes = |entry: &LogEntry| u64::try_from(seal(&WireEntry::from(entry)).len()).unwrap();
        let mut behind: u64 = 0;
        let mut beyond = Vec::new();
        for (index, entry) in self.model.entries.iter().rev() {
            let counted = self.log.bytes_behind(*index);
            assert!((behind..=behind + COUNT_STEP).contains(&counted), "{counted} for {behind}");
            beyond.push((*index, counted));
            behind += bytes(entry);
        }
        let kept = self.log.kept_bytes();
        assert!((behind..=behind + COUNT_STEP).contains(&kept), "{kept} bytes kept of {behind}");
        for wanted in [1, 100_000, 1_000_000] {
            let found = self.log.beyond_bytes(wanted);
            assert!(found == 0 || self.log.bytes_behind(found) >= wanted, "{found} {wanted}");
            // What would go as well has too little behind it, to within a step and an entry.
            let last = beyond.iter().find(|(_, counted)| *counted >= wanted + 2 * COUNT_STEP);
            assert!(last.is_none_or(|(index, _)| *index <= found), "{found} {wanted}: {last:?}");
        }
    }

    async fn step(&mut self) {
        match self.random.below(100) {
            0..=44 => self.append().await,
            45..=54 => self.truncate().await,
            55..=64 => self.purge().await,
            65..=69 => {
                self.model.term += 1;
                let vote = Vote::new_committed(self.model.term, self.random.below(4));
                self.log.save_vote(&vote).await.unwrap();
                self.model.vote = Some(vote);
            }
            70..=74 => {
                self.model.committed = self.model.last();
                self.log.save_committed(self.model.committed).await.unwrap();
            }
            75..=80 => self.reopen(),
            _ => self.reads().await,
        }
        self.check().await;
    }

    fn reopen(&mut self) {
        let spare = tempfile::tempdir().unwrap();
        let other = LogStore::open(spare.path(), &self.cache).unwrap();
        drop(std::mem::replace(&mut self.log, other));
        self.log = LogStore::open(self.data.path(), &self.cache).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_is_what_a_map_says() {
    for seed in 0..6 {
        let mut trial = Trial::new(seed);
        for _ in 0..250 {
            trial.step().await;
        }
        trial.reopen();
        trial.check().await;
        trial.reads().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_below_the_cache_come_from_the_disk() {
    let mut trial = Trial::new(99);
    // 12 MiB in entries of 64 KiB: the cache keeps the last third.
    let entries: Vec<LogEntry> = (0..192)
        .map(|index| {
            let data = LogData(Bytes::from(vec![u8::try_from(index).unwrap(); 64 << 10]));
            LogEntry::new(log_id(1, NODE, index), Payload::Normal(data))
        })
        .collect();
    for chunk in entries.chunks(7) {
        trial.log.append(chunk.to_vec(), IOFlushed::noop()).await.unwrap();
    }
    for start in [0, 1, 100, 127, 128, 129, 191] {
        let found = trial.log.try_get_log_entries(start..192).await.unwrap();
        assert!(found.iter().eq(&entries[usize::try_from(start).unwrap()..]), "from {start}");
        let limited = trial.log.limited_get_log_entries(start, 192).await.unwrap();
        assert!(limited.len() <= 16, "{} entries of 64 KiB from {start}", limited.len());
    }
    // Taken away down into what only the disk has, then written by another leader.
    trial.log.truncate_after(Some(log_id(1, NODE, 49))).await.unwrap();
    let other = LogEntry::new(log_id(2, NODE, 50), Payload::Blank);
    trial.log.append([other.clone()], IOFlushed::noop()).await.unwrap();
    let found = trial.log.try_get_log_entries(40..).await.unwrap();
    assert!(found.iter().eq(entries[40..50].iter().chain([&other])));
    assert_eq!(trial.log.get_log_state().await.unwrap().last_log_id, Some(other.log_id));
}
