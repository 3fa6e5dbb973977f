//! Bounds that a script would need gigabytes to reach.

use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use super::*;
use crate::command::projects::Manifest;
use crate::command::{
    Client, ClusterCommand, Command, ConversationCommand, DocumentCommand, ProjectCommand,
};
use crate::entry::{Actor, Answered, Entry, Proposal, RequestId, Stamp};
use crate::reply::Reply;
use crate::store::MemoryStore;
use crate::{FIRST_VERSION, apply};

fn say(store: &mut MemoryStore, command: Command) -> Result<Reply, Rejection> {
    let founding = matches!(command, Command::Cluster(_));
    let actor = if founding { Actor::Node } else { Actor::Conversation("mcp-1".into()) };
    let counter = u64::try_from(store.rows().count()).unwrap();
    let proposal = Proposal {
        version: FIRST_VERSION,
        request: RequestId::Client(format!("call-{counter}-{}", command.kind())),
        actor,
        answered: Answered { boot: 0, below: 0 },
        not_after: u64::MAX,
        command,
    };
    let entry = Entry { index: counter, stamp: Stamp { tick: 0, at: 1, node: 1 }, proposal };
    apply(store, &entry, &mut Vec::new()).unwrap()
}

fn cluster() -> MemoryStore {
    let mut store = MemoryStore::default();
    let found = ClusterCommand::Found {
        cluster: "c0ffee".into(),
        authority: vec![1; 9],
        public_key: vec![2; 9],
        name: "alpha".into(),
        host: "machine".into(),
    };
    say(&mut store, Command::Cluster(found)).unwrap();
    let register = ConversationCommand::Register {
        client: Client::Instance,
        cwd: String::new(),
        incarnation: 1,
    };
    say(&mut store, Command::Conversation(register)).unwrap();
    let manifest = Manifest { id: "web_a".into(), name: "A".into(), ..Manifest::default() };
    let docs = Content::Inline("0123456789".into());
    say(&mut store, Command::Project(ProjectCommand::Sync { manifest: manifest.into(), docs }))
        .unwrap();
    store
}

fn document(id: &str, content: Content) -> Command {
    let (id, title) = (id.into(), "A title".into());
    Command::Document(DocumentCommand::Sync { id, title, content })
}

#[test]
fn texts_have_their_quota() {
    let mut store = cluster();
    let full = Storage { text_bytes: limits::TEXTS_QUOTA - 5, ..storage(&store).unwrap() };
    tables::STORAGE.put(&mut store, (), &full).unwrap();
    let text = |length: usize| Content::Inline("x".repeat(length));
    let refused = say(&mut store, document("a", text(6))).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "content: all texts have 256 MiB, 5 bytes are free; delete documents first"
    );
    let sha256 = vec![0; 32];
    let target = crate::command::projects::UploadTarget::Text;
    let begin = ProjectCommand::BeginUpload { target, size: 6, sha256 };
    let refused = say(&mut store, Command::Project(begin)).unwrap_err();
    assert!(refused.to_string().starts_with("size: all texts have 256 MiB"), "{refused}");
    // A text that is replaced makes room for the new one.
    say(&mut store, document("a", text(5))).unwrap();
    say(&mut store, document("a", text(4))).unwrap();
    assert_eq!(storage(&store).unwrap().text_room(), 1);
    let refused = say(&mut store, document("a", text(6))).unwrap_err();
    assert!(refused.to_string().contains("5 bytes are free"), "{refused}");
}

#[test]
fn the_cluster_has_so_many_assets() {
    let mut store = cluster();
    let asset = |name: &str| {
        let (project, name, bytes) = ("web_a".into(), name.into(), vec![1]);
        Command::Project(ProjectCommand::PutAsset { project, name, bytes })
    };
    say(&mut store, asset("one")).unwrap();
    let full = Storage { assets: limits::ASSETS_MAX, ..storage(&store).unwrap() };
    tables::STORAGE.put(&mut store, (), &full).unwrap();
    let refused = say(&mut store, asset("two")).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "fileName: the cluster has 20,000 assets, no new one fits; delete some first"
    );
    say(&mut store, asset("one")).unwrap();
}

#[test]
fn a_chunk_that_is_gone_is_told_from_one_that_is_damaged() {
    let mut store = cluster();
    let body = Body { number: 1, size: 10 };
    assert_eq!(read(&store, body, 3, 4).unwrap().unwrap(), b"3456");
    assert_eq!(read(&store, Body { number: 9, size: 10 }, 0, 1).unwrap(), None);
    assert_eq!(text(&store, body).unwrap(), "0123456789");
    tables::CHUNKS.put(&mut store, (1, 0), &Chunk { bytes: vec![0xff; 9] }).unwrap();
    read(&store, body, 3, 9).unwrap_err();
    text(&store, Body { number: 1, size: 9 }).unwrap_err();
    tables::CHUNKS.delete(&mut store, (1, 0)).unwrap();
    text(&store, body).unwrap_err();
}
