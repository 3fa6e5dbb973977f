//! What archived meetings become: kept for a year, then gone at once for everybody; their rows
//! follow in bounded steps.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Meeting, Phase, members};
use crate::command::{DueKind, Room};
use crate::context::{Context, Stop};
use crate::due::{self, Due};
use crate::event::Event;
use crate::rejection::Rejection;
use crate::reply::Reply;
use crate::store::{Direction, Fault, Read, Store};
use crate::{chat, events, limits, tables};

fn keeping(meeting: &Meeting) -> Due {
    let (due, id) = (meeting.kept_until, meeting.id.clone());
    Due { due, kind: DueKind::Meeting, id, generation: 1 }
}

/// Sets the timer of an archived meeting.
pub(super) fn keep(
    state: &mut impl Store,
    meeting: &Meeting,
    told: &mut Vec<Event>,
) -> Result<(), Fault> {
    due::arm(state, &keeping(meeting), told)
}

/// Takes the timer of a meeting back, if it is archived.
pub(super) fn keep_on(state: &mut impl Store, meeting: &Meeting) -> Result<(), Fault> {
    if meeting.phase == Phase::Archived { due::disarm(state, &keeping(meeting)) } else { Ok(()) }
}

/// Returns the meeting that must go when one more is started.
pub(super) fn oldest_to_go(state: &impl Read) -> Result<Option<Meeting>, Stop> {
    let totals = tables::MEETING_TOTALS.get(state, ())?.unwrap_or_default();
    if totals.kept < limits::MEETINGS_MAX {
        return Ok(None);
    }
    let range = tables::MEETINGS_IN_PHASE.beginning::<u8>(Phase::Archived.number());
    let first = tables::MEETINGS_IN_PHASE.rows(state, range, Direction::Forward).next();
    let Some(oldest) = first.transpose()? else {
        let what = "meetings: the cluster keeps 10,000; archive old ones (archive_meeting) first";
        return Err(Rejection::full(what).into());
    };
    let (_, id) = oldest;
    Ok(super::meeting(state, &id)?)
}

/// Lets an archived meeting go: nothing shows it any more.
pub(super) fn let_go(
    state: &mut impl Store,
    context: &Context<'_>,
    meeting: Meeting,
    told: &mut Vec<Event>,
) -> Result<(), Stop> {
    keep_on(state, &meeting)?;
    if let Some(draft) = &meeting.draft {
        members::forget_guest(state, &meeting.id, &draft.author)?;
    }
    tables::MEETINGS.delete(state, &meeting.id)?;
    tables::MEETINGS_STARTED.delete(state, meeting.started)?;
    tables::MEETINGS_IN_PHASE.delete(state, (meeting.phase.number(), meeting.started))?;
    tables::ROOMS.delete(state, chat::room_key(&meeting.room()))?;
    tables::MEETING_READERS.delete(state, &meeting.id)?;
    let mut totals = tables::MEETING_TOTALS.get(state, ())?.unwrap_or_default();
    totals.kept = totals.kept.saturating_sub(1);
    tables::MEETING_TOTALS.put(state, (), &totals)?;
    let (due, id) = (context.now.tick, meeting.id.clone());
    due::arm(state, &Due { due, kind: DueKind::MeetingRest, id, generation: 1 }, told)?;
    let target = Some(meeting.id.clone());
    events::record(state, context, "meeting.remove", target, Some(meeting.topic))?;
    told.push(Event::Meeting { id: meeting.id });
    Ok(())
}

/// An archived meeting was kept long enough.
pub(crate) fn keeping_ends(
    state: &mut impl Store,
    context: &Context<'_>,
    due: &Due,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    let meeting = super::meeting(state, &due.id)?;
    let Some(meeting) = meeting.filter(|meeting| meeting.kept_until == due.due) else {
        let what = format!("a timer of meeting {}", due.id);
        return Err(Rejection::Impossible { what }.into());
    };
    let_go(state, context, meeting, told)?;
    Ok(Reply::fired(1))
}

/// Takes away what a meeting left behind, a part of it; the rest is due at once.
pub(crate) fn rest_goes(
    state: &mut impl Store,
    due: &Due,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    let rows_max = limits::FIRE_ROWS_MAX.saturating_sub(8);
    let keys = rest_of(state, &due.id, rows_max)?;
    for key in &keys {
        state.delete(key)?;
    }
    if keys.len() >= rows_max {
        due::arm(state, &due.again(), told)?;
    }
    Ok(Reply::fired(keys.len()))
}

/// Returns keys of what is left of a meeting; an involvement goes before the member that tells of
/// it, and messages from the newest on.
fn rest_of(state: &impl Read, id: &str, rows_max: usize) -> Result<Vec<Vec<u8>>, Fault> {
    let mut keys = Vec::new();
    let range = tables::MEETING_MEMBERS.beginning::<String>(id);
    for key in tables::MEETING_MEMBERS.keys(state, range, Direction::Forward) {
        let (_, member) = key?;
        if tables::INVOLVED.has(state, (&member, id))? {
            keys.push(tables::INVOLVED.key((&member, id)));
        }
        keys.push(tables::MEETING_MEMBERS.key((id, &member)));
        if keys.len() >= rows_max {
            keys.truncate(rows_max);
            return Ok(keys);
        }
    }
    let room = Room::Meeting(id.into());
    let room = chat::room_key(&room);
    let ranges = [
        tables::MEETING_SPEAKERS.beginning::<String>(id),
        tables::STANCES.beginning::<String>(id),
        tables::CURSORS.beginning::<tables::RoomKey>(room),
        tables::MESSAGES.beginning::<tables::RoomKey>(room),
    ];
    for range in ranges {
        let room = rows_max.saturating_sub(keys.len());
        for row in state.scan(range, Direction::Reverse).take(room) {
            keys.push(row?.0);
        }
    }
    Ok(keys)
}
