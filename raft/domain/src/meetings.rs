//! Meetings: talk with an end, drafts, and who agreed.
//!
//! A meeting is active, then closed by somebody or by consensus, then archived; it can be reopened.
//! Its messages are a room of the chat. Its members' rows say how they take part and what they were
//! told; the approvers that a draft needs are never written down, they follow from those rows: a
//! member that is a conversation, is required, and had joined before the draft was published. So a
//! list can only change where a member leaves or changes its part, and there a new version of it is
//! posted.
//!
//! What is due to a conversation (news, ends, stances on its draft, reminders) follows from the
//! marks in its member's row and in the draft ([`news()`]); nothing is queued, so nothing is lost
//! when a node misses a hint (traps.md 10). A node says with `Told` what it told and whom it woke.

mod approvals;
mod drafts;
mod ids;
mod life;
mod members;
mod news;
mod retention;
mod view;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use minicbor::{Decode, Encode};

use crate::chat;
use crate::command::meetings::{Approver, MeetingCommand, Mode, Opinion};
use crate::command::{Category, Room};
use crate::context::{Context, Stop};
use crate::event::Event;
pub(crate) use crate::meetings::approvals::stances_on;
pub use crate::meetings::approvals::{Approvals, Said};
pub(crate) use crate::meetings::drafts::remind;
pub use crate::meetings::news::{News, news};
pub(crate) use crate::meetings::retention::{keeping_ends, rest_goes};
pub use crate::meetings::view::{MemberView, View, approvals, list, members, view};
use crate::rejection::Rejection;
use crate::reply::Reply;
use crate::store::{Direction, Fault, Read, Store};
use crate::{limits, tables};

/// Where a meeting stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
#[cbor(index_only)]
pub enum Phase {
    /// People talk.
    #[n(0)]
    Active,
    /// It ended.
    #[n(1)]
    Closed,
    /// It ended and was put away.
    #[n(2)]
    Archived,
}

impl Phase {
    /// Returns its number in keys; numbers are for ever.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Active => 0,
            Self::Closed => 1,
            Self::Archived => 2,
        }
    }
}

/// How a meeting ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Ending {
    /// It did not.
    #[n(0)]
    Open,
    /// Somebody ended it.
    #[n(1)]
    Manual,
    /// All required approvers endorsed its draft.
    #[n(2)]
    Consensus {
        /// The number of the message that says what was decided.
        #[n(0)]
        decision: u64,
    },
}

/// A meeting.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Meeting {
    /// Its id: when it was started, a part of its topic, and the entry that started it.
    #[n(0)]
    pub id: String,
    /// What it is about.
    #[n(1)]
    pub topic: String,
    /// Where it stands.
    #[n(2)]
    pub phase: Phase,
    /// Who started it.
    #[n(3)]
    pub initiator: String,
    /// Its place in the order of all starts and reopenings, when it was started.
    #[n(4)]
    pub started: u64,
    /// When it was started, milliseconds since 1970.
    #[n(5)]
    pub started_at: u64,
    /// Its place in that order when it was started or reopened last.
    #[n(6)]
    pub activated: u64,
    /// The entry that ended it; 0 while it is active.
    #[n(7)]
    pub ended: u64,
    /// When it ended, milliseconds since 1970.
    #[n(8)]
    pub ended_at: Option<u64>,
    /// Who ended it, or whose stance did.
    #[n(9)]
    pub ended_by: Option<String>,
    /// How it ended.
    #[n(10)]
    pub ending: Ending,
    /// What came of it, as who ended it last said.
    #[n(11)]
    pub summary: Option<String>,
    /// How many decisions were posted.
    #[n(12)]
    pub decisions: u64,
    /// How many wakes and held turns it caused.
    #[n(13)]
    pub wakes: u64,
    /// Its current draft.
    #[n(14)]
    pub draft: Option<Draft>,
    /// The tick until which it is kept at least; 0 while it is not archived.
    #[n(15)]
    pub kept_until: u64,
}

impl Meeting {
    /// Returns the room of its messages.
    #[must_use]
    pub fn room(&self) -> Room {
        Room::Meeting(self.id.clone())
    }

    /// Returns the current draft's number; 0 when there is none.
    #[must_use]
    pub fn draft_number(&self) -> u64 {
        self.draft.as_ref().map_or(0, |draft| draft.number)
    }
}

/// The draft that a meeting is about to agree on.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Draft {
    /// Its message's number.
    #[n(0)]
    pub number: u64,
    /// Who published it.
    #[n(1)]
    pub author: String,
    /// The entry that published it: who joined later is never asked.
    #[n(2)]
    pub published: u64,
    /// The version of the list of required approvers, from 1.
    #[n(3)]
    pub approvers_version: u64,
    /// For how many ticks the meeting must be quiet before approvers are reminded; 0: for ever.
    #[n(4)]
    pub quiet_ticks: u64,
    /// The tick of the timer that looks whether it is quiet; 0: there is none.
    #[n(5)]
    pub timer: u64,
    /// When approvers were reminded, milliseconds since 1970: once for a draft.
    #[n(6)]
    pub reminded_at: Option<u64>,
    /// Up to which stance its author was told (`taken` of the newest).
    #[n(7)]
    pub told_stances: u64,
    /// Whether its author was told who is missing.
    #[n(8)]
    pub told_missing: bool,
}

/// A member of a meeting: who joined and did not leave.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Member {
    /// The conversation or instance.
    #[n(0)]
    pub id: String,
    /// Whether it is an instance: it can be told nothing and never approves.
    #[n(1)]
    pub instance: bool,
    /// How it takes part.
    #[n(2)]
    pub mode: Mode,
    /// Whether drafts need its endorsement.
    #[n(3)]
    pub approver: Approver,
    /// The entry with which it joined.
    #[n(4)]
    pub joined: u64,
    /// When it joined, milliseconds since 1970.
    #[n(5)]
    pub joined_at: u64,
    /// How often the meeting woke it or held its turn.
    #[n(6)]
    pub wakes: u64,
    /// When that was last, milliseconds since 1970.
    #[n(7)]
    pub last_woken_at: Option<u64>,
    /// Up to which message it was told that there are new ones.
    #[n(8)]
    pub told_messages: u64,
    /// Of which end it was told (`ended`).
    #[n(9)]
    pub told_end: u64,
    /// Of which draft it was found without a stance when the meeting was quiet.
    #[n(10)]
    pub reminded: u64,
    /// Of which draft it was told that its stance is missing.
    #[n(11)]
    pub told_reminder: u64,
}

/// What somebody thinks of a proposal; one taken back stays, so that the author can be told.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Stance {
    /// Whose it is.
    #[n(0)]
    pub id: String,
    /// What it thinks.
    #[n(1)]
    pub opinion: Opinion,
    /// Why, or what it has against it nevertheless.
    #[n(2)]
    pub note: Option<String>,
    /// Whether it is an instance's: its objection blocks, its endorsement does not count.
    #[n(3)]
    pub instance: bool,
    /// The entry with which it was taken.
    #[n(4)]
    pub taken: u64,
    /// When, milliseconds since 1970.
    #[n(5)]
    pub at: u64,
}

/// How many meetings there are and were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Totals {
    /// How many are kept.
    #[n(0)]
    pub(crate) kept: u64,
    /// How many starts and reopenings there were.
    #[n(1)]
    pub(crate) turns: u64,
}

pub(crate) fn run(
    state: &mut impl Store,
    context: &Context<'_>,
    command: &MeetingCommand,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    match command {
        MeetingCommand::Start { topic } => life::start(state, context, topic, told),
        MeetingCommand::End { meeting, summary } => {
            life::end(state, context, meeting, summary, told)
        }
        MeetingCommand::Archive { meeting } => life::archive(state, context, meeting, told),
        MeetingCommand::Reopen { meeting } => life::reopen(state, context, meeting, told),
        MeetingCommand::Join { meeting, mode, approver, since } => {
            let part = members::Part { mode: *mode, approver: *approver, since: *since };
            members::join(state, context, meeting, &part, told)
        }
        MeetingCommand::Leave { meeting } => members::leave(state, context, meeting, told),
        MeetingCommand::Post { text, category } => {
            drafts::post(state, context, text, *category, told)
        }
        MeetingCommand::Draft { meeting, text, reminder_minutes } => {
            drafts::publish(state, context, meeting, (text, *reminder_minutes), told)
        }
        MeetingCommand::Stance { meeting, proposal, opinion, note } => {
            let said = drafts::Saying { proposal: *proposal, opinion: *opinion, note };
            drafts::stance(state, context, meeting, &said, told)
        }
        MeetingCommand::Told { told: marks } => members::told(state, context, marks),
    }
}

/// Returns a meeting.
///
/// # Errors
/// A fault when the state cannot be read.
pub fn meeting(state: &impl Read, id: &str) -> Result<Option<Meeting>, Fault> {
    if id.len() > limits::MEETING_ID_BYTES_MAX {
        return Ok(None);
    }
    tables::MEETINGS.get(state, id)
}

/// Returns the default meeting's id: of the active ones the one that was started or reopened last.
///
/// # Errors
/// A fault when the state cannot be read.
pub fn default_meeting(state: &impl Read) -> Result<Option<String>, Fault> {
    let range = tables::MEETINGS_ACTIVE.all();
    let newest = tables::MEETINGS_ACTIVE.rows(state, range, Direction::Reverse).next();
    newest.transpose().map(|row| row.map(|(_, id)| id))
}

/// Returns whether there is such a meeting.
pub(crate) fn is_kept(state: &impl Read, id: &str) -> Result<bool, Fault> {
    Ok(id.len() <= limits::MEETING_ID_BYTES_MAX && tables::MEETINGS.has(state, id)?)
}

/// Returns a meeting that must be there.
pub(crate) fn present(state: &impl Read, id: &str) -> Result<Meeting, Stop> {
    if id.is_empty() {
        return Err(Rejection::invalid("meetingId", "must name a meeting").into());
    }
    let shown = || Rejection::not_found(format!("meeting {}", ids::shown(id)));
    Ok(meeting(state, id)?.ok_or_else(shown)?)
}

/// Returns a meeting that must be active.
fn active(state: &impl Read, id: &str) -> Result<Meeting, Stop> {
    let meeting = present(state, id)?;
    let what = match meeting.phase {
        Phase::Active => return Ok(meeting),
        Phase::Closed => "has ended; reopen it (reopen_meeting) or start another",
        Phase::Archived => "is archived; reopen it (reopen_meeting) or start another",
    };
    Err(Rejection::conflict(format!("meeting {id}: {what}")).into())
}

/// Returns an active meeting that has room for a message.
pub(crate) fn open_room(state: &impl Read, id: &str) -> Result<Meeting, Stop> {
    let meeting = active(state, id)?;
    if chat::last_id(state, &meeting.room())? >= limits::MEETING_MESSAGES_MAX {
        let what = format!("meeting {id}: has 100,000 messages, no more; end it, start another");
        return Err(Rejection::full(what).into());
    }
    Ok(meeting)
}

/// Checks that one has a place in a meeting, or finds one: everybody may read. What one has there
/// stays as long as the meeting, so that who comes back after a long time goes on where it was.
pub(crate) fn find_place(state: &impl Read, meeting: &Meeting, reader: &str) -> Result<(), Stop> {
    if chat::cursor(state, &meeting.room(), reader)?.is_some()
        || places(state, &meeting.id)? < limits::MEETING_READERS_MAX
    {
        return Ok(());
    }
    let what = format!(
        "meeting {}: 10,000 have read it, no more; read it with latest or afterId, or start \
         another",
        meeting.id
    );
    Err(Rejection::full(what).into())
}

/// Counts a new place in a meeting.
pub(crate) fn place_taken(state: &mut impl Store, id: &str) -> Result<(), Fault> {
    let places = places(state, id)?.saturating_add(1);
    tables::MEETING_READERS.put(state, id, &places)
}

/// Returns how many have a place in a meeting.
pub(crate) fn places(state: &impl Read, id: &str) -> Result<u64, Fault> {
    Ok(tables::MEETING_READERS.get(state, id)?.unwrap_or_default())
}

/// Returns the id that was given, or the default meeting's.
fn given_or_default(state: &impl Read, given: &str) -> Result<String, Stop> {
    if !given.is_empty() {
        return Ok(given.into());
    }
    let what = "meetingId: no meeting is active; start one (start_meeting) or name one";
    Ok(default_meeting(state)?.ok_or_else(|| Rejection::conflict(what))?)
}

/// Notes what a member's or guest's message changes beside the room.
pub(crate) fn spoken(
    state: &mut impl Store,
    context: &Context<'_>,
    mut meeting: Meeting,
    speaker: &str,
    category: Category,
) -> Result<(), Stop> {
    let key = (meeting.id.as_str(), speaker);
    if !tables::MEETING_SPEAKERS.has(state, key)? {
        tables::MEETING_SPEAKERS.put(state, key, &())?;
    }
    drafts::beat(state, context, &meeting)?;
    if category == Category::Decision {
        meeting.decisions = meeting.decisions.saturating_add(1);
        tables::MEETINGS.put(state, &meeting.id, &meeting)?;
    }
    Ok(())
}

/// Posts a message of the cluster itself into a meeting, about somebody's doing.
fn announce(
    state: &mut impl Store,
    context: &Context<'_>,
    meeting: &Meeting,
    (text, category, about): (&str, Category, &str),
    told: &mut Vec<Event>,
) -> Result<u64, Stop> {
    let post = chat::Post::by_cluster(text, category, about);
    let id = chat::place(state, context, &meeting.room(), post, told)?;
    drafts::beat(state, context, meeting)?;
    Ok(id)
}
