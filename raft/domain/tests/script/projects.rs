//! Commands of projects and documents in scripts.

use std::collections::BTreeMap;

use goldenscript::ArgumentConsumer;
use nexus_domain::command::projects::{
    Billing, Content, Endpoint, FeatureTier, Manifest, Operation, Patch, Relation, RelationKind,
    UploadTarget,
};
use nexus_domain::command::{Command, DocumentCommand, ProjectCommand};
use nexus_domain::limits::CHUNK_BYTES;
use sha2::{Digest as _, Sha256};

use super::{Result, key, position, text};

/// Reads a command of projects or documents; `None` when the name is none.
///
/// An upload says what it brings by `content=`; `upload` hashes it and `chunk` cuts it as a node
/// does.
pub(super) fn command(name: &str, args: &mut ArgumentConsumer<'_>) -> Result<Option<Command>> {
    if let Some(command) = document(name, args)? {
        return Ok(Some(Command::Document(command)));
    }
    if let Some(command) = upload(name, args)? {
        return Ok(Some(Command::Project(command)));
    }
    Ok(Some(Command::Project(match name {
        "sync-project" => {
            let id = text(args.next_pos().unwrap_or_default());
            ProjectCommand::Sync {
                manifest: manifest(id, args)?.into(),
                docs: content(args, "docs")?,
            }
        }
        "update-project" => ProjectCommand::Update {
            id: text(args.next_pos().unwrap_or_default()),
            patch: Box::new(patch(args)?),
        },
        "rename-project" => ProjectCommand::Rename {
            from: text(args.next_pos().unwrap_or_default()),
            to: text(args.next_pos().unwrap_or_default()),
        },
        "delete-project" => ProjectCommand::Delete { id: position(args, "id")? },
        "asset" => ProjectCommand::PutAsset {
            project: position(args, "project")?,
            name: text(args.next_pos().unwrap_or_default()),
            bytes: text(args.take_key("content").unwrap_or("x")).into_bytes(),
        },
        "delete-asset" => ProjectCommand::DeleteAsset {
            project: position(args, "project")?,
            name: position(args, "name")?,
        },
        "quota" => ProjectCommand::SetQuota { bytes: position(args, "bytes")? },
        _ => return Ok(None),
    })))
}

fn upload(name: &str, args: &mut ArgumentConsumer<'_>) -> Result<Option<ProjectCommand>> {
    Ok(Some(match name {
        "upload" | "upload-text" => {
            let target = if name == "upload" {
                let project = position(args, "project")?;
                UploadTarget::Asset { project, name: text(args.next_pos().unwrap_or_default()) }
            } else {
                UploadTarget::Text
            };
            let bytes = text(args.take_key("content").unwrap_or_default()).into_bytes();
            let length = key(args, "hash")?.unwrap_or(32);
            let mut sha256 = Sha256::digest(&bytes).to_vec();
            sha256.resize(length, 0);
            let size = key(args, "size")?.unwrap_or(bytes.len() as u64);
            ProjectCommand::BeginUpload { target, size, sha256 }
        }
        "chunk" => {
            let upload = position(args, "upload")?;
            let place: u64 = position(args, "place")?;
            let mut bytes = text(args.take_key("content").unwrap_or_default()).into_bytes();
            // `at` cuts another piece than the one that belongs there.
            let at: u64 = key(args, "at")?.unwrap_or(place);
            let from = usize::try_from(at * CHUNK_BYTES)?.min(bytes.len());
            bytes.drain(..from);
            bytes.truncate(key(args, "cut")?.unwrap_or(usize::try_from(CHUNK_BYTES)?));
            ProjectCommand::UploadChunk { upload, place, bytes }
        }
        "commit" => ProjectCommand::CommitAsset { upload: position(args, "upload")? },
        "abandon" => ProjectCommand::AbandonUpload { upload: position(args, "upload")? },
        _ => return Ok(None),
    }))
}

fn document(name: &str, args: &mut ArgumentConsumer<'_>) -> Result<Option<DocumentCommand>> {
    Ok(Some(match name {
        "doc" => DocumentCommand::Sync {
            id: text(args.next_pos().unwrap_or_default()),
            title: text(args.take_key("title").unwrap_or("A title")),
            content: content(args, "content")?,
        },
        "delete-doc" => DocumentCommand::Delete { id: position(args, "id")? },
        "strategy" => DocumentCommand::SetStrategy { content: content(args, "content")? },
        _ => return Ok(None),
    }))
}

/// Reads a text: given here, or by the number of its upload.
fn content(args: &mut ArgumentConsumer<'_>, name: &str) -> Result<Content> {
    Ok(match key(args, "upload")? {
        Some(upload) => Content::Uploaded(upload),
        None => Content::Inline(text(args.take_key(name).unwrap_or_default())),
    })
}

fn manifest(id: String, args: &mut ArgumentConsumer<'_>) -> Result<Manifest> {
    let mut manifest = Manifest { name: id.clone(), id, ..Manifest::default() };
    manifest.set(&patch(args)?);
    Ok(manifest)
}

fn patch(args: &mut ArgumentConsumer<'_>) -> Result<Patch> {
    let mut word = |name: &str| args.take_key(name).map(text);
    let (name, description) = (word("name"), word("desc"));
    let (repository_url, local_path) = (word("repo"), word("path"));
    let (last_updated, gateway_compatibility) = (word("updated"), word("gateway"));
    // Lists are written shortly word by word.
    let mut word = |name: &str| args.take_key(name).map(str::to_owned);
    let tech_stack = word("tech").map(|words| list(&words).map(text).collect());
    let mut relations: Option<Vec<_>> =
        word("rel").map(|words| list(&words).map(relation).collect());
    // `fill` is that many relations, `fill-deps` that many dependencies.
    let fill: u32 = word("fill").map_or(Ok(0), |count| count.parse())?;
    if fill > 0 {
        let more = (0..fill).map(|number| relation(&format!("fill_{number}")));
        relations.get_or_insert_default().extend(more);
    }
    let mut api_dependencies = word("dep").map(|words| pairs(&words));
    let fill: u32 = word("fill-deps").map_or(Ok(0), |count| count.parse())?;
    for number in 0..fill {
        let all = api_dependencies.get_or_insert_default();
        all.insert(format!("need_{number}"), "1".into());
    }
    let endpoints = word("endpoints").map(|words| {
        let parts = list(&words).map(triple);
        parts.map(|[name, url, description]| Endpoint { name, url, description }).collect()
    });
    let api_spec = word("api").map(|words| {
        let parts = list(&words).map(triple);
        parts.map(|[method, path, summary]| Operation { method, path, summary }).collect()
    });
    let billing = word("billing").map(|words| {
        let (plain, price) = words.split_once('|').unwrap_or((&words, ""));
        Billing { plain: text(plain), price: text(price) }
    });
    Ok(Patch {
        name,
        description,
        tech_stack,
        relations,
        repository_url,
        local_path,
        endpoints,
        api_spec,
        billing,
        last_updated,
        api_dependencies,
        gateway_compatibility,
        api_versions: word("versions").map(|words| pairs(&words)),
        feature_tier: match word("tier").as_deref() {
            Some("standard") => FeatureTier::Standard,
            Some("advanced") => FeatureTier::Advanced,
            Some("team") => FeatureTier::Team,
            _ => FeatureTier::Unsaid,
        },
    })
}

/// Reads `a,b,c`; nothing is an empty list.
fn list(words: &str) -> impl Iterator<Item = &str> {
    words.split(',').filter(|word| !word.is_empty())
}

/// Reads `target:kind`.
fn relation(word: &str) -> Relation {
    let (target, kind) = word.split_once(':').unwrap_or((word, "dependency"));
    let kind = match kind {
        "parent" => RelationKind::Parent,
        "child" => RelationKind::Child,
        "related" => RelationKind::Related,
        _ => RelationKind::Dependency,
    };
    Relation { target: text(target), kind }
}

/// Reads `a:1,b:2`.
fn pairs(words: &str) -> BTreeMap<String, String> {
    let pair = |word: &str| {
        let (name, value) = word.split_once(':').unwrap_or((word, ""));
        (text(name), text(value))
    };
    list(words).map(pair).collect()
}

/// Reads `a|b|c`; what is missing is empty.
fn triple(word: &str) -> [String; 3] {
    let mut parts = word.split('|').map(text);
    [(); 3].map(|()| parts.next().unwrap_or_default())
}
