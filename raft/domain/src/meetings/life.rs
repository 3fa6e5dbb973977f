//! The life of a meeting: started, ended, archived, reopened.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::approvals::members_of;
use super::{Ending, Meeting, Phase, active, drafts, given_or_default, ids, members};
use super::{present, retention};
use crate::command::meetings::{Approver, Mode};
use crate::context::{Context, Stop};
use crate::event::Event;
use crate::rejection::Rejection;
use crate::reply::Reply;
use crate::store::{Fault, Store};
use crate::{conversations, events, limits, tables, texts};

pub(super) fn start(
    state: &mut impl Store,
    context: &Context<'_>,
    topic: &str,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    check_topic(topic)?;
    let id = ids::make(context.now.at, topic, context.index);
    if super::is_kept(state, &id)? {
        return Err(Rejection::Impossible { what: format!("a second meeting {id}") }.into());
    }
    let oldest = retention::oldest_to_go(state)?;
    members::may_take_part(state, &id, &context.speaker()?.id)?;
    let speaker = conversations::active(state, context, told)?;
    if let Some(oldest) = oldest {
        retention::let_go(state, context, oldest, told)?;
    }
    let turn = next_turn(state, 1)?;
    let meeting = Meeting {
        id: id.clone(),
        topic: topic.to_owned(),
        phase: Phase::Active,
        initiator: speaker.id.clone(),
        started: turn,
        started_at: context.now.at,
        activated: turn,
        ended: 0,
        ended_at: None,
        ended_by: None,
        ending: Ending::Open,
        summary: None,
        decisions: 0,
        wakes: 0,
        draft: None,
        kept_until: 0,
    };
    write(state, None, &meeting)?;
    let part = (Mode::Active, Approver::Required);
    let member = members::new(context, &speaker, part, 0);
    members::add(state, &id, &member)?;
    record(state, context, "meeting.start", &meeting, Some(topic.to_owned()), told)?;
    Ok(Reply::Meeting { id })
}

/// Counts a start or reopening, and returns its place in their order.
fn next_turn(state: &mut impl Store, more: u64) -> Result<u64, Fault> {
    let mut totals = tables::MEETING_TOTALS.get(state, ())?.unwrap_or_default();
    totals.kept = totals.kept.saturating_add(more);
    totals.turns = totals.turns.saturating_add(1);
    tables::MEETING_TOTALS.put(state, (), &totals)?;
    Ok(totals.turns)
}

fn check_topic(topic: &str) -> Result<(), Rejection> {
    let short = texts::has_at_most(topic, limits::TOPIC_CHARS_MAX);
    // It stands in one line of a notice, so it cannot begin another one.
    if short && !topic.trim().is_empty() && texts::is_plain(topic) {
        return Ok(());
    }
    let rule = "must have 1 to 200 characters on one line, not only spaces";
    Err(Rejection::invalid("topic", rule))
}

pub(super) fn end(
    state: &mut impl Store,
    context: &Context<'_>,
    given: &str,
    summary: &str,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    if !texts::has_at_most(summary, limits::SUMMARY_CHARS_MAX) {
        let rule = "must have at most 8,000 characters; longer minutes are a document";
        return Err(Rejection::invalid("summary", rule).into());
    }
    let id = given_or_default(state, given)?;
    let mut meeting = active(state, &id)?;
    conversations::active(state, context, told)?;
    meeting.summary = (!summary.is_empty()).then(|| summary.to_owned());
    close(state, context, &mut meeting, Ending::Manual, told)?;
    Ok(Reply::Meeting { id })
}

/// Closes an active meeting and writes it. Its members are told of the end, but for the one whose
/// doing it is.
pub(super) fn close(
    state: &mut impl Store,
    context: &Context<'_>,
    meeting: &mut Meeting,
    ending: Ending,
    told: &mut Vec<Event>,
) -> Result<(), Stop> {
    let speaker = context.speaker()?;
    let before = meeting.clone();
    drafts::stop_watching(state, meeting)?;
    if let Some(draft) = &mut meeting.draft {
        draft.timer = 0;
    }
    meeting.phase = Phase::Closed;
    meeting.ended = context.index;
    meeting.ended_at = Some(context.now.at);
    meeting.ended_by = Some(speaker.id.clone());
    meeting.ending = ending;
    write(state, Some(&before), meeting)?;
    members::settle_after_end(state, meeting, &speaker.id)?;
    let detail = match ending {
        Ending::Consensus { decision } => {
            Some(format!("consensus: draft #{}, decision #{decision}", meeting.draft_number()))
        }
        Ending::Manual | Ending::Open => meeting.summary.clone(),
    };
    record(state, context, "meeting.end", meeting, detail, told)
}

pub(super) fn archive(
    state: &mut impl Store,
    context: &Context<'_>,
    id: &str,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    let before = present(state, id)?;
    let against = match before.phase {
        Phase::Active => Some("is active; end it first (end_meeting)"),
        Phase::Closed => None,
        Phase::Archived => Some("is archived already"),
    };
    refuse(id, against)?;
    conversations::active(state, context, told)?;
    let mut meeting = before.clone();
    meeting.phase = Phase::Archived;
    meeting.kept_until = context.now.tick.saturating_add(limits::MEETING_KEPT_TICKS);
    retention::keep(state, &meeting, told)?;
    write(state, Some(&before), &meeting)?;
    record(state, context, "meeting.archive", &meeting, None, told)?;
    Ok(Reply::Meeting { id: id.to_owned() })
}

pub(super) fn reopen(
    state: &mut impl Store,
    context: &Context<'_>,
    id: &str,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    let before = present(state, id)?;
    let against = (before.phase == Phase::Active).then_some("is active already");
    refuse(id, against)?;
    conversations::active(state, context, told)?;
    retention::keep_on(state, &before)?;
    let mut meeting = before.clone();
    meeting.phase = Phase::Active;
    meeting.activated = next_turn(state, 0)?;
    meeting.ended = 0;
    meeting.ended_at = None;
    meeting.ended_by = None;
    meeting.ending = Ending::Open;
    meeting.kept_until = 0;
    if let Some(draft) = meeting.draft.take() {
        members::forget_guest(state, id, &draft.author)?;
    }
    write(state, Some(&before), &meeting)?;
    for member in members_of(state, id)? {
        if !member.instance {
            members::involve(state, id, &member.id)?;
        }
    }
    record(state, context, "meeting.reopen", &meeting, None, told)?;
    Ok(Reply::Meeting { id: id.to_owned() })
}

fn refuse(id: &str, against: Option<&str>) -> Result<(), Rejection> {
    match against {
        Some(what) => Err(Rejection::conflict(format!("meeting {id}: {what}"))),
        None => Ok(()),
    }
}

/// Writes a meeting with the rows that follow it; `before` is what stands there now.
pub(super) fn write(
    state: &mut impl Store,
    before: Option<&Meeting>,
    after: &Meeting,
) -> Result<(), Fault> {
    if let Some(before) = before {
        tables::MEETINGS_IN_PHASE.delete(state, (before.phase.number(), before.started))?;
        if before.phase == Phase::Active {
            tables::MEETINGS_ACTIVE.delete(state, before.activated)?;
        }
    } else {
        tables::MEETINGS_STARTED.put(state, after.started, &after.id)?;
    }
    tables::MEETINGS_IN_PHASE.put(state, (after.phase.number(), after.started), &after.id)?;
    if after.phase == Phase::Active {
        tables::MEETINGS_ACTIVE.put(state, after.activated, &after.id)?;
    }
    tables::MEETINGS.put(state, &after.id, after)
}

/// Writes an event about a meeting, and wakes those who look at it.
pub(super) fn record(
    state: &mut impl Store,
    context: &Context<'_>,
    action: &str,
    meeting: &Meeting,
    detail: Option<String>,
    told: &mut Vec<Event>,
) -> Result<(), Stop> {
    events::record(state, context, action, Some(meeting.id.clone()), detail)?;
    told.push(Event::Meeting { id: meeting.id.clone() });
    Ok(())
}
