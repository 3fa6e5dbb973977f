//! The machine room: boots, clock steps, state versions and timers.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use crate::clock::{self, Clock};
use crate::command::{Command, DueKind, SystemCommand};
use crate::context::{Context, Stop};
use crate::due::{self, Due};
use crate::entry::{Entry, NodeId};
use crate::event::Event;
use crate::rejection::Rejection;
use crate::reply::Reply;
use crate::store::{Fault, Read, Store};
use crate::{
    FIRST_VERSION, SUPPORTED, bodies, chat, cluster, conversations, events, limits, mail, meetings,
    requests, tables, tasks,
};

/// The last moment of the year 9999, in milliseconds since 1970: what RFC 3339 can still show.
const TIME_MAX: u64 = 253_402_300_799_999;

/// Returns the cluster's state version (traps.md 3).
///
/// # Errors
/// A fault when the state cannot be read.
pub fn state_version(state: &impl Read) -> Result<u32, Fault> {
    Ok(tables::VERSION.get(state, ())?.unwrap_or(FIRST_VERSION))
}

/// Returns the newest state version that all members support, sleepers included; one that was away
/// for longer than 30 days is not waited for (traps.md 3). 0 without members.
///
/// # Errors
/// A fault when the state cannot be read.
pub fn supported_by_all(state: &impl Read, now_tick: u64) -> Result<u32, Fault> {
    let gone = gone(state, now_tick)?;
    let members = cluster::members(state)?;
    let counted = members.iter().filter(|member| !gone.contains(&member.id));
    Ok(counted.map(|member| member.supports).min().unwrap_or_default())
}

/// Returns the state version, when this program can go on with it.
///
/// # Errors
/// A fault that says which program can ([`Fault::is_too_old`]), or that the state cannot be read.
pub fn known_version(state: &impl Read) -> Result<u32, Fault> {
    let version = state_version(state)?;
    if version > SUPPORTED { Err(too_old(state, version)?) } else { Ok(version) }
}

/// Makes the fault of a state version that another program must go on with.
fn too_old(state: &impl Read, version: u32) -> Result<Fault, Fault> {
    let members = cluster::members(state)?;
    let newest = members.iter().filter(|member| member.supports >= version);
    let program = newest.map(|member| member.software.as_str()).max().unwrap_or_default();
    let to = if program.is_empty() { "a newer program" } else { program };
    let gone = gone(state, clock::clock(state)?.tick)?;
    let mut left_out = members.iter().filter(|member| gone.contains(&member.id)).peekable();
    let mut what = format!(
        "this node is too old for the cluster: upgrade to {to}, the data stay; state version \
         {version} is in use and {SUPPORTED} is what this program knows"
    );
    if left_out.peek().is_some() {
        let names: Vec<&str> = left_out.map(|member| member.name.as_str()).collect();
        what.push_str("; not waited for, being away for more than 30 days: ");
        what.push_str(&names.join(", "));
    }
    Ok(Fault::too_old(what))
}

/// Returns who is not waited for any more.
fn gone(state: &impl Read, now_tick: u64) -> Result<Vec<NodeId>, Fault> {
    let noted = conversations::nodes(state)?.into_iter();
    Ok(noted.filter(|noted| noted.is_gone(now_tick)).map(|noted| noted.node).collect())
}

pub(crate) fn run(
    state: &mut impl Store,
    context: &Context<'_>,
    command: &SystemCommand,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    match command {
        SystemCommand::Started { boot, nonce, supports, software } => {
            let start = Start { boot: *boot, nonce: *nonce, supports: *supports, software };
            started(state, context, &start, told)
        }
        SystemCommand::ClockStep { at } => clock_step(state, context, *at),
        SystemCommand::Upgrade { to } => upgrade(state, context, *to, told),
        SystemCommand::Fire { due, kind, id, generation } => {
            let due = Due { due: *due, kind: *kind, id: id.clone(), generation: *generation };
            fire(state, context, &due, told)
        }
    }
}

/// What a node says of its start.
struct Start<'a> {
    boot: u64,
    nonce: u64,
    supports: u32,
    software: &'a str,
}

/// Returns the refusal of a start that the cluster knows a later one of, or another of the same
/// boot (traps.md 23).
///
/// It is asked before the request id: that of an older folder was given before, too, and "expired"
/// would not tell its owner what to do.
pub(crate) fn past_start(state: &impl Read, entry: &Entry) -> Result<Option<Rejection>, Fault> {
    let Command::System(SystemCommand::Started { boot, nonce, .. }) = &entry.proposal.command
    else {
        return Ok(None);
    };
    let Some(member) = cluster::member(state, entry.stamp.node)? else { return Ok(None) };
    let known = member.boot;
    let past = *boot < known || (*boot == known && *nonce != member.nonce);
    Ok(past.then(|| {
        Rejection::conflict(format!(
            "boot {boot}: boot {known} is known; this folder is older than what this machine told \
             the cluster, or is in use twice: remove the node and join again"
        ))
    }))
}

/// A start that [`past_start`] let pass.
fn started(
    state: &mut impl Store,
    context: &Context<'_>,
    start: &Start<'_>,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    if start.software.len() > limits::SOFTWARE_BYTES_MAX {
        return Err(Rejection::invalid("software", "must have at most 100 bytes").into());
    }
    if start.supports == 0 {
        return Err(Rejection::invalid("supports", "must be a state version, from 1").into());
    }
    let mut member = cluster::present(state, context.node)?;
    let before = member.clone();
    member.boot = start.boot;
    member.nonce = start.nonce;
    member.supports = start.supports;
    member.software = start.software.to_string();
    if member != before {
        tables::MEMBERS.put(state, context.node, &member)?;
        requests::start(state, context.node, start.boot)?;
        told.push(Event::Members { node: context.node });
    }
    conversations::nodes::here(state, context.node, context.now.tick, told)?;
    Ok(Reply::Done)
}

fn clock_step(state: &mut impl Store, context: &Context<'_>, at: u64) -> Result<Reply, Stop> {
    if at > TIME_MAX {
        return Err(Rejection::invalid("at", "must be before the year 10000").into());
    }
    if at <= context.now.at {
        let what = "clock: shows that time already; a step only goes forward";
        return Err(Rejection::conflict(what).into());
    }
    tables::CLOCK.put(state, (), &Clock { tick: context.now.tick, at })?;
    Ok(Reply::Done)
}

fn upgrade(
    state: &mut impl Store,
    context: &Context<'_>,
    to: u32,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    let has = state_version(state)?;
    if has.checked_add(1) != Some(to) {
        let what = format!("state version: is {has} and rises by one, not to {to}");
        return Err(Rejection::conflict(what).into());
    }
    let gone = gone(state, context.now.tick)?;
    for member in cluster::members(state)? {
        // Who brings this is there, whatever was noted: one at least is asked.
        let asked = member.id == context.node || !gone.contains(&member.id);
        if member.supports < to && asked {
            return Err(Rejection::conflict(format!(
                "state version {to}: node {} ({}) supports {} only; upgrade it first",
                member.id, member.name, member.supports
            ))
            .into());
        }
    }
    if to > SUPPORTED {
        // It was away for too long, or said otherwise before, with a newer program.
        return Err(too_old(state, to)?.into());
    }
    tables::VERSION.put(state, (), &to)?;
    let detail = format!("state version {has} to {to}");
    events::record(state, context, "cluster.upgrade", None, Some(detail))?;
    told.push(Event::Version);
    Ok(Reply::Done)
}

fn fire(
    state: &mut impl Store,
    context: &Context<'_>,
    due: &Due,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    due::take(state, context.now, due)?;
    told.push(Event::Due);
    match due.kind {
        DueKind::Invite => cluster::invite_ends(state, due, told),
        DueKind::Requests => requests::fire(state, due, told),
        DueKind::Removal => cluster::removal_goes_on(state, context, due, told),
        DueKind::Upload => bodies::upload_ends(state, context.now, due, told),
        DueKind::Sweep => bodies::sweep(state, context.now, due, told),
        DueKind::Reminder => meetings::remind(state, context, due, told),
        DueKind::Meeting => meetings::keeping_ends(state, context, due, told),
        DueKind::MeetingRest => meetings::rest_goes(state, due, told),
        DueKind::Task => tasks::ends(state, due, told),
        DueKind::Unread => mail::unread_ends(state, due, told),
        DueKind::Mail => mail::inbox_ends(state, due, told),
        DueKind::Watch => conversations::turns::lapses(state, due),
        DueKind::Turns => conversations::turns::tell(state, due, told),
        DueKind::Chat => chat::sweep(state, due, told),
        DueKind::Closed => conversations::close(state, due, told),
    }
}
