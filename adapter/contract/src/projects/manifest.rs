//! What a project says of itself.
//!
//! Every field comes back as it was given. A list or a map that a patch gives replaces the whole
//! one that was there.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::{ProjectId, ShortText, brief, silent};
use crate::validate::Violation;
use crate::{ids, limits, text};

type ManifestText = ShortText<{ limits::MANIFEST_TEXT_CHARS_MAX }>;
type Version = ShortText<{ limits::VERSION_CHARS_MAX }>;

/// What another project is to one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RelationKind {
    /// It is needed.
    Dependency,
    /// It stands above.
    Parent,
    /// It stands below.
    Child,
    /// It has to do with it.
    Related,
}

/// How a project stands to another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Relation {
    /// The other's id; it need not be there yet.
    #[schemars(transform = silent, with = "ProjectId")]
    pub target_id: String,
    /// What the other is to it.
    #[serde(rename = "type")]
    #[schemars(transform = silent)]
    pub kind: RelationKind,
}

/// Where a project can be reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Endpoint {
    /// Its name.
    #[schemars(transform = silent, with = "ManifestText")]
    pub name: String,
    /// Its address.
    #[schemars(transform = silent, with = "ManifestText")]
    pub url: String,
    /// What it is for.
    #[schemars(transform = silent, with = "ManifestText")]
    pub description: String,
}

/// What can be called on a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Operation {
    /// The method.
    #[schemars(transform = silent, with = "ManifestText")]
    pub method: String,
    /// The path.
    #[schemars(transform = silent, with = "ManifestText")]
    pub path: String,
    /// What it does.
    #[schemars(transform = silent, with = "ManifestText")]
    pub summary: String,
}

/// What a project costs, in free words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Billing {
    /// The plan.
    #[schemars(transform = silent, with = "ManifestText")]
    pub plain: String,
    /// The price.
    #[schemars(transform = silent, with = "ManifestText")]
    pub price: String,
}

/// Who may use a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FeatureTier {
    /// Everybody.
    Standard,
    /// Who pays for more.
    Advanced,
    /// Teams.
    Team,
}

/// A whole manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// Its id.
    #[schemars(transform = silent, with = "ProjectId")]
    pub id: String,
    /// Its name, on one line.
    #[schemars(
        transform = silent,
        length(min = 1, max = limits::PROJECT_NAME_CHARS_MAX),
        transform = brief
    )]
    pub name: String,
    /// What it is.
    #[schemars(
        transform = silent,
        length(max = limits::DESCRIPTION_CHARS_MAX),
        transform = brief
    )]
    pub description: String,
    /// What it is made with.
    #[schemars(
        transform = silent,
        with = "Vec<ManifestText>",
        length(max = limits::MANIFEST_ITEMS_MAX)
    )]
    pub tech_stack: Vec<String>,
    /// How it stands to others.
    #[schemars(transform = silent, length(max = limits::MANIFEST_ITEMS_MAX))]
    pub relations: Vec<Relation>,
    /// Where its source is.
    #[schemars(transform = silent, with = "ManifestText")]
    pub repository_url: String,
    /// Where it lies on a machine.
    #[schemars(transform = silent, with = "ManifestText")]
    pub local_path: String,
    /// Where it can be reached.
    #[schemars(transform = silent, length(max = limits::MANIFEST_ITEMS_MAX))]
    pub endpoints: Vec<Endpoint>,
    /// What can be called there.
    #[schemars(transform = silent, length(max = limits::MANIFEST_ITEMS_MAX))]
    pub api_spec: Vec<Operation>,
    /// What it costs.
    #[schemars(transform = silent)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub billing: Option<Billing>,
    /// When its owner says that it changed; kept as it came.
    #[schemars(transform = silent, with = "Option<ManifestText>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_updated: Option<String>,
    /// Project ids to versions.
    #[schemars(with = "Option<BTreeMap<String, Version>>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_dependencies: Option<BTreeMap<String, String>>,
    /// Which gateways it works with.
    #[schemars(transform = silent, with = "Option<ManifestText>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway_compatibility: Option<String>,
    /// Features to versions.
    #[serde(rename = "api_versions", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<BTreeMap<String, Version>>")]
    pub api_versions: Option<BTreeMap<String, String>>,
    /// Who may use it.
    #[schemars(transform = silent)]
    #[serde(rename = "feature_tier", skip_serializing_if = "Option::is_none")]
    pub feature_tier: Option<FeatureTier>,
}

/// The fields of a manifest that shall change; its id cannot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ManifestPatch {
    /// See [`Manifest::name`].
    #[schemars(length(min = 1, max = limits::PROJECT_NAME_CHARS_MAX))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// See [`Manifest::description`].
    #[schemars(length(max = limits::DESCRIPTION_CHARS_MAX))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// See [`Manifest::tech_stack`].
    #[schemars(with = "Option<Vec<ManifestText>>", length(max = limits::MANIFEST_ITEMS_MAX))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tech_stack: Option<Vec<String>>,
    /// See [`Manifest::relations`].
    #[schemars(length(max = limits::MANIFEST_ITEMS_MAX))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relations: Option<Vec<Relation>>,
    /// See [`Manifest::repository_url`].
    #[schemars(with = "Option<ManifestText>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repository_url: Option<String>,
    /// See [`Manifest::local_path`].
    #[schemars(with = "Option<ManifestText>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local_path: Option<String>,
    /// See [`Manifest::endpoints`].
    #[schemars(length(max = limits::MANIFEST_ITEMS_MAX))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<Vec<Endpoint>>,
    /// See [`Manifest::api_spec`].
    #[schemars(length(max = limits::MANIFEST_ITEMS_MAX))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_spec: Option<Vec<Operation>>,
    /// See [`Manifest::billing`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub billing: Option<Billing>,
    /// See [`Manifest::last_updated`].
    #[schemars(with = "Option<ManifestText>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_updated: Option<String>,
    /// See [`Manifest::api_dependencies`].
    #[schemars(with = "Option<BTreeMap<String, Version>>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_dependencies: Option<BTreeMap<String, String>>,
    /// See [`Manifest::gateway_compatibility`].
    #[schemars(with = "Option<ManifestText>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway_compatibility: Option<String>,
    /// See [`Manifest::api_versions`].
    #[schemars(with = "Option<BTreeMap<String, Version>>")]
    #[serde(rename = "api_versions", skip_serializing_if = "Option::is_none")]
    pub api_versions: Option<BTreeMap<String, String>>,
    /// See [`Manifest::feature_tier`].
    #[serde(rename = "feature_tier", skip_serializing_if = "Option::is_none")]
    pub feature_tier: Option<FeatureTier>,
}

impl Manifest {
    /// Checks what the schema cannot say.
    pub(super) fn check(&self) -> Result<(), Violation> {
        ids::project("manifest.id", &self.id)?;
        text::line("manifest.name", &self.name)?;
        check_relations("manifest", &self.relations)?;
        check_dependencies("manifest", self.api_dependencies.as_ref())?;
        check_versions("manifest", self.api_versions.as_ref())
    }
}

impl ManifestPatch {
    /// Checks what the schema cannot say.
    pub(super) fn check(&self) -> Result<(), Violation> {
        if *self == Self::default() {
            let what = "gives no field; give at least one of a manifest, never id";
            return Err(Violation::new("patch", what));
        }
        if let Some(name) = &self.name {
            text::line("patch.name", name)?;
        }
        check_relations("patch", self.relations.as_deref().unwrap_or_default())?;
        check_dependencies("patch", self.api_dependencies.as_ref())?;
        check_versions("patch", self.api_versions.as_ref())
    }
}

fn check_relations(of: &str, relations: &[Relation]) -> Result<(), Violation> {
    for (place, relation) in relations.iter().enumerate() {
        ids::project(&format!("{of}.relations[{place}].targetId"), &relation.target_id)?;
    }
    Ok(())
}

fn check_dependencies(
    of: &str,
    dependencies: Option<&BTreeMap<String, String>>,
) -> Result<(), Violation> {
    let Some(dependencies) = dependencies else { return Ok(()) };
    let field = format!("{of}.apiDependencies");
    check_count(&field, dependencies.len())?;
    dependencies.keys().try_for_each(|id| ids::project(&field, id))
}

fn check_versions(of: &str, versions: Option<&BTreeMap<String, String>>) -> Result<(), Violation> {
    let Some(versions) = versions else { return Ok(()) };
    let field = format!("{of}.api_versions");
    check_count(&field, versions.len())?;
    versions.keys().try_for_each(|feature| {
        text::line(&field, feature)?;
        text::bytes(&field, feature, limits::VERSION_CHARS_MAX)
    })
}

fn check_count(field: &str, count: usize) -> Result<(), Violation> {
    if u32::try_from(count).is_ok_and(|count| count <= limits::MANIFEST_ITEMS_MAX) {
        return Ok(());
    }
    let what = format!("has {count} entries; give at most {}", limits::MANIFEST_ITEMS_MAX);
    Err(Violation::new(field, what))
}
