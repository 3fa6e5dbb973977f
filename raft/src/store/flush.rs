//! The one flush thread of `log/`: gather, one fsync, release everybody.
//!
//! Each append or truncate takes a number when it is written; `flushed` is the newest number that is
//! on disk. Whoever must not run ahead of the disk waits for the number of the append that wrote its
//! entry (core.md 1), not for the newest: waiting for the newest is a second flush in series.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Arc, Mutex};

use openraft::storage::IOFlushed;
use rocksdb::DB;
use tokio::sync::{oneshot, watch};

use super::{StoreError, lock};
use crate::types::TypeConfig;

/// What waits for the next flush.
enum Waiter {
    /// openraft's callback of an append.
    Append(IOFlushed<TypeConfig>),
    /// Somebody of our own.
    Own(oneshot::Sender<io::Result<()>>),
}

/// One thing to be flushed.
struct Job {
    number: u64,
    /// The log's last index once this is on disk, for the durable mark; 0 when unchanged.
    last_index: u64,
    waiter: Waiter,
}

/// The sending side of the flush thread.
#[derive(Debug)]
pub(crate) struct Flusher {
    order: Mutex<Order>,
    flushed: watch::Receiver<Flushed>,
}

#[derive(Debug)]
struct Order {
    jobs: Sender<Job>,
    number: u64,
    /// Last index and number of appends that may not be on disk yet, oldest first.
    unflushed: VecDeque<(u64, u64)>,
}

/// How far the log is on disk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flushed {
    number: u64,
    /// The first flush error; after it nothing is durable any more.
    failed: Option<String>,
}

impl Flusher {
    /// Starts the flush thread, and the mark thread beside it.
    ///
    /// # Errors
    /// When a thread or the mark file cannot be made.
    pub(crate) fn start(db: Arc<DB>, mark: &Path) -> Result<Self, StoreError> {
        let marker = Marker::start(mark)?;
        let (jobs, inbox) = channel();
        let (flushed_to, flushed) = watch::channel(Flushed::default());
        std::thread::Builder::new()
            .name("nexus-flush".into())
            .spawn(move || run(&db, &inbox, &flushed_to, &marker))
            .map_err(StoreError::io(mark))?;
        let order = Order { jobs, number: 0, unflushed: VecDeque::new() };
        Ok(Self { order: Mutex::new(order), flushed })
    }

    /// Hands an append over: `write` puts it into the database, then the callback waits for the disk.
    ///
    /// Numbers are given in the order of the writes, because both happen under one lock.
    ///
    /// # Errors
    /// What `write` says.
    pub(crate) fn append(
        &self,
        last_index: u64,
        callback: IOFlushed<TypeConfig>,
        write: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        let mut order = lock(&self.order);
        write()?;
        let number = order.submit(last_index, Waiter::Append(callback))?;
        let done = self.flushed.borrow().number;
        while order.unflushed.front().is_some_and(|(_, number)| *number <= done) {
            order.unflushed.pop_front();
        }
        order.unflushed.push_back((last_index, number));
        Ok(())
    }

    /// Hands a write over and returns what waits for it to be on disk.
    ///
    /// # Errors
    /// What `write` says, or that the flush thread is gone.
    pub(crate) fn write(
        &self,
        last_index: Option<u64>,
        write: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<oneshot::Receiver<io::Result<()>>> {
        let (done, wait) = oneshot::channel();
        let mut order = lock(&self.order);
        write()?;
        if let Some(last) = last_index {
            // A truncated append still has to reach the disk for the entries that stay.
            for (index, _) in &mut order.unflushed {
                *index = last.min(*index);
            }
        }
        order.submit(last_index.unwrap_or(0), Waiter::Own(done))?;
        Ok(wait)
    }

    /// Waits until the append that wrote `index` is on disk.
    ///
    /// # Errors
    /// When a flush failed.
    pub(crate) async fn entry_on_disk(&self, index: u64) -> io::Result<()> {
        let number = lock(&self.order)
            .unflushed
            .iter()
            .find(|(last, _)| *last >= index)
            .map_or(0, |(_, number)| *number);
        self.number_on_disk(number).await
    }

    /// Waits until everything that was handed over so far is on disk.
    ///
    /// # Errors
    /// When a flush failed.
    pub(crate) async fn all_on_disk(&self) -> io::Result<()> {
        let number = lock(&self.order).number;
        self.number_on_disk(number).await
    }

    async fn number_on_disk(&self, number: u64) -> io::Result<()> {
        let mut flushed = self.flushed.clone();
        let seen = flushed
            .wait_for(|flushed| flushed.number >= number || flushed.failed.is_some())
            .await
            .map_err(|_closed| gone())?;
        match &seen.failed {
            Some(text) => Err(io::Error::other(text.clone())),
            None => Ok(()),
        }
    }
}

impl Order {
    fn submit(&mut self, last_index: u64, waiter: Waiter) -> io::Result<u64> {
        self.number += 1;
        let number = self.number;
        self.jobs.send(Job { number, last_index, waiter }).map_err(|_closed| gone())?;
        Ok(number)
    }
}

fn gone() -> io::Error {
    io::Error::other("log flush thread: has ended")
}

/// The flush thread: ends when the last sender is gone.
fn run(db: &DB, inbox: &Receiver<Job>, flushed: &watch::Sender<Flushed>, marker: &Marker) {
    let mut failed: Option<String> = None;
    let mut group = Vec::new();
    while let Ok(first) = inbox.recv() {
        group.push(first);
        group.extend(inbox.try_iter());
        if failed.is_none() {
            let begun = tokio::time::Instant::now();
            if let Err(error) = db.flush_wal(true) {
                let text = format!("log: flush to disk failed: {}", error.into_string());
                tracing::error!("{text}");
                failed = Some(text);
            }
            metrics::histogram!("nexus_fsync_seconds").record(begun.elapsed());
            metrics::histogram!("nexus_fsync_group").record(u32::try_from(group.len()).unwrap_or(u32::MAX));
        }
        let number = group.last().map_or(0, |job| job.number);
        let last = group.iter().rev().find(|job| job.last_index > 0).map(|job| job.last_index);
        flushed.send_modify(|flushed| match &failed {
            Some(text) => flushed.failed = Some(text.clone()),
            None => flushed.number = number,
        });
        for job in group.drain(..) {
            let result = failed.clone().map_or(Ok(()), |text| Err(io::Error::other(text)));
            match job.waiter {
                Waiter::Append(callback) => callback.io_completed(result),
                // Who stopped waiting does not want to know.
                Waiter::Own(done) => drop(done.send(result)),
            }
        }
        if let (Some(last), None) = (last, &failed) {
            marker.note(last);
        }
    }
}

/// The durable mark: an index that was on disk a moment ago, in a file of its own (core.md 1).
///
/// It is written beside the next groups, off the answer path, and trails them. After a damaged log was
/// opened with what could be read, it tells whether acknowledged entries are missing.
struct Marker {
    newest: Arc<AtomicU64>,
    wake: SyncSender<()>,
}

impl Marker {
    fn start(path: &Path) -> Result<Self, StoreError> {
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)
            .map_err(StoreError::io(path))?;
        let newest = Arc::new(AtomicU64::new(0));
        let (wake, sleep) = sync_channel::<()>(1);
        let (seen, path) = (newest.clone(), path.to_owned());
        std::thread::Builder::new()
            .name("nexus-mark".into())
            .spawn(move || mark(&file, &path, &seen, &sleep))
            .map_err(StoreError::io(Path::new("nexus-mark")))?;
        Ok(Self { newest, wake })
    }

    fn note(&self, index: u64) {
        self.newest.store(index, Ordering::Relaxed);
        match self.wake.try_send(()) {
            // Full: the thread is at work and will look again.
            Ok(()) | Err(TrySendError::Full(()) | TrySendError::Disconnected(())) => {}
        }
    }
}

fn mark(file: &File, path: &PathBuf, newest: &AtomicU64, sleep: &Receiver<()>) {
    while sleep.recv().is_ok() {
        let index = newest.load(Ordering::Relaxed);
        let written =
            file.write_all_at(&index.to_be_bytes(), 0).and_then(|()| file.sync_data());
        if let Err(error) = written {
            tracing::warn!("{}: durable mark cannot be written: {error}", path.display());
        }
    }
}

/// Reads the durable mark; none yet is 0.
///
/// # Errors
/// When the file is there and cannot be read.
pub(crate) fn read_mark(path: &Path) -> Result<u64, StoreError> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(bytes.as_slice().try_into().map_or(0, u64::from_be_bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(StoreError::io(path)(error)),
    }
}
