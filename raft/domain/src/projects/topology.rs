//! How projects stand to each other.
//!
//! Relations may go in circles, to the project itself, and to ids that are no project: a circle is
//! walked once, a relation to itself is one like others, and one to nowhere is told apart.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;

use super::{Shown, references};
use crate::command::projects::RelationKind;
use crate::projects::references::Label;
use crate::store::{Direction, Fault, Read};
use crate::{codec, limits, tables};

/// What lists show of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// What it is.
    pub description: String,
    /// When it or its assets changed last, milliseconds since 1970.
    pub updated_at: u64,
}

/// All projects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// The projects in the order of their ids.
    pub projects: Vec<Summary>,
    /// How many relations there are from project to project.
    pub relations: u64,
    /// How many relations there are to ids that are no project.
    pub dangling: u64,
}

/// A relation of two projects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Who has it.
    pub from: String,
    /// To whom it goes.
    pub to: String,
    /// What the other is to the one.
    pub kind: RelationKind,
}

/// What a project depends on, directly or not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// The project, and all that its relations lead to, nearest first.
    pub projects: Vec<Summary>,
    /// The relations among them.
    pub edges: Vec<Edge>,
    /// Their relations to ids that are no project.
    pub dangling: Vec<Edge>,
    /// Whether there is more than the 10,000 relations that are shown.
    pub more: bool,
}

/// Returns all projects, and how many relations they have.
///
/// # Errors
/// A fault when the state cannot be read.
pub fn topology(state: &impl Read) -> Result<Topology, Fault> {
    let totals = tables::PROJECT_TOTALS.get(state, ())?.unwrap_or_default();
    let mut projects = Vec::new();
    for row in state.scan(tables::PROJECTS.all(), Direction::Forward) {
        let (key, value) = row?;
        projects.push(summary(tables::PROJECTS.parse(&key)?, codec::decode_value(&key, &value)?));
    }
    let relations = totals.relations.saturating_sub(totals.dangling);
    Ok(Topology { projects, relations, dangling: totals.dangling })
}

fn summary(id: String, shown: Shown<'_>) -> Summary {
    let (name, description) = (shown.name.into(), shown.description.into());
    Summary { id, name, description, updated_at: shown.updated_at }
}

/// Returns a project and everything that its outgoing relations lead to; `None` when there is no
/// such project.
///
/// # Errors
/// A fault when the state cannot be read.
pub fn surroundings(state: &impl Read, id: &str) -> Result<Option<Surroundings>, Fault> {
    let Some((start, label)) = references::find(state, id)? else { return Ok(None) };
    if !label.project {
        return Ok(None);
    }
    let mut known = BTreeMap::from([(start, label)]);
    let mut waiting = VecDeque::from([start]);
    let mut found = Surroundings::default();
    while let Some(source) = waiting.pop_front() {
        let from = take(state, &mut known, source)?.id;
        found.projects.push(head(state, &from)?);
        for link in references::of(state, source)?.relations {
            if found.edges.len().saturating_add(found.dangling.len())
                >= limits::TOPOLOGY_RELATIONS_MAX
            {
                found.more = true;
                break;
            }
            let first = !known.contains_key(&link.target);
            let label = take(state, &mut known, link.target)?;
            let (to, kind) = (label.id, link.kind);
            let edge = Edge { from: from.clone(), to, kind };
            if !label.project {
                found.dangling.push(edge);
                continue;
            }
            found.edges.push(edge);
            if first {
                waiting.push_back(link.target);
            }
        }
    }
    Ok(Some(found))
}

/// Returns a label, and remembers it.
fn take(state: &impl Read, known: &mut BTreeMap<u64, Label>, number: u64) -> Result<Label, Fault> {
    if let Some(label) = known.get(&number) {
        return Ok(label.clone());
    }
    let label = tables::LABELS.must(state, number)?;
    known.insert(number, label.clone());
    Ok(label)
}

/// Returns what is shown of a project that must be there.
fn head(state: &impl Read, id: &str) -> Result<Summary, Fault> {
    let key = tables::PROJECTS.key(id);
    let lost = || Fault::at(&key, "an index names what is not there");
    let value = state.get(&key)?.ok_or_else(lost)?;
    Ok(summary(id.into(), codec::decode_value(&key, &value)?))
}
