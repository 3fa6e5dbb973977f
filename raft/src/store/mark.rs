//! The durable mark: what was on disk a moment ago, in a small file of its own (traps.md 1).
//!
//! It is written beside later groups, off the answer path, and trails them by [`MARK_EVERY`] at
//! most. After a damaged log was opened with what could be read, it tells whether something
//! acknowledged is missing. It may say less than the disk holds, never more: whoever takes entries
//! away lowers it first.

use std::convert::Infallible;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use super::failpoint::failpoint;
use super::{StoreError, lock};

/// The least time between two marks: each is an fsync that the log's own ones wait behind, a
/// quarter of the throughput and more when every group has its mark.
///
/// So what was acknowledged within it right before a crash can be missing unnoticed, if besides the
/// crash the disk damages what it had synced. Tests write it often: a kill finds it at work.
const MARK_EVERY: Duration = Duration::from_millis(if cfg!(test) { 1 } else { 50 });
/// Bytes of the file: three numbers, within one sector.
const MARK_BYTES: usize = 24;

/// What was on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    /// The log's last index.
    pub(crate) index: u64,
    /// Term and node of the vote.
    pub(crate) vote: (u64, u64),
}

/// What a write changes in the mark once it is on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Note {
    /// The log's last index.
    pub(crate) last: Option<u64>,
    /// Term and node of the vote.
    pub(crate) vote: Option<(u64, u64)>,
}

impl Mark {
    fn to_bytes(self) -> [u8; MARK_BYTES] {
        let mut bytes = [0; MARK_BYTES];
        let numbers = [self.index, self.vote.0, self.vote.1];
        for (place, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_be_bytes());
        }
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (index, rest) = bytes.split_first_chunk::<8>()?;
        let (term, node) = rest.split_first_chunk::<8>()?;
        let vote = (u64::from_be_bytes(*term), u64::from_be_bytes(node.try_into().ok()?));
        Some(Self { index: u64::from_be_bytes(*index), vote })
    }

    /// Reads the mark of a log; none yet says nothing.
    ///
    /// # Errors
    /// When the file is there and cannot be read, or is none.
    pub(crate) fn read(path: &Path) -> Result<Self, StoreError> {
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(StoreError::io(path)(error)),
        };
        if bytes.is_empty() {
            // Made, and killed before the first write.
            return Ok(Self::default());
        }
        let damaged = || StoreError::Damaged {
            path: path.to_owned(),
            text: format!("the durable mark has {} bytes, not {MARK_BYTES}", bytes.len()),
        };
        Self::from_bytes(&bytes).ok_or_else(damaged)
    }
}

/// The mark's file.
#[derive(Debug)]
pub(super) struct MarkFile {
    path: PathBuf,
    file: File,
    newest: Mutex<Newest>,
    /// What stands in the file; held while it is written.
    written: Mutex<Mark>,
}

#[derive(Debug)]
struct Newest {
    mark: Mark,
    /// Notes of writes below this number are of entries that were taken away.
    barrier: u64,
}

impl MarkFile {
    /// Opens the file and starts the thread that writes it; it ends when the bell is dropped.
    ///
    /// # Errors
    /// When the file or the thread cannot be made.
    pub(super) fn start(path: &Path) -> Result<(Arc<Self>, Bell, JoinHandle<()>), StoreError> {
        let mark = Mark::read(path)?;
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)
            .map_err(StoreError::io(path))?;
        let newest = Mutex::new(Newest { mark, barrier: 0 });
        let written = Mutex::new(mark);
        let shared = Arc::new(Self { path: path.to_owned(), file, newest, written });
        let (wake, rung) = sync_channel(1);
        let (open, closed) = sync_channel(0);
        let writer = shared.clone();
        let thread = std::thread::Builder::new()
            .name("nexus-mark".into())
            .spawn(move || writer.run(&rung, &closed))
            .map_err(StoreError::io(path))?;
        Ok((shared, Bell { wake, _open: open }, thread))
    }

    fn run(&self, rung: &Receiver<()>, closed: &Receiver<Infallible>) {
        while rung.recv().is_ok() {
            // Groups gather that one mark stands for; it ends early when the store is closed. It is
            // not the bell that is waited for: each group would wake this thread for nothing.
            let _closed = closed.recv_timeout(MARK_EVERY);
            self.write_newest();
        }
    }

    fn write_newest(&self) {
        #[cfg(test)]
        if !tests::WRITING.load(std::sync::atomic::Ordering::Relaxed) {
            return;
        }
        let mut written = lock(&self.written);
        let mark = lock(&self.newest).mark;
        if mark == *written {
            return;
        }
        match self.write(mark) {
            Ok(()) => *written = mark,
            Err(error) => {
                tracing::warn!("{}: durable mark cannot be written: {error}", self.path.display());
            }
        }
    }

    fn write(&self, mark: Mark) -> io::Result<()> {
        failpoint("mark.write");
        self.file.write_all_at(&mark.to_bytes(), 0)?;
        failpoint("mark.written");
        self.file.sync_data()
    }

    /// Takes note of what a write of this number brought to the disk.
    pub(super) fn note(&self, number: u64, note: Note) {
        let mut newest = lock(&self.newest);
        if let Some(last) = note.last
            && number >= newest.barrier
        {
            newest.mark.index = last;
        }
        if let Some(vote) = note.vote {
            newest.mark.vote = newest.mark.vote.max(vote);
        }
    }

    /// Makes the mark say no more than `keep`, durably, before the write `number` takes entries
    /// away.
    ///
    /// Otherwise a kill behind that write would leave a mark above the log, which reads as damage.
    ///
    /// # Errors
    /// When the disk refuses.
    pub(super) fn lower(&self, keep: u64, number: u64) -> io::Result<()> {
        {
            let mut newest = lock(&self.newest);
            newest.barrier = number;
            newest.mark.index = newest.mark.index.min(keep);
        }
        let mut written = lock(&self.written);
        if written.index > keep {
            let mark = Mark { index: keep, ..*written };
            self.write(mark)?;
            *written = mark;
        }
        Ok(())
    }
}

/// Wakes the thread that writes the mark.
#[derive(Debug)]
pub(super) struct Bell {
    wake: SyncSender<()>,
    /// Never sent on: that it is dropped says that the store is closed.
    _open: SyncSender<Infallible>,
}

impl Bell {
    pub(super) fn ring(&self) {
        match self.wake.try_send(()) {
            // Full: the thread pauses or is at work, and will look again.
            Ok(()) | Err(TrySendError::Full(()) | TrySendError::Disconnected(())) => {}
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    pub(super) static WRITING: AtomicBool = AtomicBool::new(true);

    /// Stops writing marks, to measure what they cost.
    pub(in crate::store) fn set_writing(on: bool) {
        WRITING.store(on, Ordering::Relaxed);
    }
}
