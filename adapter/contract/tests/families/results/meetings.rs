//! Results of the tools of meetings.

use nexus_contract::chat::Identity;
use nexus_contract::conversations::Status;
use nexus_contract::meetings::{
    Approvals, Approver, ArchiveMeeting, Delivery, EndMeeting, EndReason, JoinMeeting,
    JoinMeetingOutput, LeaveMeeting, LeaveMeetingOutput, ListMeetings, ListMeetingsOutput, Meeting,
    MeetingChangedOutput, MeetingMember, MeetingStatus, Mode, Opinion, Proposal, Remark,
    ReopenMeeting, Stance, StanceOutput, StartMeeting, StartMeetingOutput,
};

use super::{TIME, Tried};

fn approvals() -> Approvals {
    Approvals {
        required: vec!["a".into(), "b".into()],
        endorsed: vec!["a".into()],
        waiting: vec!["b".into()],
        objections: vec![Remark { id: "mcp-x".into(), note: "too soon".into() }],
        reservations: vec![Remark { id: "a".into(), note: "if it holds".into() }],
    }
}

/// Lists of meetings.
pub(super) fn lists(tried: &mut Tried) {
    let member = MeetingMember {
        id: "mcp-x".into(),
        name: None,
        title: None,
        mode: Mode::Async,
        approver: Approver::Optional,
        status: None,
        joined_at: TIME.into(),
        wakes: 0,
        last_woken_at: None,
    };
    let other = MeetingMember {
        id: "codex:1".into(),
        name: Some("codex@app".into()),
        title: Some(String::new()),
        mode: Mode::Active,
        approver: Approver::Required,
        status: Some(Status::Listening),
        last_woken_at: Some(TIME.into()),
        ..member.clone()
    };
    let meeting = Meeting {
        id: "m".into(),
        topic: "t".into(),
        status: MeetingStatus::Active,
        initiator: "codex:1".into(),
        start_time: TIME.into(),
        end_time: None,
        participants: vec![],
        members: vec![],
        message_count: 0,
        decision_count: 0,
        wakes: 0,
        summary: None,
        end_reason: None,
        proposal: None,
    };
    let ended = Meeting {
        status: MeetingStatus::Archived,
        end_time: Some(TIME.into()),
        participants: vec!["codex:1".into()],
        members: vec![member, other],
        summary: Some("done".into()),
        end_reason: Some(EndReason::Consensus),
        proposal: Some(Proposal {
            message_id: 4,
            author: "codex:1".into(),
            approvers_version: 2,
            approvals: approvals(),
        }),
        ..meeting.clone()
    };
    tried.fit::<ListMeetings>(vec![
        ListMeetingsOutput { count: 0, active_meeting_id: None, meetings: vec![], more: false },
        ListMeetingsOutput {
            count: 2,
            active_meeting_id: Some("m".into()),
            meetings: vec![meeting, ended],
            more: true,
        },
    ]);
}

/// What is done with meetings.
pub(super) fn acts(tried: &mut Tried) {
    tried.fit::<StartMeeting>(vec![StartMeetingOutput {
        ok: true,
        meeting_id: "m".into(),
        topic: "t".into(),
        status: MeetingStatus::Active,
    }]);
    let closed = MeetingChangedOutput {
        ok: true,
        meeting_id: "m".into(),
        status: MeetingStatus::Closed,
        summary: Some("done".into()),
    };
    tried.fit::<EndMeeting>(vec![closed.clone()]);
    tried.fit::<ArchiveMeeting>(vec![closed.clone()]);
    tried.fit::<ReopenMeeting>(vec![
        MeetingChangedOutput { summary: None, ..closed.clone() },
        closed,
    ]);
    tried.fit::<JoinMeeting>(vec![JoinMeetingOutput {
        ok: true,
        meeting_id: "m".into(),
        mode: Mode::Active,
        approver: Approver::Required,
        identity: Identity::Session,
        delivery: Delivery::NextHook,
    }]);
    tried.fit::<LeaveMeeting>(vec![LeaveMeetingOutput { ok: true, meeting_id: "m".into() }]);
    let stance = StanceOutput {
        ok: true,
        meeting_id: "m".into(),
        message_id: 4,
        stance: Opinion::Withdraw,
        current_proposal_id: None,
        counted: false,
        approvals: Approvals::default(),
        decided: false,
        decision_id: None,
    };
    let last = StanceOutput {
        stance: Opinion::Endorse,
        current_proposal_id: Some(4),
        counted: true,
        approvals: approvals(),
        decided: true,
        decision_id: Some(9),
        ..stance.clone()
    };
    tried.fit::<Stance>(vec![stance, last]);
}
