//! Kills between each two steps: a process of its own works on a folder and dies at a named point
//! as
//! `kill -9` has it die; then the folder is opened again and compared with what it had
//! acknowledged.
//!
//! Bytes of the log's write-ahead buffer die with the process, bytes given to the kernel stay: the
//! difference between the two databases that traps.md 1 is about.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use nexus_domain::testing::Random;
use openraft::entry::RaftEntry as _;
use openraft::storage::{RaftLogReader as _, RaftLogStorage as _, RaftStateMachine as _};

use super::{NODE, Script, Stores, names};
use crate::snapshot::SnapshotFolder;
use crate::snapshot::manifest::{Manifest, checksum};
use crate::snapshot::receive::Receiver;
use crate::store::failpoint::arm;
use crate::types::{LogEntry, LogId, Payload, Vote, log_id};

/// The variable that tells the child what to do.
const TASK: &str = "NEXUS_CRASH_TASK";
const SEED: u64 = 20_261_201;
/// Entries of the whole log.
const COUNT: usize = 420;
/// The donor's snapshot reaches to here.
const DONOR: u64 = 300;
/// The term of the donor's entries: above all that come before.
const DONOR_TERM: u64 = 100;
/// The term of what is written after the crash.
const LATE_TERM: u64 = 200;

/// Each point, and at which passes of it the process dies.
const POINTS: &[(&str, &[u32])] = &[
    ("append.before", &[2, 31]),
    ("append.written", &[1, 17, 40]),
    ("flush.before", &[2, 9, 23, 45]),
    ("flush.after", &[3, 20, 41]),
    ("flush.numbered", &[2, 28]),
    ("flush.released", &[4, 33]),
    ("mark.write", &[1, 12]),
    ("mark.written", &[1, 14]),
    ("vote.before", &[1, 3]),
    ("truncate.marked", &[1, 3]),
    ("truncate.written", &[1, 2, 4]),
    ("purge.before", &[1, 2]),
    ("purge.written", &[1, 2]),
    ("state.before", &[1, 18, 44]),
    ("state.written", &[2, 19, 47]),
    ("build.taken", &[1, 2]),
    ("build.described", &[1, 2]),
    ("build.synced", &[1, 2]),
    ("build.renamed", &[1, 2]),
    ("receive.begun", &[1]),
    ("receive.chunk", &[1, 3]),
    ("receive.checked", &[1]),
    ("receive.renamed", &[1]),
    ("install.folder", &[1]),
    ("install.file", &[1, 3]),
    ("install.filled", &[1]),
    ("install.opened", &[1]),
    ("install.named", &[1]),
    ("install.swapped", &[1]),
    ("install.adopted", &[1]),
    ("file.written", &[2, 3, 4]),
    ("file.renamed", &[1, 2, 3, 4]),
];

/// What one child does.
#[derive(Clone, Debug)]
struct Task {
    data: PathBuf,
    donor: PathBuf,
    acks: PathBuf,
    point: String,
    count: u32,
    /// Whether a snapshot of its own is there before the donor's comes.
    older: bool,
    /// Whether entries of another leader are taken away right before, unflushed.
    truncation: bool,
}

impl Task {
    fn to_text(&self) -> String {
        let (data, donor, acks) = (self.data.display(), self.donor.display(), self.acks.display());
        let Self { point, count, older, truncation, .. } = self;
        format!("{data};{donor};{acks};{point};{count};{older};{truncation}")
    }

    fn from_text(text: &str) -> Self {
        let parts: Vec<&str> = text.split(';').collect();
        Self {
            data: parts[0].into(),
            donor: parts[1].into(),
            acks: parts[2].into(),
            point: parts[3].into(),
            count: parts[4].parse().unwrap(),
            older: parts[5].parse().unwrap(),
            truncation: parts[6].parse().unwrap(),
        }
    }
}

/// What was acknowledged, or was about to be done, line by line; the kernel keeps it.
struct Acks(File);

impl Acks {
    fn say(&mut self, what: &str, index: u64, term: u64) {
        self.0.write_all(format!("{what} {index} {term}\n").as_bytes()).unwrap();
    }
}

/// The life of a node in small: appends, votes, truncations, applies, snapshots, purges, an
/// install.
struct Life {
    stores: Stores,
    script: Script,
    acks: Acks,
    random: Random,
    next: u64,
    /// The leader's term, and those of the entries so far.
    term: u64,
    terms: Vec<u64>,
}

impl Life {
    /// Appends the next entries and applies them at once, as openraft does with what is committed.
    async fn write(&mut self, count: u64) {
        let until = self.next + count;
        let entries = self.script.range(self.term, self.next..until);
        let (term, last) = (self.term, until - 1);
        self.terms.resize(usize::try_from(until).unwrap(), term);
        let flushed = self.stores.append_soon(entries.clone()).await;
        let committed = Some(log_id(term, NODE, last));
        self.stores.log.save_committed(committed).await.unwrap();
        if self.random.chance(50) {
            flushed.await.unwrap().unwrap();
            self.acks.say("log", last, term);
            self.stores.apply(entries).await;
        } else {
            self.stores.apply(entries).await;
            self.acks.say("log", last, term);
        }
        self.acks.say("applied", last, term);
        self.next = until;
    }

    /// Lets the leader append entries that nobody else gets, and the next one take them away again.
    async fn tail(&mut self, count: u64) {
        let range = self.next..self.next + count;
        let tail = range.map(|index| LogEntry::new(log_id(self.term, NODE, index), Payload::Blank));
        let flushed = self.stores.append_soon(tail.collect()).await;
        if self.random.chance(60) {
            flushed.await.unwrap().unwrap();
            self.acks.say("tail", self.next + count - 1, self.term);
        }
        self.acks.say("truncates", self.next - 1, 0);
        let keep = Some(self.id(self.next - 1));
        self.stores.log.truncate_after(keep).await.unwrap();
        self.term += 1;
    }

    fn id(&self, index: u64) -> LogId {
        log_id(self.terms[usize::try_from(index).unwrap()], NODE, index)
    }

    async fn vote(&mut self, term: u64) {
        self.stores.log.save_vote(&Vote::new(term, NODE)).await.unwrap();
        self.acks.say("vote", 0, term);
    }

    async fn purge(&mut self, upto: u64) {
        self.acks.say("purges", upto, 0);
        self.stores.log.purge(self.id(upto)).await.unwrap();
    }

    async fn install(&mut self, donor: &Path) {
        let manifest = Manifest::load(&donor.join("MANIFEST.nexus")).unwrap();
        let receiver = Receiver::new(self.stores.state.root());
        let own: Option<SnapshotFolder> = self.stores.snapshots.newest_folder();
        for part in receiver.begin(manifest.clone(), own.as_ref()).unwrap() {
            let file = &manifest.files[usize::try_from(part.file).unwrap()];
            let bytes = fs::read(donor.join(&file.name)).unwrap();
            let mut offset = part.offset;
            for chunk in bytes[usize::try_from(offset).unwrap()..].chunks(16 << 10) {
                receiver.chunk(&manifest.id(), part.file, offset, chunk).unwrap();
                offset += u64::try_from(chunk.len()).unwrap();
            }
        }
        let folder = receiver.finish(&manifest.id()).unwrap();
        assert_eq!(self.stores.snapshots.verify(&folder).unwrap(), None);
        let meta = manifest.meta().unwrap();
        self.stores.machine.install_snapshot(&meta, folder).await.unwrap();
        self.acks.say("installed", DONOR, DONOR_TERM);
        self.next = DONOR + 1;
        self.term = DONOR_TERM;
        self.terms.resize(usize::try_from(self.next).unwrap(), DONOR_TERM);
        self.purge(DONOR).await;
    }
}

async fn live(task: &Task) {
    let acks = File::options().create(true).append(true).open(&task.acks).unwrap();
    arm(&task.point, task.count);
    let mut life = Life {
        stores: Stores::open(&task.data).unwrap(),
        script: Script::new(SEED, COUNT),
        acks: Acks(acks),
        random: Random::new(u64::from(task.count)),
        next: 0,
        term: 1,
        terms: Vec::new(),
    };
    life.vote(1).await;
    for round in 0..24 {
        let count = 1 + life.random.below(9);
        life.write(count).await;
        if round % 9 == 4 {
            life.vote(2 + round).await;
        }
        if round % 7 == 3 {
            life.tail(1 + round % 5).await;
        }
        if task.older && round == 8 {
            let index = life.stores.build().await;
            life.acks.say("built", index, 0);
            life.purge(index - 3).await;
        }
    }
    if task.truncation {
        let beyond = DONOR + 5 - life.next;
        life.tail(beyond).await;
    }
    life.install(&task.donor).await;
    for _ in 0..4 {
        life.write(3).await;
    }
    let index = life.stores.build().await;
    life.acks.say("built", index, 0);
    life.purge(index).await;
    life.write(5).await;
}

/// The child: does nothing unless a crash test started it.
#[test]
#[ignore = "started by the crash tests as a process of its own"]
fn child() {
    let Some(text) = std::env::var_os(TASK) else { return };
    let task = Task::from_text(text.to_str().unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    runtime.block_on(live(&task));
}

/// Makes ready what starts a child.
fn command(task: &Task) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "store::tests::crash::child", "--ignored", "--nocapture"])
        .env(TASK, task.to_text())
        .stdin(Stdio::null());
    command
}

/// Runs a child; returns whether it came to its point and died there.
fn dies(task: &Task) -> bool {
    let output = command(task).output().unwrap();
    if output.status.success() {
        return false;
    }
    let signal = std::os::unix::process::ExitStatusExt::signal(&output.status);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(signal, Some(9), "{task:?}: {}\n{text}", String::from_utf8_lossy(&output.stdout));
    true
}

/// What the acknowledgements demand of a folder.
#[derive(Debug, Default)]
struct Demands {
    /// Entries that must be there: index, term, and whether the script wrote them.
    entries: Vec<(u64, u64, bool)>,
    vote: u64,
    applied: u64,
    purged: u64,
}

impl Demands {
    fn read(path: &Path) -> Self {
        let mut demands = Self::default();
        for line in fs::read_to_string(path).unwrap_or_default().lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let (index, term): (u64, u64) = (words[1].parse().unwrap(), words[2].parse().unwrap());
            match words[0] {
                "log" => demands.entries.push((index, term, true)),
                "tail" => demands.entries.push((index, term, false)),
                "truncates" => demands.entries.retain(|(known, ..)| *known <= index),
                "vote" => demands.vote = term,
                "applied" | "installed" => demands.applied = index,
                "purges" => demands.purged = index,
                _ => {}
            }
        }
        demands
    }
}

struct World {
    script: Script,
    digests: Vec<nexus_domain::digest::Digests>,
    donor: PathBuf,
    _folder: tempfile::TempDir,
}

impl World {
    async fn new() -> Self {
        let script = Script::new(SEED, COUNT);
        let folder = tempfile::tempdir().unwrap();
        let mut stores = Stores::open(folder.path()).unwrap();
        let entries = script.range(DONOR_TERM, 0..DONOR + 1);
        stores.append(entries.clone()).await;
        stores.apply(entries).await;
        stores.build().await;
        let donor = stores.snapshots.newest_folder().unwrap().path().to_owned();
        let digests = script.digests();
        Self { script, digests, donor, _folder: folder }
    }

    /// Kills a child at a point, opens its folder and compares; returns whether it came there.
    async fn crash(&self, point: &str, count: u32, older: bool, truncation: bool) -> bool {
        let folder = tempfile::tempdir().unwrap();
        let task = self.task(folder.path(), point, count);
        let task = Task { older, truncation, ..task };
        let died = dies(&task);
        self.compare(&task, &Demands::read(&task.acks)).await;
        died
    }

    fn task(&self, folder: &Path, point: &str, count: u32) -> Task {
        let task = Task {
            data: folder.join("data"),
            donor: self.donor.clone(),
            acks: folder.join("acks"),
            point: point.into(),
            count,
            older: true,
            truncation: true,
        };
        fs::create_dir(&task.data).unwrap();
        task
    }

    async fn compare(&self, task: &Task, demands: &Demands) {
        let mut stores =
            Stores::open(&task.data).unwrap_or_else(|error| panic!("{task:?}: {error}"));
        let applied = stores.applied().map_or(0, |id| id.index);
        let log = stores.log.get_log_state().await.unwrap();
        let last = log.last_log_id.map_or(0, |id| id.index);
        let purged = log.last_purged_log_id.map_or(0, |id| id.index);
        let snapshot =
            stores.snapshots.newest_folder().map_or(0, |newest| newest.manifest().index());
        let seen = format!(
            "{task:?}: applied {applied}, log {purged}..={last}, snapshot {snapshot}, {demands:?}"
        );
        // The state is never ahead of the log, unless a snapshot took it there.
        assert!(applied <= last || applied == DONOR && snapshot == DONOR, "{seen}");
        assert!(applied >= demands.applied, "{seen}");
        assert!(purged <= demands.purged, "{seen}");
        assert!(snapshot <= applied, "{seen}");
        assert_eq!(stores.digests(), self.digests[usize::try_from(applied).unwrap()], "{seen}");
        let vote = stores.log.read_vote().await.unwrap();
        assert!(vote.map_or(0, |vote| vote.leader_id.term) >= demands.vote, "{seen}: {vote:?}");
        for (index, term, ours) in &demands.entries {
            if *index <= purged || *index <= DONOR && applied >= DONOR {
                continue;
            }
            let found = stores.log.try_get_log_entries(*index..=*index).await.unwrap();
            let found = found.first().unwrap_or_else(|| panic!("{seen}: entry {index} is lost"));
            assert_eq!(found.log_id, log_id(*term, NODE, *index), "{seen}");
            if *ours {
                assert_eq!(found.payload, self.script.entry(*term, *index).payload, "{seen}");
            }
        }
        self.check_snapshots(&stores, &seen);
        stores.start().await.unwrap_or_else(|error| panic!("{seen}: {error}"));
        self.finish(stores, &seen).await;
    }

    /// Whole snapshots are at most two, and whole.
    fn check_snapshots(&self, stores: &Stores, seen: &str) {
        let root = stores.state.root();
        let whole = names(root, "s-");
        assert!(whole.len() <= 2, "{seen}: {whole:?}");
        for name in whole {
            let path = root.join(name);
            let manifest = Manifest::load(&path.join("MANIFEST.nexus")).unwrap();
            for file in &manifest.files {
                let (bytes, sha256) = checksum(&path.join(&file.name)).unwrap();
                assert_eq!((bytes, &sha256), (file.bytes, &file.sha256), "{seen}: {}", file.name);
            }
        }
        assert_eq!(names(root, "g-").len(), 1, "{seen}: {:?}", names(root, "g-"));
    }

    /// The node goes on from there to the end of the log, as a leader would have it do.
    async fn finish(&self, mut stores: Stores, seen: &str) {
        let applied = stores.applied();
        let next = applied.map_or(0, |id| id.index + 1);
        let end = self.script.last() + 1;
        stores.log.truncate_after(applied).await.unwrap();
        let rest = self.script.range(LATE_TERM, next..end);
        stores.append(rest.clone()).await;
        stores.apply(rest).await;
        assert_eq!(stores.digests(), self.digests[self.digests.len() - 1], "{seen}: at the end");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_between_two_steps_loses_nothing_that_was_acknowledged() {
    let world = World::new().await;
    let mut never = Vec::new();
    for (place, (point, counts)) in POINTS.iter().enumerate() {
        let mut died = false;
        for (number, count) in counts.iter().enumerate() {
            // Both kinds of both conditions come up at every few points; `every_kill` takes all.
            let kind = place + number;
            died |= world.crash(point, *count, kind % 2 == 0, kind % 4 < 2).await;
        }
        if !died {
            never.push(point);
        }
    }
    assert!(never.is_empty(), "no process came to {never:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_at_any_moment_loses_nothing_that_was_acknowledged() {
    let world = World::new().await;
    let mut random = Random::new(SEED);
    for round in 0..12 {
        let folder = tempfile::tempdir().unwrap();
        let task = world.task(folder.path(), "no such point", round);
        let mut child = command(&task).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let until = Duration::from_millis(30 + random.below(600));
        tokio::time::sleep(until).await;
        child.kill().unwrap();
        child.wait().unwrap();
        world.compare(&task, &Demands::read(&task.acks)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: every point, every pass, all four conditions"]
async fn every_kill() {
    let world = World::new().await;
    for (point, counts) in POINTS {
        for count in *counts {
            for (older, truncation) in [(false, false), (false, true), (true, false), (true, true)]
            {
                world.crash(point, *count, older, truncation).await;
            }
        }
    }
}
