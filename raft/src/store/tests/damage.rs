//! Damaged files: nothing acknowledged is dropped silently, and what the kernel lost is no damage.

use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use openraft::entry::RaftEntry as _;
use openraft::storage::{RaftLogReader as _, RaftLogStorage as _};
use tempfile::TempDir;

use super::{NODE, Script, Stores, copy_all, names};
use crate::store::StoreError;
use crate::store::log::LogStore;
use crate::store::mark::Mark;
use crate::store::rocks;
use crate::types::{LogData, LogEntry, Payload, Vote, log_id};

/// Entries of the damaged log; the first half is taken for synced.
const ENTRIES: u64 = 100;
const SYNCED: u64 = 49;

fn pattern(index: u64) -> Vec<u8> {
    format!("<entry number {index:06}>").into_bytes()
}

/// Writes a log of 1 KiB entries, each in a group of its own.
async fn write_log(vote_at: u64) -> TempDir {
    let data = tempfile::tempdir().unwrap();
    let mut stores = Stores::open(data.path()).unwrap();
    for index in 0..ENTRIES {
        let mut bytes = pattern(index);
        bytes.resize(1024, b'.');
        let payload = Payload::Normal(LogData(Bytes::from(bytes)));
        stores.append(vec![LogEntry::new(log_id(1, NODE, index), payload)]).await;
        if index == vote_at {
            stores.log.save_vote(&Vote::new(3, 2)).await.unwrap();
        }
    }
    data
}

/// Says what was known to be on disk: the mark trails, so this is any earlier moment.
fn set_mark(data: &Path, index: u64, vote: (u64, u64)) {
    let numbers = [index, vote.0, vote.1].map(u64::to_be_bytes);
    fs::write(data.join("log.mark"), numbers.concat()).unwrap();
}

/// Returns the write-ahead log that holds the entries.
fn wal(folder: &Path) -> PathBuf {
    let of = |name: &String| fs::metadata(folder.join(name)).unwrap().len();
    let mut logs = names(folder, "0");
    logs.retain(|name| name.ends_with(".log"));
    logs.sort_by_key(of);
    folder.join(logs.last().unwrap())
}

/// Returns where an entry stands in the write-ahead log.
fn place(bytes: &[u8], index: u64) -> usize {
    let pattern = pattern(index);
    bytes.windows(pattern.len()).position(|window| window == pattern).unwrap()
}

fn damage(data: &Path, how: impl FnOnce(&mut Vec<u8>)) {
    let path = wal(&data.join("log"));
    let mut bytes = fs::read(&path).unwrap();
    how(&mut bytes);
    fs::write(path, bytes).unwrap();
}

/// Opens the log and returns its last index.
async fn reopen(data: &Path) -> Result<u64, StoreError> {
    let mut log = LogStore::open(data, &rocks::cache())?;
    let last = log.get_log_state().await.unwrap().last_log_id.unwrap().index;
    let entries = log.try_get_log_entries(..).await.unwrap();
    assert_eq!(u64::try_from(entries.len()).unwrap(), last + 1, "no holes");
    Ok(last)
}

/// Each kind of damage: its name, what it does to the bytes, and the last entry that may be
/// missing.
type Damage = (&'static str, fn(&mut Vec<u8>));

/// What a power cut may leave of pages that were never synced.
const TORN: &[Damage] = &[
    ("the last record is cut", |bytes| {
        let end = place(bytes, ENTRIES - 1) + 500;
        bytes.truncate(end);
    }),
    ("the last page is zero", |bytes| {
        let from = (place(bytes, ENTRIES - 1) / 4096) * 4096;
        bytes[from..].fill(0);
    }),
    ("a page in the middle of the tail is zero", |bytes| {
        let from = (place(bytes, 70) / 4096) * 4096;
        bytes[from..from + 4096].fill(0);
    }),
    ("a hole right behind what was synced", |bytes| {
        let from = place(bytes, SYNCED + 1) - 40;
        bytes[from..from + 8192].fill(0);
    }),
    ("the tail is not there", |bytes| {
        let end = place(bytes, SYNCED + 1) + 10;
        bytes.truncate(end);
    }),
    ("a bit of the tail is another", |bytes| {
        let at = place(bytes, 80);
        bytes[at] ^= 1;
    }),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_torn_tail_is_dropped_and_nothing_that_was_on_disk() {
    let whole = write_log(ENTRIES).await;
    for (name, how) in TORN {
        let copy = tempfile::tempdir().unwrap();
        copy_all(whole.path(), copy.path());
        damage(copy.path(), how);
        // The mark says the truth: more is gone than may be, and nobody is told otherwise.
        let error = reopen(copy.path()).await.expect_err(name);
        assert!(matches!(error, StoreError::Damaged { .. }), "{name}: {error}");
        assert!(error.to_string().contains("this member must be replaced"), "{name}: {error}");
        assert_eq!(names(copy.path(), "log.recovered"), [""; 0], "{name}: a copy is left behind");
        // It was refused, so it stays what it was: the same again.
        reopen(copy.path()).await.expect_err(name);

        let copy = tempfile::tempdir().unwrap();
        copy_all(whole.path(), copy.path());
        damage(copy.path(), how);
        set_mark(copy.path(), SYNCED, (0, 0));
        let last = reopen(copy.path()).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!((SYNCED..ENTRIES - 1).contains(&last), "{name}: reaches to {last}");
        assert_eq!(names(copy.path(), "log.recovered"), [""; 0], "{name}");
        // It is an ordinary log again, and can be written.
        let mut stores = Stores::open(copy.path()).unwrap();
        let next = LogEntry::new(log_id(2, NODE, last + 1), Payload::Blank);
        stores.append(vec![next]).await;
        drop(stores);
        assert_eq!(reopen(copy.path()).await.unwrap(), last + 1, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flipped_bit_in_what_was_synced_stops_the_node() {
    let whole = write_log(ENTRIES).await;
    for index in [0, 1, 25, SYNCED] {
        let copy = tempfile::tempdir().unwrap();
        copy_all(whole.path(), copy.path());
        damage(copy.path(), |bytes| {
            let at = place(bytes, index);
            bytes[at + 3] ^= 0x10;
        });
        set_mark(copy.path(), SYNCED, (0, 0));
        let error = reopen(copy.path()).await.expect_err("entries are missing");
        assert!(matches!(error, StoreError::Damaged { .. }), "entry {index}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vote_that_was_on_disk_is_not_forgotten() {
    let whole = write_log(60).await;
    for (vote, fits) in [((3, 2), false), ((0, 0), true)] {
        let copy = tempfile::tempdir().unwrap();
        copy_all(whole.path(), copy.path());
        // The vote of term 3 stands between the entries 60 and 61.
        damage(copy.path(), |bytes| {
            let at = place(bytes, 60);
            bytes[at + 3] ^= 1;
        });
        set_mark(copy.path(), SYNCED, vote);
        match reopen(copy.path()).await {
            Ok(last) => assert!(fits && last == 59, "{vote:?}: reaches to {last}"),
            Err(error) => {
                assert!(!fits, "{vote:?}: {error}");
                assert!(error.to_string().contains("one of term 3 was given"), "{error}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_swap_cut_short_is_ended_and_a_lost_log_is_noticed() {
    let whole = write_log(ENTRIES).await;
    // Killed between the two renames.
    let copy = tempfile::tempdir().unwrap();
    copy_all(whole.path(), copy.path());
    fs::rename(copy.path().join("log"), copy.path().join("log.torn")).unwrap();
    copy_all(&whole.path().join("log"), &copy.path().join("log.recovered"));
    assert_eq!(reopen(copy.path()).await.unwrap(), ENTRIES - 1);
    assert_eq!(names(copy.path(), "log"), ["log", "log.mark", "log.torn"]);
    // Killed while the copy was made.
    copy_all(&whole.path().join("log"), &copy.path().join("log.recovered"));
    assert_eq!(reopen(copy.path()).await.unwrap(), ENTRIES - 1);
    assert_eq!(names(copy.path(), "log.recovered"), [""; 0]);
    // Gone.
    fs::remove_dir_all(copy.path().join("log")).unwrap();
    let error = reopen(copy.path()).await.expect_err("nothing is there");
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_torn_state_is_replayed_from_the_log() {
    let script = Script::new(11, 400);
    let end = script.last() + 1;
    let data = tempfile::tempdir().unwrap();
    let mut stores = Stores::open(data.path()).unwrap();
    for start in (0..end).step_by(10) {
        let entries = script.range(1, start..(start + 10).min(end));
        stores.append(entries.clone()).await;
        stores.apply(entries).await;
    }
    stores.log.save_committed(Some(log_id(1, NODE, end - 1))).await.unwrap();
    let expected = stores.digests();
    drop(stores);
    let damages: [fn(&mut Vec<u8>); 4] = [
        |bytes| bytes.truncate(bytes.len() - 100),
        |bytes| bytes.truncate(bytes.len() / 2),
        |bytes| {
            let middle = bytes.len() / 2;
            bytes[middle..middle + 4096].fill(0);
        },
        |bytes| bytes.fill(0),
    ];
    for (number, how) in damages.into_iter().enumerate() {
        let copy = tempfile::tempdir().unwrap();
        copy_all(data.path(), copy.path());
        let path = wal(&copy.path().join("state/g-000001"));
        let mut bytes = fs::read(&path).unwrap();
        how(&mut bytes);
        fs::write(path, bytes).unwrap();
        let mut stores = Stores::open(copy.path()).unwrap();
        let applied = stores.applied().map_or(0, |id| id.index);
        assert!(applied < end - 1, "damage {number}: nothing was lost, so nothing is shown");
        stores.start().await.unwrap();
        assert_eq!(stores.applied(), Some(log_id(1, NODE, end - 1)), "damage {number}");
        assert_eq!(stores.digests(), expected, "damage {number}");
    }
}

/// Returns every file under a folder with its bytes.
fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    for name in names(folder, "") {
        let path = folder.join(name);
        if path.is_dir() {
            all.push((path.clone(), Vec::new()));
            all.extend(contents(&path));
        } else {
            all.push((path.clone(), fs::read(path).unwrap()));
        }
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn another_format_is_refused_and_nothing_is_touched() {
    let data = write_log(5).await;
    for text in ["2\n", "", "one", "1.5\n", &"9".repeat(5000)] {
        fs::write(data.path().join("format"), text).unwrap();
        let before = contents(data.path());
        let error = crate::open::inspect(data.path()).unwrap_err();
        let crate::open::OpenError::Store(error @ StoreError::Format { .. }) = error else {
            panic!("{text:?}: {error}");
        };
        let said = error.to_string();
        assert!(said.contains("this program knows format 1"), "{said}");
        assert!(said.contains("nothing was touched") && said.len() < 500, "{said}");
        assert_eq!(contents(data.path()), before, "{text:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_that_is_lost_is_never_made_anew() {
    let script = Script::new(3, 60);
    let entries = script.range(1, 0..script.last() + 1);
    let make = async || {
        let data = tempfile::tempdir().unwrap();
        let mut stores = Stores::open(data.path()).unwrap();
        stores.append(entries.clone()).await;
        stores.apply(entries.clone()).await;
        data
    };
    let refusal = |data: &TempDir| Stores::open(data.path()).err().unwrap();

    let data = make().await;
    fs::write(data.path().join("state/CURRENT"), "g-000007").unwrap();
    assert!(refusal(&data).contains("names a generation that is missing"));
    fs::write(data.path().join("state/CURRENT"), "../log").unwrap();
    assert!(refusal(&data).contains("names no generation"));
    assert!(data.path().join("state/g-000001").exists());

    let data = make().await;
    let state = data.path().join("state");
    fs::rename(state.join("g-000001"), state.join("g-000004")).unwrap();
    fs::remove_file(state.join("CURRENT")).unwrap();
    assert!(refusal(&data).contains("is missing, and generations are there"));
    assert!(state.join("g-000004").exists(), "what is there stays for whoever repairs it");

    // The log was purged, and the state is empty.
    let data = make().await;
    {
        let mut stores = Stores::open(data.path()).unwrap();
        stores.log.purge(log_id(1, NODE, 40)).await.unwrap();
    }
    fs::remove_dir_all(data.path().join("state")).unwrap();
    assert!(refusal(&data).contains("the log begins behind the state"), "{}", refusal(&data));

    // The state is there, and the log is another.
    let data = make().await;
    fs::remove_dir_all(data.path().join("log")).unwrap();
    fs::remove_file(data.path().join("log.mark")).unwrap();
    assert!(refusal(&data).contains("the state is ahead of the log"), "{}", refusal(&data));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_mark_never_says_more_than_the_log() {
    let data = tempfile::tempdir().unwrap();
    let path = data.path().join("log.mark");
    let mut stores = Stores::open(data.path()).unwrap();
    let blank = |term, index| LogEntry::new(log_id(term, NODE, index), Payload::Blank);
    stores.append((0..40).map(|index| blank(1, index)).collect()).await;
    let mut last = log_id(1, NODE, 39);
    for round in 2..14 {
        let next = last.index + 1;
        let tail = (next..next + 20).map(|index| blank(round - 1, index)).collect();
        let flushed = stores.append_soon(tail).await;
        if round % 2 == 0 {
            flushed.await.unwrap().unwrap();
            // The mark stands for the tail, now or in a moment.
            let until = tokio::time::Instant::now() + std::time::Duration::from_secs(20);
            while Mark::read(&path).unwrap().index < next + 19 {
                assert!(tokio::time::Instant::now() < until, "{:?}", Mark::read(&path));
                tokio::task::yield_now().await;
            }
        }
        stores.log.truncate_after(Some(last)).await.unwrap();
        assert!(Mark::read(&path).unwrap().index <= last.index, "round {round}");
        last = log_id(round, NODE, next);
        stores.append(vec![blank(round, next)]).await;
        assert!(Mark::read(&path).unwrap().index <= last.index, "round {round}");
        // As a kill right here leaves it: what was synced is there, and it opens.
        let copy = tempfile::tempdir().unwrap();
        copy_all(data.path(), copy.path());
        assert_eq!(reopen(copy.path()).await.unwrap(), last.index, "round {round}");
    }
}
