//! What commands of projects and documents change, and what queries of them look at.

use nexus_domain::command::projects::{Content, Manifest, Relation, RelationKind, UploadTarget};
use nexus_domain::command::{Client, Command, DocumentCommand, ProjectCommand};
use nexus_domain::limits::{self, CHUNK_BYTES};
use nexus_domain::{Direction, KeyRange, Read as _, Reply, bodies, documents, projects};
use sha2::{Digest as _, Sha256};

use super::cluster::Cluster;

/// Who speaks.
const SPEAKER: &str = "mcp-1";

/// A cluster with an instance, each of whose entries comes more than a minute after the last: its
/// activity is written with it.
fn cluster() -> Cluster {
    let mut cluster = Cluster::new();
    cluster.step = 61_000;
    cluster.register(SPEAKER, Client::Instance, 1);
    cluster
}

/// Applies what the instance says; returns how many rows changed.
fn say(cluster: &mut Cluster, command: Command) -> usize {
    cluster.cost(SPEAKER, command).changed
}

fn upload(cluster: &mut Cluster, target: UploadTarget, bytes: &[u8]) -> u64 {
    let sha256 = Sha256::digest(bytes).to_vec();
    let begin = ProjectCommand::BeginUpload { target, size: bytes.len() as u64, sha256 };
    let reply = cluster.run(SPEAKER, Command::Project(begin));
    let Reply::Uploading { upload, .. } = reply else { panic!("{reply:?}") };
    for (chunk, place) in bytes.chunks(usize::try_from(CHUNK_BYTES).unwrap()).zip(0..) {
        let bytes = chunk.into();
        let chunk = ProjectCommand::UploadChunk { upload, place, bytes };
        cluster.run(SPEAKER, Command::Project(chunk));
    }
    upload
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
    let mut cluster = cluster();
    let text = vec![b'x'; usize::try_from(limits::TEXT_BYTES_MAX).unwrap()];
    let upload = upload(&mut cluster, UploadTarget::Text, &text);
    let all = limits::REFERENCES_MAX;
    let mut worst =
        vec![say(&mut cluster, sync(manifest("web_a", all, 0), Content::Uploaded(upload)))];
    // All that it refers to changes, and the longest notes go.
    let docs = inline(&"x".repeat(usize::try_from(CHUNK_BYTES).unwrap()));
    worst.push(say(&mut cluster, sync(manifest("web_a", 0, all), docs)));
    worst.push(say(&mut cluster, Command::Project(ProjectCommand::Delete { id: "web_a".into() })));
    // As many as may be turn from an id that was none.
    for number in 0..limits::RENAME_REFERRERS_MAX {
        let relations = vec![Relation { target: "lib_new".into(), kind: RelationKind::Parent }];
        let id = format!("web_{number}");
        let manifest = Manifest { relations, ..manifest(&id, 0, 0) };
        say(&mut cluster, sync(manifest, inline("")));
    }
    say(&mut cluster, sync(manifest("lib_old", 0, 0), inline("")));
    let (from, to) = ("lib_old".into(), "lib_new".into());
    worst.push(say(&mut cluster, Command::Project(ProjectCommand::Rename { from, to })));
    println!("{worst:?}");
    assert!(worst.iter().all(|rows| *rows <= limits::COMMAND_ROWS_MAX), "{worst:?}");
    // The bounds are there because these are near it.
    assert!(worst[1] > 750 && worst[3] > 900, "{worst:?}");
}

#[test]
fn a_timer_changes_at_most_256_rows() {
    let mut cluster = cluster();
    say(&mut cluster, sync(manifest("web_a", 0, 0), inline("")));
    let asset = |name: String| UploadTarget::Asset { project: "web_a".into(), name };
    for number in 0..3 {
        let long = vec![b'x'; usize::try_from(CHUNK_BYTES * 40).unwrap()];
        let upload = upload(&mut cluster, asset(format!("long-{number}")), &long);
        say(&mut cluster, Command::Project(ProjectCommand::CommitAsset { upload }));
    }
    for number in 0..100 {
        let (project, name) = ("web_a".into(), format!("short-{number}"));
        let bytes = b"x".to_vec();
        say(&mut cluster, Command::Project(ProjectCommand::PutAsset { project, name, bytes }));
    }
    let rows = say(&mut cluster, Command::Project(ProjectCommand::Delete { id: "web_a".into() }));
    assert!(rows < 40, "to delete a project is cheap, whatever it has: {rows}");
    let mut fired = Vec::new();
    while let Some(fire) = cluster.first_due() {
        fired.push(cluster.cost("", fire).changed);
    }
    println!("{fired:?}");
    assert!(fired.len() > 6 && fired.iter().all(|rows| *rows <= limits::FIRE_ROWS_MAX));
    let left = cluster
        .store
        .scan(KeyRange { start: vec![0x38], end: Some(vec![0x3a]) }, Direction::Forward);
    assert_eq!(left.count(), 0, "assets or chunks are left");
}

/// Returns what each bounded query reads.
fn costs(cluster: &Cluster) -> Vec<(&'static str, usize)> {
    vec![
        ("project", cluster.look(|state| projects::project(state, "web_a"))),
        ("notes", cluster.look(|state| projects::internal_docs(state, "web_a"))),
        ("surroundings", cluster.look(|state| projects::surroundings(state, "web_a"))),
        ("assets", cluster.look(|state| projects::assets(state, "web_a"))),
        ("asset", cluster.look(|state| projects::asset(state, "web_a", "logo"))),
        ("list", cluster.look(|state| documents::list(state, None, 3))),
        ("document", cluster.look(|state| documents::document(state, "doc-0"))),
        ("strategy", cluster.look(documents::strategy)),
        ("storage", cluster.look(bodies::storage)),
        ("uploads", cluster.look(bodies::uploads)),
    ]
}

#[test]
fn queries_cost_no_more_when_there_is_more() {
    let mut cluster = cluster();
    let relations = ["web_b", "web_c", "web_a"];
    let relations =
        relations.map(|target| Relation { target: target.into(), kind: RelationKind::Dependency });
    for id in ["web_a", "web_b"] {
        let manifest = Manifest { relations: relations.to_vec(), ..manifest(id, 0, 0) };
        say(&mut cluster, sync(manifest, inline("notes")));
    }
    let asset = |project: &str, name: &str| {
        let (project, name, bytes) = (project.into(), name.into(), b"x".to_vec());
        Command::Project(ProjectCommand::PutAsset { project, name, bytes })
    };
    let document = |id: String| {
        let (title, content) = ("A title".into(), inline("text"));
        Command::Document(DocumentCommand::Sync { id, title, content })
    };
    say(&mut cluster, asset("web_a", "logo"));
    for number in 0..3 {
        say(&mut cluster, document(format!("doc-{number}")));
    }
    say(&mut cluster, Command::Document(DocumentCommand::SetStrategy { content: inline("win") }));
    let before = costs(&cluster);
    let mut rows = Vec::new();
    for number in 0..1_000 {
        let id = format!("web_{number}");
        let manifest = Manifest { relations: relations.to_vec(), ..manifest(&id, 0, 0) };
        rows.push(say(&mut cluster, sync(manifest, inline("notes"))));
        say(&mut cluster, asset(&id, "logo"));
        say(&mut cluster, document(format!("doc-{number}")));
    }
    println!("{before:?}, a new project changes {} rows", rows[0]);
    assert_eq!(costs(&cluster), before);
    assert!(rows.iter().all(|changed| *changed == rows[0]), "{rows:?}");
    // These look at every project once, and at nothing else.
    assert_eq!(cluster.look(|state| projects::search(state, "nothing", 200)), 1_002);
    assert_eq!(cluster.look(projects::topology), 1_003);
    assert_eq!(cluster.look(|state| projects::search(state, "WEB_", 7)), 8);
}
