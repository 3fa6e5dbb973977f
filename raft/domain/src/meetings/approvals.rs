//! Who must agree to a proposal, and who does.

use alloc::string::String;
use alloc::vec::Vec;

use super::{Meeting, Member, Stance};
use crate::chat::Message;
use crate::command::meetings::{Approver, Opinion};
use crate::store::{Direction, Fault, Read};
use crate::{limits, tables};

/// How a proposal stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Approvals {
    /// The proposal's message.
    pub message_id: u64,
    /// Who made it.
    pub author: String,
    /// The version of the list of required approvers; 0 for one that is not the current draft.
    pub approvers_version: u64,
    /// Whose endorsement it needs.
    pub required: Vec<String>,
    /// Those of them who endorsed it.
    pub endorsed: Vec<String>,
    /// Those of them who said nothing.
    pub waiting: Vec<String>,
    /// Who is against it, anybody's, and why.
    pub objections: Vec<Said>,
    /// What those who endorsed it have against it nevertheless.
    pub reservations: Vec<Said>,
}

impl Approvals {
    /// Returns whether all agree: at least two are required, all of them endorsed it, and nobody
    /// objects.
    #[must_use]
    pub fn is_consensus(&self) -> bool {
        self.required.len() >= 2
            && self.endorsed.len() == self.required.len()
            && self.objections.is_empty()
    }
}

/// What somebody said of a proposal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// Who.
    pub id: String,
    /// What.
    pub note: String,
}

/// Returns the members of a meeting.
pub(super) fn members_of(state: &impl Read, meeting: &str) -> Result<Vec<Member>, Fault> {
    let range = tables::MEETING_MEMBERS.beginning::<String>(meeting);
    let rows = tables::MEETING_MEMBERS.rows(state, range, Direction::Forward);
    rows.take(limits::MEETING_MEMBERS_MAX).map(|row| Ok(row?.1)).collect()
}

/// Returns the stances on a proposal, those that were taken back too.
pub(crate) fn stances_on(
    state: &impl Read,
    meeting: &str,
    proposal: u64,
) -> Result<Vec<Stance>, Fault> {
    let range = tables::STANCES.beginning::<(String, u64)>((meeting, proposal));
    let rows = tables::STANCES.rows(state, range, Direction::Forward);
    rows.take(limits::STANCES_MAX).map(|row| Ok(row?.1)).collect()
}

/// Returns whether the current draft needs this member's endorsement.
pub(super) fn is_asked(member: &Member, meeting: &Meeting) -> bool {
    let can = !member.instance && member.approver == Approver::Required;
    can && meeting.draft.as_ref().is_some_and(|draft| member.joined < draft.published)
}

/// Returns how a meeting's current draft stands; `None` when it has none.
pub(super) fn of_draft(state: &impl Read, meeting: &Meeting) -> Result<Option<Approvals>, Fault> {
    let Some(draft) = &meeting.draft else { return Ok(None) };
    let asked = |member: &Member| is_asked(member, meeting);
    let mut found = tally(state, &meeting.id, draft.number, asked)?;
    found.author.clone_from(&draft.author);
    found.approvers_version = draft.approvers_version;
    Ok(Some(found))
}

/// Returns how a proposal stands that is not the current draft: for people to look at.
pub(super) fn of_proposal(
    state: &impl Read,
    meeting: &Meeting,
    proposal: &Message,
) -> Result<Approvals, Fault> {
    let asked = |member: &Member| {
        let can = !member.instance && member.approver == Approver::Required;
        can && member.joined_at <= proposal.at
    };
    let mut found = tally(state, &meeting.id, proposal.id, asked)?;
    found.author.clone_from(&proposal.from);
    Ok(found)
}

fn tally(
    state: &impl Read,
    meeting: &str,
    proposal: u64,
    asked: impl Fn(&Member) -> bool,
) -> Result<Approvals, Fault> {
    let mut found = Approvals { message_id: proposal, ..Approvals::default() };
    let stances = stances_on(state, meeting, proposal)?;
    for member in members_of(state, meeting)?.into_iter().filter(asked) {
        // Both are in the order of their keys.
        let at = stances.binary_search_by(|stance| stance.id.cmp(&member.id)).ok();
        match at.and_then(|at| stances.get(at)).map(|stance| stance.opinion) {
            Some(Opinion::Endorse) => found.endorsed.push(member.id.clone()),
            Some(Opinion::Object) => {}
            Some(Opinion::Withdraw) | None => found.waiting.push(member.id.clone()),
        }
        found.required.push(member.id);
    }
    for Stance { id, opinion, note, .. } in stances {
        match (opinion, note) {
            (Opinion::Object, note) => {
                found.objections.push(Said { id, note: note.unwrap_or_default() });
            }
            (Opinion::Endorse, Some(note)) => found.reservations.push(Said { id, note }),
            (Opinion::Endorse | Opinion::Withdraw, _) => {}
        }
    }
    Ok(found)
}
