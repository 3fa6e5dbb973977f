//! Opening the log after whatever happened to the machine (traps.md 1).
//!
//! The strict mode accepts an incomplete last record only. A page of the unsynced tail torn by a
//! power cut makes it refuse; then a copy is opened that reads as far as it can, and the durable
//! mark tells whether anything acknowledged is missing. Nothing acknowledged is ever dropped
//! silently.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rocksdb::{Cache, DB, DBRecoveryMode, ErrorKind};

use super::StoreError;
use super::failpoint::failpoint;
use super::folder::{sync_files, sync_folder};
use super::log::{last_entry, purged_index, voted};
use super::mark::Mark;
use super::rocks::log_options;

/// Opens the log database, repairing a torn unsynced tail.
///
/// # Errors
/// [`StoreError::Damaged`] when something at or below the mark is missing or unreadable.
pub(super) fn open(path: &Path, mark: Mark, cache: &Cache) -> Result<DB, StoreError> {
    let (copy, torn) = (beside(path, "recovered"), beside(path, "torn"));
    finish_swap(path, &copy, &torn).map_err(StoreError::io(path))?;
    let refused = match open_with(path, DBRecoveryMode::TolerateCorruptedTailRecords, cache) {
        Ok(db) => return check_mark(&db, path, mark).map(|_reaches| db),
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
    let reaches = match recover(path, &copy, mark, cache) {
        Ok(reaches) => reaches,
        Err(error) => {
            fs::remove_dir_all(&copy).map_err(StoreError::io(&copy))?;
            return Err(error);
        }
    };
    swap(path, &copy, &torn).map_err(StoreError::io(path))?;
    tracing::warn!(
        "{}: kept everything up to entry {reaches}, dropped what was behind it; up to entry {} the \
         log was known to be on disk, so nothing that was answered is missing; the torn log is \
         kept as {}",
        path.display(),
        mark.index,
        torn.display()
    );
    open_with(path, DBRecoveryMode::TolerateCorruptedTailRecords, cache)
        .map_err(|error| database(path, error))
}

/// Makes a copy, opens it with what can be read, and returns up to where it reaches.
fn recover(path: &Path, copy: &Path, mark: Mark, cache: &Cache) -> Result<u64, StoreError> {
    copy_folder(path, copy).map_err(StoreError::io(copy))?;
    let db = open_with(copy, DBRecoveryMode::PointInTime, cache)
        .map_err(|error| damaged(path, error.into_string()))?;
    let reaches = check_mark(&db, path, mark)?;
    drop(db);
    sync_files(copy).map_err(StoreError::io(copy))?;
    Ok(reaches)
}

/// Checks that nothing is missing that was on disk; returns up to where the log reaches.
fn check_mark(db: &DB, path: &Path, mark: Mark) -> Result<u64, StoreError> {
    let last = last_entry(db).map_err(|text| damaged(path, text))?.map(|id| id.index);
    let purged = purged_index(db).map_err(|text| damaged(path, text))?;
    let reaches = last.max(purged).unwrap_or(0);
    if reaches < mark.index {
        let text = format!("entries reach to {reaches}, {} was on disk before", mark.index);
        return Err(damaged(path, text));
    }
    let vote = voted(db).map_err(|text| damaged(path, text))?;
    if vote < mark.vote {
        let text = format!("the vote is of term {}, one of term {} was given", vote.0, mark.vote.0);
        return Err(damaged(path, text));
    }
    Ok(reaches)
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

/// Returns the path beside the log with a word behind its name.
fn beside(path: &Path, word: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(word);
    path.with_file_name(name)
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

/// Puts the checked copy in the log's place; the torn one stays beside it, the one before goes.
fn swap(path: &Path, copy: &Path, torn: &Path) -> io::Result<()> {
    if torn.exists() {
        fs::remove_dir_all(torn)?;
    }
    fs::rename(path, torn)?;
    failpoint("recover.torn");
    fs::rename(copy, path)?;
    sync_folder(path.parent().unwrap_or_else(|| Path::new(".")))
}

/// Ends a swap that was cut short between its two renames, and clears a copy that was never
/// checked.
fn finish_swap(path: &Path, copy: &Path, torn: &Path) -> io::Result<()> {
    if !copy.exists() {
        return Ok(());
    }
    if path.exists() {
        return fs::remove_dir_all(copy);
    }
    if torn.exists() {
        fs::rename(copy, path)?;
        sync_folder(path.parent().unwrap_or_else(|| Path::new(".")))?;
    }
    Ok(())
}
