//! Bounded disk: few snapshots, half-received ones that resume, a log that shrinks; hostile offers.

use std::fs;
use std::io;
use std::path::Path;

use bytes::Bytes;
use openraft::entry::RaftEntry as _;
use openraft::storage::{RaftLogReader as _, RaftLogStorage as _, RaftStateMachine as _};

use super::{NODE, Script, Stores, copy_all, names};
use crate::snapshot::SnapshotFolder;
use crate::snapshot::manifest::{FileEntry, Manifest};
use crate::snapshot::receive::{Missing, Receiver};
use crate::types::{LogData, LogEntry, Payload, log_id};

async fn write(stores: &mut Stores, script: &Script, range: std::ops::Range<u64>) {
    let entries = script.range(1, range);
    stores.append(entries.clone()).await;
    stores.apply(entries).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_snapshots_leave_at_most_two_folders() {
    let script = Script::new(8, 900);
    let data = tempfile::tempdir().unwrap();
    let mut stores = Stores::open(data.path()).unwrap();
    let root = stores.state.root().to_owned();
    let mut reader: Option<SnapshotFolder> = None;
    let mut put_off = 0;
    for round in 0..30_u64 {
        write(&mut stores, &script, round * 20..round * 20 + 20).await;
        match stores.machine.try_create_snapshot_builder(false).await {
            Some(mut builder) => {
                use openraft::RaftSnapshotBuilder as _;
                builder.build_snapshot().await.unwrap();
            }
            None => put_off += 1,
        }
        // Somebody reads each third one for four rounds.
        if round % 6 == 0 {
            reader = stores.snapshots.newest_folder();
        } else if round % 6 == 4 {
            drop(reader.take());
        }
        let folders = names(&root, "s-");
        assert!(folders.len() <= 2, "round {round}: {folders:?}");
        if let Some(reader) = &reader {
            assert!(reader.path().exists(), "round {round}: deleted while it is read");
        }
    }
    assert!(put_off > 0, "nothing was put off, though one was read");
    drop(reader);
    // The same state again is the same snapshot again.
    let index = stores.build().await;
    assert_eq!(stores.build().await, index);
    assert_eq!(names(&root, "s-").len(), 1);
    // Left by kills: half a checkpoint, one described and not renamed, one without its description.
    let newest = stores.snapshots.newest_folder().unwrap().path().to_owned();
    drop(stores);
    copy_all(&newest, &root.join(format!("s-{:020}.new", 5)));
    copy_all(&newest, &root.join(format!("s-{:020}-0000", 7)));
    fs::remove_file(root.join(format!("s-{:020}-0000", 7)).join("MANIFEST.nexus")).unwrap();
    fs::create_dir(root.join(format!("s-{:020}.new.tmp", 9))).unwrap();
    let stores = Stores::open(data.path()).unwrap();
    assert_eq!(names(&root, "s-").len(), 1, "{:?}", names(&root, "s-"));
    assert_eq!(stores.snapshots.newest_folder().unwrap().path(), newest);
}

/// A donor with a snapshot of several files.
struct Donor {
    _data: tempfile::TempDir,
    stores: Stores,
    script: Script,
}

impl Donor {
    async fn new() -> Self {
        let (data, script) = (tempfile::tempdir().unwrap(), Script::new(21, 900));
        let mut stores = Stores::open(data.path()).unwrap();
        // Few enough tables that RocksDB does not merge them meanwhile.
        write(&mut stores, &script, 0..200).await;
        stores.state.current().flush().unwrap();
        write(&mut stores, &script, 200..400).await;
        stores.build().await;
        Self { _data: data, stores, script }
    }

    fn snapshot(&self) -> SnapshotFolder {
        self.stores.snapshots.newest_folder().unwrap()
    }
}

fn file(manifest: &Manifest, part: Missing) -> &FileEntry {
    &manifest.files[usize::try_from(part.file).unwrap()]
}

/// Sends what is missing in small chunks until so many bytes are sent.
fn send(receiver: &Receiver, from: &SnapshotFolder, missing: &[Missing], mut most: usize) {
    let manifest = from.manifest();
    for part in missing {
        let bytes = fs::read(from.path().join(&file(manifest, *part).name)).unwrap();
        let mut offset = part.offset;
        for chunk in bytes[usize::try_from(offset).unwrap()..].chunks(700) {
            if most < chunk.len() {
                return;
            }
            most -= chunk.len();
            receiver.chunk(&manifest.id(), part.file, offset, chunk).unwrap();
            offset += u64::try_from(chunk.len()).unwrap();
        }
    }
}

fn wanted(manifest: &Manifest, missing: &[Missing]) -> u64 {
    missing.iter().map(|part| file(manifest, *part).bytes - part.offset).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_resumes_and_asks_only_for_what_is_missing() {
    let mut donor = Donor::new().await;
    let data = tempfile::tempdir().unwrap();
    let mut stores = Stores::open(data.path()).unwrap();
    let root = stores.state.root().to_owned();
    let snapshot = donor.snapshot();
    let manifest = snapshot.manifest().clone();

    let receiver = Receiver::new(&root);
    let missing = receiver.begin(manifest.clone(), None).unwrap();
    assert_eq!(wanted(&manifest, &missing), manifest.total());
    send(&receiver, &snapshot, &missing, 7000);
    // The node dies, and is offered the same again.
    drop(stores);
    stores = Stores::open(data.path()).unwrap();
    let receiver = Receiver::new(&root);
    let missing = receiver.begin(manifest.clone(), None).unwrap();
    assert_eq!(wanted(&manifest, &missing), manifest.total() - 7000);

    // Meanwhile the donor goes on, and offers a newer one: tables that are whole are not sent
    // again.
    write(&mut donor.stores, &donor.script, 400..500).await;
    send(&receiver, &snapshot, &missing, usize::MAX);
    donor.stores.build().await;
    let newer = donor.snapshot();
    let next = newer.manifest().clone();
    let missing = receiver.begin(next.clone(), None).unwrap();
    let tables = |manifest: &Manifest| -> Vec<FileEntry> {
        manifest.files.iter().filter(|file| file.name.ends_with(".sst")).cloned().collect()
    };
    let shared = tables(&next).iter().filter(|file| tables(&manifest).contains(file)).count();
    assert!(shared >= 2, "{next:?}");
    let asked = missing.iter().filter(|part| file(&next, **part).name.ends_with(".sst")).count();
    assert_eq!(asked, tables(&next).len() - shared);
    assert_eq!(names(&root, "r-").len(), 1, "the older half-received one is gone");

    // A byte is damaged on this disk: found at the end, and only that file is asked for again.
    send(&receiver, &newer, &missing, usize::MAX);
    let victim = tables(&next)[0].name.clone();
    let path = root.join(format!("r-{}", next.id())).join(&victim);
    let mut bytes = fs::read(&path).unwrap();
    bytes[20] ^= 1;
    fs::remove_file(&path).unwrap();
    fs::write(&path, bytes).unwrap();
    let error = receiver.finish(&next.id()).unwrap_err();
    assert!(error.to_string().contains(&victim), "{error}");
    let missing = receiver.begin(next.clone(), None).unwrap();
    assert_eq!(missing.len(), 1, "{missing:?}");
    assert_eq!(file(&next, missing[0]).name, victim);
    send(&receiver, &newer, &missing, usize::MAX);

    // Received whole and not installed: a start makes it half-received again, and nothing is lost.
    let folder = receiver.finish(&next.id()).unwrap();
    let (place, spare) = (folder.path().to_owned(), data.path().join("spare"));
    fs::rename(&place, &spare).unwrap();
    fs::create_dir(&place).unwrap();
    drop((folder, stores));
    // As if its holder had died instead.
    fs::rename(&spare, &place).unwrap();
    let mut stores = Stores::open(data.path()).unwrap();
    assert!(stores.snapshots.newest_folder().is_none());
    stores.start().await.unwrap();
    assert_eq!(stores.applied(), None);
    let receiver = Receiver::new(&root);
    assert_eq!(receiver.begin(next.clone(), None).unwrap(), []);
    let folder = receiver.finish(&next.id()).unwrap();
    assert_eq!(stores.snapshots.verify(&folder).unwrap(), None);
    let meta = folder.manifest().meta().unwrap();
    stores.machine.install_snapshot(&meta, folder).await.unwrap();
    assert_eq!(stores.digests(), donor.stores.digests());

    // Offered once more, it is taken from here and is the same folder.
    let own = stores.snapshots.newest_folder().unwrap();
    let missing = receiver.begin(next.clone(), Some(&own)).unwrap();
    assert!(missing.iter().all(|part| !file(&next, *part).name.ends_with(".sst")));
    send(&receiver, &newer, &missing, usize::MAX);
    let again = receiver.finish(&next.id()).unwrap();
    assert_eq!(again.path(), own.path());
    drop(again);
    assert!(own.path().exists());
    assert_eq!(names(&root, "r-"), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_not_installed_goes_with_its_last_holder() {
    let donor = Donor::new().await;
    let data = tempfile::tempdir().unwrap();
    let stores = Stores::open(data.path()).unwrap();
    let root = stores.state.root().to_owned();
    let snapshot = donor.snapshot();
    let receiver = Receiver::new(&root);
    let missing = receiver.begin(snapshot.manifest().clone(), None).unwrap();
    send(&receiver, &snapshot, &missing, usize::MAX);
    let folder = receiver.finish(&snapshot.manifest().id()).unwrap();
    assert_eq!(names(&root, "s-").len(), 1);
    drop(folder);
    assert_eq!(names(&root, "s-").len(), 0);
}

fn refusal(result: io::Result<Vec<Missing>>) -> String {
    result.expect_err("a hostile offer was taken").to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_offers_are_refused_and_leave_nothing() {
    let donor = Donor::new().await;
    let good = donor.snapshot().manifest().clone();
    let data = tempfile::tempdir().unwrap();
    let stores = Stores::open(data.path()).unwrap();
    let root = stores.state.root().to_owned();
    let receiver = Receiver::new(&root);
    let before = names(&root, "");
    let long = "a".repeat(65);
    let bad_names = [
        "../../log/CURRENT",
        "/etc/passwd",
        "..",
        ".",
        "",
        "a/b",
        "a\\b",
        "sub/../x.sst",
        ".hidden",
        "CON\0",
        "MANIFEST.nexus",
        "manifest.NEXUS",
        "ü.sst",
        &long,
    ];
    for name in bad_names {
        let mut manifest = good.clone();
        manifest.files[0].name = name.into();
        let text = refusal(receiver.begin(manifest, None));
        assert!(text.contains("is not a plain one"), "{name:?}: {text}");
    }
    let with = |change: &dyn Fn(&mut Manifest)| {
        let mut manifest = good.clone();
        change(&mut manifest);
        refusal(receiver.begin(manifest, None))
    };
    let one = good.files[0].clone();
    assert!(with(&|bad| bad.format = 2).contains("snapshot format 2"));
    assert!(with(&|bad| bad.files = vec![one.clone(); 10_001]).contains("10001 files"));
    assert!(with(&|bad| bad.files.push(one.clone())).contains("named twice"));
    assert!(with(&|bad| bad.files[0].sha256 = vec![1; 31]).contains("no SHA-256"));
    assert!(with(&|bad| bad.meta.last = None).contains("no place in the log"));
    let huge = |bad: &mut Manifest| {
        bad.files[0].bytes = u64::MAX;
        bad.files[1].bytes = u64::MAX;
    };
    assert!(with(&huge).contains("out of all bounds"));
    assert_eq!(names(&root, ""), before, "something was written for a refused offer");
    let text = with(&|bad| bad.files[0].bytes = 1 << 60);
    assert!(text.contains("bytes, ") && text.contains(" free"), "{text}");
    assert!(Manifest::load(Path::new("/nonexistent")).is_err());

    // Chunks: only the next of a file of the offer, never beyond its end.
    let id = good.id();
    let missing = receiver.begin(good.clone(), None).unwrap();
    let part = missing[0];
    let bytes = file(&good, part).bytes;
    let chunk = |id: &str, file, offset, bytes: &[u8]| receiver.chunk(id, file, offset, bytes);
    assert!(chunk("another", part.file, 0, b"x").is_err());
    assert!(chunk(&id, 9999, 0, b"x").is_err());
    assert!(chunk(&id, part.file, bytes, b"x").is_err());
    assert!(chunk(&id, part.file, u64::MAX, b"x").is_err());
    assert!(chunk(&id, part.file, 1, b"x").is_err());
    assert!(receiver.finish(&id).is_err(), "nothing was received");
    assert!(receiver.finish("../..").is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn chunks_never_reach_a_table_in_use() {
    let donor = Donor::new().await;
    let snapshot = donor.snapshot();
    let manifest = snapshot.manifest().clone();
    let copy = tempfile::tempdir().unwrap();
    let receiver = Receiver::new(copy.path());
    let missing = receiver.begin(manifest.clone(), Some(&snapshot)).unwrap();
    let linked = (0_u32..).zip(&manifest.files).find(|(number, file)| {
        file.name.ends_with(".sst") && missing.iter().all(|part| part.file != *number)
    });
    let (number, entry) = linked.unwrap();
    let before = fs::read(snapshot.path().join(&entry.name)).unwrap();
    assert!(receiver.chunk(&manifest.id(), number, 0, b"garbage").is_err());
    assert_eq!(fs::read(snapshot.path().join(&entry.name)).unwrap(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purged_log_shrinks_on_disk() {
    let data = tempfile::tempdir().unwrap();
    let mut stores = Stores::open(data.path()).unwrap();
    let folder = data.path().join("log");
    let size = || -> u64 {
        let files = names(&folder, "").into_iter();
        files.filter_map(|name| fs::metadata(folder.join(name)).ok()).map(|file| file.len()).sum()
    };
    let mut most = 0;
    let mut next = 0;
    // 160 MiB of incompressible entries through a log that keeps the last 16 MiB.
    let mut random = nexus_domain::testing::Random::new(1);
    for _ in 0..160 {
        let entries: Vec<LogEntry> = (next..next + 16)
            .map(|index| {
                let bytes: Vec<u8> =
                    (0..8 << 10).flat_map(|_| random.number().to_be_bytes()).collect();
                LogEntry::new(log_id(1, NODE, index), Payload::Normal(LogData(Bytes::from(bytes))))
            })
            .collect();
        stores.append(entries).await;
        next += 16;
        if let Some(upto) = next.checked_sub(257) {
            stores.log.purge(log_id(1, NODE, upto)).await.unwrap();
        }
        most = most.max(size());
    }
    println!("log of 16 MiB kept: {} MiB at most, {} at the end", most >> 20, size() >> 20);
    assert!(most < 96 << 20, "{most} bytes");
    let kept = stores.log.try_get_log_entries(..).await.unwrap();
    assert_eq!(kept.len(), 256);
    let kept = stores.log.kept_bytes();
    assert!((16 << 20..17 << 20).contains(&kept), "{kept} bytes of 16 MiB");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_of_a_newer_program_is_told_before_it_is_installed() {
    let (data, script) = (tempfile::tempdir().unwrap(), Script::new(21, 200));
    let mut stores = Stores::open(data.path()).unwrap();
    write(&mut stores, &script, 0..100).await;
    // The state version, one row.
    let newer = nexus_domain::codec::encode_value(&(nexus_domain::SUPPORTED + 1));
    stores.state.current().put([0x02], newer).unwrap();
    stores.build().await;
    let folder = stores.snapshots.newest_folder().unwrap();
    let why = stores.snapshots.verify(&folder).unwrap();
    assert!(why.as_ref().is_some_and(|why| why.contains("too old for the cluster")), "{why:?}");
}
