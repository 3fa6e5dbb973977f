//! What a node keeps on its disk.
//!
//! ```text
//! DATA/format     the format version of this folder; an unknown one is refused, nothing is touched
//! DATA/log/       RocksDB: entries, vote, committed marker, boot number; one flush thread
//! DATA/log.mark   what of the log was on disk a moment ago: last index and vote (traps.md 1)
//! DATA/log.torn   the last log whose unsynced tail was torn by a power cut, to be looked into
//! DATA/state/     generations of the state, one current, and at most two snapshots
//! DATA/local/     what belongs to this machine alone: what peers showed, remembered addresses
//! ```
//!
//! The order that everything rests on (traps.md 1): an entry is readable when `append` returns,
//! durable when its flush number is reached, and only then applied to `state/`. So `state/` is
//! never ahead of the log on disk, whatever is killed when.

pub(crate) mod failpoint;
pub(crate) mod flush;
pub(crate) mod folder;
pub(crate) mod local;
pub(crate) mod log;
mod log_recovery;
pub(crate) mod mark;
mod milestones;
pub(crate) mod rocks;
pub(crate) mod state;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file or folder cannot be read or written.
    #[error("{}: cannot be used", path.display())]
    Io {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The folder was made by another version of the format.
    #[error(
        "{}: has data format {found}, this program knows format {known}; use the program that \
         wrote it, or another --data folder (nothing was touched)",
        path.display()
    )]
    Format {
        /// The file that says so.
        path: PathBuf,
        /// What it says.
        found: String,
        /// What this program knows.
        known: u32,
    },
    /// A database cannot be opened.
    #[error("{}: cannot be opened: {text}", path.display())]
    Database {
        /// Which one.
        path: PathBuf,
        /// What RocksDB says.
        text: String,
    },
    /// Acknowledged entries are missing or unreadable: this member must be replaced.
    #[error(
        "{}: acknowledged entries are damaged or missing ({text}); this member must be replaced: \
         remove it from another node with `nexus node remove`, then join again with an empty \
         folder",
        path.display()
    )]
    Damaged {
        /// Which database.
        path: PathBuf,
        /// What was found.
        text: String,
    },
    /// A newer program has gone on with it: the data are well, and this program is too old.
    #[error("{}: {text}", path.display())]
    TooNew {
        /// Which database.
        path: PathBuf,
        /// Which program goes on with it.
        text: String,
    },
}

impl StoreError {
    /// Says in which database a fault of the domain was found, and of which kind it is.
    pub(crate) fn fault(path: &Path, fault: &nexus_domain::Fault) -> Self {
        let path = path.to_owned();
        if fault.is_too_old() {
            Self::TooNew { path, text: fault.what.clone() }
        } else {
            Self::Damaged { path, text: fault.to_string() }
        }
    }

    /// Says where an I/O error happened.
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }
}

/// Locks a mutex whose holder never leaves broken data behind, even if it panicked.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
