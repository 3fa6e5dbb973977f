//! Meetings: started, ended, put away, taken up again; who takes part. What is said in one goes by
//! the tools of the chat.

pub(super) mod stances;
mod view;

use nexus_contract::meetings::{
    Approver, Delivery, EndMeetingInput, JoinMeetingInput, JoinMeetingOutput, LeaveMeetingOutput,
    ListMeetingsInput, ListMeetingsOutput, MeetingChangedOutput, MeetingInput, MeetingStatus, Mode,
    Place, Since, StartMeetingInput, StartMeetingOutput,
};
use nexus_contract::{ApiError, ErrorCode};
use nexus_domain::command::Client;
use nexus_domain::command::meetings as command;
use nexus_domain::meetings::{self, Phase};
use nexus_domain::{Command, Fault, MeetingCommand, Reply};
use nexus_raft::{Committed, View};

use super::conversations::Machines;
use super::{Answer, Call, Service, errors, written};

/// What to do about the id of a meeting that does not exist.
pub(super) const REMEDY: &str = "list_meetings shows those there are";

/// Bytes of one list of meetings, the first meeting always: an answer that a model can still read.
/// A meeting with all that belongs to it may have hundreds of members and objections.
const LIST_BYTES_MAX: usize = 1024 * 1024;

/// `list_meetings`: a read.
pub(super) async fn list_meetings(
    service: &Service,
    about: &Call<'_>,
    input: &ListMeetingsInput,
) -> Answer {
    let fresh = service.read(|view| Ok((page(view, input)?, Machines::of(view)?))).await?;
    let marks = service.marks(about, &fresh);
    let is_stale = fresh.stale.is_some();
    let (page, mut machines) = fresh.value;
    let page = page.as_ref().ok_or_else(|| {
        let what = format!("meeting {}", input.before.as_deref().unwrap_or_default());
        errors::absent(is_stale, "before", &what, REMEDY)
    })?;
    if is_stale {
        machines.seen(&service.cluster.local_status().members);
    }
    let list: Vec<_> = page.meetings.iter().map(|found| view::meeting(found, &machines)).collect();
    marks.stamp(&ListMeetingsOutput {
        count: u32::try_from(list.len()).unwrap_or(u32::MAX),
        active_meeting_id: page.default.clone(),
        meetings: list,
        more: page.more,
    })
}

/// Meetings that one answer holds.
struct Page {
    default: Option<String>,
    meetings: Vec<meetings::View>,
    more: bool,
}

/// Looks for a page; `None` when there is no such meeting as it shall begin behind.
fn page(view: &View<'_>, input: &ListMeetingsInput) -> Result<Option<Page>, Fault> {
    if let Some(id) = &input.before
        && meetings::meeting(view, id)?.is_none()
    {
        return Ok(None);
    }
    let phase = input.status.map(|status| match status {
        MeetingStatus::Active => Phase::Active,
        MeetingStatus::Closed => Phase::Closed,
        MeetingStatus::Archived => Phase::Archived,
    });
    let limit = usize::try_from(input.limit).unwrap_or(usize::MAX);
    let (mut found, mut bytes): (Vec<meetings::View>, usize) = (Vec::new(), 0);
    let more = loop {
        // One at a time: no more of them is in memory than one answer holds, and one.
        let last = found.last().map(|last| last.meeting.id.as_str()).or(input.before.as_deref());
        let Some(next) = meetings::list(view, phase, last, 1)?.pop() else { break false };
        bytes = bytes.saturating_add(view::bytes(&next));
        let is_long = !found.is_empty() && bytes > LIST_BYTES_MAX;
        if is_long || found.len() >= limit {
            break true;
        }
        found.push(next);
    };
    let default = meetings::default_meeting(view)?;
    Ok(Some(Page { default, meetings: found, more }))
}

/// `start_meeting`.
pub(super) async fn start_meeting(
    service: &Service,
    about: &Call<'_>,
    input: StartMeetingInput,
) -> Answer {
    let topic = input.topic;
    let start = MeetingCommand::Start { topic: topic.clone() };
    let (meeting_id, committed) = act(service, about, "", start).await?;
    let status = MeetingStatus::Active;
    written(&committed).stamp(&StartMeetingOutput { ok: true, meeting_id, topic, status })
}

/// `end_meeting`: the one that is given, else the default one.
pub(super) async fn end_meeting(
    service: &Service,
    about: &Call<'_>,
    input: EndMeetingInput,
) -> Answer {
    let meeting = input.meeting_id.unwrap_or_default();
    let summary = input.summary.filter(|summary| !summary.is_empty());
    let end = MeetingCommand::End {
        meeting: meeting.clone(),
        summary: summary.clone().unwrap_or_default(),
    };
    let (meeting_id, committed) = act(service, about, &meeting, end).await?;
    let status = MeetingStatus::Closed;
    written(&committed).stamp(&MeetingChangedOutput { ok: true, meeting_id, status, summary })
}

/// `archive_meeting`.
pub(super) async fn archive_meeting(
    service: &Service,
    about: &Call<'_>,
    input: MeetingInput,
) -> Answer {
    let meeting = input.meeting_id;
    let archive = MeetingCommand::Archive { meeting: meeting.clone() };
    let (meeting_id, committed) = act(service, about, &meeting, archive).await?;
    let status = MeetingStatus::Archived;
    written(&committed).stamp(&MeetingChangedOutput { ok: true, meeting_id, status, summary: None })
}

/// `reopen_meeting`.
pub(super) async fn reopen_meeting(
    service: &Service,
    about: &Call<'_>,
    input: MeetingInput,
) -> Answer {
    let meeting = input.meeting_id;
    let reopen = MeetingCommand::Reopen { meeting: meeting.clone() };
    let (meeting_id, committed) = act(service, about, &meeting, reopen).await?;
    let status = MeetingStatus::Active;
    written(&committed).stamp(&MeetingChangedOutput { ok: true, meeting_id, status, summary: None })
}

/// `leave_meeting`.
pub(super) async fn leave_meeting(
    service: &Service,
    about: &Call<'_>,
    input: MeetingInput,
) -> Answer {
    let meeting = input.meeting_id;
    let leave = MeetingCommand::Leave { meeting: meeting.clone() };
    let (meeting_id, committed) = act(service, about, &meeting, leave).await?;
    written(&committed).stamp(&LeaveMeetingOutput { ok: true, meeting_id })
}

/// Does something with a meeting; returns which it was.
async fn act(
    service: &Service,
    about: &Call<'_>,
    meeting: &str,
    command: MeetingCommand,
) -> Result<(String, Committed), ApiError> {
    let committed = service.propose(about, Command::Meeting(command)).await;
    let committed = committed.map_err(|error| refused(error, meeting))?;
    let Reply::Meeting { id } = &committed.reply else {
        return Err(errors::odd_reply(about.tool));
    };
    Ok((id.clone(), committed))
}

/// `join_meeting`.
pub(super) async fn join_meeting(
    service: &Service,
    about: &Call<'_>,
    input: JoinMeetingInput,
) -> Answer {
    let who = about.who()?;
    let approver = input.approver();
    let JoinMeetingInput { meeting_id, mode, since, .. } = input;
    let join = MeetingCommand::Join {
        meeting: meeting_id.clone(),
        mode: match mode {
            Mode::Active => command::Mode::Active,
            Mode::Async => command::Mode::Async,
        },
        approver: match approver {
            Approver::Required => command::Approver::Required,
            Approver::Optional => command::Approver::Optional,
        },
        since: match since {
            None => command::Since::Unsaid,
            Some(Since::Place(Place::Latest)) => command::Since::Latest,
            Some(Since::Place(Place::Beginning)) => command::Since::After(0),
            Some(Since::After(number)) => command::Since::After(number),
        },
    };
    let committed = service.propose(about, Command::Meeting(join)).await;
    let committed = committed.map_err(|error| refused(error, &meeting_id))?;
    let Reply::Joined { mode, approver, .. } = committed.reply else {
        return Err(errors::odd_reply(about.tool));
    };
    let mode = view::mode(mode);
    written(&committed).stamp(&JoinMeetingOutput {
        ok: true,
        meeting_id,
        mode,
        approver: view::approver(approver),
        identity: who.identity(),
        delivery: delivery(who.client, mode),
    })
}

/// Returns how news reach a member: hooks tell conversations, and instances have none.
fn delivery(client: Client, mode: Mode) -> Delivery {
    match (client, mode) {
        (Client::Instance, _) => Delivery::Unavailable,
        (Client::Claude | Client::Codex, Mode::Active) => Delivery::Wake,
        (Client::Claude | Client::Codex, Mode::Async) => Delivery::NextHook,
    }
}

/// Gives a refusal of the state machine about a meeting the field and the remedy. An empty id is
/// the default meeting, which the refusal names.
pub(super) fn refused(error: ApiError, meeting: &str) -> ApiError {
    if error.code == ErrorCode::NotFound {
        return errors::not_found("meetingId", &format!("meeting {meeting}"), REMEDY);
    }
    errors::named(error, "meetingId", "meeting")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn news_reach_those_who_have_hooks() {
        for (client, mode, expected) in [
            (Client::Claude, Mode::Active, Delivery::Wake),
            (Client::Codex, Mode::Async, Delivery::NextHook),
            (Client::Instance, Mode::Active, Delivery::Unavailable),
            (Client::Instance, Mode::Async, Delivery::Unavailable),
        ] {
            assert_eq!(delivery(client, mode), expected);
        }
    }

    #[test]
    fn a_refusal_names_the_field_once() {
        let refusal = |code, text: &str| refused(ApiError::new(code, text), "m-1").message;
        for (text, expected) in [
            ("meeting m-1: has ended; reopen it", "meetingId: meeting m-1: has ended; reopen it"),
            ("meetingId: no meeting is active", "meetingId: no meeting is active"),
            ("meetings: the cluster keeps 10,000", "meetings: the cluster keeps 10,000"),
            ("caller: takes part in 128", "caller: takes part in 128"),
        ] {
            assert_eq!(refusal(ErrorCode::Conflict, text), expected);
        }
        assert_eq!(
            refusal(ErrorCode::NotFound, "meeting m-1: does not exist"),
            "meetingId: meeting m-1 does not exist; list_meetings shows those there are"
        );
    }
}
