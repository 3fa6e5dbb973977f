//! Manifests: what they may say, and how they lie in the state.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use core::fmt::Display;

use super::{Details, Head, check_id, references};
use crate::bodies::Body;
use crate::command::projects::Manifest;
use crate::rejection::Rejection;
use crate::store::{Fault, Read};
use crate::{codec, limits, tables, texts};

/// A project as it lies in the state.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    pub(super) head: Head,
    pub(super) details: Details,
}

/// Returns a project as it lies in the state.
pub(super) fn stored(state: &impl Read, id: &str) -> Result<Option<Stored>, Fault> {
    let Some(head) = tables::PROJECTS.get(state, id)? else { return Ok(None) };
    let details = tables::MANIFESTS.must(state, head.number)?;
    Ok(Some(Stored { head, details }))
}

impl Stored {
    /// Returns the manifest as it was given.
    pub(super) fn manifest(self, state: &impl Read, id: &str) -> Result<Manifest, Fault> {
        let Self { head, details } = self;
        let mut manifest = Manifest {
            id: id.into(),
            name: head.name,
            description: head.description,
            tech_stack: details.tech_stack,
            relations: Default::default(),
            repository_url: details.repository_url,
            local_path: details.local_path,
            endpoints: details.endpoints,
            api_spec: details.api_spec,
            billing: details.billing,
            last_updated: details.last_updated,
            api_dependencies: None,
            gateway_compatibility: details.gateway_compatibility,
            api_versions: details.api_versions,
            feature_tier: details.feature_tier,
        };
        references::fill(state, head.label, &mut manifest)?;
        Ok(manifest)
    }
}

/// Returns the part of a manifest that lies beside head and references.
pub(super) fn details(manifest: &Manifest, docs: Body, created_at: u64) -> Details {
    Details {
        tech_stack: manifest.tech_stack.clone(),
        repository_url: manifest.repository_url.clone(),
        local_path: manifest.local_path.clone(),
        endpoints: manifest.endpoints.clone(),
        api_spec: manifest.api_spec.clone(),
        billing: manifest.billing.clone(),
        last_updated: manifest.last_updated.clone(),
        gateway_compatibility: manifest.gateway_compatibility.clone(),
        api_versions: manifest.api_versions.clone(),
        feature_tier: manifest.feature_tier,
        docs,
        created_at,
    }
}

/// Checks a manifest in the order of its fields; `of` is what it is called in errors.
pub(super) fn check(of: &str, manifest: &Manifest) -> Result<(), Rejection> {
    check_id(&format!("{of}.id"), &manifest.id)?;
    line(of, "name", &manifest.name)?;
    text(of, "description", &manifest.description, limits::DESCRIPTION_CHARS_MAX)?;
    items(of, "techStack", manifest.tech_stack.len())?;
    for (place, word) in manifest.tech_stack.iter().enumerate() {
        short(of, format_args!("techStack[{place}]"), word)?;
    }
    check_references(of, manifest)?;
    short(of, "repositoryUrl", &manifest.repository_url)?;
    short(of, "localPath", &manifest.local_path)?;
    items(of, "endpoints", manifest.endpoints.len())?;
    for (place, endpoint) in manifest.endpoints.iter().enumerate() {
        short(of, format_args!("endpoints[{place}].name"), &endpoint.name)?;
        short(of, format_args!("endpoints[{place}].url"), &endpoint.url)?;
        short(of, format_args!("endpoints[{place}].description"), &endpoint.description)?;
    }
    items(of, "apiSpec", manifest.api_spec.len())?;
    for (place, operation) in manifest.api_spec.iter().enumerate() {
        short(of, format_args!("apiSpec[{place}].method"), &operation.method)?;
        short(of, format_args!("apiSpec[{place}].path"), &operation.path)?;
        short(of, format_args!("apiSpec[{place}].summary"), &operation.summary)?;
    }
    if let Some(billing) = &manifest.billing {
        short(of, "billing.plain", &billing.plain)?;
        short(of, "billing.price", &billing.price)?;
    }
    short(of, "lastUpdated", manifest.last_updated.as_deref().unwrap_or_default())?;
    let gateways = manifest.gateway_compatibility.as_deref().unwrap_or_default();
    short(of, "gatewayCompatibility", gateways)?;
    check_versions(of, manifest.api_versions.as_ref())?;
    if codec::encode_value(manifest).len() > limits::MANIFEST_BYTES_MAX {
        let rule = "must have at most 56 KiB in all; put long texts into internalDocs";
        return Err(Rejection::invalid(of, rule));
    }
    Ok(())
}

/// Checks relations and `apiDependencies`: forms, and how many projects they name.
fn check_references(of: &str, manifest: &Manifest) -> Result<(), Rejection> {
    items(of, "relations", manifest.relations.len())?;
    let mut named = BTreeSet::new();
    for (place, relation) in manifest.relations.iter().enumerate() {
        check_id(&format!("{of}.relations[{place}].targetId"), &relation.target)?;
        named.insert(relation.target.as_str());
    }
    let dependencies = manifest.api_dependencies.iter().flatten();
    for (id, version) in dependencies {
        check_id(&format!("{of}.apiDependencies"), id)?;
        text(of, format_args!("apiDependencies.{id}"), version, limits::VERSION_CHARS_MAX)?;
        named.insert(id.as_str());
    }
    if named.len() > limits::REFERENCES_MAX {
        let rule = "must name at most 128 projects, with those of apiDependencies";
        return Err(Rejection::invalid(&format!("{of}.relations"), rule));
    }
    Ok(())
}

fn check_versions(of: &str, versions: Option<&BTreeMap<String, String>>) -> Result<(), Rejection> {
    let Some(versions) = versions else { return Ok(()) };
    items(of, "api_versions", versions.len())?;
    for (feature, version) in versions {
        text(of, "api_versions", feature, limits::VERSION_CHARS_MAX)?;
        text(of, format_args!("api_versions.{feature}"), version, limits::VERSION_CHARS_MAX)?;
    }
    Ok(())
}

fn items(of: &str, field: &str, count: usize) -> Result<(), Rejection> {
    if count <= limits::MANIFEST_ITEMS_MAX {
        return Ok(());
    }
    Err(Rejection::invalid(&format!("{of}.{field}"), "must have at most 1,000 entries"))
}

fn short(of: &str, field: impl Display, value: &str) -> Result<(), Rejection> {
    text(of, field, value, limits::MANIFEST_TEXT_CHARS_MAX)
}

fn text(of: &str, field: impl Display, value: &str, chars_max: usize) -> Result<(), Rejection> {
    if texts::has_at_most(value, chars_max) {
        return Ok(());
    }
    let rule = format!("must have at most {chars_max} characters");
    Err(Rejection::invalid(&format!("{of}.{field}"), rule))
}

fn line(of: &str, field: &str, value: &str) -> Result<(), Rejection> {
    texts::check_line(&format!("{of}.{field}"), value, limits::PROJECT_NAME_CHARS_MAX)
}
