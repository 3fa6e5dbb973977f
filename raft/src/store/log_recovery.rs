//! Opening the log after whatever happened to the machine (core.md 1).
//!
//! The strict mode accepts an incomplete last record only. A page of the unsynced tail torn by a power
//! cut makes it refuse; then a copy is opened that reads as far as it can, and the durable mark tells
//! whether anything acknowledged is missing. Nothing acknowledged is ever dropped silently.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rocksdb::{Cache, DB, DBRecoveryMode, ErrorKind};

use super::folder::{sync_files, sync_folder};
use super::log::last_entry;
use super::rocks::log_options;
use super::StoreError;

/// Opens the log database, repairing a torn unsynced tail.
///
/// # Errors
/// [`StoreError::Damaged`] when entries at or below the mark are missing or unreadable.
pub(super) fn open(path: &Path, mark: u64, cache: &Cache) -> Result<DB, StoreError> {
    let refused = match open_with(path, DBRecoveryMode::TolerateCorruptedTailRecords, cache) {
        Ok(db) => return check_mark(db, path, mark),
        Err(error) => error,
    };
    if refused.kind() != ErrorKind::Corruption || !path.is_dir() {
        return Err(database(path, refused));
    }
    tracing::warn!(
        "{}: the log's tail was torn ({}); reading a copy as far as it goes",
        path.display(),
        refused.into_string()
    );
    let copy = sibling(path, "recovered");
    copy_folder(path, &copy).map_err(StoreError::io(&copy))?;
    let db = open_with(&copy, DBRecoveryMode::PointInTime, cache)
        .map_err(|error| damaged(path, error.into_string()))?;
    let db = check_mark(db, path, mark)?;
    let last = last_entry(&db).map_err(|text| damaged(path, text))?.map_or(0, |id| id.index);
    drop(db);
    let old = sibling(path, "torn");
    swap(path, &copy, &old).map_err(StoreError::io(path))?;
    tracing::warn!(
        "{}: read up to entry {last}; everything up to {mark} was known to be on disk, so nothing \
         that was answered is missing; the torn log is kept as {}",
        path.display(),
        old.display()
    );
    open_with(path, DBRecoveryMode::TolerateCorruptedTailRecords, cache)
        .map_err(|error| database(path, error))
}

fn check_mark(db: DB, path: &Path, mark: u64) -> Result<DB, StoreError> {
    let last = last_entry(&db).map_err(|text| damaged(path, text))?.map(|id| id.index);
    let purged = super::log::purged_index(&db).map_err(|text| damaged(path, text))?;
    let reaches = last.max(purged).unwrap_or(0);
    if reaches < mark {
        let text = format!("entries reach to {reaches}, {mark} was on disk before");
        return Err(damaged(path, text));
    }
    Ok(db)
}

fn open_with(path: &Path, recovery: DBRecoveryMode, cache: &Cache) -> Result<DB, rocksdb::Error> {
    let mut options = log_options(cache, recovery);
    options.create_if_missing(true);
    DB::open(&options, path)
}

fn damaged(path: &Path, text: String) -> StoreError {
    StoreError::Damaged { path: path.to_owned(), text }
}

fn database(path: &Path, error: rocksdb::Error) -> StoreError {
    StoreError::Database { path: path.to_owned(), text: error.into_string() }
}

/// Returns a name beside the log that is not taken.
fn sibling(path: &Path, word: &str) -> PathBuf {
    let base = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut number = 1_u32;
    loop {
        let candidate = path.with_file_name(format!("{base}.{word}-{number}"));
        if !candidate.exists() {
            return candidate;
        }
        number = number.saturating_add(1);
    }
}

fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_file() && entry.file_name() != "LOCK" {
            fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    sync_files(to)
}

fn swap(path: &Path, copy: &Path, old: &Path) -> io::Result<()> {
    fs::rename(path, old)?;
    fs::rename(copy, path)?;
    sync_folder(path.parent().unwrap_or_else(|| Path::new(".")))
}
