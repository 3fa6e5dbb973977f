//! `apply`: one entry, one answer, the same on every node.
//!
//! The order is fixed and part of the contract; `tests/scripts/order/` holds it still:
//!
//! 1. the clock moves, never back;
//! 2. the command's state version is one that the cluster has;
//! 3. its request id is well formed and its node's own; an id that ran gives its first answer
//!    again;
//! 4. a node id that was answered and forgotten never runs;
//! 5. the entry is not too late;
//! 6. its actor may say this, here;
//! 7. there is room for a record of it;
//! 8. the family runs on an overlay of its own; a refusal discards it, with its events.
//!
//! Then the answer is kept. It is kept for what the family decided and for "too late"; every other
//! refusal leaves the id free, so that the same call can be made again once its reason is gone. So
//! does a family's "busy", which says that the same call is right a little later.

use alloc::format;
use alloc::vec::Vec;

use crate::clock::{self, Clock};
use crate::codec;
use crate::command::{ClusterCommand, Command, ConversationCommand, Origin};
use crate::context::{Context, Stop};
use crate::conversations::{self, Conversation};
use crate::entry::{Actor, Entry, RequestId};
use crate::event::Event;
use crate::limits;
use crate::rejection::Rejection;
use crate::reply::Reply;
use crate::requests::{self, Floor, Known, Outcome, Record};
use crate::store::{Fault, Overlay, Store};
use crate::{chat, cluster, documents, mail, meetings, projects, system, tasks};

/// Applies one entry to the state.
///
/// The inner result is the answer, replicated and kept; the outer one is a storage fault: the
/// caller drops the batch and stops the node. Events are appended only when the command was done.
///
/// # Errors
/// A fault when the state cannot be read or written, or is of a newer version than this program.
pub fn apply(
    store: &mut impl Store,
    entry: &Entry,
    events: &mut Vec<Event>,
) -> Result<Result<Reply, Rejection>, Fault> {
    let now = clock::advance(store, &entry.stamp)?;
    let version = system::known_version(store)?;
    let needs = entry.proposal.version.max(entry.proposal.command.needs());
    if needs > version {
        return Ok(Err(Rejection::VersionTooNew { needs, has: version }));
    }
    if let Err(refusal) = well_formed(entry) {
        return Ok(Err(refusal.cut()));
    }
    if let Some(refusal) = system::past_start(store, entry)? {
        return Ok(Err(refusal));
    }
    let hash = codec::call_hash(&entry.proposal.actor, &entry.proposal.command);
    let mut floor = requests::floor(store, entry.stamp.node)?;
    let before = floor.clone();
    let outcome = match requests::look(store, entry, hash, floor.as_ref())? {
        Known::Answered(outcome) => outcome,
        Known::Refused(refusal) => Err(refusal),
        Known::New => fresh(store, entry, now, hash, &mut floor, events)?,
    };
    if let Some(floor) = &mut floor {
        requests::settle(store, entry.stamp.node, entry.proposal.answered, floor)?;
        if before.as_ref() != Some(&*floor) {
            crate::tables::FLOORS.put(store, entry.stamp.node, floor)?;
        }
    }
    Ok(outcome)
}

/// Checks ids before they become parts of keys.
fn well_formed(entry: &Entry) -> Result<(), Rejection> {
    if let Actor::Conversation(id) = &entry.proposal.actor {
        conversations::check_id(id)?;
    }
    match &entry.proposal.request {
        RequestId::Node { node, .. } if *node != entry.stamp.node => Err(Rejection::forbidden(
            format!("requestId: belongs to node {node}, only that node may use it"),
        )),
        RequestId::Client(id) if id.is_empty() || id.len() > limits::CLIENT_ID_BYTES_MAX => {
            Err(Rejection::invalid("requestId", "must have 1 to 200 bytes"))
        }
        RequestId::Node { .. } | RequestId::Client(_) => Ok(()),
    }
}

/// Runs a request that was never run, and keeps its answer where that is due.
fn fresh(
    store: &mut impl Store,
    entry: &Entry,
    now: Clock,
    hash: [u8; 16],
    floor: &mut Option<Floor>,
    events: &mut Vec<Event>,
) -> Result<Result<Reply, Rejection>, Fault> {
    let late = entry.proposal.not_after < now.tick;
    let speaker = match may_speak(store, entry, floor.as_ref())? {
        Ok(speaker) => speaker,
        // What came too late stays too late, so it needs no record where none may be made.
        Err(_) if late => return Ok(Err(Rejection::TooLate)),
        Err(refusal) => return Ok(Err(refusal.cut())),
    };
    if let Some(refusal) = requests::full(store, entry, floor.as_ref())? {
        return Ok(Err(if late { Rejection::TooLate } else { refusal }));
    }
    let outcome = if late {
        Err(Rejection::TooLate)
    } else {
        let outcome = family(store, entry, now, speaker.as_ref(), events)?;
        if matches!(entry.proposal.command, Command::System(_) | Command::Cluster(_)) {
            // These may have changed what the floor says: a boot, a removal, the first node.
            *floor = requests::floor(store, entry.stamp.node)?;
        }
        outcome.map_err(Rejection::cut)
    };
    if floor.is_some() && !matches!(outcome, Err(Rejection::Busy { .. })) {
        let kept = match &outcome {
            Ok(reply) => Outcome::Done(reply.clone()),
            Err(refusal) => Outcome::Refused(refusal.clone()),
        };
        let record = Record { hash, outcome: kept };
        requests::remember(store, entry, now, &record, floor, events)?;
    }
    Ok(outcome)
}

/// Checks that the actor may say this, here; returns the conversation that speaks, if one does.
fn may_speak(
    store: &impl Store,
    entry: &Entry,
    floor: Option<&Floor>,
) -> Result<Result<Option<Conversation>, Rejection>, Fault> {
    let node = entry.stamp.node;
    let command = &entry.proposal.command;
    let founds = matches!(command, Command::Cluster(ClusterCommand::Found { .. }));
    if !founds && floor.is_none_or(|floor| floor.retired) {
        let what = format!("node {node}: is not a member of this cluster; join it first");
        return Ok(Err(Rejection::forbidden(what)));
    }
    match (command.origin(), &entry.proposal.actor) {
        (Origin::Leader | Origin::Member, Actor::Node) => Ok(Ok(None)),
        (Origin::Leader | Origin::Member, Actor::Conversation(_)) => {
            Ok(Err(Rejection::forbidden("caller: only a node may do this, not a conversation")))
        }
        (Origin::Conversation, Actor::Node) => {
            Ok(Err(Rejection::forbidden("caller: only a conversation may do this, not a node")))
        }
        (Origin::Conversation, Actor::Conversation(id)) => {
            let speaker = conversations::conversation(store, id)?;
            let registers =
                matches!(command, Command::Conversation(ConversationCommand::Register { .. }));
            let home = speaker.as_ref().map_or(0, |speaker| speaker.home);
            let here = registers || home == node;
            Ok(if here { Ok(speaker) } else { Err(Rejection::NotHere { home }) })
        }
    }
}

/// Runs the family on an overlay of its own, which a refusal discards.
fn family(
    store: &mut impl Store,
    entry: &Entry,
    now: Clock,
    speaker: Option<&Conversation>,
    events: &mut Vec<Event>,
) -> Result<Result<Reply, Rejection>, Fault> {
    let mut state = Overlay::new(&*store);
    let mut told = Vec::new();
    let context = Context {
        index: entry.index,
        now,
        node: entry.stamp.node,
        actor: &entry.proposal.actor,
        speaker,
    };
    let done = match &entry.proposal.command {
        Command::System(command) => system::run(&mut state, &context, command, &mut told),
        Command::Cluster(command) => cluster::run(&mut state, &context, command, &mut told),
        Command::Conversation(command) => {
            conversations::run(&mut state, &context, command, &mut told)
        }
        Command::Chat(command) => chat::run(&mut state, &context, command, &mut told),
        Command::Project(command) => projects::run(&mut state, &context, command, &mut told),
        Command::Document(command) => documents::run(&mut state, &context, command, &mut told),
        Command::Meeting(command) => meetings::run(&mut state, &context, command, &mut told),
        Command::Task(command) => tasks::run(&mut state, &context, command, &mut told),
        Command::Mail(command) => mail::run(&mut state, &context, command, &mut told),
    };
    match done {
        Ok(reply) => {
            for (key, change) in state.into_changes() {
                match change {
                    Some(value) => store.put(&key, value)?,
                    None => store.delete(&key)?,
                }
            }
            events.append(&mut told);
            Ok(Ok(reply))
        }
        Err(Stop::Refused(refusal)) => Ok(Err(refusal)),
        Err(Stop::Fault(fault)) => Err(fault),
    }
}
