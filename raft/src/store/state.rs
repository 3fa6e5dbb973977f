//! The state: generations of one RocksDB database, the current one named by `CURRENT`.
//!
//! ```text
//! state/CURRENT      names the generation in use
//! state/g-000012/    a generation: replicated keys only (traps.md 12)
//! state/s-…/         a snapshot: a checkpoint's files and their manifest
//! state/r-…/         a snapshot that is being received
//! ```
//!
//! A snapshot is installed as a new generation and swapped in; readers of the old one finish on it,
//! and its folder goes when the last is done. Applied log id and membership stand in the database
//! itself, under the key 0x00, written in the same batch as what they stand for.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use minicbor::{Decode, Encode};
use nexus_domain::{Direction, Fault, KeyRange, Read};
use rocksdb::{Cache, DB, ErrorKind, WriteBatch};

use super::StoreError;
use super::failpoint::failpoint;
use super::folder::{sync_folder, write_file};
use super::rocks::{Direct, bounded, io_error, mode, row, state_options};
use crate::types::{LogId, StoredMembership};
use crate::wire::{WireLogId, WireStoredMembership, seal, unseal};

/// The key of [`Position`]; the domain's keys begin above 0x00.
const POSITION_KEY: &[u8] = &[0x00, b'p'];
/// The file that names the generation in use.
const CURRENT: &str = "CURRENT";
/// The number of a new folder's generation.
const FIRST: u64 = 1;

/// Where the state stands in the log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
struct Position {
    #[n(0)]
    applied: Option<WireLogId>,
    #[n(1)]
    membership: WireStoredMembership,
}

/// The state store: the current generation.
pub(crate) struct StateStore {
    root: PathBuf,
    cache: Cache,
    current: RwLock<Arc<Generation>>,
}

impl std::fmt::Debug for StateStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StateStore").field("root", &self.root).finish_non_exhaustive()
    }
}

/// One open database of the state.
#[derive(Debug)]
pub(crate) struct Generation {
    number: u64,
    path: PathBuf,
    /// `None` only while it is dropped.
    db: Option<DB>,
    /// Whether the folder goes with the last reader.
    doomed: AtomicBool,
}

impl std::ops::Deref for Generation {
    type Target = DB;

    #[expect(clippy::expect_used, reason = "the database is taken out only in `drop`")]
    fn deref(&self) -> &DB {
        self.db.as_ref().expect("a generation's database is open until it is dropped")
    }
}

impl Drop for Generation {
    fn drop(&mut self) {
        drop(self.db.take());
        if self.doomed.load(Ordering::Relaxed)
            && let Err(error) = fs::remove_dir_all(&self.path)
        {
            tracing::warn!("{}: old state cannot be deleted: {error}", self.path.display());
        }
    }
}

impl Generation {
    fn open(root: &Path, number: u64, make: bool, cache: &Cache) -> Result<Self, StoreError> {
        let path = root.join(name(number));
        let mut options = state_options(cache);
        options.create_if_missing(make);
        let db = DB::open(&options, &path).map_err(|error| {
            let damaged = error.kind() == ErrorKind::Corruption;
            let (path, text) = (path.clone(), error.into_string());
            if damaged {
                StoreError::Damaged { path, text }
            } else {
                StoreError::Database { path, text }
            }
        })?;
        Ok(Self { number, path, db: Some(db), doomed: AtomicBool::new(false) })
    }

    /// Returns its folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads where it stands in the log.
    ///
    /// # Errors
    /// When it cannot be read or decoded.
    pub(crate) fn position(&self) -> io::Result<(Option<LogId>, StoredMembership)> {
        position(self)
    }

    /// Writes one batch: the changes, and where the state stands after them.
    ///
    /// # Errors
    /// When the database refuses; nothing was written then.
    pub(crate) fn write(
        &self,
        changes: &BTreeMap<Vec<u8>, Option<Vec<u8>>>,
        applied: LogId,
        membership: &StoredMembership,
    ) -> io::Result<()> {
        let mut batch = WriteBatch::default();
        for (key, change) in changes {
            match change {
                Some(value) => batch.put(key, value),
                None => batch.delete(key),
            }
        }
        let position = Position { applied: Some(applied.into()), membership: membership.into() };
        batch.put(POSITION_KEY, seal(&position));
        failpoint("state.before");
        self.write_opt(batch, &rocksdb::WriteOptions::default()).map_err(io_error)?;
        failpoint("state.written");
        Ok(())
    }
}

/// Reads where a state database stands in the log.
///
/// # Errors
/// When it cannot be read or decoded.
pub(crate) fn position(db: &DB) -> io::Result<(Option<LogId>, StoredMembership)> {
    let Some(bytes) = db.get(POSITION_KEY).map_err(io_error)? else {
        return Ok((None, StoredMembership::default()));
    };
    let position: Position = unseal(&bytes).map_err(io::Error::other)?;
    let membership = position.membership.to_stored().map_err(io::Error::other)?;
    Ok((position.applied.map(Into::into), membership))
}

fn name(number: u64) -> String {
    format!("g-{number:06}")
}

fn number_of(name: &str) -> Option<u64> {
    name.strip_prefix("g-")?.parse().ok()
}

impl StateStore {
    /// Opens the current generation of a data folder, or makes the first; deletes the others.
    ///
    /// # Errors
    /// When the folder or the database cannot be used.
    pub(crate) fn open(data: &Path, cache: &Cache) -> Result<Self, StoreError> {
        let root = data.join("state");
        fs::create_dir_all(&root).map_err(StoreError::io(&root))?;
        let file = root.join(CURRENT);
        let named = named_generation(&root, &file)?;
        let number = named.unwrap_or(FIRST);
        let generation = Generation::open(&root, number, named.is_none(), cache)?;
        if named.is_none() {
            write_file(&file, name(number).as_bytes()).map_err(StoreError::io(&file))?;
        }
        sweep(&root, number).map_err(StoreError::io(&root))?;
        let (applied, _) = generation.position().map_err(|error| StoreError::Damaged {
            path: generation.path.clone(),
            text: error.to_string(),
        })?;
        crate::snapshot::receive::demote(&root, applied.map_or(0, |id| id.index))
            .map_err(StoreError::io(&root))?;
        let current = RwLock::new(Arc::new(generation));
        Ok(Self { root, cache: cache.clone(), current })
    }

    /// Returns the folder of generations and snapshots.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the generation in use.
    pub(crate) fn current(&self) -> Arc<Generation> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes the folder of the next generation, filled by `fill`, opens and checks it, and swaps it
    /// in.
    ///
    /// # Errors
    /// What `fill` or `check` say, or the disk; the current generation then stays.
    pub(crate) fn install(
        &self,
        fill: impl FnOnce(&Path) -> io::Result<()>,
        check: impl FnOnce(&Generation) -> io::Result<()>,
    ) -> io::Result<()> {
        let number = self.current().number.saturating_add(1);
        let path = self.root.join(name(number));
        if path.exists() {
            fs::remove_dir_all(&path)?;
        }
        fs::create_dir(&path)?;
        failpoint("install.folder");
        fill(&path)?;
        failpoint("install.filled");
        let generation =
            Generation::open(&self.root, number, false, &self.cache).map_err(io::Error::other)?;
        if let Err(error) = check(&generation) {
            generation.doomed.store(true, Ordering::Relaxed);
            return Err(error);
        }
        sync_folder(&self.root)?;
        failpoint("install.opened");
        write_file(&self.root.join(CURRENT), name(number).as_bytes())?;
        failpoint("install.named");
        let old = {
            let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *current, Arc::new(generation))
        };
        // Its folder goes with its last reader, and no reader waits for that.
        old.doomed.store(true, Ordering::Relaxed);
        failpoint("install.swapped");
        Ok(())
    }

    /// Runs a query on one view of the state.
    ///
    /// # Errors
    /// What the query says, or that the state's position cannot be read.
    pub(crate) fn view<T>(
        &self,
        query: impl FnOnce(&View<'_>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let generation = self.current();
        let snapshot = generation.snapshot();
        let view = View { snapshot: &snapshot };
        query(&view)
    }
}

/// Returns the generation that `CURRENT` names; `None` in a folder that was never used.
///
/// Nothing is made anew where something was: an empty state on a purged log would be another state.
fn named_generation(root: &Path, file: &Path) -> Result<Option<u64>, StoreError> {
    let damaged = |text: &str| {
        let (path, text) = (file.to_owned(), text.to_owned());
        Err(StoreError::Damaged { path, text })
    };
    match fs::read_to_string(file) {
        Ok(text) => match number_of(text.trim()) {
            Some(number) if root.join(name(number)).is_dir() => Ok(Some(number)),
            Some(_) => damaged("names a generation that is missing"),
            None => damaged("names no generation"),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            for entry in fs::read_dir(root).map_err(StoreError::io(root))? {
                let entry = entry.map_err(StoreError::io(root))?;
                let found = entry.file_name();
                if number_of(&found.to_string_lossy()).is_some_and(|number| number != FIRST) {
                    return damaged("is missing, and generations are there");
                }
            }
            Ok(None)
        }
        Err(error) => Err(StoreError::io(file)(error)),
    }
}

/// Deletes every generation but one.
fn sweep(root: &Path, keep: u64) -> io::Result<()> {
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        let name = entry.file_name();
        if number_of(&name.to_string_lossy()).is_some_and(|number| number != keep) {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

/// One unchanging view of the state: a query on it never straddles two batches.
pub struct View<'a> {
    snapshot: &'a rocksdb::Snapshot<'a>,
}

impl std::fmt::Debug for View<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("View").finish_non_exhaustive()
    }
}

impl View<'_> {
    /// Returns the index of the last entry that the view contains, 0 before the first.
    ///
    /// # Errors
    /// A fault when it cannot be read.
    pub fn applied(&self) -> Result<u64, Fault> {
        match self.get(POSITION_KEY)? {
            None => Ok(0),
            Some(bytes) => {
                let position: Position =
                    unseal(&bytes).map_err(|text| Fault::at(POSITION_KEY, text))?;
                Ok(position.applied.map_or(0, |applied| applied.index))
            }
        }
    }
}

impl Read for View<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        self.snapshot.get(key).map_err(|error| Fault::at(key, error.into_string()))
    }

    fn scan(&self, range: KeyRange, direction: Direction) -> nexus_domain::store::Rows<'_> {
        if range.is_empty() {
            return Box::new(std::iter::empty());
        }
        Box::new(self.snapshot.iterator_opt(mode(direction), bounded(&range)).map(row))
    }
}

impl Read for Generation {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        Direct(self).get(key)
    }

    fn scan(&self, range: KeyRange, direction: Direction) -> nexus_domain::store::Rows<'_> {
        // `Direct` borrows the database only, so the rows may outlive it.
        if range.is_empty() {
            return Box::new(std::iter::empty());
        }
        Box::new(self.iterator_opt(mode(direction), bounded(&range)).map(row))
    }
}
