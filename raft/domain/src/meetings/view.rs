//! What people see of meetings: everything that the tools answer.

use alloc::string::String;
use alloc::vec::Vec;

use super::approvals::{self, Approvals, members_of};
use super::{Meeting, Phase};
use crate::chat;
use crate::command::meetings::{Approver, Mode};
use crate::command::{Category, Client, Status};
use crate::conversations::{self, Conversation};
use crate::entry::NodeId;
use crate::store::{Direction, Fault, KeyRange, Read};
use crate::{limits, tables};

/// A meeting with all that belongs to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// The meeting itself.
    pub meeting: Meeting,
    /// Who spoke in it, the first 200 in the order of their ids.
    pub participants: Vec<String>,
    /// Who joined and did not leave.
    pub members: Vec<MemberView>,
    /// How many messages it has.
    pub messages: u64,
    /// How its current draft stands.
    pub proposal: Option<Approvals>,
}

/// A member as people see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberView {
    /// The conversation or instance.
    pub id: String,
    /// Whether it is an instance.
    pub instance: bool,
    /// The conversation's name; `None` for an instance.
    pub name: Option<String>,
    /// The conversation's title; `None` for an instance.
    pub title: Option<String>,
    /// What the conversation does; `None` for an instance.
    pub status: Option<Status>,
    /// The node that it is at home on; 0 when it is not known any more.
    pub home: NodeId,
    /// How it takes part.
    pub mode: Mode,
    /// Whether drafts need its endorsement.
    pub approver: Approver,
    /// When it joined, milliseconds since 1970.
    pub joined_at: u64,
    /// How often the meeting woke it or held its turn.
    pub wakes: u64,
    /// When that was last, milliseconds since 1970.
    pub last_woken_at: Option<u64>,
}

/// Returns a meeting with all that belongs to it.
///
/// # Errors
/// A fault when the state cannot be read.
pub fn view(state: &impl Read, id: &str) -> Result<Option<View>, Fault> {
    match super::meeting(state, id)? {
        Some(meeting) => full(state, meeting).map(Some),
        None => Ok(None),
    }
}

/// Returns meetings, those started last first: all, or those of a phase; with `before` those that
/// were started before that meeting, none when there is no such one. At most `limit` and 200.
///
/// # Errors
/// A fault when the state cannot be read, or an index names nothing.
pub fn list(
    state: &impl Read,
    phase: Option<Phase>,
    before: Option<&str>,
    limit: usize,
) -> Result<Vec<View>, Fault> {
    let before = match before {
        Some(id) => match super::meeting(state, id)? {
            Some(meeting) => Some(meeting.started),
            None => return Ok(Vec::new()),
        },
        None => None,
    };
    let limit = limit.min(limits::MEETINGS_LIST_MAX);
    let ids: Vec<String> = match phase {
        Some(phase) => {
            let table = &tables::MEETINGS_IN_PHASE;
            let all = table.beginning::<u8>(phase.number());
            let end = before.map(|started| table.key((phase.number(), started)));
            let range = KeyRange { start: all.start, end: end.or(all.end) };
            let rows = table.rows(state, range, Direction::Reverse);
            rows.take(limit).map(|row| Ok(row?.1)).collect::<Result<_, Fault>>()?
        }
        None => {
            let table = &tables::MEETINGS_STARTED;
            let all = table.all();
            let end = before.map(|started| table.key(started));
            let range = KeyRange { start: all.start, end: end.or(all.end) };
            let rows = table.rows(state, range, Direction::Reverse);
            rows.take(limit).map(|row| Ok(row?.1)).collect::<Result<_, Fault>>()?
        }
    };
    let mut found = Vec::new();
    for id in ids {
        found.push(full(state, tables::MEETINGS.must(state, &id)?)?);
    }
    Ok(found)
}

fn full(state: &impl Read, meeting: Meeting) -> Result<View, Fault> {
    let range = tables::MEETING_SPEAKERS.beginning::<String>(&meeting.id);
    let speakers = tables::MEETING_SPEAKERS.keys(state, range, Direction::Forward);
    let participants = speakers
        .take(limits::MEETING_SHOWN_MAX)
        .map(|key| Ok(key?.1))
        .collect::<Result<_, Fault>>()?;
    let members = members(state, &meeting.id)?;
    let messages = chat::last_id(state, &meeting.room())?;
    let proposal = approvals::of_draft(state, &meeting)?;
    Ok(View { meeting, participants, members, messages, proposal })
}

/// Returns the members of a meeting, in the order of their ids.
///
/// # Errors
/// A fault when the state cannot be read.
pub fn members(state: &impl Read, id: &str) -> Result<Vec<MemberView>, Fault> {
    if !super::is_kept(state, id)? {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for member in members_of(state, id)? {
        let row = conversations::conversation(state, &member.id)?;
        let seen = row.as_ref().filter(|row| row.client != Client::Instance);
        // One that is not known any more is away for good.
        let status = if member.instance {
            None
        } else {
            Some(seen.map_or(Status::Offline, |row| row.status))
        };
        found.push(MemberView {
            name: seen.map(|row| row.name.clone()),
            title: seen.map(|row| row.shown_title().into()),
            status,
            home: row.as_ref().map_or(0, |row: &Conversation| row.home),
            id: member.id,
            instance: member.instance,
            mode: member.mode,
            approver: member.approver,
            joined_at: member.joined_at,
            wakes: member.wakes,
            last_woken_at: member.last_woken_at,
        });
    }
    Ok(found)
}

/// Returns how a proposal of a meeting stands, the current draft or another one; `None` when there
/// is no such proposal.
///
/// # Errors
/// A fault when the state cannot be read.
pub fn approvals(state: &impl Read, id: &str, proposal: u64) -> Result<Option<Approvals>, Fault> {
    let Some(meeting) = super::meeting(state, id)? else { return Ok(None) };
    if meeting.draft_number() == proposal {
        return approvals::of_draft(state, &meeting);
    }
    let message = chat::message(state, &meeting.room(), proposal)?;
    match message.filter(|message| message.category == Category::Proposal) {
        Some(message) => approvals::of_proposal(state, &meeting, &message).map(Some),
        None => Ok(None),
    }
}
