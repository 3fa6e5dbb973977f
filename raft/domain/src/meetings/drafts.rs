//! Drafts, stances, consensus, and the reminder of those who say nothing.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::approvals::{self, Approvals};
use super::{Draft, Ending, Meeting, Stance, active, announce, given_or_default, life, members};
use super::{open_room, present};
use crate::chat::{self, Message};
use crate::command::meetings::Opinion;
use crate::command::{Category, Client, DueKind, Room};
use crate::context::{Context, Stop};
use crate::conversations::{self, Conversation};
use crate::due::{self, Due};
use crate::event::Event;
use crate::rejection::Rejection;
use crate::reply::Reply;
use crate::store::{Fault, Read, Store};
use crate::{limits, tables, texts};

/// Posts a message where people talk now.
pub(super) fn post(
    state: &mut impl Store,
    context: &Context<'_>,
    text: &str,
    category: Category,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    let meeting = super::default_meeting(state)?.unwrap_or_default();
    let room = if meeting.is_empty() { Room::Global } else { Room::Meeting(meeting.clone()) };
    let id = chat::send(state, context, &room, (text, category), told)?;
    Ok(Reply::PostedIn { meeting, id })
}

/// Publishes a draft: the list of its approvers is that of the members as they are now.
pub(super) fn publish(
    state: &mut impl Store,
    context: &Context<'_>,
    given: &str,
    (text, reminder_minutes): (&str, u32),
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    if reminder_minutes > limits::REMINDER_MINUTES_MAX {
        return Err(Rejection::invalid("reminderMinutes", "must be at most 43,200").into());
    }
    let id = given_or_default(state, given)?;
    let before = open_room(state, &id)?;
    let speaker = context.speaker()?;
    if speaker.client != Client::Instance {
        members::may_take_part(state, &id, &speaker.id)?;
    }
    let number = chat::send(state, context, &before.room(), (text, Category::Proposal), told)?;
    // The draft before is done with: its timer, and what its author waits for.
    stop_watching(state, &before)?;
    let mut meeting = present(state, &id)?;
    meeting.draft = Some(Draft {
        number,
        author: speaker.id.clone(),
        published: context.index,
        approvers_version: 1,
        quiet_ticks: u64::from(reminder_minutes).saturating_mul(60_000),
        timer: 0,
        reminded_at: None,
        told_stances: 0,
        told_missing: false,
    });
    if let Some(old) = before.draft.filter(|old| old.author != speaker.id) {
        members::forget_guest(state, &id, &old.author)?;
    }
    if speaker.client != Client::Instance {
        members::involve(state, &id, &speaker.id)?;
    }
    beat(state, context, &meeting)?;
    watch(state, context, &mut meeting, told)?;
    tables::MEETINGS.put(state, &id, &meeting)?;
    told.push(Event::Meeting { id: id.clone() });
    Ok(Reply::PostedIn { meeting: id, id: number })
}

/// What one says of a proposal.
pub(super) struct Saying<'a> {
    pub(super) proposal: u64,
    pub(super) opinion: Opinion,
    pub(super) note: &'a str,
}

impl Saying<'_> {
    fn check(&self) -> Result<(), Rejection> {
        if !texts::has_at_most(self.note, limits::STANCE_NOTE_CHARS_MAX) {
            return Err(Rejection::invalid("note", "must have at most 2,000 characters"));
        }
        if self.opinion == Opinion::Object && self.note.trim().is_empty() {
            let rule = "must say why, when the stance is object";
            return Err(Rejection::invalid("note", rule));
        }
        Ok(())
    }
}

/// Takes a stance; returns the decision when it was the last that was missing.
pub(super) fn stance(
    state: &mut impl Store,
    context: &Context<'_>,
    id: &str,
    saying: &Saying<'_>,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    saying.check()?;
    // An objection is posted, so it needs room for a message.
    let meeting =
        if saying.opinion == Opinion::Object { open_room(state, id)? } else { active(state, id)? };
    let proposal = proposal(state, &meeting, saying.proposal)?;
    let speaker = context.speaker()?;
    let key = (id, proposal.id, speaker.id.as_str());
    let before = tables::STANCES.get(state, key)?;
    if before.is_none() {
        has_room(state, id, proposal.id, &speaker.id)?;
    }
    let speaker = conversations::active(state, context, told)?;
    let instance = speaker.client == Client::Instance;
    let after = Stance {
        id: speaker.id.clone(),
        opinion: saying.opinion,
        note: (!saying.note.is_empty()).then(|| saying.note.into()),
        instance,
        taken: context.index,
        at: context.now.at,
    };
    let decision = if is_same(before.as_ref(), &after) {
        0
    } else {
        tables::STANCES.put(state, key, &after)?;
        settle(state, context, meeting, (&proposal, &speaker, &after), told)?
    };
    let draft = present(state, id)?.draft_number();
    Ok(Reply::Stanced { draft, counted: !instance, decision })
}

/// Checks that one more stance on a proposal fits; guests leave room for the members.
fn has_room(state: &impl Read, id: &str, proposal: u64, speaker: &str) -> Result<(), Stop> {
    let count = approvals::stances_on(state, id, proposal)?.len();
    let member = tables::MEETING_MEMBERS.has(state, (id, speaker))?;
    let most = if member { limits::STANCES_MAX } else { limits::GUEST_STANCES_MAX };
    if count < most {
        return Ok(());
    }
    let what = if member {
        format!("message {proposal}: has 500 stances, no more; publish it anew")
    } else {
        format!("message {proposal}: has {count} stances, only members take more; join first")
    };
    Err(Rejection::full(what).into())
}

/// Returns whether nothing new was said.
fn is_same(before: Option<&Stance>, after: &Stance) -> bool {
    match before {
        Some(before) => (before.opinion, &before.note) == (after.opinion, &after.note),
        None => after.opinion == Opinion::Withdraw,
    }
}

/// Posts an objection, and looks whether the draft is agreed now; returns the decision's number, or
/// 0.
fn settle(
    state: &mut impl Store,
    context: &Context<'_>,
    mut meeting: Meeting,
    (proposal, speaker, stance): (&Message, &Conversation, &Stance),
    told: &mut Vec<Event>,
) -> Result<u64, Stop> {
    if stance.opinion == Opinion::Object {
        let who = name_of(speaker);
        let note = stance.note.as_deref().unwrap_or_default();
        let text = format!("{who} objects to #{}: {note}", proposal.id);
        announce(state, context, &meeting, (&text, Category::Update, &speaker.id), told)?;
    }
    told.push(Event::Meeting { id: meeting.id.clone() });
    if meeting.draft_number() != proposal.id {
        return Ok(0);
    }
    if let Some(decision) = agree(state, context, &mut meeting, &speaker.id, told)? {
        return Ok(decision);
    }
    watch(state, context, &mut meeting, told)?;
    tables::MEETINGS.put(state, &meeting.id, &meeting)?;
    Ok(0)
}

/// Closes the meeting when its draft is agreed; returns the decision's number.
fn agree(
    state: &mut impl Store,
    context: &Context<'_>,
    meeting: &mut Meeting,
    by: &str,
    told: &mut Vec<Event>,
) -> Result<Option<u64>, Stop> {
    let agreed = approvals::of_draft(state, meeting)?.filter(Approvals::is_consensus);
    let Some(agreed) = agreed else { return Ok(None) };
    let draft = proposal(state, meeting, agreed.message_id)?;
    let decision = announce(state, context, meeting, (&draft.text, Category::Decision, by), told)?;
    meeting.decisions = meeting.decisions.saturating_add(1);
    life::close(state, context, meeting, Ending::Consensus { decision }, told)?;
    Ok(Some(decision))
}

/// Follows a change of the list of required approvers: says so in the meeting under a new version,
/// and looks whether those who are left agree. The caller's meeting is written.
pub(super) fn list_changed(
    state: &mut impl Store,
    context: &Context<'_>,
    meeting: &mut Meeting,
    (speaker, change): (&Conversation, &str),
    told: &mut Vec<Event>,
) -> Result<(), Stop> {
    let Some(draft) = &mut meeting.draft else { return Ok(()) };
    draft.approvers_version = draft.approvers_version.saturating_add(1);
    let (number, version) = (draft.number, draft.approvers_version);
    let now = approvals::of_draft(state, meeting)?.unwrap_or_default();
    let who = name_of(speaker);
    let required = names_of(state, &now.required)?;
    let text =
        format!("{who} {change}. Approvers of draft #{number}, version {version}: {required}.");
    announce(state, context, meeting, (&text, Category::Update, &speaker.id), told)?;
    if agree(state, context, meeting, &speaker.id, told)?.is_none() {
        watch(state, context, meeting, told)?;
        tables::MEETINGS.put(state, &meeting.id, meeting)?;
    }
    Ok(())
}

/// Returns a message that must be a proposal of the meeting.
fn proposal(state: &impl Read, meeting: &Meeting, number: u64) -> Result<Message, Stop> {
    let message = chat::message(state, &meeting.room(), number)?;
    let message = message.ok_or_else(|| {
        Rejection::not_found(format!("message {number} of meeting {}", meeting.id))
    })?;
    if message.category == Category::Proposal {
        return Ok(message);
    }
    let what = format!("messageId: message {number} is no PROPOSAL, a stance needs one");
    Err(Rejection::conflict(what).into())
}

/// Returns how messages name somebody: what people see, and what tools take.
fn name_of(speaker: &Conversation) -> String {
    match speaker.name.as_str() {
        "" => speaker.id.clone(),
        name => format!("{name} ({})", speaker.id),
    }
}

fn names_of(state: &impl Read, ids: &[String]) -> Result<String, Fault> {
    if ids.is_empty() {
        return Ok("nobody".into());
    }
    let mut names = String::new();
    for id in ids.iter().take(limits::APPROVERS_NAMED_MAX) {
        let row = conversations::conversation(state, id)?;
        if !names.is_empty() {
            names.push_str(", ");
        }
        names.push_str(&row.as_ref().map_or_else(|| id.clone(), name_of));
    }
    let more = ids.len().saturating_sub(limits::APPROVERS_NAMED_MAX);
    if more > 0 {
        names.push_str(&format!(" and {more} more"));
    }
    Ok(names)
}

/// Notes that somebody spoke, while a reminder waits for the meeting to be quiet.
pub(super) fn beat(
    state: &mut impl Store,
    context: &Context<'_>,
    meeting: &Meeting,
) -> Result<(), Fault> {
    let waits = |draft: &Draft| draft.quiet_ticks > 0 && draft.reminded_at.is_none();
    if meeting.draft.as_ref().is_some_and(waits) {
        tables::MEETING_PULSES.put(state, &meeting.id, &context.now.tick)?;
    }
    Ok(())
}

fn timer(meeting: &Meeting, due: u64) -> Due {
    let (id, generation) = (meeting.id.clone(), meeting.draft_number());
    Due { due, kind: DueKind::Reminder, id, generation }
}

/// Sets the timer of the reminder when somebody's stance is missing and none is set; the caller
/// writes the meeting.
fn watch(
    state: &mut impl Store,
    context: &Context<'_>,
    meeting: &mut Meeting,
    told: &mut Vec<Event>,
) -> Result<(), Stop> {
    let Some(draft) = &meeting.draft else { return Ok(()) };
    if draft.quiet_ticks == 0 || draft.reminded_at.is_some() || draft.timer != 0 {
        return Ok(());
    }
    let missing = approvals::of_draft(state, meeting)?.is_some_and(|now| !now.waiting.is_empty());
    if missing {
        let quiet = quiet_from(state, meeting)?;
        set_timer(state, meeting, quiet.max(context.now.tick), told)?;
    }
    Ok(())
}

/// Returns from which tick on the meeting has been quiet for long.
fn quiet_from(state: &impl Read, meeting: &Meeting) -> Result<u64, Fault> {
    let last = tables::MEETING_PULSES.get(state, &meeting.id)?.unwrap_or_default();
    let ticks = meeting.draft.as_ref().map_or(0, |draft| draft.quiet_ticks);
    Ok(last.saturating_add(ticks))
}

fn set_timer(
    state: &mut impl Store,
    meeting: &mut Meeting,
    tick: u64,
    told: &mut Vec<Event>,
) -> Result<(), Fault> {
    due::arm(state, &timer(meeting, tick), told)?;
    if let Some(draft) = &mut meeting.draft {
        draft.timer = tick;
    }
    Ok(())
}

/// Takes the reminder of a draft back.
pub(super) fn stop_watching(state: &mut impl Store, meeting: &Meeting) -> Result<(), Fault> {
    let Some(draft) = &meeting.draft else { return Ok(()) };
    if draft.timer != 0 {
        due::disarm(state, &timer(meeting, draft.timer))?;
    }
    tables::MEETING_PULSES.delete(state, &meeting.id)
}

/// Reminds, once for a draft, all whose stance is missing when the meeting was quiet; looks again
/// later when it was not.
pub(crate) fn remind(
    state: &mut impl Store,
    context: &Context<'_>,
    due: &Due,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    let lost = || Rejection::Impossible { what: format!("a reminder of meeting {}", due.id) };
    let mut meeting = super::meeting(state, &due.id)?.ok_or_else(lost)?;
    let quiet = quiet_from(state, &meeting)?;
    let draft = meeting.draft.as_mut().filter(|draft| draft.timer == due.due).ok_or_else(lost)?;
    draft.timer = 0;
    let number = draft.number;
    let waiting = approvals::of_draft(state, &meeting)?.unwrap_or_default().waiting;
    let mut changed = 1usize;
    if quiet > context.now.tick {
        set_timer(state, &mut meeting, quiet, told)?;
    } else if !waiting.is_empty() {
        for id in &waiting {
            if let Some(mut member) = tables::MEETING_MEMBERS.get(state, (&meeting.id, id))? {
                member.reminded = number;
                tables::MEETING_MEMBERS.put(state, (&meeting.id, id), &member)?;
                changed = changed.saturating_add(1);
            }
        }
        if let Some(draft) = &mut meeting.draft {
            draft.reminded_at = Some(context.now.at);
        }
        tables::MEETING_PULSES.delete(state, &meeting.id)?;
        told.push(Event::Meeting { id: meeting.id.clone() });
    }
    tables::MEETINGS.put(state, &meeting.id, &meeting)?;
    Ok(Reply::fired(changed))
}
