//! The log store: entries, vote and committed marker in RocksDB, with the newest entries in memory.
//!
//! Keys: `e` + index (big-endian) holds an entry, `m` + name a marker, `k` + index a count of bytes
//! (`milestones`). An entry is readable when `append` returns and durable when its callback runs; a
//! vote is durable when `save_vote` returns.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::path::Path;
use std::sync::{Arc, Mutex};

use nexus_domain::{Direction, KeyRange};
use openraft::entry::RaftEntry as _;
use openraft::storage::{IOFlushed, LogState, RaftLogReader, RaftLogStorage};
use rocksdb::{Cache, DB, WriteBatch, WriteOptions};

use super::failpoint::failpoint;
use super::flush::Flusher;
use super::mark::{Mark, Note};
use super::milestones::Milestones;
use super::rocks::{bounded, io_error, mode};
use super::{StoreError, lock};
use crate::types::{LogEntry, LogId, TypeConfig, Vote};
use crate::wire::{WireEntry, WireLogId, WireVote, seal, unseal};

/// Bytes of entries that stay in memory for replication and for `apply`.
const CACHE_BYTES_MAX: usize = 4 << 20;
/// Bytes of entries that one read returns at most (traps.md 21); one entry is returned in any case.
pub(crate) const READ_BYTES_MAX: usize = 1 << 20;

/// The log store; clones share one log.
#[derive(Clone, Debug)]
pub(crate) struct LogStore {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    db: Arc<DB>,
    flusher: Flusher,
    memory: Mutex<Memory>,
}

/// What is known without asking the disk.
#[derive(Debug, Default)]
struct Memory {
    last: Option<LogId>,
    purged: Option<LogId>,
    vote: Option<Vote>,
    committed: Option<LogId>,
    /// The newest entries, without holes up to the last one.
    cache: BTreeMap<u64, LogEntry>,
    cache_bytes: usize,
    milestones: Milestones,
}

impl LogStore {
    /// Opens the log of a data folder, or makes it.
    ///
    /// # Errors
    /// When the database cannot be opened, or acknowledged entries are damaged or missing.
    pub(crate) fn open(data: &Path, cache: &Cache) -> Result<Self, StoreError> {
        let (path, mark) = (data.join("log"), data.join("log.mark"));
        let db = Arc::new(super::log_recovery::open(&path, Mark::read(&mark)?, cache)?);
        let memory = Memory::read(&db).map_err(|text| StoreError::Damaged { path, text })?;
        let flusher = Flusher::start(db.clone(), &mark)?;
        Ok(Self { inner: Arc::new(Inner { db, flusher, memory: Mutex::new(memory) }) })
    }

    /// Returns what tells how far the log is on disk.
    pub(crate) fn flusher(&self) -> &Flusher {
        &self.inner.flusher
    }

    /// Returns the last log id, on disk or not yet.
    pub(crate) fn last(&self) -> Option<LogId> {
        lock(&self.inner.memory).last
    }

    /// Returns the log id up to which entries are gone.
    pub(crate) fn purged(&self) -> Option<LogId> {
        lock(&self.inner.memory).purged
    }

    /// Returns the bytes of the entries behind an index, the same after a restart.
    pub(crate) fn bytes_behind(&self, index: u64) -> u64 {
        lock(&self.inner.memory).milestones.behind(index)
    }

    /// Returns the last index behind which at least so many bytes of entries lie; 0: none.
    pub(crate) fn beyond_bytes(&self, bytes: u64) -> u64 {
        lock(&self.inner.memory).milestones.beyond(bytes)
    }

    /// Returns the bytes of the entries that are kept, whether in tables or not yet.
    pub(crate) fn kept_bytes(&self) -> u64 {
        let memory = lock(&self.inner.memory);
        let purged = memory.purged.map(|id| id.index);
        purged.map_or_else(|| memory.milestones.total(), |index| memory.milestones.behind(index))
    }

    /// Returns an entry, if it is there.
    ///
    /// # Errors
    /// When the disk refuses, or the entry is damaged.
    pub(crate) fn entry(&self, index: u64) -> io::Result<Option<LogEntry>> {
        Ok(self.read(index, index.saturating_add(1), READ_BYTES_MAX)?.pop())
    }

    /// Raises the boot number and makes it durable (traps.md 23).
    ///
    /// # Errors
    /// When the disk refuses.
    pub(crate) async fn next_boot(&self) -> io::Result<u64> {
        let last: u64 = match self.inner.db.get(meta_key("boot")).map_err(io_error)? {
            Some(bytes) => unseal(&bytes).map_err(io::Error::other)?,
            None => 0,
        };
        self.put_durable("boot", seal(&(last + 1)), Note::default()).await?;
        Ok(last + 1)
    }

    async fn put_durable(&self, name: &str, value: Vec<u8>, note: Note) -> io::Result<()> {
        let db = &self.inner.db;
        let put = || db.put_opt(meta_key(name), value, &no_sync()).map_err(io_error);
        let wait = self.inner.flusher.write(note, put)?;
        wait.await.map_err(|_closed| io::Error::other("log flush thread: has ended"))?
    }

    /// Reads entries from memory, or from disk where memory does not reach back.
    fn read(&self, start: u64, end: u64, bytes_max: usize) -> io::Result<Vec<LogEntry>> {
        if start >= end {
            return Ok(Vec::new());
        }
        {
            let memory = lock(&self.inner.memory);
            if memory.cache.first_key_value().is_some_and(|(first, _)| *first <= start) {
                let entries = memory.cache.range(start..end).map(|(_, entry)| Ok(entry.clone()));
                return take_bytes(entries, bytes_max);
            }
        }
        let range = KeyRange { start: entry_key(start), end: Some(entry_key(end)) };
        let rows = self.inner.db.iterator_opt(mode(Direction::Forward), bounded(&range));
        take_bytes(rows.map(|row| decode_entry(&row.map_err(io_error)?.1)), bytes_max)
    }
}

/// Takes entries until the budget is used up, at least one.
fn take_bytes(
    entries: impl Iterator<Item = io::Result<LogEntry>>,
    bytes_max: usize,
) -> io::Result<Vec<LogEntry>> {
    let mut taken = Vec::new();
    let mut bytes = 0_usize;
    for entry in entries {
        let entry = entry?;
        bytes = bytes.saturating_add(entry_bytes(&entry));
        if bytes > bytes_max && !taken.is_empty() {
            break;
        }
        taken.push(entry);
    }
    Ok(taken)
}

impl Memory {
    fn read(db: &DB) -> Result<Self, String> {
        let get = |name: &str| db.get(meta_key(name)).map_err(rocksdb::Error::into_string);
        let mut memory = Self::default();
        if let Some(bytes) = get("vote")? {
            memory.vote = Some(unseal::<WireVote>(&bytes)?.into());
        }
        if let Some(bytes) = get("committed")? {
            memory.committed = unseal::<Option<WireLogId>>(&bytes)?.map(Into::into);
        }
        if let Some(bytes) = get("purged")? {
            memory.purged = Some(unseal::<WireLogId>(&bytes)?.into());
        }
        memory.last = last_entry(db)?.or(memory.purged);
        memory.milestones = Milestones::read(db)?;
        Ok(memory)
    }

    fn push(&mut self, entry: LogEntry) {
        let bytes = entry_bytes(&entry);
        let index = entry.log_id.index;
        // The cache has no holes: an entry that does not follow begins it anew.
        if self.cache.last_key_value().is_some_and(|(last, _)| last.checked_add(1) != Some(index)) {
            self.clear();
        }
        self.last = Some(entry.log_id);
        self.cache_bytes = self.cache_bytes.saturating_add(bytes);
        self.cache.insert(index, entry);
        while self.cache_bytes > CACHE_BYTES_MAX && self.cache.len() > 1 {
            if let Some((_, oldest)) = self.cache.pop_first() {
                self.cache_bytes = self.cache_bytes.saturating_sub(entry_bytes(&oldest));
            }
        }
    }

    fn clear(&mut self) {
        self.cache.clear();
        self.cache_bytes = 0;
    }

    fn recount(&mut self) {
        self.cache_bytes = self.cache.values().map(entry_bytes).sum();
    }
}

fn entry_bytes(entry: &LogEntry) -> usize {
    const OVERHEAD: usize = 64;
    match &entry.payload {
        openraft::EntryPayload::Normal(data) => data.0.len().saturating_add(OVERHEAD),
        openraft::EntryPayload::Blank | openraft::EntryPayload::Membership(_) => OVERHEAD,
    }
}

pub(super) fn entry_key(index: u64) -> Vec<u8> {
    let mut key = vec![b'e'];
    key.extend_from_slice(&index.to_be_bytes());
    key
}

fn meta_key(name: &str) -> Vec<u8> {
    let mut key = vec![b'm'];
    key.extend_from_slice(name.as_bytes());
    key
}

fn decode_entry(bytes: &[u8]) -> io::Result<LogEntry> {
    let entry = unseal::<WireEntry>(bytes).and_then(WireEntry::into_entry);
    entry.map_err(|text| io::Error::other(format!("log entry: {text}")))
}

/// Returns the id of the last entry in the database.
pub(super) fn last_entry(db: &DB) -> Result<Option<LogId>, String> {
    let range = KeyRange::prefix(b"e");
    let mut rows = db.iterator_opt(mode(Direction::Reverse), bounded(&range));
    match rows.next() {
        None => Ok(None),
        Some(Err(error)) => Err(error.into_string()),
        Some(Ok((_, value))) => {
            decode_entry(&value).map(|entry| Some(entry.log_id)).map_err(|error| error.to_string())
        }
    }
}

/// Returns term and node of the vote in the database.
pub(super) fn voted(db: &DB) -> Result<(u64, u64), String> {
    match db.get(meta_key("vote")).map_err(rocksdb::Error::into_string)? {
        Some(bytes) => unseal::<WireVote>(&bytes).map(|vote| (vote.term, vote.node)),
        None => Ok((0, 0)),
    }
}

/// Returns the index up to which entries are gone, as the database says.
pub(super) fn purged_index(db: &DB) -> Result<Option<u64>, String> {
    match db.get(meta_key("purged")).map_err(rocksdb::Error::into_string)? {
        Some(bytes) => Ok(Some(unseal::<WireLogId>(&bytes)?.index)),
        None => Ok(None),
    }
}

fn no_sync() -> WriteOptions {
    let mut options = WriteOptions::default();
    options.set_sync(false);
    options
}

impl RaftLogReader<TypeConfig> for LogStore {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + Send>(
        &mut self,
        range: RB,
    ) -> Result<Vec<LogEntry>, io::Error> {
        let (start, end) = borders(&range);
        self.read(start, end, usize::MAX)
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, io::Error> {
        Ok(lock(&self.inner.memory).vote)
    }

    async fn limited_get_log_entries(
        &mut self,
        start: u64,
        end: u64,
    ) -> Result<Vec<LogEntry>, io::Error> {
        self.read(start, end, READ_BYTES_MAX)
    }

    async fn entries_stream<RB>(
        &mut self,
        range: RB,
    ) -> impl futures::Stream<Item = Result<LogEntry, io::Error>> + Send
    where
        RB: RangeBounds<u64> + Clone + Debug + Send,
    {
        let (start, end) = borders(&range);
        Box::pin(stream_entries(self.clone(), start, end))
    }
}

/// Streams entries chunk by chunk, so that a long replay never loads its whole range.
fn stream_entries(
    log: LogStore,
    start: u64,
    end: u64,
) -> impl futures::Stream<Item = Result<LogEntry, io::Error>> + Send {
    use futures::StreamExt as _;
    let chunks = futures::stream::unfold(Some((log, start)), move |place| async move {
        let (log, start) = place?;
        match log.read(start, end, READ_BYTES_MAX) {
            Ok(entries) => {
                let next = entries.last()?.log_id.index.checked_add(1)?;
                let chunk: Vec<io::Result<LogEntry>> = entries.into_iter().map(Ok).collect();
                Some((futures::stream::iter(chunk), Some((log, next))))
            }
            Err(error) => Some((futures::stream::iter(vec![Err(error)]), None)),
        }
    });
    chunks.flatten()
}

fn borders(range: &impl RangeBounds<u64>) -> (u64, u64) {
    let start = match range.start_bound() {
        Bound::Included(start) => *start,
        Bound::Excluded(before) => before.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(last) => last.saturating_add(1),
        Bound::Excluded(end) => *end,
        Bound::Unbounded => u64::MAX,
    };
    (start, end)
}

impl RaftLogStorage<TypeConfig> for LogStore {
    type LogReader = Self;

    async fn get_log_state(&mut self) -> Result<LogState<TypeConfig>, io::Error> {
        let memory = lock(&self.inner.memory);
        Ok(LogState { last_purged_log_id: memory.purged, last_log_id: memory.last })
    }

    async fn get_log_reader(&mut self) -> Self::LogReader {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<(), io::Error> {
        failpoint("vote.before");
        let note = Note { last: None, vote: Some((vote.leader_id.term, vote.leader_id.node_id)) };
        self.put_durable("vote", seal(&WireVote::from(*vote)), note).await?;
        lock(&self.inner.memory).vote = Some(*vote);
        Ok(())
    }

    /// Puts the marker without a flush, a number, or anybody waiting: openraft repairs its loss.
    async fn save_committed(&mut self, committed: Option<LogId>) -> Result<(), io::Error> {
        let value = seal(&committed.map(WireLogId::from));
        self.inner.db.put_opt(meta_key("committed"), value, &no_sync()).map_err(io_error)?;
        lock(&self.inner.memory).committed = committed;
        Ok(())
    }

    async fn read_committed(&mut self) -> Result<Option<LogId>, io::Error> {
        Ok(lock(&self.inner.memory).committed)
    }

    async fn append<I>(&mut self, entries: I, callback: IOFlushed<TypeConfig>) -> io::Result<()>
    where
        I: IntoIterator<Item = LogEntry> + Send,
        I::IntoIter: Send,
    {
        let entries: Vec<LogEntry> = entries.into_iter().collect();
        let sealed = |entry: &LogEntry| (entry.log_id().index, seal(&WireEntry::from(entry)));
        let rows: Vec<(u64, Vec<u8>)> = entries.iter().map(sealed).collect();
        let mut batch = WriteBatch::default();
        for (index, value) in &rows {
            batch.put(entry_key(*index), value);
        }
        let Some(last) = entries.last().map(|entry| entry.log_id().index) else {
            callback.io_completed(Ok(()));
            return Ok(());
        };
        let inner = &self.inner;
        inner.flusher.append(last, callback, || {
            failpoint("append.before");
            let added = lock(&inner.memory).milestones.put(&mut batch, &rows);
            inner.db.write_opt(batch, &no_sync()).map_err(io_error)?;
            failpoint("append.written");
            let mut memory = lock(&inner.memory);
            memory.milestones.add(added);
            for entry in entries {
                memory.push(entry);
            }
            Ok(())
        })
    }

    async fn truncate_after(&mut self, last: Option<LogId>) -> Result<(), io::Error> {
        let end = match self.last() {
            Some(end) if last.is_none_or(|last| last.index < end.index) => end.index,
            Some(_) | None => return Ok(()),
        };
        let start = last.map_or(0, |last| last.index.saturating_add(1));
        let mut batch = WriteBatch::default();
        for index in start..=end {
            batch.delete(entry_key(index));
        }
        let inner = &self.inner;
        let keep = last.map_or(0, |last| last.index);
        inner.flusher.truncate(keep, || {
            lock(&inner.memory).milestones.truncate(&mut batch, start);
            inner.db.write_opt(batch, &no_sync()).map_err(io_error)?;
            failpoint("truncate.written");
            let mut memory = lock(&inner.memory);
            drop(memory.cache.split_off(&start));
            memory.recount();
            memory.last = last.or(memory.purged);
            memory.milestones.truncated(&inner.db, start).map_err(io::Error::other)
        })
    }

    /// Deletes entries up to and including an id; the marker is written with them.
    ///
    /// The caller has made sure that `state/` holds them durably (traps.md 18).
    async fn purge(&mut self, upto: LogId) -> Result<(), io::Error> {
        if self.purged().is_some_and(|purged| purged.index >= upto.index) {
            return Ok(());
        }
        let mut batch = WriteBatch::default();
        batch.put(meta_key("purged"), seal(&WireLogId::from(upto)));
        let first = self.purged().map_or(0, |purged| purged.index.saturating_add(1));
        let end = upto.index.saturating_add(1);
        if first < end {
            batch.delete_range(entry_key(first), entry_key(end));
        }
        let inner = &self.inner;
        let _later = inner.flusher.write(Note::default(), || {
            failpoint("purge.before");
            let last = {
                let memory = lock(&inner.memory);
                let last = memory.last.map_or(0, |id| id.index);
                memory.milestones.purge(&mut batch, upto.index, last);
                last
            };
            inner.db.write_opt(batch, &no_sync()).map_err(io_error)?;
            failpoint("purge.written");
            let mut memory = lock(&inner.memory);
            memory.milestones.purged(upto.index, last);
            memory.cache = memory.cache.split_off(&end);
            memory.recount();
            memory.purged = Some(upto);
            if memory.last.is_none_or(|last| last < upto) {
                memory.last = Some(upto);
            }
            Ok(())
        })?;
        Ok(())
    }
}
