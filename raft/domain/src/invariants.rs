//! What must hold between the rows of all families after every entry.
//!
//! Tests check it after each entry; on a running node it is for whoever looks into a damaged state.
//! It scans everything, so it is never part of `apply`: a difference between nodes is found by the
//! digests.

mod inboxes;
mod meetings;
mod projects;
mod tasks;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::cluster::{self, InviteState};
use crate::command::DueKind;
use crate::command::presence::NodeState;
use crate::conversations;
use crate::digest;
use crate::due::{self, Due};
use crate::store::{Direction, Fault, KeyRange, Read};
use crate::tables::{self, Table};

/// Returns what does not hold, one sentence each; nothing when all is well.
///
/// # Errors
/// A fault when the state cannot be read, or a row does not decode.
pub fn check(state: &impl Read) -> Result<Vec<String>, Fault> {
    let mut found = Vec::new();
    digests(state, &mut found)?;
    conversations(state, &mut found)?;
    chat(state, &mut found)?;
    members(state, &mut found)?;
    invites(state, &mut found)?;
    node_records(state, &mut found)?;
    client_records(state, &mut found)?;
    events(state, &mut found)?;
    projects::check(state, &mut found)?;
    meetings::check(state, &mut found)?;
    tasks::check(state, &mut found)?;
    inboxes::check(state, &mut found)?;
    Ok(found)
}

/// Scans a table forward.
macro_rules! rows {
    ($table:expr, $state:expr) => {
        $table.rows($state, $table.all(), Direction::Forward)
    };
}
use rows;

/// Returns the number of rows of a table.
fn count<K: crate::keys::Key, V>(state: &impl Read, table: &Table<K, V>) -> Result<u64, Fault> {
    let mut count: u64 = 0;
    for row in state.scan(table.all(), Direction::Forward) {
        row?;
        count = count.saturating_add(1);
    }
    Ok(count)
}

fn digests(state: &impl Read, found: &mut Vec<String>) -> Result<(), Fault> {
    // Between two seals the stored sums are old; a state that was never sealed has none.
    if state.get(&[tables::DIGESTS])?.is_some() && digest::read(state)? != digest::recompute(state)?
    {
        found.push("digest: the stored sums are not those of the rows".into());
    }
    let marks = state.scan(KeyRange::prefix(&[tables::DIGEST_MARKS]), Direction::Forward).count();
    if u64::try_from(marks).unwrap_or(u64::MAX) > crate::limits::DIGEST_MARKS_MAX {
        found.push(format!("digest: {marks} marks are kept"));
    }
    Ok(())
}

fn conversations(state: &impl Read, found: &mut Vec<String>) -> Result<(), Fault> {
    let (mut all, mut named): (u64, u64) = (0, 0);
    for row in rows!(tables::CONVERSATIONS, state) {
        let (id, conversation) = row?;
        all = all.saturating_add(1);
        if conversation.id != id {
            found.push(format!("conversation {id}: its row says {}", conversation.id));
        }
        if !tables::ACTIVITY.has(state, (conversation.last_active_tick, &id))? {
            found.push(format!("conversation {id}: is not in the index of activity"));
        }
        if let Some(name) = conversation.held_name() {
            named = named.saturating_add(1);
            let holder = tables::NAMES.get(state, name)?;
            if holder.as_ref() != Some(&id) {
                found.push(format!("conversation {id}: its name {name} is {holder:?}'s"));
            }
        }
    }
    let totals = tables::TOTALS.get(state, ())?.unwrap_or_default();
    for (what, number, expected) in [
        ("total", totals.count, all),
        ("names", count(state, &tables::NAMES)?, named),
        ("activity", count(state, &tables::ACTIVITY)?, all),
    ] {
        if number != expected {
            found.push(format!("conversations: {what} is {number} and should be {expected}"));
        }
    }
    Ok(())
}

fn chat(state: &impl Read, found: &mut Vec<String>) -> Result<(), Fault> {
    let mut last = BTreeMap::new();
    let mut next: BTreeMap<_, u64> = BTreeMap::new();
    for row in rows!(tables::ROOMS, state) {
        let (room, counter) = row?;
        let (pruned, swept) =
            (counter.pruned.unwrap_or_default(), counter.swept.unwrap_or_default());
        if ![swept, pruned, counter.last].is_sorted() {
            found.push(format!("room {room:?}: {counter:?} is out of order"));
        }
        if swept < pruned && !is_due(state, DueKind::Chat, "global")? {
            found.push(format!("room {room:?}: nothing sweeps what was pruned"));
        }
        next.insert(room.clone(), swept.saturating_add(1));
        last.insert(room, counter.last);
    }
    for row in rows!(tables::MESSAGES, state) {
        let ((room, id), message) = row?;
        let expected = next.get(&room).copied().unwrap_or(1);
        if id != expected || message.id != id {
            found.push(format!("message {id}: {expected} was expected, it says {}", message.id));
        }
        next.insert(room, id.saturating_add(1));
    }
    for room in next.keys() {
        if !last.contains_key(room) && !is_past(state, &room.1)? {
            found.push(format!("room {room:?}: has messages and no counter"));
        }
    }
    for (room, last) in &last {
        if next.get(room).copied() != last.checked_add(1) {
            found.push(format!("room {room:?}: its counter {last} is not its last message"));
        }
    }
    for row in rows!(tables::CURSORS, state) {
        let ((room, reader), cursor) = row?;
        if !last.contains_key(&room) && is_past(state, &room.1)? {
            continue;
        }
        let last = last.get(&room).copied().unwrap_or_default();
        let ordered = [cursor.seen, cursor.taken, cursor.offered, last].is_sorted();
        if !ordered {
            found.push(format!("cursor of {reader}: {cursor:?} with {last} messages"));
        }
        // What one leaves in a meeting is the meeting's, and goes with it.
        let global = room == (0, String::new());
        if global && !tables::CONVERSATIONS.has(state, &reader)? {
            found.push(format!("cursor of {reader}: there is no such conversation"));
        }
    }
    Ok(())
}

fn members(state: &impl Read, found: &mut Vec<String>) -> Result<(), Fault> {
    let mut names = BTreeSet::new();
    let mut keys = BTreeSet::new();
    for row in rows!(tables::MEMBERS, state) {
        let (id, member) = row?;
        if member.id != id {
            found.push(format!("node {id}: its row says {}", member.id));
        }
        if !names.insert(member.name.clone()) {
            found.push(format!("node {id}: its name {} is given twice", member.name));
        }
        if !keys.insert(member.public_key) {
            found.push(format!("node {id}: its key is another member's too"));
        }
        if tables::FLOORS.get(state, id)?.is_none_or(|floor| floor.retired) {
            found.push(format!("node {id}: has no place for request records"));
        }
    }
    for node in cluster::voters(state)? {
        if !tables::MEMBERS.has(state, node)? {
            found.push(format!("voter {node}: is no member"));
        }
    }
    for noted in conversations::nodes(state)? {
        if noted.state != NodeState::Up && !tables::MEMBERS.has(state, noted.node)? {
            found.push(format!("node {}: is away and no member", noted.node));
        }
    }
    if names.is_empty() == cluster::info(state)?.is_some() {
        found.push(format!("cluster: has {} members", names.len()));
    }
    for row in rows!(tables::FLOORS, state) {
        let (node, floor) = row?;
        if !floor.retired && !tables::MEMBERS.has(state, node)? {
            found.push(format!("records of node {node}: it is no member"));
        }
        if floor.retired && !is_leaving(state, node)? {
            found.push(format!("records of node {node}: nothing removes them"));
        }
    }
    Ok(())
}

/// Returns the timers of a kind, those that are due first first.
fn timers(state: &impl Read, kind: DueKind) -> Result<Vec<Due>, Fault> {
    let mut found = Vec::new();
    for key in tables::DUE.keys(state, tables::DUE.all(), Direction::Forward) {
        let (due, number, id, generation) = key?;
        if number == due::number(kind) {
            found.push(Due { due, kind, id, generation });
        }
    }
    Ok(found)
}

/// Returns whether a timer of any tick and generation stands for something.
fn is_due(state: &impl Read, kind: DueKind, id: &str) -> Result<bool, Fault> {
    Ok(timers(state, kind)?.iter().any(|timer| timer.id == id))
}

/// Returns whether a timer goes on with a node's removal.
fn is_leaving(state: &impl Read, node: u64) -> Result<bool, Fault> {
    let steps = timers(state, DueKind::Removal)?;
    Ok(steps.iter().any(|step| cluster::removed_node(&step.id) == Some(node)))
}

/// Returns whether a meeting is gone and its rows follow.
fn is_past(state: &impl Read, meeting: &str) -> Result<bool, Fault> {
    is_due(state, DueKind::MeetingRest, meeting)
}

fn invites(state: &impl Read, found: &mut Vec<String>) -> Result<(), Fault> {
    for invite in cluster::invites(state)? {
        let id = &invite.id;
        if (invite.state == InviteState::Used) != invite.burned_by.is_some() {
            found.push(format!("invite {id}: {:?} by {:?}", invite.state, invite.burned_by));
        }
        let mut standing = 0_usize;
        for timer in cluster::timers(&invite) {
            standing = standing.saturating_add(usize::from(due::stands(state, &timer)?));
        }
        if standing != 1 {
            found.push(format!("invite {id}: {standing} timers end it"));
        }
    }
    for timer in timers(state, DueKind::Invite)? {
        let invite = cluster::invite(state, &timer.id)?;
        if invite.is_none_or(|invite| !cluster::timers(&invite).contains(&timer)) {
            found.push(format!("timer of invite {}: there is no such invite", timer.id));
        }
    }
    Ok(())
}

fn node_records(state: &impl Read, found: &mut Vec<String>) -> Result<(), Fault> {
    let mut kept: BTreeMap<u64, u32> = BTreeMap::new();
    for row in rows!(tables::NODE_RECORDS, state) {
        let ((node, boot, counter), _) = row?;
        let number = kept.entry(node).or_default();
        *number = number.saturating_add(1);
        let floor = tables::FLOORS.get(state, node)?.unwrap_or_default();
        if (boot, counter) < (floor.swept_boot, floor.swept_counter) {
            found.push(format!("record {node}.{boot}.{counter}: lies below what was swept"));
        }
    }
    for row in rows!(tables::FLOORS, state) {
        let (node, floor) = row?;
        let number = kept.remove(&node).unwrap_or_default();
        if !floor.retired && floor.kept != number {
            found.push(format!("records of node {node}: {number}, counted {}", floor.kept));
        }
        if (floor.swept_boot, floor.swept_counter) > (floor.boot, floor.below) {
            found.push(format!("records of node {node}: swept beyond the answered ones"));
        }
    }
    for node in kept.keys() {
        found.push(format!("records of node {node}: nothing knows of them"));
    }
    Ok(())
}

fn client_records(state: &impl Read, found: &mut Vec<String>) -> Result<(), Fault> {
    let mut kept: BTreeMap<String, u32> = BTreeMap::new();
    let mut all: u64 = 0;
    for row in rows!(tables::CLIENT_RECORDS, state) {
        let ((actor, _), _) = row?;
        let number = kept.entry(actor).or_default();
        *number = number.saturating_add(1);
        all = all.saturating_add(1);
    }
    for row in rows!(tables::CLIENT_COUNTS, state) {
        let (actor, number) = row?;
        let expected = kept.remove(&actor).unwrap_or_default();
        if number != expected {
            found.push(format!("client ids of {actor}: {expected}, counted {number}"));
        }
    }
    for actor in kept.keys() {
        found.push(format!("client ids of {actor}: are not counted"));
    }
    let mut hours = BTreeSet::new();
    let mut grouped: u64 = 0;
    for row in rows!(tables::CLIENT_HOURS, state) {
        let ((hour, actor, id), ()) = row?;
        grouped = grouped.saturating_add(1);
        if hours.insert(hour) && !is_due(state, DueKind::Requests, &hour.to_string())? {
            found.push(format!("client ids of hour {hour}: nothing ends them"));
        }
        if !tables::CLIENT_RECORDS.has(state, (&actor, &id))? {
            found.push(format!("client id {id} of {actor}: has no record"));
        }
    }
    if grouped != all {
        found.push(format!("client ids: {all} records, {grouped} in groups"));
    }
    Ok(())
}

fn events(state: &impl Read, found: &mut Vec<String>) -> Result<(), Fault> {
    let window = tables::EVENT_WINDOW.get(state, ())?.unwrap_or_default();
    let mut expected = window.before;
    for row in rows!(tables::EVENTS, state) {
        let (id, _) = row?;
        expected = expected.saturating_add(1);
        if id != expected {
            found.push(format!("event {id}: {expected} was expected"));
        }
    }
    if expected != window.last {
        found.push(format!("events: the last is {expected}, the window says {}", window.last));
    }
    Ok(())
}
