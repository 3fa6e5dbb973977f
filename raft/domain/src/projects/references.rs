//! What projects refer to: relations and `apiDependencies`, by label.
//!
//! Every id that is a project or that a project refers to has a label, a number. References hold
//! labels, so a rename gives the label another id and is done, however many refer to it. Only when
//! the new id was referred to before it was a project are there two labels for it, and the
//! referrers of the one go over to the other: that is the only cascade, and it is bounded.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use minicbor::{Decode, Encode};

use super::ProjectTotals;
use crate::command::projects::{Manifest, Relation, RelationKind};
use crate::store::{Direction, Fault, Read, Store};
use crate::tables;

/// An id that is a project or is referred to.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Label {
    /// The id.
    #[n(0)]
    pub(crate) id: String,
    /// Whether there is such a project.
    #[n(1)]
    pub(crate) project: bool,
    /// How many projects refer to it.
    #[n(2)]
    pub(crate) referrers: u64,
    /// How many relations point to it.
    #[n(3)]
    pub(crate) relations: u64,
}

/// What a project refers to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub(crate) struct References {
    /// Its relations, in the order of the manifest.
    #[n(0)]
    pub(crate) relations: Vec<Link>,
    /// Its `apiDependencies`.
    #[n(1)]
    pub(crate) dependencies: Option<Vec<Dependency>>,
}

/// A relation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Link {
    #[n(0)]
    pub(crate) target: u64,
    #[n(1)]
    pub(crate) kind: RelationKind,
}

/// One of `apiDependencies`.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Dependency {
    #[n(0)]
    pub(crate) target: u64,
    #[n(1)]
    pub(crate) version: String,
}

impl References {
    /// Returns how many relations go to each label that is referred to.
    pub(crate) fn targets(&self) -> BTreeMap<u64, u64> {
        let mut targets = BTreeMap::<u64, u64>::new();
        for link in &self.relations {
            let count = targets.entry(link.target).or_default();
            *count = count.saturating_add(1);
        }
        for dependency in self.dependencies.iter().flatten() {
            targets.entry(dependency.target).or_default();
        }
        targets
    }

    /// Turns what refers to one label to another; a version that is said of both stays the other's.
    fn turn(&mut self, from: u64, to: u64) {
        for link in &mut self.relations {
            if link.target == from {
                link.target = to;
            }
        }
        let Some(dependencies) = &mut self.dependencies else { return };
        if dependencies.iter().any(|dependency| dependency.target == to) {
            dependencies.retain(|dependency| dependency.target != from);
        }
        for dependency in dependencies {
            if dependency.target == from {
                dependency.target = to;
            }
        }
    }
}

/// Returns the label of an id, if it has one.
pub(crate) fn find(state: &impl Read, id: &str) -> Result<Option<(u64, Label)>, Fault> {
    match tables::LABEL_NUMBERS.get(state, id)? {
        Some(number) => Ok(Some((number, tables::LABELS.must(state, number)?))),
        None => Ok(None),
    }
}

/// Returns what a project refers to.
pub(crate) fn of(state: &impl Read, source: u64) -> Result<References, Fault> {
    Ok(tables::REFERENCES.get(state, source)?.unwrap_or_default())
}

/// Puts the ids back into a manifest.
pub(super) fn fill(state: &impl Read, source: u64, manifest: &mut Manifest) -> Result<(), Fault> {
    let references = of(state, source)?;
    for link in references.relations {
        let target = tables::LABELS.must(state, link.target)?.id;
        manifest.relations.push(Relation { target, kind: link.kind });
    }
    let Some(dependencies) = references.dependencies else { return Ok(()) };
    let mut found = BTreeMap::new();
    for dependency in dependencies {
        found.insert(tables::LABELS.must(state, dependency.target)?.id, dependency.version);
    }
    manifest.api_dependencies = Some(found);
    Ok(())
}

/// Gives a new project its label: its id's, or a new one.
pub(super) fn enter(
    state: &mut impl Store,
    totals: &mut ProjectTotals,
    id: &str,
) -> Result<u64, Fault> {
    let number = give(state, totals, id)?;
    let mut label = tables::LABELS.must(state, number)?;
    label.project = true;
    totals.dangling = totals.dangling.saturating_sub(label.relations);
    tables::LABELS.put(state, number, &label)?;
    Ok(number)
}

/// Takes a project's references and its label away; the label stays while others refer to it.
pub(super) fn leave(
    state: &mut impl Store,
    totals: &mut ProjectTotals,
    source: u64,
) -> Result<(), Fault> {
    let before = of(state, source)?;
    replace(state, totals, source, (&before, &References::default()))?;
    tables::REFERENCES.delete(state, source)?;
    let mut label = tables::LABELS.must(state, source)?;
    label.project = false;
    totals.dangling = totals.dangling.saturating_add(label.relations);
    keep(state, source, &label)
}

/// Sets what a project refers to by its manifest.
pub(super) fn save(
    state: &mut impl Store,
    totals: &mut ProjectTotals,
    source: u64,
    manifest: &Manifest,
) -> Result<(), Fault> {
    let mut after = References::default();
    for relation in &manifest.relations {
        let target = give(state, totals, &relation.target)?;
        after.relations.push(Link { target, kind: relation.kind });
    }
    if let Some(dependencies) = &manifest.api_dependencies {
        let mut found = Vec::with_capacity(dependencies.len());
        for (id, version) in dependencies {
            let target = give(state, totals, id)?;
            found.push(Dependency { target, version: version.clone() });
        }
        after.dependencies = Some(found);
    }
    let before = of(state, source)?;
    replace(state, totals, source, (&before, &after))?;
    tables::REFERENCES.put(state, source, &after)
}

/// Returns the label of an id; makes one that nothing refers to yet.
fn give(state: &mut impl Store, totals: &mut ProjectTotals, id: &str) -> Result<u64, Fault> {
    if let Some(number) = tables::LABEL_NUMBERS.get(state, id)? {
        return Ok(number);
    }
    totals.last_label = totals.last_label.saturating_add(1);
    let label = Label { id: id.into(), project: false, referrers: 0, relations: 0 };
    tables::LABEL_NUMBERS.put(state, id, &totals.last_label)?;
    tables::LABELS.put(state, totals.last_label, &label)?;
    Ok(totals.last_label)
}

/// Writes a label, or forgets one that is no project and that nothing refers to.
fn keep(state: &mut impl Store, number: u64, label: &Label) -> Result<(), Fault> {
    if label.project || label.referrers > 0 {
        return tables::LABELS.put(state, number, label);
    }
    tables::LABEL_NUMBERS.delete(state, &label.id)?;
    tables::LABELS.delete(state, number)
}

/// Brings labels, index and totals from what a project referred to, to what it refers to.
fn replace(
    state: &mut impl Store,
    totals: &mut ProjectTotals,
    source: u64,
    (before, after): (&References, &References),
) -> Result<(), Fault> {
    let (before, after) = (before.targets(), after.targets());
    let mut all = before.clone();
    all.extend(&after);
    for target in all.into_keys() {
        let (old, new) = (before.get(&target).copied(), after.get(&target).copied());
        if old == new {
            continue;
        }
        let mut label = tables::LABELS.must(state, target)?;
        if old.is_none() {
            tables::REFERRERS.put(state, (target, source), &())?;
            label.referrers = label.referrers.saturating_add(1);
        }
        if new.is_none() {
            tables::REFERRERS.delete(state, (target, source))?;
            label.referrers = label.referrers.saturating_sub(1);
        }
        let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
        let moved = |count: u64| count.saturating_sub(old).saturating_add(new);
        label.relations = moved(label.relations);
        totals.relations = moved(totals.relations);
        if !label.project {
            totals.dangling = moved(totals.dangling);
        }
        keep(state, target, &label)?;
    }
    Ok(())
}

/// Gives a project's label another id, which is no project; who referred to that id refers to the
/// project now.
pub(super) fn rename(
    state: &mut impl Store,
    totals: &mut ProjectTotals,
    number: u64,
    to: &str,
) -> Result<(), Fault> {
    if let Some((old, _)) = find(state, to)? {
        merge(state, totals, old, number)?;
    }
    let mut label = tables::LABELS.must(state, number)?;
    tables::LABEL_NUMBERS.delete(state, &label.id)?;
    label.id = to.into();
    tables::LABEL_NUMBERS.put(state, to, &number)?;
    tables::LABELS.put(state, number, &label)
}

/// Turns everything that refers to one label, which is no project, to another, which is one.
fn merge(
    state: &mut impl Store,
    totals: &mut ProjectTotals,
    from: u64,
    to: u64,
) -> Result<(), Fault> {
    let range = tables::REFERRERS.beginning::<u64>(from);
    let sources: Vec<_> =
        tables::REFERRERS.keys(state, range, Direction::Forward).collect::<Result<_, _>>()?;
    let old = tables::LABELS.must(state, from)?;
    let mut label = tables::LABELS.must(state, to)?;
    for (_, source) in sources {
        let mut references = of(state, source)?;
        references.turn(from, to);
        tables::REFERENCES.put(state, source, &references)?;
        tables::REFERRERS.delete(state, (from, source))?;
        if !tables::REFERRERS.has(state, (to, source))? {
            tables::REFERRERS.put(state, (to, source), &())?;
            label.referrers = label.referrers.saturating_add(1);
        }
    }
    label.relations = label.relations.saturating_add(old.relations);
    totals.dangling = totals.dangling.saturating_sub(old.relations);
    tables::LABELS.put(state, to, &label)?;
    tables::LABEL_NUMBERS.delete(state, &old.id)?;
    tables::LABELS.delete(state, from)
}
