//! Members: joining, leaving, and what they were told.
//!
//! A conversation is involved in a meeting while the meeting may have something to tell it: as a
//! member while it is active, as a member that was not told of its end, or as the author of its
//! draft. A hook looks at those meetings alone.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::approvals::{is_asked, stances_on};
use super::{Meeting, Member, Phase, active, drafts, find_place, life, present};
use crate::command::Client;
use crate::command::meetings::{Approver, Mode, Since, Told};
use crate::context::{Context, Stop};
use crate::conversations::{self, Conversation};
use crate::event::Event;
use crate::rejection::Rejection;
use crate::reply::Reply;
use crate::store::{Fault, Read, Store};
use crate::{chat, limits, tables};

/// How one wants to take part.
pub(super) struct Part {
    pub(super) mode: Mode,
    pub(super) approver: Approver,
    pub(super) since: Since,
}

pub(super) fn join(
    state: &mut impl Store,
    context: &Context<'_>,
    id: &str,
    part: &Part,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    let mut meeting = active(state, id)?;
    let last = chat::last_id(state, &meeting.room())?;
    if let Since::After(number) = part.since
        && number > last
    {
        let rule = format!("must be at most {last}, the newest message's number");
        return Err(Rejection::invalid("since", rule).into());
    }
    let key = (id, context.speaker()?.id.as_str());
    let before = tables::MEETING_MEMBERS.get(state, key)?;
    if before.is_none() {
        has_room(state, id)?;
        may_take_part(state, id, key.1)?;
    }
    find_place(state, &meeting, key.1)?;
    let speaker = conversations::active(state, context, told)?;
    let mut member = match &before {
        Some(before) => before.clone(),
        None => new(context, &speaker, (part.mode, part.approver), last),
    };
    (member.mode, member.approver) = (part.mode, part.approver);
    match (part.since, &before) {
        (Since::Unsaid, Some(_)) => {}
        (Since::Unsaid, None) | (Since::Latest, _) => {
            chat::start_at(state, &meeting.room(), (&speaker.id, speaker.incarnation), last)?;
        }
        (Since::After(number), _) => {
            chat::start_at(state, &meeting.room(), (&speaker.id, speaker.incarnation), number)?;
        }
    }
    if before.is_none() {
        add(state, id, &member)?;
        let detail = format!("{}, {}", word(part.mode), needed(part.approver));
        life::record(state, context, "meeting.join", &meeting, Some(detail), told)?;
    } else if before.as_ref() != Some(&member) {
        add(state, id, &member)?;
        told.push(Event::Meeting { id: id.to_string() });
    }
    let was = before.as_ref().is_some_and(|before| is_asked(before, &meeting));
    let is = is_asked(&member, &meeting);
    if was != is {
        let change = if is { "is required now" } else { "is optional now" };
        drafts::list_changed(state, context, &mut meeting, (&speaker, change), told)?;
    }
    let again = before.is_some();
    Ok(Reply::Joined { mode: part.mode, approver: part.approver, again })
}

pub(super) fn leave(
    state: &mut impl Store,
    context: &Context<'_>,
    id: &str,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    let mut meeting = present(state, id)?;
    let key = (id, context.speaker()?.id.as_str());
    let Some(member) = tables::MEETING_MEMBERS.get(state, key)? else {
        let what = format!("meeting {id}: you are no member of it; join it (join_meeting)");
        return Err(Rejection::conflict(what).into());
    };
    let speaker = conversations::active(state, context, told)?;
    tables::MEETING_MEMBERS.delete(state, key)?;
    if !is_author(&meeting, key.1) {
        tables::INVOLVED.delete(state, (key.1, id))?;
    }
    life::record(state, context, "meeting.leave", &meeting, None, told)?;
    if meeting.phase == Phase::Active && is_asked(&member, &meeting) {
        drafts::list_changed(state, context, &mut meeting, (&speaker, "left"), told)?;
    }
    Ok(Reply::Meeting { id: id.to_string() })
}

fn word(mode: Mode) -> &'static str {
    match mode {
        Mode::Active => "active",
        Mode::Async => "async",
    }
}

fn needed(approver: Approver) -> &'static str {
    match approver {
        Approver::Required => "required",
        Approver::Optional => "optional",
    }
}

/// Checks that one more member fits.
fn has_room(state: &impl Read, id: &str) -> Result<(), Stop> {
    let range = tables::MEETING_MEMBERS.beginning::<String>(id);
    let most = limits::MEETING_MEMBERS_MAX;
    if tables::MEETING_MEMBERS.count(state, range, most)? < most {
        return Ok(());
    }
    let what = format!("meeting {id}: has 200 members, no more; speak there without joining");
    Err(Rejection::full(what).into())
}

/// Checks that a conversation may be involved in one more meeting.
pub(super) fn may_take_part(state: &impl Read, id: &str, conversation: &str) -> Result<(), Stop> {
    if tables::INVOLVED.has(state, (conversation, id))? {
        return Ok(());
    }
    let range = tables::INVOLVED.beginning::<String>(conversation);
    let most = limits::MEETINGS_JOINED_MAX;
    if tables::INVOLVED.count(state, range, most)? < most {
        return Ok(());
    }
    let what = "caller: takes part in 128 meetings, no more; leave some (leave_meeting)";
    Err(Rejection::full(what).into())
}

/// Makes a new member.
pub(super) fn new(
    context: &Context<'_>,
    speaker: &Conversation,
    (mode, approver): (Mode, Approver),
    last: u64,
) -> Member {
    Member {
        id: speaker.id.clone(),
        instance: speaker.client == Client::Instance,
        mode,
        approver,
        joined: context.index,
        joined_at: context.now.at,
        wakes: 0,
        last_woken_at: None,
        // Nothing from before is announced to it.
        told_messages: last,
        told_end: 0,
        reminded: 0,
        told_reminder: 0,
    }
}

/// Writes a member.
pub(super) fn add(state: &mut impl Store, id: &str, member: &Member) -> Result<(), Fault> {
    tables::MEETING_MEMBERS.put(state, (id, &member.id), member)?;
    // Nothing can ever be told to an instance.
    if member.instance { Ok(()) } else { involve(state, id, &member.id) }
}

/// Notes that a meeting may have something to tell a conversation.
pub(super) fn involve(state: &mut impl Store, id: &str, conversation: &str) -> Result<(), Fault> {
    if tables::INVOLVED.has(state, (conversation, id))? {
        return Ok(());
    }
    tables::INVOLVED.put(state, (conversation, id), &())
}

/// Lets go of the author of a draft that is none any more, unless it is a member.
pub(super) fn forget_guest(state: &mut impl Store, id: &str, author: &str) -> Result<(), Fault> {
    if tables::MEETING_MEMBERS.has(state, (id, author))? {
        return Ok(());
    }
    tables::INVOLVED.delete(state, (author, id))
}

fn is_author(meeting: &Meeting, conversation: &str) -> bool {
    meeting.draft.as_ref().is_some_and(|draft| draft.author == conversation)
}

/// Lets go of those whom a meeting that just ended has nothing to tell: who ended it, and an author
/// who is no member and knows of all stances.
pub(super) fn settle_after_end(
    state: &mut impl Store,
    meeting: &Meeting,
    by: &str,
) -> Result<(), Fault> {
    if !has_stance_news(state, meeting, by)? {
        tables::INVOLVED.delete(state, (by, &meeting.id))?;
    }
    if let Some(draft) = meeting.draft.as_ref().filter(|draft| draft.author != by)
        && !has_stance_news(state, meeting, &draft.author)?
    {
        forget_guest(state, &meeting.id, &draft.author)?;
    }
    Ok(())
}

/// Returns whether a conversation is the draft's author and was not told of a stance on it.
fn has_stance_news(
    state: &impl Read,
    meeting: &Meeting,
    conversation: &str,
) -> Result<bool, Fault> {
    let Some(draft) = meeting.draft.as_ref().filter(|draft| draft.author == conversation) else {
        return Ok(false);
    };
    let stances = stances_on(state, &meeting.id, draft.number)?;
    Ok(stances.iter().any(|stance| stance.id != conversation && stance.taken > draft.told_stances))
}

/// Takes note of what conversations at home on the node were told.
pub(super) fn told(
    state: &mut impl Store,
    context: &Context<'_>,
    marks: &[Told],
) -> Result<Reply, Stop> {
    if marks.len() > limits::TOLD_MAX {
        return Err(Rejection::invalid("told", "must be at most 240").into());
    }
    for mark in marks {
        // What moved away or ended meanwhile does not hold up the others.
        let Some(meeting) = super::meeting(state, &mark.meeting)? else { continue };
        let row = conversations::conversation(state, &mark.conversation)?;
        if row.is_none_or(|row| row.home != context.node) {
            continue;
        }
        note(state, context, &meeting, mark)?;
    }
    Ok(Reply::Done)
}

fn note(
    state: &mut impl Store,
    context: &Context<'_>,
    before: &Meeting,
    mark: &Told,
) -> Result<(), Fault> {
    let mut meeting = before.clone();
    let key = (meeting.id.as_str(), mark.conversation.as_str());
    let member = tables::MEETING_MEMBERS.get(state, key)?.filter(|member| !member.instance);
    let author = is_author(&meeting, &mark.conversation);
    if member.is_none() && !author {
        return Ok(());
    }
    let number = meeting.draft_number();
    let mut through = true;
    if let Some(before) = member {
        let mut after = before.clone();
        let last = chat::last_id(state, &meeting.room())?;
        after.told_messages = before.told_messages.max(mark.messages.min(last));
        after.told_end = before.told_end.max(mark.ended.min(meeting.ended));
        after.told_reminder = before.told_reminder.max(mark.reminder.min(before.reminded));
        if mark.woke {
            after.wakes = before.wakes.saturating_add(1);
            after.last_woken_at = Some(context.now.at);
        }
        let ender = meeting.ended_by.as_deref() == Some(after.id.as_str());
        through = ender || after.told_end >= meeting.ended;
        if after != before {
            tables::MEETING_MEMBERS.put(state, key, &after)?;
        }
    }
    if let Some(draft) = meeting.draft.as_mut().filter(|_| author) {
        draft.told_stances = draft.told_stances.max(mark.stances.min(context.index));
        draft.told_missing |= draft.reminded_at.is_some() && mark.reminder == number;
    }
    if mark.woke {
        meeting.wakes = meeting.wakes.saturating_add(1);
    }
    if meeting.phase != Phase::Active
        && through
        && !has_stance_news(state, &meeting, &mark.conversation)?
    {
        tables::INVOLVED.delete(state, (&mark.conversation, &meeting.id))?;
    }
    if meeting != *before {
        tables::MEETINGS.put(state, &meeting.id, &meeting)?;
    }
    Ok(())
}
