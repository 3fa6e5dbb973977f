//! What a script asks of projects and documents.

use std::fmt::Write as _;

use goldenscript::ArgumentConsumer;
use nexus_domain::projects::Edge;
use nexus_domain::{Direction, KeyRange, MemoryStore, Read, bodies, documents, projects};

use super::{Result, key, position};

/// Answers a query; `None` when the name is none.
pub(super) fn run(
    state: &MemoryStore,
    name: &str,
    args: &mut ArgumentConsumer<'_>,
) -> Result<Option<String>> {
    let mut out = String::new();
    match name {
        "project" => {
            let id: String = position(args, "id")?;
            match projects::project(state, &id)? {
                Some(project) => writeln!(out, "{project:#?}")?,
                None => writeln!(out, "none")?,
            }
        }
        "project-docs" => {
            let id: String = position(args, "id")?;
            writeln!(out, "{}", projects::internal_docs(state, &id)?.map_or("none".into(), short))?;
        }
        "search" => {
            let query = args.next_pos().unwrap_or_default();
            let limit = key(args, "limit")?.unwrap_or(10);
            for found in projects::search(state, query, limit)? {
                writeln!(out, "{} {:?} {:?}", found.id, found.name, short(found.description))?;
            }
        }
        "topology" => {
            let all = projects::topology(state)?;
            let ids: Vec<_> = all.projects.iter().map(|project| project.id.as_str()).collect();
            let (count, relations, dangling) = (ids.len(), all.relations, all.dangling);
            writeln!(out, "{count} projects, {relations} relations, {dangling} dangling: {ids:?}")?;
        }
        "surroundings" => {
            let id: String = position(args, "id")?;
            let Some(found) = projects::surroundings(state, &id)? else {
                return Ok(Some("none\n".into()));
            };
            let ids: Vec<_> = found.projects.iter().map(|project| project.id.as_str()).collect();
            let edges: Vec<_> = found.edges.iter().map(edge).collect();
            let dangling: Vec<_> = found.dangling.iter().map(edge).collect();
            writeln!(out, "{ids:?}\n{edges:?}\ndangling {dangling:?} more={}", found.more)?;
        }
        "prefix" => {
            let id = args.next_pos().unwrap_or_default();
            writeln!(out, "{}", projects::has_known_prefix(id))?;
        }
        _ => return stored(state, name, args),
    }
    Ok(Some(out))
}

fn edge(edge: &Edge) -> String {
    format!("{} -{:?}-> {}", edge.from, edge.kind, edge.to)
}

fn short(text: String) -> String {
    if text.chars().count() <= 60 {
        return text;
    }
    let beginning: String = text.chars().take(20).collect();
    format!("{beginning}… ({} bytes)", text.len())
}

fn stored(
    state: &MemoryStore,
    name: &str,
    args: &mut ArgumentConsumer<'_>,
) -> Result<Option<String>> {
    let mut out = String::new();
    match name {
        "assets" => {
            let project: String = position(args, "project")?;
            let Some(found) = projects::assets(state, &project)? else {
                return Ok(Some("none\n".into()));
            };
            for asset in found {
                let (name, body, by) = (asset.name, asset.body, asset.updated_by);
                let hash = u32::from_be_bytes(asset.sha256[..4].try_into()?);
                let (number, size, at) = (body.number, body.size, asset.updated_at);
                writeln!(out, "{name} body={number} size={size} {hash:08x} at={at} by={by}")?;
            }
        }
        "asset-bytes" => {
            let (project, name): (String, String) =
                (position(args, "project")?, position(args, "name")?);
            let asset = projects::asset(state, &project, &name)?;
            let Some(asset) = asset else { return Ok(Some("none\n".into())) };
            let offset = key(args, "offset")?.unwrap_or(0);
            let limit = key(args, "limit")?.unwrap_or(u64::MAX);
            let bytes = bodies::read(state, asset.body, offset, limit)?;
            let bytes = bytes.map(|bytes| short(String::from_utf8_lossy(&bytes).into_owned()));
            writeln!(out, "{bytes:?}")?;
        }
        "body" => {
            let number = position(args, "number")?;
            let body = bodies::Body { number, size: position(args, "size")? };
            let bytes = bodies::read(state, body, 0, u64::MAX)?;
            writeln!(out, "{:?}", bytes.map(|bytes| bytes.len()))?;
        }
        "storage" => writeln!(out, "{:?}", bodies::storage(state)?)?,
        "uploads" => {
            for (number, upload) in bodies::uploads(state)? {
                let (target, owner, next) = (&upload.target, &upload.owner, upload.next());
                let (received, size) = (upload.received, upload.size);
                writeln!(out, "{number} {target:?} of {owner} {received}/{size} next={next}")?;
            }
        }
        "project-rows" => {
            for (table, word) in
                [(0x35u8, "labels"), (0x34, "referrers"), (0x39, "chunks"), (0x38, "assets")]
            {
                let rows = state.scan(KeyRange::prefix(&[table]), Direction::Forward).count();
                write!(out, "{word}={rows} ")?;
            }
            out.push('\n');
        }
        _ => return document(state, name, args),
    }
    Ok(Some(out))
}

fn document(
    state: &MemoryStore,
    name: &str,
    args: &mut ArgumentConsumer<'_>,
) -> Result<Option<String>> {
    let mut out = String::new();
    match name {
        "docs" => {
            let limit = key(args, "limit")?.unwrap_or(20);
            for row in documents::list(state, key(args, "before")?, limit)? {
                let (id, title, by) = (row.id, row.title, row.updated_by);
                let (at, order, created) = (row.updated_at, row.order, row.created_at);
                writeln!(out, "{id} {title:?} at={at} by={by} order={order} created={created}")?;
            }
            writeln!(out, "of {}", documents::count(state)?)?;
        }
        "doc-text" => {
            let id: String = position(args, "id")?;
            match documents::document(state, &id)? {
                Some(row) => writeln!(out, "{}", short(documents::content(state, row.body)?))?,
                None => writeln!(out, "none")?,
            }
        }
        "strategy-text" => match documents::strategy(state)? {
            Some(row) => {
                let text = short(documents::content(state, row.body)?);
                writeln!(out, "{text} at={} by={}", row.updated_at, row.updated_by)?;
            }
            None => writeln!(out, "none")?,
        },
        _ => return Ok(None),
    }
    Ok(Some(out))
}
