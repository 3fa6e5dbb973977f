//! Projects: what they say of themselves, how they stand to each other, and their assets.

mod manifest;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::projects::manifest::{
    Billing, Endpoint, FeatureTier, Manifest, ManifestPatch, Operation, Relation, RelationKind,
};
use crate::schema::{ProjectId, brief, silent, streamed};
use crate::tool::{Hints, Tool, ToolSpec};
use crate::validate::Violation;
use crate::{ids, limits, text};

/// The tools of this family.
pub(crate) const TOOLS: &[fn() -> ToolSpec] = &[
    ToolSpec::of::<SyncProjectAssets>,
    ToolSpec::of::<UploadProjectAsset>,
    ToolSpec::of::<UpdateProject>,
    ToolSpec::of::<RenameProject>,
    ToolSpec::of::<SearchProjects>,
    ToolSpec::of::<GetGlobalTopology>,
    ToolSpec::of::<GetProject>,
    ToolSpec::of::<HostDeleteProject>,
];

/// Arguments of `sync_project_assets`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SyncProjectAssetsInput {
    /// Its id is `PREFIX_NAME`, as in `web_shop`.
    pub manifest: Manifest,
    /// Markdown.
    #[schemars(length(max = limits::DOCUMENT_BYTES_MAX), transform = brief)]
    pub internal_docs: String,
}

/// Result of the tools that change one project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProjectChangedOutput {
    /// True: a refusal is an error, never a result.
    pub ok: bool,
    /// Which project.
    pub project_id: String,
    /// What the caller should know, such as an id without a known prefix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The tool `sync_project_assets`.
#[derive(Debug)]
pub struct SyncProjectAssets;

impl Tool for SyncProjectAssets {
    const NAME: &'static str = "sync_project_assets";
    const TITLE: &'static str = "Sync Project";
    const DESCRIPTION: &'static str = "Makes or replaces a project: its manifest and its notes.";
    const HINTS: Hints = Hints::REPLACES_ONCE;
    const PUBLISHES_OUTPUT: bool = false;
    type Input = SyncProjectAssetsInput;
    type Output = ProjectChangedOutput;

    fn check(input: &SyncProjectAssetsInput) -> Result<(), Violation> {
        input.manifest.check()?;
        text::bytes("internalDocs", &input.internal_docs, limits::DOCUMENT_BYTES_MAX)
    }
}

/// Arguments of `upload_project_asset`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UploadProjectAssetInput {
    /// Which project.
    #[schemars(transform = silent, with = "ProjectId")]
    pub project_id: String,
    /// A name, no path.
    #[schemars(length(min = 1, max = limits::ASSET_NAME_BYTES_MAX), transform = brief)]
    pub file_name: String,
    /// Its bytes, at most 3 MiB.
    #[schemars(
        length(max = limits::BASE64_CHARS_MAX),
        transform = brief,
        transform = streamed
    )]
    pub base64_content: String,
}

/// Result of `upload_project_asset`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UploadProjectAssetOutput {
    /// True: a refusal is an error, never a result.
    pub ok: bool,
    /// Which project.
    pub project_id: String,
    /// The name that it is stored under: characters that are unsafe in a path are replaced.
    pub file_name: String,
}

/// The tool `upload_project_asset`.
#[derive(Debug)]
pub struct UploadProjectAsset;

impl Tool for UploadProjectAsset {
    const NAME: &'static str = "upload_project_asset";
    const TITLE: &'static str = "Upload Asset";
    const DESCRIPTION: &'static str = "Stores a file with a project; the same name is replaced.";
    const HINTS: Hints = Hints::REPLACES;
    const PUBLISHES_OUTPUT: bool = false;
    type Input = UploadProjectAssetInput;
    type Output = UploadProjectAssetOutput;

    fn check(input: &UploadProjectAssetInput) -> Result<(), Violation> {
        check_file_name("fileName", &input.file_name)?;
        check_base64("base64Content", &input.base64_content)
    }
}

/// Checks the name of an asset; characters that are unsafe in a path are no fault of it.
///
/// # Errors
/// The field, what is wrong, and what would be right.
pub fn check_file_name(field: &str, name: &str) -> Result<(), Violation> {
    text::line(field, name)?;
    text::bytes(field, name, limits::ASSET_NAME_BYTES_MAX)?;
    if name.is_empty() || name == "." {
        let is = if name.is_empty() { "is empty" } else { "is a folder" };
        return Err(Violation::new(field, format!("{is}; give the name of a file")));
    }
    Ok(())
}

/// Checks that a text is base64 (RFC 4648, section 4) with its padding and nothing between.
fn check_base64(field: &str, given: &str) -> Result<(), Violation> {
    let right = "give base64 with padding and without line breaks";
    let padded = given.strip_suffix("==").or_else(|| given.strip_suffix('='));
    let letters = padded.unwrap_or(given);
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || "+/".contains(letter);
    if let Some(bad) = letters.chars().find(|letter| !allowed(*letter)) {
        return Err(Violation::new(field, format!("has {bad:?} in it; {right}")));
    }
    if !given.len().is_multiple_of(4) {
        let what = format!("has {} characters, no multiple of 4; {right}", given.len());
        return Err(Violation::new(field, what));
    }
    Ok(())
}

/// Arguments of `update_project`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateProjectInput {
    /// Which project.
    #[schemars(transform = silent, with = "ProjectId")]
    pub project_id: String,
    /// Fields of a manifest (`sync_project_assets`), never id.
    #[schemars(transform = brief)]
    pub patch: ManifestPatch,
}

/// The tool `update_project`.
#[derive(Debug)]
pub struct UpdateProject;

impl Tool for UpdateProject {
    const NAME: &'static str = "update_project";
    const TITLE: &'static str = "Update Project";
    const DESCRIPTION: &'static str = "Changes the given fields of a project's manifest.";
    const HINTS: Hints = Hints::REPLACES_ONCE;
    const PUBLISHES_OUTPUT: bool = false;
    type Input = UpdateProjectInput;
    type Output = ProjectChangedOutput;

    fn check(input: &UpdateProjectInput) -> Result<(), Violation> {
        input.patch.check()
    }
}

/// Arguments of `rename_project`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RenameProjectInput {
    /// Its id now.
    #[schemars(transform = silent, with = "ProjectId")]
    pub old_id: String,
    /// Its id from now on.
    #[schemars(transform = silent, with = "ProjectId")]
    pub new_id: String,
}

/// Result of `rename_project`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RenameProjectOutput {
    /// True: a refusal is an error, never a result.
    pub ok: bool,
    /// Its id before.
    pub old_id: String,
    /// Its id now.
    pub new_id: String,
    /// What the caller should know, such as an id without a known prefix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The tool `rename_project`.
#[derive(Debug)]
pub struct RenameProject;

impl Tool for RenameProject {
    const NAME: &'static str = "rename_project";
    const TITLE: &'static str = "Rename Project";
    const DESCRIPTION: &'static str =
        "Gives a project another id; relations of other projects follow.";
    const HINTS: Hints = Hints::REPLACES;
    const PUBLISHES_OUTPUT: bool = false;
    type Input = RenameProjectInput;
    type Output = RenameProjectOutput;

    fn check(input: &RenameProjectInput) -> Result<(), Violation> {
        ids::project("newId", &input.new_id)?;
        if input.old_id == input.new_id {
            return Err(Violation::new("newId", "is the same as oldId; give another id"));
        }
        Ok(())
    }
}

/// Arguments of `search_projects`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchProjectsInput {
    /// A part of its id, name or description, in any case.
    #[schemars(length(min = 1, max = limits::QUERY_CHARS_MAX), transform = brief)]
    pub query: String,
    /// How many at most.
    #[serde(default = "limit_default")]
    #[schemars(transform = silent, range(min = 1, max = limits::SEARCH_MAX))]
    pub limit: u32,
}

fn limit_default() -> u32 {
    limits::SEARCH_DEFAULT
}

/// A project that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProjectFound {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// What it is.
    pub description: String,
}

/// Result of `search_projects`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchProjectsOutput {
    /// What was searched for.
    pub query: String,
    /// How many are listed.
    pub count: u32,
    /// The projects, in the order of their ids.
    pub results: Vec<ProjectFound>,
}

/// The tool `search_projects`.
#[derive(Debug)]
pub struct SearchProjects;

impl Tool for SearchProjects {
    const NAME: &'static str = "search_projects";
    const TITLE: &'static str = "Search Projects";
    const DESCRIPTION: &'static str = "Finds projects by a text.";
    const HINTS: Hints = Hints::READ_ONLY;
    const PUBLISHES_OUTPUT: bool = true;
    type Input = SearchProjectsInput;
    type Output = SearchProjectsOutput;
}

/// Arguments of `get_global_topology`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GetGlobalTopologyInput {
    /// Only this one and what it depends on.
    #[schemars(transform = silent, with = "Option<ProjectId>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
}

/// What a topology shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TopologyMode {
    /// All projects.
    List,
    /// One project and what it depends on.
    Focused,
}

/// What a topology shows of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProjectNode {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// What it is.
    pub summary: String,
    /// When it or its assets changed last (RFC 3339, UTC, milliseconds).
    pub last_active: String,
}

/// A relation of two projects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProjectEdge {
    /// Who has it.
    pub from: String,
    /// To whom it goes.
    pub to: String,
    /// What the other is to the one.
    #[serde(rename = "type")]
    pub kind: RelationKind,
}

/// How many projects and relations there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TopologySummary {
    /// How many projects.
    pub total_projects: u64,
    /// How many relations from project to project.
    pub total_edges: u64,
    /// How many relations to ids that are no project.
    pub dangling_edges: u64,
}

/// Result of `get_global_topology`: with `mode` list the summary and the projects, with focused the
/// nodes and the edges.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GetGlobalTopologyOutput {
    /// What it shows.
    pub mode: TopologyMode,
    /// How many there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<TopologySummary>,
    /// All projects by id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub projects: Option<BTreeMap<String, ProjectNode>>,
    /// The project and all that its relations lead to, nearest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Vec<ProjectNode>>,
    /// The relations among them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edges: Option<Vec<ProjectEdge>>,
    /// Their relations to ids that are no project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dangling: Option<Vec<ProjectEdge>>,
    /// What the reader should know, such as that there is more than is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The tool `get_global_topology`.
#[derive(Debug)]
pub struct GetGlobalTopology;

impl Tool for GetGlobalTopology {
    const NAME: &'static str = "get_global_topology";
    const TITLE: &'static str = "Get Topology";
    const DESCRIPTION: &'static str = "Returns all projects, or one and what it depends on.";
    const HINTS: Hints = Hints::READ_ONLY;
    const PUBLISHES_OUTPUT: bool = true;
    type Input = GetGlobalTopologyInput;
    type Output = GetGlobalTopologyOutput;
}

/// Arguments of `get_project`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GetProjectInput {
    /// Which project.
    #[schemars(transform = silent, with = "ProjectId")]
    pub project_id: String,
    /// Whether its notes come too.
    #[schemars(transform = silent)]
    #[serde(default = "yes")]
    pub include_docs: bool,
}

fn yes() -> bool {
    true
}

/// A file that is stored with a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AssetEntry {
    /// Its name.
    pub file_name: String,
    /// Its bytes.
    pub size: u64,
    /// Their SHA-256 in hex.
    pub sha256: String,
    /// When it came (RFC 3339, UTC, milliseconds).
    pub last_updated: String,
    /// Who brought it.
    pub updated_by: String,
}

/// Result of `get_project`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GetProjectOutput {
    /// What it says of itself.
    pub manifest: Manifest,
    /// Its internal notes (Markdown), when they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub internal_docs: Option<String>,
    /// Its assets, by name.
    pub assets: Vec<AssetEntry>,
}

/// The tool `get_project`.
#[derive(Debug)]
pub struct GetProject;

impl Tool for GetProject {
    const NAME: &'static str = "get_project";
    const TITLE: &'static str = "Get Project";
    const DESCRIPTION: &'static str = "Returns a project's manifest, notes and list of assets.";
    const HINTS: Hints = Hints::READ_ONLY;
    const PUBLISHES_OUTPUT: bool = true;
    type Input = GetProjectInput;
    type Output = GetProjectOutput;
}

/// Arguments of `host_delete_project`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostDeleteProjectInput {
    /// Which project.
    #[schemars(transform = silent, with = "ProjectId")]
    pub project_id: String,
}

/// The tool `host_delete_project`.
#[derive(Debug)]
pub struct HostDeleteProject;

impl Tool for HostDeleteProject {
    const NAME: &'static str = "host_delete_project";
    const TITLE: &'static str = "Delete Project";
    const DESCRIPTION: &'static str = "Deletes a project with its notes and assets for ever.";
    const HINTS: Hints = Hints::REPLACES;
    const PUBLISHES_OUTPUT: bool = false;
    type Input = HostDeleteProjectInput;
    type Output = ProjectChangedOutput;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_whole_and_plain() {
        for good in ["", "TQ==", "TWE=", "TWFu", "+/+/", "TWFuTWFu"] {
            assert_eq!(check_base64("f", good), Ok(()), "{good}");
        }
        let right = "give base64 with padding and without line breaks";
        for (bad, is) in [
            ("TWF", "has 3 characters, no multiple of 4"),
            ("=", "has 1 characters, no multiple of 4"),
            ("TW=u", "has '=' in it"),
            ("T===", "has '=' in it"),
            ("TWFu\nTWFu", "has '\\n' in it"),
            ("TW-_", "has '-' in it"),
            ("TWFä", "has 'ä' in it"),
        ] {
            let wrong = check_base64("f", bad).unwrap_err().to_string();
            assert_eq!(wrong, format!("f: {is}; {right}"));
        }
    }
}
