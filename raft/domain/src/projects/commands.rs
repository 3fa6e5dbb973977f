//! Commands of projects.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Head, ProjectTotals, assets, check_id, manifest, references};
use crate::bodies::{self, Beginning, Body, UploadFor};
use crate::command::ProjectCommand;
use crate::command::projects::{Content, Manifest, Patch, UploadTarget};
use crate::context::{Context, Stop};
use crate::event::Event;
use crate::projects::manifest::{Stored, stored};
use crate::rejection::Rejection;
use crate::reply::Reply;
use crate::store::{Fault, Read, Store};
use crate::{conversations, events, limits, tables};

pub(crate) fn run(
    state: &mut impl Store,
    context: &Context<'_>,
    command: &ProjectCommand,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    match command {
        ProjectCommand::Sync { manifest, docs } => sync(state, context, manifest, docs, told),
        ProjectCommand::Update { id, patch } => update(state, context, id, patch, told),
        ProjectCommand::Rename { from, to } => rename(state, context, from, to, told),
        ProjectCommand::Delete { id } => delete(state, context, id, told),
        ProjectCommand::PutAsset { project, name, bytes } => {
            assets::put(state, context, (project, name), bytes, told)
        }
        ProjectCommand::DeleteAsset { project, name } => {
            assets::delete(state, context, (project, name), told)
        }
        ProjectCommand::BeginUpload { target, size, sha256 } => {
            let target = match target {
                UploadTarget::Text => UploadFor::Text,
                UploadTarget::Asset { project, name } => assets::target(state, project, name)?,
            };
            let wanted = Beginning { target, size: *size, sha256 };
            bodies::begin(state, context, wanted, told)
        }
        ProjectCommand::UploadChunk { upload, place, bytes } => {
            bodies::chunk(state, context, (*upload, *place), bytes, told)
        }
        ProjectCommand::CommitAsset { upload } => assets::commit(state, context, *upload, told),
        ProjectCommand::AbandonUpload { upload } => bodies::abandon(state, context, *upload, told),
        ProjectCommand::SetQuota { bytes } => assets::set_quota(state, context, *bytes),
    }
}

fn totals(state: &impl Read) -> Result<ProjectTotals, Fault> {
    Ok(tables::PROJECT_TOTALS.get(state, ())?.unwrap_or_default())
}

/// Returns a project that must be there.
fn present(state: &impl Read, id: &str) -> Result<Stored, Stop> {
    Ok(stored(state, id)?.ok_or_else(|| Rejection::not_found(format!("project {id}")))?)
}

fn sync(
    state: &mut impl Store,
    context: &Context<'_>,
    manifest: &Manifest,
    docs: &Content,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    manifest::check("manifest", manifest)?;
    let before = stored(state, &manifest.id)?;
    let replaced = before.as_ref().map(|before| before.details.docs);
    let text = bodies::check_text(state, context, "internalDocs", docs, replaced)?;
    if before.is_none() && totals(state)?.projects >= limits::PROJECTS_MAX {
        let what = "manifest.id: the cluster keeps 5,000 projects, no new one fits; delete some \
                    first";
        return Err(Rejection::full(what).into());
    }
    let by = conversations::active(state, context, told)?.id.clone();
    let docs = bodies::store_text(state, context.now, text, replaced, told)?;
    let detail = before.is_none().then(|| "new".into());
    write(state, context, (before.as_ref(), manifest, docs), by)?;
    events::record(state, context, "project.sync", Some(manifest.id.clone()), detail)?;
    told.push(Event::Project { id: manifest.id.clone() });
    Ok(Reply::Done)
}

/// Writes a project's rows; `before` is what stands there now.
fn write(
    state: &mut impl Store,
    context: &Context<'_>,
    (before, manifest, docs): (Option<&Stored>, &Manifest, Body),
    by: String,
) -> Result<(), Fault> {
    let mut totals = totals(state)?;
    let mut head = match before {
        Some(before) => before.head.clone(),
        None => enter(state, &mut totals, &manifest.id)?,
    };
    head.name.clone_from(&manifest.name);
    head.description.clone_from(&manifest.description);
    head.updated_at = context.now.at;
    head.updated_by = by;
    let created_at = before.map_or(context.now.at, |before| before.details.created_at);
    let details = manifest::details(manifest, docs, created_at);
    tables::PROJECTS.put(state, &manifest.id, &head)?;
    tables::MANIFESTS.put(state, head.number, &details)?;
    references::save(state, &mut totals, head.label, manifest)?;
    tables::PROJECT_TOTALS.put(state, (), &totals)
}

/// Gives a new project its number and its label.
fn enter(state: &mut impl Store, totals: &mut ProjectTotals, id: &str) -> Result<Head, Fault> {
    totals.last_number = totals.last_number.saturating_add(1);
    totals.projects = totals.projects.saturating_add(1);
    let label = references::enter(state, totals, id)?;
    let number = totals.last_number;
    tables::PROJECT_NUMBERS.put(state, number, &id.into())?;
    Ok(Head {
        number,
        label,
        name: String::new(),
        description: String::new(),
        assets: 0,
        asset_bytes: 0,
        updated_at: 0,
        updated_by: String::new(),
    })
}

fn update(
    state: &mut impl Store,
    context: &Context<'_>,
    id: &str,
    patch: &Patch,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    if *patch == Patch::default() {
        let rule = "must give at least one field of a manifest; its id stays";
        return Err(Rejection::invalid("patch", rule).into());
    }
    let before = present(state, id)?;
    let docs = before.details.docs;
    let mut manifest = before.clone().manifest(state, id)?;
    manifest.set(patch);
    manifest::check("patch", &manifest)?;
    let by = conversations::active(state, context, told)?.id.clone();
    write(state, context, (Some(&before), &manifest, docs), by)?;
    events::record(state, context, "project.update", Some(id.into()), None)?;
    told.push(Event::Project { id: id.into() });
    Ok(Reply::Done)
}

fn rename(
    state: &mut impl Store,
    context: &Context<'_>,
    from: &str,
    to: &str,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    let mut head = present(state, from)?.head;
    check_id("newId", to)?;
    if from == to {
        return Err(Rejection::invalid("newId", "must be another id than oldId").into());
    }
    if tables::PROJECTS.has(state, to)? {
        let what = format!("newId: project {to} exists; choose another id, or delete it first");
        return Err(Rejection::conflict(what).into());
    }
    let referrers = references::find(state, to)?.map_or(0, |(_, label)| label.referrers);
    if referrers > limits::RENAME_REFERRERS_MAX {
        let what = format!(
            "newId: {referrers} projects refer to {to} already, a rename turns at most 300; \
             choose another id, or make a new project of this one"
        );
        return Err(Rejection::conflict(what).into());
    }
    let by = conversations::active(state, context, told)?.id.clone();
    let mut totals = totals(state)?;
    references::rename(state, &mut totals, head.label, to)?;
    tables::PROJECT_TOTALS.put(state, (), &totals)?;
    head.updated_at = context.now.at;
    head.updated_by = by;
    tables::PROJECTS.delete(state, from)?;
    tables::PROJECTS.put(state, to, &head)?;
    tables::PROJECT_NUMBERS.put(state, head.number, &to.into())?;
    let detail = format!("from {from}");
    events::record(state, context, "project.rename", Some(to.into()), Some(detail))?;
    told.extend([from, to].map(|id| Event::Project { id: id.into() }));
    Ok(Reply::Done)
}

fn delete(
    state: &mut impl Store,
    context: &Context<'_>,
    id: &str,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    let Stored { head, details } = present(state, id)?;
    conversations::active(state, context, told)?;
    let mut totals = totals(state)?;
    totals.projects = totals.projects.saturating_sub(1);
    references::leave(state, &mut totals, head.label)?;
    tables::PROJECT_TOTALS.put(state, (), &totals)?;
    tables::PROJECTS.delete(state, id)?;
    tables::PROJECT_NUMBERS.delete(state, head.number)?;
    tables::MANIFESTS.delete(state, head.number)?;
    bodies::drop_text(state, context.now, details.docs, told)?;
    assets::leave(state, context.now, &head, told)?;
    events::record(state, context, "project.delete", Some(id.into()), None)?;
    told.push(Event::Project { id: id.into() });
    Ok(Reply::Done)
}
