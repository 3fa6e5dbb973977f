//! A log with every command of projects and documents, and an end of it that fills every table.

use nexus_domain::command::projects::{
    Billing, Content, Endpoint, FeatureTier, Manifest, Operation, Patch, Relation, RelationKind,
    UploadTarget,
};
use nexus_domain::command::{
    Client, ClusterCommand, Command, ConversationCommand, DocumentCommand, DueKind, ProjectCommand,
    SystemCommand,
};
use nexus_domain::{Actor, Answered, Entry, Proposal, RequestId, Stamp};
use sha2::{Digest as _, Sha256};

/// The first upload's number: three bodies come before it.
const FIRST_UPLOAD: u64 = 4;

fn relation(target: &str, kind: RelationKind) -> Relation {
    Relation { target: target.into(), kind }
}

/// Returns a manifest with every field.
fn full() -> Manifest {
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    Manifest {
        id: "web_shop".into(),
        name: "Der Laden".into(),
        description: "Sells things.".into(),
        tech_stack: vec!["rust".into(), "htmx".into()],
        relations: vec![
            relation("api_orders", RelationKind::Dependency),
            relation("infra_net", RelationKind::Parent),
            relation("web_shop", RelationKind::Child),
            relation("doc_shop", RelationKind::Related),
        ],
        repository_url: "https://git.example/shop".into(),
        local_path: "/home/user/shop".into(),
        endpoints: vec![Endpoint {
            name: "http".into(),
            url: "https://shop.example".into(),
            description: "for people".into(),
        }],
        api_spec: vec![Operation {
            method: "GET".into(),
            path: "/orders".into(),
            summary: "all orders".into(),
        }],
        billing: Some(Billing { plain: "team".into(), price: "9 €".into() }),
        last_updated: Some("2026-07-28".into()),
        api_dependencies: Some([pair("api_orders", "^2"), pair("api_users", "1.x")].into()),
        gateway_compatibility: Some("v3".into()),
        api_versions: Some([pair("orders", "2")].into()),
        feature_tier: FeatureTier::Advanced,
    }
}

fn sync(manifest: Manifest, docs: &str) -> Command {
    let docs = Content::Inline(docs.into());
    Command::Project(ProjectCommand::Sync { manifest: manifest.into(), docs })
}

fn small(id: &str, feature_tier: FeatureTier) -> Manifest {
    Manifest { id: id.into(), name: id.into(), feature_tier, ..Manifest::default() }
}

/// Returns what begins an upload of these bytes, and what brings its only chunk.
fn upload(target: UploadTarget, upload: u64, bytes: &[u8]) -> [ProjectCommand; 2] {
    let (size, sha256) = (bytes.len() as u64, Sha256::digest(bytes).to_vec());
    [
        ProjectCommand::BeginUpload { target, size, sha256 },
        ProjectCommand::UploadChunk { upload, place: 0, bytes: bytes.into() },
    ]
}

fn projects() -> Vec<ProjectCommand> {
    let asset = |name: &str| UploadTarget::Asset { project: "web_store".into(), name: name.into() };
    let patch = Patch {
        name: Some("The shop".into()),
        description: Some("Sells all things.".into()),
        tech_stack: Some(vec!["rust".into()]),
        relations: Some(vec![
            relation("lib_core", RelationKind::Dependency),
            relation("api_orders", RelationKind::Related),
        ]),
        repository_url: Some("https://git.example/store".into()),
        local_path: Some("/srv/store".into()),
        endpoints: Some(Vec::new()),
        api_spec: Some(Vec::new()),
        billing: Some(Billing { plain: "free".into(), price: "0".into() }),
        last_updated: Some("today".into()),
        api_dependencies: Some([("api_orders".to_owned(), "3".to_owned())].into()),
        gateway_compatibility: Some("v4".into()),
        api_versions: Some(Default::default()),
        feature_tier: FeatureTier::Team,
    };
    let mut all = vec![
        ProjectCommand::Update { id: "web_shop".into(), patch: patch.into() },
        ProjectCommand::Rename { from: "web_shop".into(), to: "web_store".into() },
    ];
    all.extend(upload(asset("logo.svg"), FIRST_UPLOAD, b"<svg/>"));
    all.push(ProjectCommand::CommitAsset { upload: FIRST_UPLOAD });
    all.extend(upload(UploadTarget::Text, FIRST_UPLOAD + 1, "# Länger".as_bytes()));
    all.extend(upload(asset("never.bin"), FIRST_UPLOAD + 2, b"abc"));
    all.push(ProjectCommand::AbandonUpload { upload: FIRST_UPLOAD + 2 });
    // These two stay, not done.
    let sha256 = vec![8; 32];
    all.push(ProjectCommand::BeginUpload { target: UploadTarget::Text, size: 80_000, sha256 });
    let sha256 = vec![9; 32];
    all.push(ProjectCommand::BeginUpload { target: asset("late.bin"), size: 70_000, sha256 });
    for (name, bytes) in [("a/b.txt", b"one".to_vec()), ("a_b.txt", b"two".to_vec())] {
        all.push(ProjectCommand::PutAsset {
            project: "web_store".into(),
            name: name.into(),
            bytes,
        });
    }
    let delete =
        |name: &str| ProjectCommand::DeleteAsset { project: "web_store".into(), name: name.into() };
    all.push(delete("a_b.txt"));
    // Its assets are left for a timer.
    all.push(ProjectCommand::PutAsset {
        project: "lib_old".into(),
        name: "old".into(),
        bytes: b"old".to_vec(),
    });
    all.push(ProjectCommand::Delete { id: "lib_old".into() });
    all
}

fn documents() -> Vec<DocumentCommand> {
    let inline = |text: &str| Content::Inline(text.into());
    let sync = |id: &str, title: &str, content| DocumentCommand::Sync {
        id: id.into(),
        title: title.into(),
        content,
    };
    vec![
        sync("rules", "Regeln", Content::Uploaded(FIRST_UPLOAD + 1)),
        sync("gone", "Gone", inline("")),
        DocumentCommand::Delete { id: "gone".into() },
        DocumentCommand::SetStrategy { content: inline("# Win") },
    ]
}

/// Returns the log; its first two entries make the cluster.
pub(crate) fn log() -> Vec<Entry> {
    let found = Command::Cluster(ClusterCommand::Found {
        cluster: "c0ffee".into(),
        authority: vec![0xca; 40],
        public_key: vec![1; 44],
        name: "alpha".into(),
        host: "machine-1".into(),
    });
    let register = ConversationCommand::Register {
        client: Client::Instance,
        cwd: String::new(),
        incarnation: 1,
    };
    let mut all = vec![(false, found), (true, Command::Conversation(register))];
    all.push((true, sync(full(), "# Notes\n")));
    all.push((true, sync(small("api_orders", FeatureTier::Standard), "")));
    all.push((true, sync(small("lib_old", FeatureTier::Unsaid), "old")));
    all.extend(projects().into_iter().map(|command| (true, Command::Project(command))));
    all.extend(documents().into_iter().map(|command| (true, Command::Document(command))));
    let quota = ProjectCommand::SetQuota { bytes: 2 << 30 };
    all.push((false, Command::Project(quota)));
    let fire = SystemCommand::Fire { due: 1, kind: DueKind::Upload, id: "7".into(), generation: 1 };
    all.push((false, Command::System(fire)));
    let fire =
        SystemCommand::Fire { due: 1, kind: DueKind::Sweep, id: "body/4/17".into(), generation: 1 };
    all.push((false, Command::System(fire)));
    let mut entries = Vec::new();
    for ((speaks, command), index) in all.into_iter().zip(2u64..) {
        let actor = if speaks { Actor::Conversation("mcp-1".into()) } else { Actor::Node };
        let request = RequestId::Node { node: 1, boot: 1, counter: index };
        let answered = Answered { boot: 1, below: index };
        let proposal =
            Proposal { version: 1, request, actor, answered, not_after: u64::MAX, command };
        let stamp = Stamp { tick: index * 10, at: 1_700_000_000_000 + index * 10, node: 1 };
        entries.push(Entry { index, stamp, proposal });
    }
    entries
}
