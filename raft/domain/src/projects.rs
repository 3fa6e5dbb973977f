//! Projects: their manifests and notes, how they stand to each other, and their assets
//! (n2n-nexus §7).
//!
//! A project has an id that people give and may change, and a number of its own that never changes:
//! manifest, notes and assets hang on the number. Relations hang on the label of an id (see
//! `references`), which is there for ids that are no project yet, too. So a rename moves neither
//! bytes nor relations, and a relation outlives the project that it points to.

mod assets;
mod commands;
mod manifest;
mod queries;
mod references;
mod topology;

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use minicbor::{Decode, Encode};

pub use crate::projects::assets::{Asset, asset, assets, clean_name};
pub(crate) use crate::projects::commands::run;
pub use crate::projects::queries::{Found, Project, internal_docs, project, search};
pub(crate) use crate::projects::references::{Label, References};
pub use crate::projects::topology::{
    Edge, Summary, Surroundings, Topology, surroundings, topology,
};

use crate::bodies::Body;
use crate::command::projects::{Billing, Endpoint, FeatureTier, Operation};
use crate::limits;
use crate::rejection::Rejection;

/// The prefixes that ids of projects have by convention: `web_shop`, `api_orders`.
pub const PREFIXES: [&str; 13] = [
    "web", "api", "chrome", "vscode", "mcp", "android", "ios", "flutter", "desktop", "lib", "bot",
    "infra", "doc",
];

/// Returns whether an id follows the convention; others are taken, too.
#[must_use]
pub fn has_known_prefix(id: &str) -> bool {
    id.split_once('_').is_some_and(|(prefix, name)| PREFIXES.contains(&prefix) && !name.is_empty())
}

/// What is searched and listed of a project.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Head {
    /// Its number; a project that is made anew has another one.
    #[n(0)]
    pub(crate) number: u64,
    /// The label of its id.
    #[n(1)]
    pub(crate) label: u64,
    /// Its name.
    #[n(2)]
    pub(crate) name: String,
    /// What it is.
    #[n(3)]
    pub(crate) description: String,
    /// How many assets it has.
    #[n(4)]
    pub(crate) assets: u64,
    /// Their bytes.
    #[n(5)]
    pub(crate) asset_bytes: u64,
    /// When it or its assets changed last, milliseconds since 1970.
    #[n(6)]
    pub(crate) updated_at: u64,
    /// Who changed it last.
    #[n(7)]
    pub(crate) updated_by: String,
}

/// The part of a head that lists and searches look at, read without copying.
#[derive(Debug, Decode)]
struct Shown<'b> {
    #[b(2)]
    name: &'b str,
    #[b(3)]
    description: &'b str,
    #[n(6)]
    updated_at: u64,
}

/// What a manifest has beside the head and the references.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Details {
    #[n(0)]
    pub(crate) tech_stack: Vec<String>,
    #[n(1)]
    pub(crate) repository_url: String,
    #[n(2)]
    pub(crate) local_path: String,
    #[n(3)]
    pub(crate) endpoints: Vec<Endpoint>,
    #[n(4)]
    pub(crate) api_spec: Vec<Operation>,
    #[n(5)]
    pub(crate) billing: Option<Billing>,
    #[n(6)]
    pub(crate) last_updated: Option<String>,
    #[n(7)]
    pub(crate) gateway_compatibility: Option<String>,
    #[n(8)]
    pub(crate) api_versions: Option<BTreeMap<String, String>>,
    #[n(9)]
    pub(crate) feature_tier: FeatureTier,
    /// Its internal notes.
    #[n(10)]
    pub(crate) docs: Body,
    /// When it was made, milliseconds since 1970.
    #[n(11)]
    pub(crate) created_at: u64,
}

/// How many projects and relations there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub(crate) struct ProjectTotals {
    /// The newest project's number.
    #[n(0)]
    pub(crate) last_number: u64,
    /// The newest label.
    #[n(1)]
    pub(crate) last_label: u64,
    /// How many projects there are.
    #[n(2)]
    pub(crate) projects: u64,
    /// How many relations they have.
    #[n(3)]
    pub(crate) relations: u64,
    /// How many of these point to an id that is no project.
    #[n(4)]
    pub(crate) dangling: u64,
}

/// Checks the form of a project's or document's id: it is part of keys, paths and URLs.
pub(crate) fn check_id(field: &str, id: &str) -> Result<(), Rejection> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let fits = (1..=limits::PROJECT_ID_BYTES_MAX).contains(&id.len());
    if fits && id.bytes().all(allowed) && !matches!(id, "." | "..") {
        Ok(())
    } else {
        let rule = "must have 1 to 128 characters of A-Z a-z 0-9 . _ -, and not be . or ..";
        Err(Rejection::invalid(field, rule))
    }
}
