//! Projects: what they say of themselves, how they stand to each other, and what is found of them.
//! Their files are in [`super::assets`].
//!
//! What a change answers is made of what was given: nothing is read back, so it is the same on a
//! node that does not have the change yet.

mod manifest;
mod topology;

use nexus_contract::projects::{
    AssetEntry, GetProjectInput, GetProjectOutput, HostDeleteProjectInput, ProjectChangedOutput,
    ProjectFound, RenameProjectInput, RenameProjectOutput, SearchProjectsInput,
    SearchProjectsOutput, SyncProjectAssetsInput, UpdateProjectInput,
};
use nexus_domain::command::projects::Content;
use nexus_domain::command::{Command, ProjectCommand};
use nexus_domain::{Reply, projects};
use nexus_raft::Committed;

pub(super) use topology::get_global_topology;

use super::{Answer, Call, Service, assets, errors, time, uploads, written};

/// What to do about the id of a project that does not exist.
pub(super) const REMEDY: &str = "search_projects finds those there are";

/// `sync_project_assets`.
pub(super) async fn sync_project_assets(
    service: &Service,
    about: &Call<'_>,
    input: SyncProjectAssetsInput,
) -> Answer {
    let note = note(&input.manifest.id);
    let project_id = input.manifest.id.clone();
    let manifest = Box::new(manifest::into_command(input.manifest));
    let sync =
        |docs: Content| Command::Project(ProjectCommand::Sync { manifest: manifest.clone(), docs });
    let committed =
        uploads::text(service, about, ("internalDocs", input.internal_docs), &sync).await?;
    changed(about, &committed, ProjectChangedOutput { ok: true, project_id, note })
}

/// `update_project`.
pub(super) async fn update_project(
    service: &Service,
    about: &Call<'_>,
    input: UpdateProjectInput,
) -> Answer {
    let UpdateProjectInput { project_id, patch } = input;
    let patch = Box::new(manifest::into_patch(patch));
    let command = ProjectCommand::Update { id: project_id.clone(), patch };
    let committed = propose(service, about, command, ("projectId", &project_id)).await?;
    changed(about, &committed, ProjectChangedOutput { ok: true, project_id, note: None })
}

/// `rename_project`.
pub(super) async fn rename_project(
    service: &Service,
    about: &Call<'_>,
    input: RenameProjectInput,
) -> Answer {
    let RenameProjectInput { old_id, new_id } = input;
    let command = ProjectCommand::Rename { from: old_id.clone(), to: new_id.clone() };
    let committed = propose(service, about, command, ("oldId", &old_id)).await?;
    let note = note(&new_id);
    changed(about, &committed, RenameProjectOutput { ok: true, old_id, new_id, note })
}

/// `host_delete_project`.
pub(super) async fn host_delete_project(
    service: &Service,
    about: &Call<'_>,
    input: HostDeleteProjectInput,
) -> Answer {
    let HostDeleteProjectInput { project_id } = input;
    let command = ProjectCommand::Delete { id: project_id.clone() };
    let committed = propose(service, about, command, ("projectId", &project_id)).await?;
    changed(about, &committed, ProjectChangedOutput { ok: true, project_id, note: None })
}

/// `search_projects`: a read.
pub(super) async fn search_projects(
    service: &Service,
    about: &Call<'_>,
    input: SearchProjectsInput,
) -> Answer {
    let SearchProjectsInput { query, limit } = input;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let fresh = service.read(|view| projects::search(view, &query, limit)).await?;
    let marks = service.marks(about, &fresh);
    let shown = |found: projects::Found| ProjectFound {
        id: found.id,
        name: found.name,
        description: found.description,
    };
    let results: Vec<_> = fresh.value.into_iter().map(shown).collect();
    let count = u32::try_from(results.len()).unwrap_or(u32::MAX);
    marks.stamp(&SearchProjectsOutput { query, count, results })
}

/// `get_project`: a read. Manifest, notes and the list of assets have bounds of their own in the
/// state: 56 KiB, 1 MiB, and 1,000.
pub(super) async fn get_project(
    service: &Service,
    about: &Call<'_>,
    input: &GetProjectInput,
) -> Answer {
    let id = &input.project_id;
    let fresh = service
        .read(|view| {
            let Some(project) = projects::project(view, id)? else { return Ok(None) };
            let docs = if input.include_docs { projects::internal_docs(view, id)? } else { None };
            Ok(Some((project, docs, projects::assets(view, id)?)))
        })
        .await?;
    let marks = service.marks(about, &fresh);
    let Some((project, internal_docs, assets)) = fresh.value else {
        let error = errors::not_found("projectId", &format!("project {id}"), REMEDY);
        return Err(errors::as_known_here(&marks, error));
    };
    marks.stamp(&GetProjectOutput {
        manifest: manifest::shown(project.manifest),
        internal_docs,
        assets: assets.into_iter().flatten().map(listed).collect(),
    })
}

fn listed(asset: projects::Asset) -> AssetEntry {
    AssetEntry {
        file_name: asset.name,
        size: asset.body.size,
        sha256: assets::hex(&asset.sha256),
        last_updated: time::text(asset.updated_at),
        updated_by: asset.updated_by,
    }
}

/// Proposes what needs a project to be there, which this field names.
async fn propose(
    service: &Service,
    about: &Call<'_>,
    command: ProjectCommand,
    (field, id): (&str, &str),
) -> Result<Committed, nexus_contract::ApiError> {
    let outcome = service.propose(about, Command::Project(command)).await;
    outcome.map_err(|error| errors::missing(error, field, &format!("project {id}"), REMEDY))
}

fn changed<T: serde::Serialize>(about: &Call<'_>, committed: &Committed, output: T) -> Answer {
    if committed.reply == Reply::Done {
        written(committed).stamp(&output)
    } else {
        Err(errors::odd_reply(about.tool))
    }
}

/// Returns what is to be known of a new id, if there is something.
fn note(id: &str) -> Option<String> {
    (!projects::has_known_prefix(id)).then(|| {
        format!(
            "{id} has no known prefix; by convention an id is PREFIX_NAME with one of {}.",
            projects::PREFIXES.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_without_a_known_prefix_is_taken_with_a_note() {
        assert_eq!(note("web_shop"), None);
        for id in ["shop", "web_", "web-shop", "Web_shop", "tool_x"] {
            let note = note(id).unwrap();
            let begin = format!("{id} has no known prefix; by convention");
            assert!(note.starts_with(&begin) && note.contains("one of web, api,"), "{note}");
        }
    }
}
