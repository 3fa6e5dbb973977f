//! What nothing names any more goes in bounded steps.
//!
//! A step removes chunks by their places, without reading them; but the digest of the state reads
//! and hashes what goes, so a step is 2 MiB.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::Body;
use crate::clock::Clock;
use crate::command::DueKind;
use crate::context::Stop;
use crate::due::{self, Due};
use crate::event::Event;
use crate::reply::Reply;
use crate::store::{Direction, Fault, Store};
use crate::{limits, tables};

/// What a timer sweeps; its name in the index says how far it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sweep {
    /// The first `left` chunks of a body; those behind are gone.
    Body {
        /// Its number.
        number: u64,
        /// How many are left.
        left: u64,
    },
    /// The assets of a project that was deleted, by its number.
    Project(u64),
}

impl Sweep {
    /// Reads it from a timer's name.
    pub(crate) fn read(name: &str) -> Option<Self> {
        match name.split_once('/')? {
            ("body", rest) => {
                let (number, left) = rest.split_once('/')?;
                Some(Self::Body { number: number.parse().ok()?, left: left.parse().ok()? })
            }
            ("project", number) => Some(Self::Project(number.parse().ok()?)),
            _ => None,
        }
    }

    fn name(self) -> String {
        match self {
            Self::Body { number, left } => format!("body/{number}/{left}"),
            Self::Project(number) => format!("project/{number}"),
        }
    }

    fn timer(self, due: u64, generation: u64) -> Due {
        Due { due, kind: DueKind::Sweep, id: self.name(), generation }
    }
}

/// Removes the chunks of a body that nothing names any more: few at once, many by timers.
pub(crate) fn discard(
    state: &mut impl Store,
    now: Clock,
    body: Body,
    told: &mut Vec<Event>,
) -> Result<(), Fault> {
    let chunks = body.chunks();
    if chunks > limits::DISCARD_CHUNKS_MAX {
        let sweep = Sweep::Body { number: body.number, left: chunks };
        return due::arm(state, &sweep.timer(now.tick, 1), told);
    }
    remove(state, body.number, 0, chunks)
}

/// Begins to remove the assets of a project that was deleted.
pub(crate) fn sweep_project(
    state: &mut impl Store,
    now: Clock,
    number: u64,
    told: &mut Vec<Event>,
) -> Result<(), Fault> {
    due::arm(state, &Sweep::Project(number).timer(now.tick, 1), told)
}

fn remove(state: &mut impl Store, number: u64, from: u64, to: u64) -> Result<(), Fault> {
    for place in from..to {
        tables::CHUNKS.delete(state, (number, place))?;
    }
    Ok(())
}

/// Takes the next step of a sweep, and is due again at once until all is gone.
///
/// It is due after everything that is due by now, so that a long sweep holds nothing else up.
pub(crate) fn sweep(
    state: &mut impl Store,
    now: Clock,
    due: &Due,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    let (changed, next) = match Sweep::read(&due.id) {
        Some(Sweep::Body { number, left }) => {
            let from = left.saturating_sub(limits::SWEEP_CHUNKS_MAX);
            remove(state, number, from, left)?;
            let next = (from > 0).then_some(Sweep::Body { number, left: from });
            (left.saturating_sub(from), next)
        }
        Some(Sweep::Project(number)) => {
            let (changed, more) = sweep_assets(state, now, number, told)?;
            (changed, more.then_some(Sweep::Project(number)))
        }
        None => {
            return Err(due.misnamed("a sweep").into());
        }
    };
    if let Some(next) = next {
        due::arm(state, &next.timer(now.tick, due.generation.saturating_add(1)), told)?;
    }
    Ok(Reply::fired(usize::try_from(changed).unwrap_or(usize::MAX)))
}

/// Removes some assets of a project that is gone, with their chunks or timers for those; returns
/// how many rows it changed, and whether there are more assets.
fn sweep_assets(
    state: &mut impl Store,
    now: Clock,
    project: u64,
    told: &mut Vec<Event>,
) -> Result<(u64, bool), Fault> {
    let few = usize::try_from(limits::SWEEP_CHUNKS_MAX).unwrap_or(usize::MAX);
    let range = tables::ASSETS.beginning::<u64>(project);
    let mut assets: Vec<_> = tables::ASSETS
        .rows(state, range, Direction::Forward)
        .take(few.saturating_add(1))
        .collect::<Result<_, _>>()?;
    let mut more = assets.len() > few;
    assets.truncate(few);
    let mut changed: u64 = 0;
    let mut room = limits::SWEEP_CHUNKS_MAX;
    for ((_, name), asset) in &assets {
        let chunks = asset.body.chunks();
        if chunks > limits::DISCARD_CHUNKS_MAX {
            let sweep = Sweep::Body { number: asset.body.number, left: chunks };
            due::arm(state, &sweep.timer(now.tick, 1), told)?;
            changed = changed.saturating_add(1);
        } else if chunks <= room {
            remove(state, asset.body.number, 0, chunks)?;
            room = room.saturating_sub(chunks);
            changed = changed.saturating_add(chunks);
        } else {
            more = true;
            break;
        }
        tables::ASSETS.delete(state, (project, name))?;
        changed = changed.saturating_add(1);
    }
    Ok((changed, more))
}
