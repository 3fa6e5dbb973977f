//! What meetings have to tell a conversation: asked by its home node on a hint and at each hook,
//! and answered from marks, so that asking twice is harmless.

use alloc::string::String;
use alloc::vec::Vec;

use super::approvals::{self, Approvals, stances_on};
use super::{Ending, Meeting, Member, Phase, Stance};
use crate::chat::{self, Gist};
use crate::command::meetings::{Mode, Told};
use crate::store::{Direction, Fault, Read};
use crate::{limits, tables};

/// What one meeting has to tell a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct News {
    /// The meeting: its topic, and how it ended.
    pub meeting: Meeting,
    /// How the conversation takes part; `None`: it is no member, but the author of the draft.
    pub mode: Option<Mode>,
    /// Messages of others that it was not told of and did not read. When none was found among very
    /// many of its own, there is nothing to tell, and saying so lets the next look go on behind.
    pub messages: Gist,
    /// Whether it is to be told that the meeting ended, by whose doing and how.
    pub ended: bool,
    /// Stances on its draft that it was not told of, those taken back too.
    pub stances: Vec<Stance>,
    /// Whether it is to be reminded of its missing stance on the draft.
    pub reminded: bool,
    /// Who was reminded and is still missing at its draft.
    pub missing: Vec<String>,
    /// Whether any of this wakes it, or holds its turn.
    pub wakes: bool,
    /// What is to be said when it was told all this; `woke` is false.
    pub told: Told,
}

/// Returns what meetings have to tell a conversation, in the order of the meetings' ids.
///
/// # Errors
/// A fault when the state cannot be read.
pub fn news(state: &impl Read, conversation: &str) -> Result<Vec<News>, Fault> {
    let range = tables::INVOLVED.beginning::<String>(conversation);
    let keys: Vec<_> = tables::INVOLVED
        .keys(state, range, Direction::Forward)
        .take(limits::NEWS_MEETINGS_MAX)
        .collect::<Result<_, Fault>>()?;
    let mut found = Vec::new();
    for (_, id) in keys {
        // One that was kept long enough is gone before its rows are.
        if let Some(meeting) = super::meeting(state, &id)?
            && let Some(news) = of_meeting(state, conversation, meeting)?
        {
            found.push(news);
        }
    }
    Ok(found)
}

fn of_meeting(
    state: &impl Read,
    conversation: &str,
    meeting: Meeting,
) -> Result<Option<News>, Fault> {
    let member = tables::MEETING_MEMBERS.get(state, (&meeting.id, conversation))?;
    let messages = match &member {
        Some(member) => messages(state, &meeting, member)?,
        None => Gist::default(),
    };
    let ended = meeting.phase != Phase::Active
        && meeting.ended_by.as_deref() != Some(conversation)
        && member.as_ref().is_some_and(|member| member.told_end < meeting.ended);
    let standing = match meeting.phase {
        Phase::Active => approvals::of_draft(state, &meeting)?,
        Phase::Closed | Phase::Archived => None,
    };
    let reminded = is_reminded(&meeting, member.as_ref(), standing.as_ref());
    let (stances, missing) = of_author(state, conversation, &meeting, standing.as_ref())?;
    let speaks = messages.count > 0 || messages.more;
    if !(speaks || ended || reminded || !stances.is_empty() || !missing.is_empty()) {
        return Ok(None);
    }
    let mode = member.as_ref().map(|member| member.mode);
    let active = mode == Some(Mode::Active);
    let wakes = (active && (messages.count > 0 || ended))
        || reminded
        || !stances.is_empty()
        || !missing.is_empty();
    let number = meeting.draft_number();
    let told = Told {
        meeting: meeting.id.clone(),
        conversation: conversation.into(),
        messages: if speaks { messages.upto } else { 0 },
        stances: stances.iter().map(|stance| stance.taken).max().unwrap_or_default(),
        reminder: if reminded || !missing.is_empty() { number } else { 0 },
        ended: if ended { meeting.ended } else { 0 },
        woke: false,
    };
    Ok(Some(News { meeting, mode, messages, ended, stances, reminded, missing, wakes, told }))
}

/// Returns what others said that a member was not told of and did not read.
fn messages(state: &impl Read, meeting: &Meeting, member: &Member) -> Result<Gist, Fault> {
    let room = meeting.room();
    let read = chat::read_up_to(state, &room, &member.id)?;
    chat::news(state, &room, member.told_messages.max(read), &member.id)
}

/// Returns whether a member is to be told that its stance on the draft is missing.
fn is_reminded(meeting: &Meeting, member: Option<&Member>, standing: Option<&Approvals>) -> bool {
    let (Some(member), Some(standing)) = (member, standing) else { return false };
    let number = meeting.draft_number();
    member.reminded == number
        && member.told_reminder < number
        && standing.waiting.binary_search(&member.id).is_ok()
}

/// Returns what the author of the draft is to be told: stances of others, and who is missing.
fn of_author(
    state: &impl Read,
    conversation: &str,
    meeting: &Meeting,
    standing: Option<&Approvals>,
) -> Result<(Vec<Stance>, Vec<String>), Fault> {
    let draft = meeting.draft.as_ref().filter(|draft| draft.author == conversation);
    let Some(draft) = draft else { return Ok((Vec::new(), Vec::new())) };
    let mut stances = stances_on(state, &meeting.id, draft.number)?;
    stances.retain(|stance| stance.id != conversation && stance.taken > draft.told_stances);
    let mut missing = Vec::new();
    if draft.reminded_at.is_some()
        && !draft.told_missing
        && let Some(standing) = standing
    {
        missing.clone_from(&standing.waiting);
    }
    Ok((stances, missing))
}

impl News {
    /// Returns the number of the decision with which the meeting ended in consensus.
    #[must_use]
    pub fn decision(&self) -> Option<u64> {
        match self.meeting.ending {
            Ending::Consensus { decision } => Some(decision),
            Ending::Open | Ending::Manual => None,
        }
    }
}
