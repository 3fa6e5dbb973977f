//! What commands change and what queries look at stays within bounds, however much there is.
//!
//! Rows are counted, not times: the counts are the same on every machine.

#![expect(clippy::unwrap_used, reason = "a test stops where it fails, helpers included")]

use std::cell::Cell;

use nexus_domain::command::{
    Client, ClusterCommand, Command, Content, ConversationCommand, DocumentCommand, Manifest,
    ProjectCommand, Relation, RelationKind, SystemCommand, UploadTarget,
};
use nexus_domain::limits::{self, CHUNK_BYTES};
use nexus_domain::store::Rows;
use nexus_domain::{
    Actor, Answered, Direction, Entry, Fault, KeyRange, MemoryStore, Overlay, Proposal, Read,
    Reply, RequestId, Stamp, apply, bodies, codec, documents, due, projects,
};
use sha2::{Digest as _, Sha256};

/// A cluster of one node and one instance.
struct Cluster {
    store: MemoryStore,
    index: u64,
}

impl Cluster {
    fn new() -> Self {
        let mut cluster = Self { store: MemoryStore::default(), index: 1 };
        let found = ClusterCommand::Found {
            cluster: "c0ffee".into(),
            authority: vec![1; 9],
            public_key: vec![2; 9],
            name: "alpha".into(),
            host: "machine".into(),
        };
        cluster.apply(Actor::Node, Command::Cluster(found));
        let (client, cwd) = (Client::Instance, String::new());
        let register = ConversationCommand::Register { client, cwd, incarnation: 1 };
        cluster.say(Command::Conversation(register));
        cluster
    }

    /// Applies what the instance says; returns the answer and how many rows changed.
    fn say(&mut self, command: Command) -> (Reply, usize) {
        self.apply(Actor::Conversation("mcp-1".into()), command)
    }

    /// Fires what is due first; returns how many rows changed.
    fn fire(&mut self) -> Option<usize> {
        let due::Due { due, kind, id, generation } = due::first(&self.store).unwrap()?;
        let fire = SystemCommand::Fire { due, kind, id, generation };
        Some(self.apply(Actor::Node, Command::System(fire)).1)
    }

    fn apply(&mut self, actor: Actor, command: Command) -> (Reply, usize) {
        self.index += 1;
        let request = RequestId::Node { node: 1, boot: 0, counter: self.index };
        let answered = Answered { boot: 0, below: self.index };
        let proposal =
            Proposal { version: 1, request, actor, answered, not_after: u64::MAX, command };
        // Every entry comes more than a minute after the last: the speaker's activity is written.
        let tick = self.index * 61_000;
        let stamp = Stamp { tick, at: 1_700_000_000_000 + tick, node: 1 };
        let length = codec::encode_entry(&stamp, &proposal).len();
        assert!(length <= limits::ENTRY_BYTES_MAX, "{length} bytes");
        let mut overlay = Overlay::new(&self.store);
        let entry = Entry { index: self.index, stamp, proposal };
        let reply = apply(&mut overlay, &entry, &mut Vec::new()).unwrap().unwrap();
        let changes = overlay.into_changes();
        let rows = changes.len();
        self.store.absorb(changes);
        (reply, rows)
    }

    fn upload(&mut self, target: UploadTarget, bytes: &[u8]) -> u64 {
        let sha256 = Sha256::digest(bytes).to_vec();
        let begin = ProjectCommand::BeginUpload { target, size: bytes.len() as u64, sha256 };
        let (reply, _) = self.say(Command::Project(begin));
        let Reply::Uploading { upload, .. } = reply else { panic!("{reply:?}") };
        for (chunk, place) in bytes.chunks(usize::try_from(CHUNK_BYTES).unwrap()).zip(0..) {
            let bytes = chunk.into();
            self.say(Command::Project(ProjectCommand::UploadChunk { upload, place, bytes }));
        }
        upload
    }
}

/// Returns a manifest that refers to so many others, with ids and versions as long as they may be.
fn manifest(id: &str, relations: usize, dependencies: usize) -> Manifest {
    let other = |kind: &str, number| format!("{kind}{id}{number:0>width$}", width = 127 - id.len());
    let versions = (0..dependencies).map(|number| (other("d", number), "1".repeat(100)));
    Manifest {
        id: id.into(),
        name: id.into(),
        relations: (0..relations)
            .map(|number| Relation { target: other("r", number), kind: RelationKind::Child })
            .collect(),
        api_dependencies: Some(versions.collect()),
        ..Manifest::default()
    }
}

fn sync(manifest: Manifest, docs: Content) -> Command {
    Command::Project(ProjectCommand::Sync { manifest: manifest.into(), docs })
}

fn inline(text: &str) -> Content {
    Content::Inline(text.into())
}

#[test]
fn a_command_changes_at_most_a_thousand_rows() {
    let mut cluster = Cluster::new();
    let text = vec![b'x'; usize::try_from(limits::TEXT_BYTES_MAX).unwrap()];
    let upload = cluster.upload(UploadTarget::Text, &text);
    let all = limits::REFERENCES_MAX;
    let mut worst = vec![cluster.say(sync(manifest("web_a", all, 0), Content::Uploaded(upload))).1];
    // All that it refers to changes, and the longest notes go.
    let docs = inline(&"x".repeat(usize::try_from(CHUNK_BYTES).unwrap()));
    worst.push(cluster.say(sync(manifest("web_a", 0, all), docs)).1);
    worst.push(cluster.say(Command::Project(ProjectCommand::Delete { id: "web_a".into() })).1);
    // As many as may be turn from an id that was none.
    for number in 0..limits::RENAME_REFERRERS_MAX {
        let relations = vec![Relation { target: "lib_new".into(), kind: RelationKind::Parent }];
        let id = format!("web_{number}");
        let manifest = Manifest { relations, ..manifest(&id, 0, 0) };
        cluster.say(sync(manifest, inline("")));
    }
    cluster.say(sync(manifest("lib_old", 0, 0), inline("")));
    let (from, to) = ("lib_old".into(), "lib_new".into());
    worst.push(cluster.say(Command::Project(ProjectCommand::Rename { from, to })).1);
    println!("{worst:?}");
    assert!(worst.iter().all(|rows| *rows <= limits::COMMAND_ROWS_MAX), "{worst:?}");
    // The bounds are there because these are near it.
    assert!(worst[1] > 750 && worst[3] > 900, "{worst:?}");
}

#[test]
fn a_timer_changes_at_most_256_rows() {
    let mut cluster = Cluster::new();
    cluster.say(sync(manifest("web_a", 0, 0), inline("")));
    let asset = |name: String| UploadTarget::Asset { project: "web_a".into(), name };
    for number in 0..3 {
        let long = vec![b'x'; usize::try_from(CHUNK_BYTES * 40).unwrap()];
        let upload = cluster.upload(asset(format!("long-{number}")), &long);
        cluster.say(Command::Project(ProjectCommand::CommitAsset { upload }));
    }
    for number in 0..100 {
        let (project, name) = ("web_a".into(), format!("short-{number}"));
        let bytes = b"x".to_vec();
        cluster.say(Command::Project(ProjectCommand::PutAsset { project, name, bytes }));
    }
    let (_, rows) = cluster.say(Command::Project(ProjectCommand::Delete { id: "web_a".into() }));
    assert!(rows < 40, "to delete a project is cheap, whatever it has: {rows}");
    let mut fired = Vec::new();
    while let Some(rows) = cluster.fire() {
        fired.push(rows);
    }
    println!("{fired:?}");
    assert!(fired.len() > 6 && fired.iter().all(|rows| *rows <= limits::FIRE_ROWS_MAX));
    let left = cluster
        .store
        .scan(KeyRange { start: vec![0x38], end: Some(vec![0x3a]) }, Direction::Forward);
    assert_eq!(left.count(), 0, "assets or chunks are left");
}

/// Counts what is read through it.
struct Counting<'a> {
    store: &'a MemoryStore,
    reads: Cell<usize>,
}

impl Counting<'_> {
    fn count(&self) {
        self.reads.set(self.reads.get() + 1);
    }
}

impl Read for Counting<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        self.count();
        self.store.get(key)
    }

    fn scan(&self, range: KeyRange, direction: Direction) -> Rows<'_> {
        Box::new(self.store.scan(range, direction).inspect(|_| self.count()))
    }
}

/// Returns how many rows a query reads.
fn reads<'a, T>(store: &'a MemoryStore, ask: impl Fn(&Counting<'a>) -> Result<T, Fault>) -> usize {
    let counting = Counting { store, reads: Cell::default() };
    ask(&counting).unwrap();
    counting.reads.get()
}

/// Returns what each bounded query reads.
fn costs(store: &MemoryStore) -> Vec<(&'static str, usize)> {
    vec![
        ("project", reads(store, |state| projects::project(state, "web_a"))),
        ("notes", reads(store, |state| projects::internal_docs(state, "web_a"))),
        ("surroundings", reads(store, |state| projects::surroundings(state, "web_a"))),
        ("assets", reads(store, |state| projects::assets(state, "web_a"))),
        ("asset", reads(store, |state| projects::asset(state, "web_a", "logo"))),
        ("list", reads(store, |state| documents::list(state, None, 3))),
        ("document", reads(store, |state| documents::document(state, "doc-0"))),
        ("strategy", reads(store, documents::strategy)),
        ("storage", reads(store, bodies::storage)),
        ("uploads", reads(store, bodies::uploads)),
    ]
}

#[test]
fn queries_cost_no_more_when_there_is_more() {
    let mut cluster = Cluster::new();
    let relations = ["web_b", "web_c", "web_a"];
    let relations =
        relations.map(|target| Relation { target: target.into(), kind: RelationKind::Dependency });
    for id in ["web_a", "web_b"] {
        let manifest = Manifest { relations: relations.to_vec(), ..manifest(id, 0, 0) };
        cluster.say(sync(manifest, inline("notes")));
    }
    let asset = |project: &str, name: &str| {
        let (project, name, bytes) = (project.into(), name.into(), b"x".to_vec());
        Command::Project(ProjectCommand::PutAsset { project, name, bytes })
    };
    let document = |id: String| {
        let (title, content) = ("A title".into(), inline("text"));
        Command::Document(DocumentCommand::Sync { id, title, content })
    };
    cluster.say(asset("web_a", "logo"));
    for number in 0..3 {
        cluster.say(document(format!("doc-{number}")));
    }
    cluster.say(Command::Document(DocumentCommand::SetStrategy { content: inline("win") }));
    let before = costs(&cluster.store);
    let mut rows = Vec::new();
    for number in 0..1_000 {
        let id = format!("web_{number}");
        let manifest = Manifest { relations: relations.to_vec(), ..manifest(&id, 0, 0) };
        rows.push(cluster.say(sync(manifest, inline("notes"))).1);
        cluster.say(asset(&id, "logo"));
        cluster.say(document(format!("doc-{number}")));
    }
    println!("{before:?}, a new project changes {} rows", rows[0]);
    assert_eq!(costs(&cluster.store), before);
    assert!(rows.iter().all(|changed| *changed == rows[0]), "{rows:?}");
    // These look at every project once, and at nothing else.
    assert_eq!(reads(&cluster.store, |state| projects::search(state, "nothing", 200)), 1_002);
    assert_eq!(reads(&cluster.store, projects::topology), 1_003);
    assert_eq!(reads(&cluster.store, |state| projects::search(state, "WEB_", 7)), 8);
}
