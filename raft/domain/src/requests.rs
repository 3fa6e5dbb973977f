//! Request ids: one effect and one answer for each, in tables that stay small (traps.md 7, 8).
//!
//! A node's own ids end when the node says that they are answered: below its floor everything is
//! either in the table or refused, never run. A client's ids are kept for 24 hours of ticks, and a
//! new one is refused when its actor has too many. Nothing is evicted early.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use minicbor::{Decode, Encode};

use crate::clock::Clock;
use crate::command::DueKind;
use crate::context::Stop;
use crate::due::{self, Due};
use crate::entry::{Actor, Answered, Entry, NodeId, RequestId};
use crate::event::Event;
use crate::limits;
use crate::rejection::Rejection;
use crate::reply::Reply;
use crate::store::{Direction, Fault, KeyRange, Read, Store};
use crate::tables;

/// Beyond how many counters a sweep scans rather than asks for each.
const POINT_SWEEP_MAX: u64 = 512;

/// What is kept of an answered request.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Record {
    /// What tells this call from another one.
    #[cbor(n(0), with = "minicbor::bytes")]
    pub(crate) hash: [u8; 16],
    /// Its answer.
    #[n(1)]
    pub(crate) outcome: Outcome,
}

/// An answer as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) enum Outcome {
    /// Done.
    #[n(0)]
    Done(#[n(0)] Reply),
    /// Refused.
    #[n(1)]
    Refused(#[n(0)] Rejection),
}

/// What a node has answered; there is one for each member, and for a removed one until its records
/// are gone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Floor {
    /// The node's present boot.
    #[n(0)]
    pub(crate) boot: u64,
    /// Below which counter of it everything is answered.
    #[n(1)]
    pub(crate) below: u64,
    /// Below which boot and counter no record is left, so that nothing is looked at twice.
    #[n(2)]
    pub(crate) swept_boot: u64,
    /// See `swept_boot`.
    #[n(3)]
    pub(crate) swept_counter: u64,
    /// How many records it has.
    #[n(4)]
    pub(crate) kept: u32,
    /// Whether the node was removed.
    #[n(5)]
    pub(crate) retired: bool,
}

/// What the tables say about a request.
#[derive(Debug)]
pub(crate) enum Known {
    /// It never ran.
    New,
    /// It ran; this was its answer.
    Answered(Result<Reply, Rejection>),
    /// It may not run.
    Refused(Rejection),
}

/// Returns the key under which an actor's client ids stand.
///
/// No conversation's id has a `/`, so the two kinds never meet.
fn actor_key(actor: &Actor, node: NodeId) -> String {
    match actor {
        Actor::Node => format!("node/{node}"),
        Actor::Conversation(id) => id.clone(),
    }
}

/// Returns what a node has answered; `None` when it is no member and has no records.
pub(crate) fn floor(state: &impl Read, node: NodeId) -> Result<Option<Floor>, Fault> {
    tables::FLOORS.get(state, node)
}

/// Looks a request up: the stored outcome first, then the floor.
pub(crate) fn look(
    state: &impl Read,
    entry: &Entry,
    hash: [u8; 16],
    floor: Option<&Floor>,
) -> Result<Known, Fault> {
    let proposal = &entry.proposal;
    let record = match &proposal.request {
        RequestId::Node { node, boot, counter } => {
            tables::NODE_RECORDS.get(state, (*node, *boot, *counter))?
        }
        RequestId::Client(id) => {
            let actor = actor_key(&proposal.actor, entry.stamp.node);
            tables::CLIENT_RECORDS.get(state, (&actor, id))?
        }
    };
    Ok(match record {
        Some(record) if record.hash != hash => Known::Refused(Rejection::RequestReused),
        Some(Record { outcome: Outcome::Done(reply), .. }) => Known::Answered(Ok(reply)),
        Some(Record { outcome: Outcome::Refused(rejection), .. }) => {
            Known::Answered(Err(rejection))
        }
        None if is_answered(&proposal.request, floor) => Known::Refused(Rejection::RequestExpired),
        None => Known::New,
    })
}

/// Returns whether an id lies below what its node has answered.
fn is_answered(request: &RequestId, floor: Option<&Floor>) -> bool {
    match (request, floor) {
        (RequestId::Node { boot, counter, .. }, Some(floor)) => {
            (*boot, *counter) < (floor.boot, floor.below)
        }
        (RequestId::Node { .. }, None) | (RequestId::Client(_), _) => false,
    }
}

/// Returns the refusal of a request that no record can be kept of.
pub(crate) fn full(
    state: &impl Read,
    entry: &Entry,
    floor: Option<&Floor>,
) -> Result<Option<Rejection>, Fault> {
    let (kept, limit) = match &entry.proposal.request {
        RequestId::Node { .. } => (floor.map_or(0, |floor| floor.kept), limits::NODE_IDS_MAX),
        RequestId::Client(_) => {
            let actor = actor_key(&entry.proposal.actor, entry.stamp.node);
            let kept = tables::CLIENT_COUNTS.get(state, &actor)?.unwrap_or_default();
            (kept, limits::CLIENT_IDS_MAX)
        }
    };
    Ok((kept >= limit).then_some(Rejection::TooManyRequests { limit }))
}

/// Keeps the answer of a request.
pub(crate) fn remember(
    state: &mut impl Store,
    entry: &Entry,
    now: Clock,
    record: &Record,
    floor: &mut Option<Floor>,
    events: &mut Vec<Event>,
) -> Result<(), Fault> {
    match &entry.proposal.request {
        RequestId::Node { node, boot, counter } => {
            let floor = floor.get_or_insert_default();
            floor.kept = floor.kept.saturating_add(1);
            tables::NODE_RECORDS.put(state, (*node, *boot, *counter), record)
        }
        RequestId::Client(id) => {
            let actor = actor_key(&entry.proposal.actor, entry.stamp.node);
            let kept = tables::CLIENT_COUNTS.get(state, &actor)?.unwrap_or_default();
            tables::CLIENT_COUNTS.put(state, &actor, &kept.saturating_add(1))?;
            tables::CLIENT_RECORDS.put(state, (&actor, id), record)?;
            let hour = now.tick.checked_div(limits::CLIENT_BUCKET_TICKS).unwrap_or_default();
            tables::CLIENT_HOURS.put(state, (hour, &actor, id), &())?;
            keep_hour(state, hour, events)
        }
    }
}

/// Sets the timer of an hour's client ids, if it has none.
fn keep_hour(state: &mut impl Store, hour: u64, events: &mut Vec<Event>) -> Result<(), Fault> {
    // An hour that already ends with a later generation is due long after its last id came.
    let due = hour
        .saturating_add(1)
        .saturating_mul(limits::CLIENT_BUCKET_TICKS)
        .saturating_add(limits::CLIENT_ID_TICKS);
    let due = Due { due, kind: DueKind::Requests, id: hour.to_string(), generation: 1 };
    if due::stands(state, &due)? { Ok(()) } else { due::arm(state, &due, events) }
}

/// Takes note of what a node has answered, and forgets a bounded number of records below it.
pub(crate) fn settle(
    state: &mut impl Store,
    node: NodeId,
    answered: Answered,
    floor: &mut Floor,
) -> Result<(), Fault> {
    if answered.boot == floor.boot && answered.below > floor.below {
        floor.below = answered.below;
    }
    if (floor.swept_boot, floor.swept_counter) >= (floor.boot, floor.below) {
        return Ok(());
    }
    let gap = floor.below.saturating_sub(floor.swept_counter);
    if floor.swept_boot == floor.boot && gap <= POINT_SWEEP_MAX {
        sweep_points(state, node, floor)
    } else {
        sweep_range(state, node, floor)
    }
}

/// Forgets record by record: the ordinary case, where an iterator would cost more than it finds.
fn sweep_points(state: &mut impl Store, node: NodeId, floor: &mut Floor) -> Result<(), Fault> {
    for _ in 0..limits::SWEEP_ROWS_MAX {
        if floor.swept_counter >= floor.below {
            break;
        }
        let key = (node, floor.boot, floor.swept_counter);
        if tables::NODE_RECORDS.has(state, key)? {
            tables::NODE_RECORDS.delete(state, key)?;
            floor.kept = floor.kept.saturating_sub(1);
        }
        floor.swept_counter = floor.swept_counter.saturating_add(1);
    }
    Ok(())
}

/// Forgets by a scan: after a new boot, or behind a wide gap.
fn sweep_range(state: &mut impl Store, node: NodeId, floor: &mut Floor) -> Result<(), Fault> {
    let table = &tables::NODE_RECORDS;
    let range = KeyRange {
        start: table.key((node, floor.swept_boot, floor.swept_counter)),
        end: Some(table.key((node, floor.boot, floor.below))),
    };
    let keys: Vec<_> = table
        .keys(state, range, Direction::Forward)
        .take(limits::SWEEP_ROWS_MAX)
        .collect::<Result<_, _>>()?;
    for (_, boot, counter) in &keys {
        table.delete(state, (node, *boot, *counter))?;
        floor.kept = floor.kept.saturating_sub(1);
    }
    (floor.swept_boot, floor.swept_counter) = match keys.last() {
        Some((_, boot, counter)) if keys.len() == limits::SWEEP_ROWS_MAX => {
            (*boot, counter.saturating_add(1))
        }
        _ => (floor.boot, floor.below),
    };
    Ok(())
}

/// Begins the records of a new member.
pub(crate) fn admit(state: &mut impl Store, node: NodeId) -> Result<(), Fault> {
    tables::FLOORS.put(state, node, &Floor::default())
}

/// Notes a node's new boot: requests of older ones that are not in the table never run.
pub(crate) fn start(state: &mut impl Store, node: NodeId, boot: u64) -> Result<(), Fault> {
    let mut floor = floor(state, node)?.unwrap_or_default();
    if boot > floor.boot {
        floor.boot = boot;
        floor.below = 0;
        tables::FLOORS.put(state, node, &floor)?;
    }
    Ok(())
}

/// Ends the records of a removed member: nothing more is kept of it; they go in bounded steps.
pub(crate) fn retire(state: &mut impl Store, node: NodeId) -> Result<(), Fault> {
    let mut floor = floor(state, node)?.unwrap_or_default();
    floor.retired = true;
    tables::FLOORS.put(state, node, &floor)
}

/// Forgets the client ids of an hour; what is left is due again at once.
pub(crate) fn fire(
    state: &mut impl Store,
    due: &Due,
    events: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    let Ok(hour) = due.id.parse() else {
        return Err(due.misnamed("requests").into());
    };
    let (changed, more) = forget_hour(state, hour)?;
    if more {
        let next = due.again();
        due::arm(state, &next, events)?;
    }
    Ok(Reply::fired(changed))
}

fn forget_hour(state: &mut impl Store, hour: u64) -> Result<(usize, bool), Fault> {
    let range = tables::CLIENT_HOURS.beginning::<u64>(hour);
    let mut keys: Vec<_> = tables::CLIENT_HOURS
        .keys(state, range, Direction::Forward)
        .take(limits::FIRE_IDS_MAX.saturating_add(1))
        .collect::<Result<_, _>>()?;
    let more = keys.len() > limits::FIRE_IDS_MAX;
    keys.truncate(limits::FIRE_IDS_MAX);
    for (hour, actor, id) in &keys {
        tables::CLIENT_HOURS.delete(state, (*hour, actor, id))?;
        tables::CLIENT_RECORDS.delete(state, (actor, id))?;
        let kept = tables::CLIENT_COUNTS.get(state, actor)?.unwrap_or_default();
        match kept.saturating_sub(1) {
            0 => tables::CLIENT_COUNTS.delete(state, actor)?,
            left => tables::CLIENT_COUNTS.put(state, actor, &left)?,
        }
    }
    Ok((keys.len(), more))
}

/// Forgets records of a removed member; returns how many, 0 when all are gone.
pub(crate) fn forget_node(state: &mut impl Store, node: NodeId) -> Result<usize, Fault> {
    let range = tables::NODE_RECORDS.beginning::<u64>(node);
    let keys: Vec<_> = tables::NODE_RECORDS
        .keys(state, range, Direction::Forward)
        .take(limits::FIRE_ROWS_MAX.saturating_sub(8))
        .collect::<Result<_, _>>()?;
    for (node, boot, counter) in &keys {
        tables::NODE_RECORDS.delete(state, (*node, *boot, *counter))?;
    }
    if keys.is_empty() {
        tables::FLOORS.delete(state, node)?;
    }
    Ok(keys.len())
}
