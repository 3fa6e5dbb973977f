//! One log gives one state: in memory and on disk, whatever the batches, through snapshots and
//! restarts.

use nexus_domain::digest;
use nexus_domain::testing::{self, Random};
use nexus_domain::{MemoryStore, Read};
use openraft::storage::{RaftLogStorage as _, RaftStateMachine as _};

use super::{Script, Stores};
use crate::snapshot::receive::Receiver;
use crate::types::{LogId, log_id};

const COUNT: usize = 900;

/// Applies `from..end` in runs of random length, some of them shorter than a batch, some longer.
async fn feed(stores: &mut Stores, script: &Script, random: &mut Random, from: u64, end: u64) {
    let mut next = from;
    while next < end {
        let length = if random.chance(30) { random.below(200) } else { random.below(20) };
        let until = next.saturating_add(length + 1).min(end);
        let entries = script.range(1, next..until);
        let flushed = stores.append_soon(entries.clone()).await;
        stores.apply(entries).await;
        drop(flushed);
        next = until;
    }
}

/// Fills the second folder with the newest snapshot of the first, as a transfer does.
async fn transfer(from: &Stores, to: &mut Stores) -> LogId {
    let source = from.snapshots.newest_folder().unwrap();
    let receiver = Receiver::new(to.state.root());
    let manifest = source.manifest().clone();
    let id = manifest.id();
    let missing = receiver.begin(manifest.clone(), to.snapshots.newest_folder().as_ref()).unwrap();
    for part in missing {
        let file = &manifest.files[usize::try_from(part.file).unwrap()];
        let bytes = std::fs::read(source.path().join(&file.name)).unwrap();
        let from = usize::try_from(part.offset).unwrap();
        receiver.chunk(&id, part.file, part.offset, &bytes[from..]).unwrap();
    }
    let folder = receiver.finish(&id).unwrap();
    assert_eq!(to.snapshots.verify(&folder).unwrap(), None);
    let meta = folder.manifest().meta().unwrap();
    to.machine.install_snapshot(&meta, folder).await.unwrap();
    let last = meta.last_log_id.unwrap();
    to.log.purge(last).await.unwrap();
    last
}

#[tokio::test(flavor = "multi_thread")]
async fn batch_borders_snapshots_and_restarts_do_not_show() {
    for seed in [1, 77, 4242] {
        let script = Script::new(seed, COUNT);
        let end = script.last() + 1;
        let mut random = Random::new(seed ^ 0xabcd);
        let mut memory = MemoryStore::default();
        for batch in testing::batches(&script.entries, seed ^ 5) {
            testing::apply_batch(&mut memory, batch).unwrap();
        }
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut one = Stores::open(first.path()).unwrap();
        let middle = end / 2 + random.below(60);
        feed(&mut one, &script, &mut random, 0, middle).await;
        assert_eq!(one.build().await, middle - 1);
        feed(&mut one, &script, &mut random, middle, end).await;

        // Another folder that had less, and gets the rest as a snapshot.
        let mut two = Stores::open(second.path()).unwrap();
        feed(&mut two, &script, &mut random, 0, middle / 3).await;
        let old = two.state.current();
        let read = old.snapshot();
        assert_eq!(transfer(&one, &mut two).await, log_id(1, super::NODE, middle - 1));
        assert!(read.get([0x00, b'p']).unwrap().is_some(), "a reader finishes on the old state");
        drop(read);
        let old_path = old.path().to_owned();
        drop(old);
        assert!(!old_path.exists(), "{} stays behind", old_path.display());
        feed(&mut two, &script, &mut random, middle, end).await;

        // Purged and opened again, it is what it was.
        one.log.purge(log_id(1, super::NODE, middle - 1)).await.unwrap();
        drop(one);
        let mut one = Stores::open(first.path()).unwrap();
        one.start().await.unwrap();
        drop(two);
        let mut two = Stores::open(second.path()).unwrap();
        two.start().await.unwrap();

        let expected = digest::read(&memory).unwrap();
        let marks = digest::history(&memory).unwrap();
        for stores in [&one, &two] {
            assert_eq!(stores.digests(), expected, "seed {seed}");
            assert_eq!(stores.applied(), Some(log_id(1, super::NODE, end - 1)));
            let kept = digest::history(&*stores.state.current()).unwrap();
            assert_eq!(kept, marks, "seed {seed}: at the multiples of 64");
            for (key, value) in memory.rows() {
                let found = Read::get(&*stores.state.current(), key).unwrap();
                assert_eq!(found.as_ref(), Some(value), "seed {seed}: key {key:02x?}");
            }
        }
    }
}
