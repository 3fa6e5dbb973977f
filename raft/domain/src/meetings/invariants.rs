//! What must hold between the rows of meetings; for [`crate::invariants`].

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::approvals::stances_on;
use super::{Ending, Meeting, Member, Phase};
use crate::chat;
use crate::command::{Category, DueKind};
use crate::due::{self, Due};
use crate::limits;
use crate::store::{Direction, Fault, Read};
use crate::tables;

/// Returns whether a meeting is gone and its rows follow.
pub(crate) fn is_leaving(state: &impl Read, id: &str) -> Result<bool, Fault> {
    for key in tables::DUE.keys(state, tables::DUE.all(), Direction::Forward) {
        let (_, number, name, _) = key?;
        if due::kind_of(number) == Some(DueKind::MeetingRest) && name == id {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Appends what does not hold.
pub(crate) fn check(state: &impl Read, found: &mut Vec<String>) -> Result<(), Fault> {
    let (mut all, mut active): (u64, u64) = (0, 0);
    for row in tables::MEETINGS.rows(state, tables::MEETINGS.all(), Direction::Forward) {
        let (id, meeting) = row?;
        all = all.saturating_add(1);
        if meeting.id != id {
            found.push(format!("meeting {id}: its row says {}", meeting.id));
        }
        if tables::MEETINGS_STARTED.get(state, meeting.started)?.as_ref() != Some(&id) {
            found.push(format!("meeting {id}: is not in the order of starts"));
        }
        let place = (meeting.phase.number(), meeting.started);
        if tables::MEETINGS_IN_PHASE.get(state, place)?.as_ref() != Some(&id) {
            found.push(format!("meeting {id}: is not among the {:?} ones", meeting.phase));
        }
        if meeting.phase == Phase::Active {
            active = active.saturating_add(1);
            if tables::MEETINGS_ACTIVE.get(state, meeting.activated)?.as_ref() != Some(&id) {
                found.push(format!("meeting {id}: is not among those that may be the default"));
            }
        }
        life(state, &meeting, found)?;
        draft(state, &meeting, found)?;
        members(state, &meeting, found)?;
    }
    let totals = tables::MEETING_TOTALS.get(state, ())?.unwrap_or_default();
    let count = |range| u64::try_from(state.scan(range, Direction::Forward).count());
    for (what, number, expected) in [
        ("total", Ok(totals.kept), all),
        ("order of starts", count(tables::MEETINGS_STARTED.all()), all),
        ("phases", count(tables::MEETINGS_IN_PHASE.all()), all),
        ("default ones", count(tables::MEETINGS_ACTIVE.all()), active),
    ] {
        if number != Ok(expected) {
            found.push(format!("meetings: {what} is {number:?} and should be {expected}"));
        }
    }
    timers(state, found)?;
    rests(state, found)
}

/// Its phase and its end belong together.
fn life(state: &impl Read, meeting: &Meeting, found: &mut Vec<String>) -> Result<(), Fault> {
    let id = &meeting.id;
    let open = meeting.phase == Phase::Active;
    let ends =
        [meeting.ending == Ending::Open, meeting.ended_at.is_none(), meeting.ended_by.is_none()];
    if ends != [open; 3] || (meeting.phase == Phase::Archived) != (meeting.kept_until != 0) {
        found.push(format!("meeting {id}: {:?} and {ends:?}", meeting.phase));
    }
    if let Ending::Consensus { decision } = meeting.ending {
        let message = chat::message(state, &meeting.room(), decision)?;
        let ours = message.as_ref().is_some_and(|message| {
            message.from == chat::CLUSTER && message.category == Category::Decision
        });
        if !ours {
            found.push(format!("meeting {id}: its decision is {message:?}"));
        }
    }
    if meeting.phase == Phase::Archived {
        let key = (meeting.kept_until, due::number(DueKind::Meeting), id.as_str(), 1);
        if !tables::DUE.has(state, key)? {
            found.push(format!("meeting {id}: is kept for ever"));
        }
    }
    Ok(())
}

fn draft(state: &impl Read, meeting: &Meeting, found: &mut Vec<String>) -> Result<(), Fault> {
    let Some(draft) = &meeting.draft else { return Ok(()) };
    let id = &meeting.id;
    let message = chat::message(state, &meeting.room(), draft.number)?;
    let proposed = message.is_some_and(|message| {
        message.category == Category::Proposal && message.from == draft.author
    });
    if !proposed {
        found.push(format!("meeting {id}: its draft {} is no proposal", draft.number));
    }
    if draft.timer != 0 {
        let name = id.clone();
        let due =
            Due { due: draft.timer, kind: DueKind::Reminder, id: name, generation: draft.number };
        let waits = meeting.phase == Phase::Active && draft.reminded_at.is_none();
        if !waits || !due::stands(state, &due)? {
            found.push(format!("meeting {id}: its reminder {} does not stand", draft.timer));
        }
    }
    if stances_on(state, id, draft.number)?.len() > limits::STANCES_MAX {
        found.push(format!("meeting {id}: its draft has too many stances"));
    }
    Ok(())
}

fn members(state: &impl Read, meeting: &Meeting, found: &mut Vec<String>) -> Result<(), Fault> {
    let id = &meeting.id;
    let last = chat::last_id(state, &meeting.room())?;
    let range = tables::MEETING_MEMBERS.beginning::<String>(id);
    let (mut count, mut wakes): (usize, u64) = (0, 0);
    for row in tables::MEETING_MEMBERS.rows(state, range, Direction::Forward) {
        let ((_, who), member) = row?;
        count = count.saturating_add(1);
        wakes = wakes.saturating_add(member.wakes);
        let Member { told_messages, reminded, told_reminder, .. } = member;
        if member.id != who || told_messages > last || told_reminder > reminded || reminded > last {
            found.push(format!("member {who} of {id}: {member:?} with {last} messages"));
        }
        let involved = tables::INVOLVED.has(state, (&who, id))?;
        let must = meeting.phase == Phase::Active && !member.instance;
        if (must && !involved) || (member.instance && involved) {
            found.push(format!("member {who} of {id}: involved is {involved}"));
        }
    }
    let room = meeting.room();
    let range = tables::CURSORS.beginning::<tables::RoomKey>(chat::room_key(&room));
    let readers = u64::try_from(state.scan(range, Direction::Forward).count());
    let places = super::places(state, id)?;
    if readers != Ok(places) || places > limits::MEETING_READERS_MAX {
        found.push(format!("meeting {id}: {readers:?} read it, counted {places}"));
    }
    if count > limits::MEETING_MEMBERS_MAX {
        found.push(format!("meeting {id}: has {count} members"));
    }
    if wakes > meeting.wakes {
        found.push(format!("meeting {id}: {} wakes, its members have {wakes}", meeting.wakes));
    }
    Ok(())
}

/// Every timer of a meeting belongs to what is there.
fn timers(state: &impl Read, found: &mut Vec<String>) -> Result<(), Fault> {
    for key in tables::DUE.keys(state, tables::DUE.all(), Direction::Forward) {
        let (tick, number, id, generation) = key?;
        let of_meetings = [DueKind::Reminder, DueKind::Meeting, DueKind::MeetingRest];
        if !due::kind_of(number).is_some_and(|kind| of_meetings.contains(&kind)) {
            continue;
        }
        let meeting = super::meeting(state, &id)?;
        let right = match due::kind_of(number) {
            Some(DueKind::Reminder) => meeting.is_some_and(|meeting| {
                let timer = meeting.draft.as_ref().map_or(0, |draft| draft.timer);
                (timer, meeting.draft_number()) == (tick, generation)
            }),
            Some(DueKind::Meeting) => meeting.is_some_and(|meeting| meeting.kept_until == tick),
            _ => meeting.is_none(),
        };
        if !right {
            found.push(format!("timer {number} of meeting {id}: it is about nothing"));
        }
    }
    Ok(())
}

/// Rows of a meeting are rows of one that is there, or of one whose rows go.
fn rests(state: &impl Read, found: &mut Vec<String>) -> Result<(), Fault> {
    let mut named = BTreeSet::new();
    for key in
        tables::MEETING_MEMBERS.keys(state, tables::MEETING_MEMBERS.all(), Direction::Forward)
    {
        named.insert(key?.0);
    }
    let speakers = &tables::MEETING_SPEAKERS;
    for key in speakers.keys(state, speakers.all(), Direction::Forward) {
        named.insert(key?.0);
    }
    for key in tables::STANCES.keys(state, tables::STANCES.all(), Direction::Forward) {
        named.insert(key?.0);
    }
    for key in tables::INVOLVED.keys(state, tables::INVOLVED.all(), Direction::Forward) {
        named.insert(key?.1);
    }
    for id in &named {
        if !super::is_kept(state, id)? && !is_leaving(state, id)? {
            found.push(format!("meeting {id}: is gone, its rows are not"));
        }
    }
    for key in tables::MEETING_PULSES.keys(state, tables::MEETING_PULSES.all(), Direction::Forward)
    {
        let id = key?;
        let waits = super::meeting(state, &id)?.and_then(|meeting| meeting.draft);
        if !waits.is_some_and(|draft| draft.quiet_ticks > 0 && draft.reminded_at.is_none()) {
            found.push(format!("meeting {id}: a pulse that nobody waits for"));
        }
    }
    Ok(())
}
