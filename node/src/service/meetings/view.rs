//! Meetings as people see them.

use nexus_contract::meetings::{
    Approvals, Approver, EndReason, Meeting, MeetingMember, MeetingStatus, Mode, Proposal, Remark,
};
use nexus_domain::command::meetings as command;
use nexus_domain::meetings::{self, Ending, MemberView, Phase, Said, View};

use crate::service::conversations::Machines;
use crate::service::time;

/// Bytes of notes that one look at a proposal shows: hundreds may object at length.
const NOTES_BYTES_MAX: usize = 256 * 1024;

/// What stands for a note that is not shown.
const NOTE_LEFT_OUT: &str = "(not shown: the notes together are too long for one answer; an \
                             objection stands in the meeting's messages too)";

/// Shows a meeting with all that belongs to it; `machines` are those of its members.
pub(super) fn meeting(found: &View, machines: &Machines) -> Meeting {
    let View { meeting, participants, members, messages, proposal } = found;
    Meeting {
        id: meeting.id.clone(),
        topic: meeting.topic.clone(),
        status: match meeting.phase {
            Phase::Active => MeetingStatus::Active,
            Phase::Closed => MeetingStatus::Closed,
            Phase::Archived => MeetingStatus::Archived,
        },
        initiator: meeting.initiator.clone(),
        start_time: time::text(meeting.started_at),
        end_time: meeting.ended_at.map(time::text),
        participants: participants.clone(),
        members: members.iter().map(|row| member(row, machines)).collect(),
        message_count: *messages,
        decision_count: meeting.decisions,
        wakes: meeting.wakes,
        summary: meeting.summary.clone(),
        end_reason: match meeting.ending {
            Ending::Open => None,
            Ending::Manual => Some(EndReason::Manual),
            Ending::Consensus { .. } => Some(EndReason::Consensus),
        },
        proposal: proposal.as_ref().map(|found| Proposal {
            message_id: found.message_id,
            author: found.author.clone(),
            approvers_version: found.approvers_version,
            approvals: approvals(found),
        }),
    }
}

fn member(row: &MemberView, machines: &Machines) -> MeetingMember {
    MeetingMember {
        id: row.id.clone(),
        name: row.name.clone(),
        title: row.title.clone(),
        mode: mode(row.mode),
        approver: approver(row.approver),
        status: row.status.map(|own| machines.status_of(own, row.home)),
        joined_at: time::text(row.joined_at),
        wakes: row.wakes,
        last_woken_at: row.last_woken_at.map(time::text),
    }
}

/// Returns how many bytes a meeting takes in an answer.
pub(super) fn bytes(found: &View) -> usize {
    let shown = serde_json::to_vec(&meeting(found, &Machines::default()));
    shown.map_or(usize::MAX, |bytes| bytes.len())
}

/// Shows how a proposal stands.
pub(super) fn approvals(found: &meetings::Approvals) -> Approvals {
    let mut left = NOTES_BYTES_MAX;
    let objections = remarks(&found.objections, &mut left);
    let reservations = remarks(&found.reservations, &mut left);
    Approvals {
        required: found.required.clone(),
        endorsed: found.endorsed.clone(),
        waiting: found.waiting.clone(),
        objections,
        reservations,
    }
}

/// Shows what was said, each note whole or not at all.
fn remarks(said: &[Said], left: &mut usize) -> Vec<Remark> {
    let shown = said.iter().map(|Said { id, note }| {
        let fits = left.checked_sub(note.len());
        *left = fits.unwrap_or(*left);
        let note = if fits.is_some() { note.as_str() } else { NOTE_LEFT_OUT };
        Remark { id: id.clone(), note: note.to_owned() }
    });
    shown.collect()
}

/// Shows how a member takes part.
pub(super) fn mode(mode: command::Mode) -> Mode {
    match mode {
        command::Mode::Active => Mode::Active,
        command::Mode::Async => Mode::Async,
    }
}

/// Shows whether drafts need a member's endorsement.
pub(super) fn approver(approver: command::Approver) -> Approver {
    match approver {
        command::Approver::Required => Approver::Required,
        command::Approver::Optional => Approver::Optional,
    }
}

#[cfg(test)]
mod tests {
    use nexus_domain::command::Status;
    use nexus_domain::command::presence::NodeState;
    use nexus_domain::meetings::Draft;
    use serde_json::json;

    use super::*;

    fn members() -> Vec<MemberView> {
        let conversation = MemberView {
            id: "codex:a".into(),
            instance: false,
            name: Some("codex@app".into()),
            title: Some("work".into()),
            status: Some(Status::Idle),
            home: 8,
            mode: command::Mode::Active,
            approver: command::Approver::Required,
            joined_at: 1_500,
            wakes: 2,
            last_woken_at: Some(1_700),
        };
        let instance = MemberView {
            id: "mcp-1".into(),
            instance: true,
            name: None,
            title: None,
            status: None,
            mode: command::Mode::Async,
            approver: command::Approver::Optional,
            wakes: 0,
            last_woken_at: None,
            ..conversation
        };
        vec![conversation, instance]
    }

    fn found() -> View {
        let meeting = meetings::Meeting {
            id: "m".into(),
            topic: "t".into(),
            phase: Phase::Archived,
            initiator: "codex:a".into(),
            started: 3,
            started_at: 1_000,
            activated: 3,
            ended: 9,
            ended_at: Some(2_000),
            ended_by: Some("codex:a".into()),
            ending: Ending::Consensus { decision: 5 },
            summary: Some("done".into()),
            decisions: 1,
            wakes: 4,
            draft: Some(Draft {
                number: 2,
                author: "codex:a".into(),
                published: 7,
                approvers_version: 3,
                quiet_ticks: 0,
                timer: 0,
                reminded_at: None,
                told_stances: 0,
                told_missing: false,
            }),
            kept_until: 0,
        };
        let said = |note: &str| vec![Said { id: "mcp-1".into(), note: note.into() }];
        let proposal = meetings::Approvals {
            message_id: 2,
            author: "codex:a".into(),
            approvers_version: 3,
            required: vec!["codex:a".into(), "codex:b".into()],
            endorsed: vec!["codex:a".into()],
            waiting: vec!["codex:b".into()],
            objections: said("no"),
            reservations: said("but"),
        };
        View {
            meeting,
            participants: vec!["codex:a".into()],
            members: members(),
            messages: 6,
            proposal: Some(proposal),
        }
    }

    #[test]
    fn a_meeting_shows_all_that_belongs_to_it() {
        let machines = Machines::noted([(8, NodeState::Asleep)]);
        let expected = json!({
            "id": "m", "topic": "t", "status": "archived", "initiator": "codex:a",
            "startTime": "1970-01-01T00:00:01.000Z", "endTime": "1970-01-01T00:00:02.000Z",
            "participants": ["codex:a"],
            "members": [
                {
                    "id": "codex:a", "name": "codex@app", "title": "work", "mode": "active",
                    "approver": "required", "status": "asleep",
                    "joinedAt": "1970-01-01T00:00:01.500Z", "wakes": 2,
                    "lastWokenAt": "1970-01-01T00:00:01.700Z",
                },
                {
                    "id": "mcp-1", "name": null, "title": null, "mode": "async",
                    "approver": "optional", "status": null,
                    "joinedAt": "1970-01-01T00:00:01.500Z", "wakes": 0, "lastWokenAt": null,
                },
            ],
            "messageCount": 6, "decisionCount": 1, "wakes": 4, "summary": "done",
            "endReason": "consensus",
            "proposal": {
                "messageId": 2, "author": "codex:a", "approversVersion": 3,
                "required": ["codex:a", "codex:b"], "endorsed": ["codex:a"],
                "waiting": ["codex:b"], "objections": [{"id": "mcp-1", "note": "no"}],
                "reservations": [{"id": "mcp-1", "note": "but"}],
            },
        });
        assert_eq!(serde_json::to_value(meeting(&found(), &machines)).unwrap(), expected);
        let mut open = found();
        open.meeting.phase = Phase::Active;
        open.meeting.ended_at = None;
        open.meeting.ending = Ending::Open;
        open.meeting.summary = None;
        open.proposal = None;
        let open = serde_json::to_value(meeting(&open, &Machines::default())).unwrap();
        assert_eq!((&open["endReason"], &open["proposal"]), (&json!(null), &json!(null)));
        assert!(open.get("endTime").is_none() && open.get("summary").is_none(), "{open}");
        assert_eq!(open["members"][0]["status"], "idle");
    }

    #[test]
    fn notes_are_shown_whole_while_they_fit() {
        let mut found = found().proposal.unwrap();
        let said = |id: &str, bytes| Said { id: id.into(), note: "x".repeat(bytes) };
        found.objections = vec![said("a", NOTES_BYTES_MAX - 10), said("b", 11), said("c", 4)];
        found.reservations = vec![said("d", 7), said("e", 6)];
        let shown = approvals(&found);
        let whole = |said: &[Remark]| said.iter().map(|it| it.note != NOTE_LEFT_OUT).collect();
        let (objections, reservations): (Vec<bool>, Vec<bool>) =
            (whole(&shown.objections), whole(&shown.reservations));
        assert_eq!((objections, reservations), (vec![true, false, true], vec![false, true]));
        let all: Vec<&str> = shown.objections.iter().map(|it| it.id.as_str()).collect();
        assert_eq!(all, ["a", "b", "c"], "everybody who objects is named");
    }
}
