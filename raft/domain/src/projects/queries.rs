//! What can be asked of projects.

use alloc::string::String;
use alloc::vec::Vec;

use super::Shown;
use crate::bodies::{self, Body};
use crate::command::projects::Manifest;
use crate::projects::manifest::{Stored, stored};
use crate::store::{Direction, Fault, Read};
use crate::{codec, limits, tables};

/// A project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// What it says of itself.
    pub manifest: Manifest,
    /// Its internal notes; [`internal_docs`] gives the text.
    pub docs: Body,
    /// How many assets it has; [`super::assets()`] lists them.
    pub assets: u64,
    /// Their bytes.
    pub asset_bytes: u64,
    /// When it was made, milliseconds since 1970.
    pub created_at: u64,
    /// When it or its assets changed last.
    pub updated_at: u64,
    /// Who changed it last.
    pub updated_by: String,
}

/// Returns a project without its notes.
///
/// # Errors
/// A fault when the state cannot be read.
pub fn project(state: &impl Read, id: &str) -> Result<Option<Project>, Fault> {
    let Some(Stored { head, details }) = stored(state, id)? else { return Ok(None) };
    Ok(Some(Project {
        docs: details.docs,
        assets: head.assets,
        asset_bytes: head.asset_bytes,
        created_at: details.created_at,
        updated_at: head.updated_at,
        updated_by: head.updated_by.clone(),
        manifest: Stored { head, details }.manifest(state, id)?,
    }))
}

/// Returns a project's internal notes.
///
/// # Errors
/// A fault when the state cannot be read.
pub fn internal_docs(state: &impl Read, id: &str) -> Result<Option<String>, Fault> {
    match stored(state, id)? {
        Some(stored) => bodies::text(state, stored.details.docs).map(Some),
        None => Ok(None),
    }
}

/// A project that a search found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// What it is.
    pub description: String,
}

/// Returns projects whose id, name or description has this text in it, whatever the case, in the
/// order of their ids: at most `limit` and 200.
///
/// It looks at the heads of all projects at most.
///
/// # Errors
/// A fault when the state cannot be read.
pub fn search(state: &impl Read, query: &str, limit: usize) -> Result<Vec<Found>, Fault> {
    let wanted = query.to_lowercase();
    let limit = limit.min(limits::SEARCH_LIST_MAX);
    let mut found = Vec::new();
    for row in state.scan(tables::PROJECTS.all(), Direction::Forward) {
        if found.len() >= limit {
            break;
        }
        let (key, value) = row?;
        let shown: Shown<'_> = codec::decode_value(&key, &value)?;
        let id = tables::PROJECTS.parse(&key)?;
        let texts = [id.as_str(), shown.name, shown.description];
        if texts.iter().any(|text| text.to_lowercase().contains(&wanted)) {
            let (name, description) = (shown.name.into(), shown.description.into());
            found.push(Found { id, name, description });
        }
    }
    Ok(found)
}
