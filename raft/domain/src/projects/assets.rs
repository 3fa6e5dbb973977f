//! Assets: files of a project, under names of their own.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use minicbor::{Decode, Encode};
use sha2::{Digest as _, Sha256};

use super::Head;
use crate::bodies::{self, Body, Storage, UploadFor};
use crate::clock::Clock;
use crate::context::{Context, Stop};
use crate::event::Event;
use crate::rejection::Rejection;
use crate::reply::Reply;
use crate::store::{Direction, Fault, Read, Store};
use crate::{conversations, events, limits, tables};

/// An asset.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Asset {
    /// Its file name.
    #[n(0)]
    pub name: String,
    /// Its bytes: [`crate::bodies::read`] gives them.
    #[n(1)]
    pub body: Body,
    /// Their SHA-256.
    #[cbor(n(2), with = "minicbor::bytes")]
    pub sha256: [u8; 32],
    /// When it came, milliseconds since 1970.
    #[n(3)]
    pub updated_at: u64,
    /// Who brought it.
    #[n(4)]
    pub updated_by: String,
}

/// Returns an asset, if there is such a project and it has one of this name; what was stored under
/// a name is found under it, though the name was cleaned.
///
/// # Errors
/// A fault when the state cannot be read.
pub fn asset(state: &impl Read, project: &str, name: &str) -> Result<Option<Asset>, Fault> {
    match (tables::PROJECTS.get(state, project)?, clean_name(name)) {
        (Some(head), Some(name)) => tables::ASSETS.get(state, (head.number, &name)),
        _ => Ok(None),
    }
}

/// Returns all assets of a project in the order of their names, 1,000 at most; `None` when there is
/// no such project.
///
/// # Errors
/// A fault when the state cannot be read.
pub fn assets(state: &impl Read, project: &str) -> Result<Option<Vec<Asset>>, Fault> {
    let Some(head) = tables::PROJECTS.get(state, project)? else { return Ok(None) };
    let range = tables::ASSETS.beginning::<u64>(head.number);
    let rows = tables::ASSETS.rows(state, range, Direction::Forward);
    rows.map(|row| Ok(row?.1)).collect::<Result<_, Fault>>().map(Some)
}

/// Returns a file name in which every character that is unsafe in a path is `_`; `None` when no
/// name is left, or it is longer than 200 bytes.
#[must_use]
pub fn clean_name(name: &str) -> Option<String> {
    let unsafe_in_a_path = |letter: char| {
        letter.is_control()
            || matches!(letter, '\\' | '/' | ':' | '*' | '?' | '"' | '<' | '>' | '|')
    };
    let clean = |letter| if unsafe_in_a_path(letter) { '_' } else { letter };
    let name: String = name.chars().map(clean).collect();
    let name = name.replace("..", "_");
    let fits = (1..=limits::ASSET_NAME_BYTES_MAX).contains(&name.len());
    (fits && name != ".").then_some(name)
}

fn check_name(name: &str) -> Result<String, Rejection> {
    clean_name(name).ok_or_else(|| {
        let rule = "must have 1 to 200 bytes, and not be a single dot";
        Rejection::invalid("fileName", rule)
    })
}

/// Returns a project that must be there.
fn present(state: &impl Read, project: &str) -> Result<Head, Stop> {
    let head = tables::PROJECTS.get(state, project)?;
    Ok(head.ok_or_else(|| Rejection::not_found(format!("project {project}")))?)
}

/// Returns the asset that stands under a name, after a check that a new one finds a place.
fn check_place(state: &impl Read, head: &Head, name: &str) -> Result<Option<Asset>, Stop> {
    let before = tables::ASSETS.get(state, (head.number, name))?;
    if before.is_none() && head.assets >= limits::ASSETS_PER_PROJECT_MAX {
        let what = "fileName: the project has 1,000 assets, no new one fits; delete some first";
        return Err(Rejection::full(what).into());
    }
    if before.is_none() && bodies::storage(state)?.assets >= limits::ASSETS_MAX {
        let what = "fileName: the cluster has 20,000 assets, no new one fits; delete some first";
        return Err(Rejection::full(what).into());
    }
    Ok(before)
}

/// Checks what an upload of an asset is for.
pub(super) fn target(state: &impl Read, project: &str, name: &str) -> Result<UploadFor, Stop> {
    let name = check_name(name)?;
    let head = present(state, project)?;
    check_place(state, &head, &name)?;
    Ok(UploadFor::Asset { project: head.number, name })
}

pub(super) fn put(
    state: &mut impl Store,
    context: &Context<'_>,
    (project, name): (&str, &str),
    bytes: &[u8],
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    let name = check_name(name)?;
    let size = bodies::length(bytes);
    if size > limits::CHUNK_BYTES {
        let rule = "must have at most 64 KiB in one entry; upload a longer asset in chunks";
        return Err(Rejection::invalid("bytes", rule).into());
    }
    let head = present(state, project)?;
    let before = check_place(state, &head, &name)?;
    let mut storage = bodies::storage(state)?;
    let freed = before.as_ref().map_or(0, |old| old.body.size);
    let room = storage.asset_room().saturating_add(freed);
    if size > room {
        return Err(bodies::asset_full("bytes", room, storage.quota).into());
    }
    let by = conversations::active(state, context, told)?.id.clone();
    let body = bodies::put(state, &mut storage, bytes)?;
    let sha256 = Sha256::digest(bytes).into();
    let asset = Asset { name, body, sha256, updated_at: context.now.at, updated_by: by };
    place(state, context, (head, before, asset), storage, told)
}

pub(super) fn commit(
    state: &mut impl Store,
    context: &Context<'_>,
    number: u64,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    let upload = bodies::complete(state, context, number)?;
    let UploadFor::Asset { project, name } = &upload.target else {
        let rule = format!("must be of an asset; upload {number} is a text");
        return Err(Rejection::invalid("upload", rule).into());
    };
    let Some(id) = tables::PROJECT_NUMBERS.get(state, *project)? else {
        return Err(Rejection::not_found(format!("the project of upload {number}")).into());
    };
    let head = present(state, &id)?;
    let before = check_place(state, &head, name)?;
    let by = conversations::active(state, context, told)?.id.clone();
    bodies::close(state, number, &upload)?;
    let mut storage = bodies::storage(state)?;
    storage.asset_bytes_coming = storage.asset_bytes_coming.saturating_sub(upload.size);
    let asset = Asset {
        name: name.clone(),
        body: Body { number, size: upload.size },
        sha256: upload.sha256,
        updated_at: context.now.at,
        updated_by: by,
    };
    place(state, context, (head, before, asset), storage, told)
}

/// Puts an asset into its place, and forgets the one that stood there.
fn place(
    state: &mut impl Store,
    context: &Context<'_>,
    (mut head, before, asset): (Head, Option<Asset>, Asset),
    mut storage: Storage,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    if let Some(old) = before {
        take_away(&mut head, &mut storage, &old);
        bodies::discard(state, context.now, old.body, told)?;
    }
    storage.assets = storage.assets.saturating_add(1);
    storage.asset_bytes = storage.asset_bytes.saturating_add(asset.body.size);
    head.assets = head.assets.saturating_add(1);
    head.asset_bytes = head.asset_bytes.saturating_add(asset.body.size);
    head.updated_at = context.now.at;
    head.updated_by.clone_from(&asset.updated_by);
    tables::ASSETS.put(state, (head.number, &asset.name), &asset)?;
    save(state, context, &head, &storage, ("project.asset", &asset.name), told)?;
    Ok(Reply::Named { name: asset.name })
}

fn take_away(head: &mut Head, storage: &mut Storage, asset: &Asset) {
    storage.assets = storage.assets.saturating_sub(1);
    storage.asset_bytes = storage.asset_bytes.saturating_sub(asset.body.size);
    head.assets = head.assets.saturating_sub(1);
    head.asset_bytes = head.asset_bytes.saturating_sub(asset.body.size);
}

/// Writes what follows a change of a project's assets.
fn save(
    state: &mut impl Store,
    context: &Context<'_>,
    head: &Head,
    storage: &Storage,
    (action, name): (&str, &str),
    told: &mut Vec<Event>,
) -> Result<(), Fault> {
    let id = tables::PROJECT_NUMBERS.must(state, head.number)?;
    tables::STORAGE.put(state, (), storage)?;
    tables::PROJECTS.put(state, &id, head)?;
    events::record(state, context, action, Some(id.clone()), Some(name.into()))?;
    told.push(Event::Project { id });
    Ok(())
}

pub(super) fn delete(
    state: &mut impl Store,
    context: &Context<'_>,
    (project, name): (&str, &str),
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    let name = &check_name(name)?;
    let mut head = present(state, project)?;
    let Some(asset) = tables::ASSETS.get(state, (head.number, name))? else {
        return Err(Rejection::not_found(format!("asset {name} of project {project}")).into());
    };
    let by = conversations::active(state, context, told)?.id.clone();
    let mut storage = bodies::storage(state)?;
    take_away(&mut head, &mut storage, &asset);
    head.updated_at = context.now.at;
    head.updated_by = by;
    tables::ASSETS.delete(state, (head.number, name))?;
    bodies::discard(state, context.now, asset.body, told)?;
    save(state, context, &head, &storage, ("project.asset_delete", name), told)?;
    Ok(Reply::Done)
}

/// Lets the assets of a project go that is deleted: for readers at once, their rows by timers.
pub(super) fn leave(
    state: &mut impl Store,
    now: Clock,
    head: &Head,
    told: &mut Vec<Event>,
) -> Result<(), Fault> {
    if head.assets == 0 {
        return Ok(());
    }
    let mut storage = bodies::storage(state)?;
    storage.assets = storage.assets.saturating_sub(head.assets);
    storage.asset_bytes = storage.asset_bytes.saturating_sub(head.asset_bytes);
    tables::STORAGE.put(state, (), &storage)?;
    bodies::sweep_project(state, now, head.number, told)
}

pub(super) fn set_quota(
    state: &mut impl Store,
    context: &Context<'_>,
    bytes: u64,
) -> Result<Reply, Stop> {
    if bytes > limits::ASSETS_QUOTA_MAX {
        let rule = "must be at most 64 GiB (68719476736 bytes): every node holds all of it";
        return Err(Rejection::invalid("quota", rule).into());
    }
    let mut storage = bodies::storage(state)?;
    let detail = format!("{} to {bytes} bytes of assets", storage.quota);
    storage.quota = bytes;
    tables::STORAGE.put(state, (), &storage)?;
    events::record(state, context, "cluster.quota", None, Some(detail))?;
    Ok(Reply::Done)
}
