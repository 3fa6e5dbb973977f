//! What must hold between projects, labels, assets, documents, uploads and bodies.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{count, rows, timers};
use crate::bodies::{Storage, Sweep, UploadFor};
use crate::command::DueKind;
use crate::due::{self, Due};
use crate::limits::{self, CHUNK_BYTES};
use crate::projects::{Label, ProjectTotals};
use crate::store::{Direction, Fault, Read};
use crate::tables;

pub(super) fn check(state: &impl Read, found: &mut Vec<String>) -> Result<(), Fault> {
    let mut bodies = Bodies::default();
    projects(state, &mut bodies, found)?;
    labels(state, found)?;
    assets(state, &mut bodies, found)?;
    documents(state, &mut bodies, found)?;
    uploads(state, &mut bodies, found)?;
    check_timers(state, &mut bodies, found)?;
    bodies.check(state, found)
}

/// How many bytes each body must have, and what they take.
#[derive(Default)]
struct Bodies {
    bytes: BTreeMap<u64, u64>,
    storage: Storage,
    /// Numbers of projects that a timer sweeps.
    swept: BTreeSet<u64>,
}

impl Bodies {
    fn expect(&mut self, number: u64, size: u64, found: &mut Vec<String>) {
        if self.bytes.insert(number, size).is_some() {
            found.push(format!("body {number}: is named twice"));
        }
    }

    fn text(&mut self, body: crate::bodies::Body, found: &mut Vec<String>) {
        self.expect(body.number, body.size, found);
        self.storage.text_bytes = self.storage.text_bytes.saturating_add(body.size);
    }

    fn check(mut self, state: &impl Read, found: &mut Vec<String>) -> Result<(), Fault> {
        let stored = crate::bodies::storage(state)?;
        let mut next: BTreeMap<u64, u64> = BTreeMap::new();
        for row in rows!(tables::CHUNKS, state) {
            let ((number, place), chunk) = row?;
            let size = self.bytes.get(&number).copied().unwrap_or_default();
            let at = next.entry(number).or_default();
            let wanted = size.saturating_sub(at.saturating_mul(CHUNK_BYTES)).min(CHUNK_BYTES);
            if place != *at || crate::bodies::length(&chunk.bytes) != wanted || wanted == 0 {
                found.push(format!("chunk {place} of body {number}: should be {at} of {wanted}"));
            }
            *at = place.saturating_add(1);
        }
        for (number, size) in &self.bytes {
            let chunks = size.div_ceil(CHUNK_BYTES);
            if next.get(number).copied().unwrap_or_default() != chunks {
                found.push(format!("body {number}: should have {chunks} chunks"));
            }
            if *number > stored.last {
                found.push(format!("body {number}: is newer than the last, {}", stored.last));
            }
        }
        (self.storage.last, self.storage.quota) = (stored.last, stored.quota);
        if self.storage != stored {
            found.push(format!("storage: {stored:?} should be {:?}", self.storage));
        }
        Ok(())
    }
}

fn projects(state: &impl Read, bodies: &mut Bodies, found: &mut Vec<String>) -> Result<(), Fault> {
    let mut all: u64 = 0;
    for row in rows!(tables::PROJECTS, state) {
        let (id, head) = row?;
        all = all.saturating_add(1);
        if tables::PROJECT_NUMBERS.get(state, head.number)?.as_ref() != Some(&id) {
            found.push(format!("project {id}: its number {} is not its own", head.number));
        }
        match tables::MANIFESTS.get(state, head.number)? {
            Some(details) => bodies.text(details.docs, found),
            None => found.push(format!("project {id}: has no manifest")),
        }
        let label = tables::LABELS.get(state, head.label)?;
        if label.is_none_or(|label| label.id != id || !label.project) {
            found.push(format!("project {id}: its label {} is not its own", head.label));
        }
        let (mut assets, mut bytes): (u64, u64) = (0, 0);
        let range = tables::ASSETS.beginning::<u64>(head.number);
        for row in tables::ASSETS.rows(state, range, Direction::Forward) {
            let (_, asset) = row?;
            assets = assets.saturating_add(1);
            bytes = bytes.saturating_add(asset.body.size);
        }
        if (assets, bytes) != (head.assets, head.asset_bytes) {
            found.push(format!("project {id}: has {assets} assets of {bytes} bytes: {head:?}"));
        }
    }
    for (what, number) in [
        ("numbers", count(state, &tables::PROJECT_NUMBERS)?),
        ("manifests", count(state, &tables::MANIFESTS)?),
        ("references", count(state, &tables::REFERENCES)?),
    ] {
        if number != all {
            found.push(format!("projects: {what} are {number} and should be {all}"));
        }
    }
    Ok(())
}

/// Counts everything that refers anew and compares it with labels, index and totals.
fn labels(state: &impl Read, found: &mut Vec<String>) -> Result<(), Fault> {
    let mut counted: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    let mut referring: u64 = 0;
    let mut totals = ProjectTotals::default();
    for row in rows!(tables::REFERENCES, state) {
        let (source, references) = row?;
        for (target, relations) in references.targets() {
            referring = referring.saturating_add(1);
            totals.relations = totals.relations.saturating_add(relations);
            let (referrers, all) = counted.entry(target).or_default();
            *referrers = referrers.saturating_add(1);
            *all = all.saturating_add(relations);
            if !tables::REFERRERS.has(state, (target, source))? {
                found.push(format!("reference {source} to {target}: is not in the index"));
            }
        }
    }
    if count(state, &tables::REFERRERS)? != referring {
        found.push(format!("referrers: should be {referring}"));
    }
    for row in rows!(tables::LABELS, state) {
        let (number, label) = row?;
        let (referrers, relations) = counted.remove(&number).unwrap_or_default();
        let expected = Label { referrers, relations, ..label.clone() };
        if label != expected || !label.project && referrers == 0 {
            found.push(format!("label {number}: {label:?} should be {expected:?}"));
        }
        if tables::LABEL_NUMBERS.get(state, &label.id)? != Some(number) {
            found.push(format!("label {number}: its id {} is not its own", label.id));
        }
        if tables::PROJECTS.has(state, &label.id)? != label.project {
            found.push(format!("label {number}: {} is a project or is none", label.id));
        }
        if label.project {
            totals.projects = totals.projects.saturating_add(1);
        } else {
            totals.dangling = totals.dangling.saturating_add(relations);
        }
    }
    for target in counted.keys() {
        found.push(format!("label {target}: is referred to and not there"));
    }
    if count(state, &tables::LABELS)? != count(state, &tables::LABEL_NUMBERS)? {
        found.push("labels: ids and numbers are not as many".to_string());
    }
    let stored = tables::PROJECT_TOTALS.get(state, ())?.unwrap_or_default();
    (totals.last_number, totals.last_label) = (stored.last_number, stored.last_label);
    if totals != stored {
        found.push(format!("projects: {stored:?} should be {totals:?}"));
    }
    Ok(())
}

fn assets(state: &impl Read, bodies: &mut Bodies, found: &mut Vec<String>) -> Result<(), Fault> {
    for timer in timers(state, DueKind::Sweep)? {
        match Sweep::read(&timer.id) {
            Some(Sweep::Project(number)) => drop(bodies.swept.insert(number)),
            Some(Sweep::Body { .. }) => {}
            None => found.push(format!("timer of a sweep: {} is no name", timer.id)),
        }
    }
    for row in rows!(tables::ASSETS, state) {
        let ((project, name), asset) = row?;
        bodies.expect(asset.body.number, asset.body.size, found);
        if asset.name != name {
            found.push(format!("asset {name}: its row says {}", asset.name));
        }
        if tables::PROJECT_NUMBERS.has(state, project)? {
            bodies.storage.assets = bodies.storage.assets.saturating_add(1);
            let bytes = &mut bodies.storage.asset_bytes;
            *bytes = bytes.saturating_add(asset.body.size);
        } else if !bodies.swept.contains(&project) {
            found.push(format!("asset {name}: its project is gone and nothing sweeps it"));
        }
    }
    Ok(())
}

fn documents(state: &impl Read, bodies: &mut Bodies, found: &mut Vec<String>) -> Result<(), Fault> {
    let mut all: u64 = 0;
    for row in rows!(tables::DOCUMENTS, state) {
        let (id, document) = row?;
        all = all.saturating_add(1);
        bodies.text(document.body, found);
        if document.id != id || !tables::DOCUMENT_ORDER.has(state, (document.order, &id))? {
            found.push(format!("document {id}: {document:?} is not where it should be"));
        }
    }
    if let Some(strategy) = tables::STRATEGY.get(state, ())? {
        bodies.text(strategy.body, found);
    }
    let counted = tables::DOCUMENT_TOTALS.get(state, ())?.unwrap_or_default();
    if counted != all || count(state, &tables::DOCUMENT_ORDER)? != all {
        found.push(format!("documents: there are {all}, counted {counted}"));
    }
    Ok(())
}

fn uploads(state: &impl Read, bodies: &mut Bodies, found: &mut Vec<String>) -> Result<(), Fault> {
    let mut all: usize = 0;
    for row in rows!(tables::UPLOADS, state) {
        let (number, upload) = row?;
        all = all.saturating_add(1);
        bodies.expect(number, upload.received, found);
        let coming = match upload.target {
            UploadFor::Text => &mut bodies.storage.text_bytes_coming,
            UploadFor::Asset { .. } => &mut bodies.storage.asset_bytes_coming,
        };
        *coming = coming.saturating_add(upload.size);
        let whole = upload.received.is_multiple_of(CHUNK_BYTES) || upload.is_complete();
        if upload.received > upload.size || !whole {
            found.push(format!("upload {number}: has {} of {}", upload.received, upload.size));
        }
        let (due, id) = (upload.ends_tick, number.to_string());
        if !due::stands(state, &Due { due, kind: DueKind::Upload, id, generation: 1 })? {
            found.push(format!("upload {number}: nothing ends it"));
        }
    }
    if all > limits::UPLOADS_MAX {
        found.push(format!("uploads: {all} are open"));
    }
    Ok(())
}

/// Timers of uploads stand for one that is there; those of bodies, for chunks that nothing names.
fn check_timers(
    state: &impl Read,
    bodies: &mut Bodies,
    found: &mut Vec<String>,
) -> Result<(), Fault> {
    for Due { id, .. } in timers(state, DueKind::Upload)? {
        let number: Option<u64> = id.parse().ok();
        if !number.map_or(Ok(false), |number| tables::UPLOADS.has(state, number))? {
            found.push(format!("timer of upload {id}: there is no such upload"));
        }
    }
    for timer in timers(state, DueKind::Sweep)? {
        if let Some(Sweep::Body { number, left }) = Sweep::read(&timer.id) {
            // The last chunk of a body may be short; its length is then that of its row.
            let last = left.saturating_sub(1);
            let chunk = tables::CHUNKS.get(state, (number, last))?;
            let length = chunk.map_or(0, |chunk| crate::bodies::length(&chunk.bytes));
            let size = last.saturating_mul(CHUNK_BYTES).saturating_add(length);
            bodies.expect(number, size, found);
        }
    }
    Ok(())
}
