//! What must hold between meetings, their members, drafts, stances, places and timers.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{count, is_past, rows, timers};
use crate::chat;
use crate::command::{Category, DueKind};
use crate::due::{self, Due};
use crate::limits;
use crate::meetings::{self, Ending, Meeting, Member, Phase};
use crate::store::{Direction, Fault, Read};
use crate::tables;

pub(super) fn check(state: &impl Read, found: &mut Vec<String>) -> Result<(), Fault> {
    let (mut all, mut active): (u64, u64) = (0, 0);
    for row in rows!(tables::MEETINGS, state) {
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
    for (what, number, expected) in [
        ("total", totals.kept, all),
        ("order of starts", count(state, &tables::MEETINGS_STARTED)?, all),
        ("phases", count(state, &tables::MEETINGS_IN_PHASE)?, all),
        ("default ones", count(state, &tables::MEETINGS_ACTIVE)?, active),
    ] {
        if number != expected {
            found.push(format!("meetings: {what} is {number} and should be {expected}"));
        }
    }
    check_timers(state, found)?;
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
        let (due, name) = (meeting.kept_until, id.clone());
        if !due::stands(state, &Due { due, kind: DueKind::Meeting, id: name, generation: 1 })? {
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
    if meetings::stances_on(state, id, draft.number)?.len() > limits::STANCES_MAX {
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
    let places = meetings::places(state, id)?;
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
fn check_timers(state: &impl Read, found: &mut Vec<String>) -> Result<(), Fault> {
    for kind in [DueKind::Reminder, DueKind::Meeting, DueKind::MeetingRest] {
        for timer in timers(state, kind)? {
            let meeting = meetings::meeting(state, &timer.id)?;
            let stands = match (kind, meeting) {
                (DueKind::MeetingRest, meeting) => meeting.is_none(),
                (_, None) => false,
                (DueKind::Meeting, Some(meeting)) => meeting.kept_until == timer.due,
                (_, Some(meeting)) => {
                    let due = meeting.draft.as_ref().map_or(0, |draft| draft.timer);
                    (due, meeting.draft_number()) == (timer.due, timer.generation)
                }
            };
            if !stands {
                found.push(format!("timer {kind:?} of meeting {}: is about nothing", timer.id));
            }
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
    for row in rows!(tables::MEETING_READERS, state) {
        let (id, _) = row?;
        if !meetings::is_kept(state, &id)? {
            found.push(format!("meeting {id}: is gone, the count of its readers is not"));
        }
    }
    for id in &named {
        if !meetings::is_kept(state, id)? && !is_past(state, id)? {
            found.push(format!("meeting {id}: is gone, its rows are not"));
        }
    }
    for key in tables::MEETING_PULSES.keys(state, tables::MEETING_PULSES.all(), Direction::Forward)
    {
        let id = key?;
        let waits = meetings::meeting(state, &id)?.and_then(|meeting| meeting.draft);
        if !waits.is_some_and(|draft| draft.quiet_ticks > 0 && draft.reminded_at.is_none()) {
            found.push(format!("meeting {id}: a pulse that nobody waits for"));
        }
    }
    Ok(())
}
