//! The one flush thread of `log/`: gather, one fsync, release everybody.
//!
//! Each append or truncate takes a number when it is written; `flushed` is the newest number that
//! is on disk. Whoever must not run ahead of the disk waits for the number of the append that wrote
//! its entry (traps.md 1), not for the newest: waiting for the newest is a second flush in series.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use openraft::storage::IOFlushed;
use rocksdb::DB;
use tokio::sync::{oneshot, watch};

use super::failpoint::failpoint;
use super::mark::{Bell, MarkFile, Note};
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
    note: Note,
    waiter: Waiter,
}

/// The sending side of the flush thread.
#[derive(Debug)]
pub(crate) struct Flusher {
    order: Mutex<Order>,
    flushed: watch::Receiver<Flushed>,
    mark: Arc<MarkFile>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Order {
    /// `None` once the store is closed.
    jobs: Option<Sender<Job>>,
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
        let (mark_file, bell, mark_thread) = MarkFile::start(mark)?;
        let (jobs, inbox) = channel();
        let (flushed_to, flushed) = watch::channel(Flushed::default());
        let marked = mark_file.clone();
        let flush_thread = std::thread::Builder::new()
            .name("nexus-flush".into())
            .spawn(move || run(&db, &inbox, &flushed_to, &(marked, bell)))
            .map_err(StoreError::io(mark))?;
        let order = Order { jobs: Some(jobs), number: 0, unflushed: VecDeque::new() };
        let threads = vec![flush_thread, mark_thread];
        Ok(Self { order: Mutex::new(order), flushed, mark: mark_file, threads })
    }

    /// Hands an append over: `write` puts it into the database, then the callback waits for the
    /// disk.
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
        let note = Note { last: Some(last_index), vote: None };
        let number = order.submit(note, Waiter::Append(callback))?;
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
        note: Note,
        write: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<oneshot::Receiver<io::Result<()>>> {
        let (done, wait) = oneshot::channel();
        let mut order = lock(&self.order);
        write()?;
        order.submit(note, Waiter::Own(done))?;
        Ok(wait)
    }

    /// Hands over a write that takes the entries behind `keep` away; nobody waits for it.
    ///
    /// The append that follows waits for the same flush or a later one.
    ///
    /// # Errors
    /// What `write` says, that the mark cannot be lowered, or that the flush thread is gone.
    pub(crate) fn truncate(
        &self,
        keep: u64,
        write: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        let (done, _nobody_waits) = oneshot::channel();
        let mut order = lock(&self.order);
        self.mark.lower(keep, order.number.saturating_add(1))?;
        failpoint("truncate.marked");
        write()?;
        // A truncated append still has to reach the disk for the entries that stay.
        for (index, _) in &mut order.unflushed {
            *index = keep.min(*index);
        }
        order.submit(Note { last: Some(keep), vote: None }, Waiter::Own(done))?;
        Ok(())
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

impl Drop for Flusher {
    /// Waits for both threads, so that the database can be opened again afterwards.
    fn drop(&mut self) {
        drop(lock(&self.order).jobs.take());
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("log: a flush thread has panicked");
            }
        }
    }
}

impl Order {
    fn submit(&mut self, note: Note, waiter: Waiter) -> io::Result<u64> {
        self.number += 1;
        let number = self.number;
        let jobs = self.jobs.as_ref().ok_or_else(gone)?;
        jobs.send(Job { number, note, waiter }).map_err(|_closed| gone())?;
        Ok(number)
    }
}

fn gone() -> io::Error {
    io::Error::other("log flush thread: has ended")
}

/// The flush thread: ends when the last sender is gone.
fn run(
    db: &DB,
    inbox: &Receiver<Job>,
    flushed: &watch::Sender<Flushed>,
    (mark, bell): &(Arc<MarkFile>, Bell),
) {
    let mut failed: Option<String> = None;
    let mut group = Vec::new();
    while let Ok(first) = inbox.recv() {
        group.push(first);
        group.extend(inbox.try_iter());
        if failed.is_none() {
            failed = flush(db, group.len());
        }
        let number = group.last().map_or(0, |job| job.number);
        flushed.send_modify(|flushed| match &failed {
            Some(text) => flushed.failed = Some(text.clone()),
            None => flushed.number = number,
        });
        failpoint("flush.numbered");
        for job in group.drain(..) {
            if failed.is_none() {
                mark.note(job.number, job.note);
            }
            let result = failed.clone().map_or(Ok(()), |text| Err(io::Error::other(text)));
            match job.waiter {
                Waiter::Append(callback) => callback.io_completed(result),
                // Who stopped waiting does not want to know.
                Waiter::Own(done) => drop(done.send(result)),
            }
        }
        failpoint("flush.released");
        bell.ring();
    }
}

/// Brings everything that was written to the disk; returns what went wrong.
fn flush(db: &DB, group: usize) -> Option<String> {
    failpoint("flush.before");
    let begun = tokio::time::Instant::now();
    let result = db.flush_wal(true);
    metrics::histogram!("nexus_fsync_seconds").record(begun.elapsed());
    metrics::histogram!("nexus_fsync_group").record(u32::try_from(group).unwrap_or(u32::MAX));
    failpoint("flush.after");
    let text = format!("log: flush to disk failed: {}", result.err()?.into_string());
    tracing::error!("{text}");
    Some(text)
}
