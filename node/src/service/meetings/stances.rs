//! Stances: what somebody thinks of a proposal, and how the proposal stands with it.
//!
//! The log's answer says whether the stance decided; who still has to say something is read from a
//! state that has it. Where none comes in time, the stance is put on what this node knows, and the
//! answer says how old that is.

use nexus_contract::meetings::{Opinion, StanceInput, StanceOutput};
use nexus_contract::{ApiError, ErrorCode};
use nexus_domain::command::meetings as command;
use nexus_domain::meetings::{self, Approvals, Said};
use nexus_domain::{Command, MeetingCommand, Reply};

use super::{refused, view};
use crate::service::{After, Answer, Call, Service, errors};

/// `stance`.
pub(crate) async fn stance(service: &Service, about: &Call<'_>, input: StanceInput) -> Answer {
    let who = about.who()?;
    let StanceInput { meeting_id, message_id, stance, note } = input;
    let opinion = match stance {
        Opinion::Endorse => command::Opinion::Endorse,
        Opinion::Object => command::Opinion::Object,
        Opinion::Withdraw => command::Opinion::Withdraw,
    };
    let note = note.unwrap_or_default();
    let stanced = MeetingCommand::Stance {
        meeting: meeting_id.clone(),
        proposal: message_id,
        opinion,
        note: note.clone(),
    };
    let committed = service.propose(about, Command::Meeting(stanced)).await;
    let committed = committed.map_err(|error| against(error, &meeting_id, message_id))?;
    let Reply::Stanced { draft, counted, decision } = committed.reply else {
        return Err(errors::odd_reply(about.tool));
    };
    let look = |view: &nexus_raft::View<'_>| meetings::approvals(view, &meeting_id, message_id);
    let After { value: found, has_it, marks } = service.after(about, &committed, look).await?;
    let half_known = || {
        let decided = match decision {
            0 => String::new(),
            decision => format!("; it was the last that was missing: decision {decision}"),
        };
        let text = format!(
            "the stance on message {message_id} of meeting {meeting_id} is taken{decided}; this \
             node is too far behind to show how the proposal stands: call again with the same \
             request id, or ask list_meetings later"
        );
        errors::done_and_not_shown(&text, about.request_id)
    };
    let mut found = found.ok_or_else(half_known)?;
    if !has_it {
        put(&mut found, &who.id, (opinion, &note));
    }
    marks.stamp(&StanceOutput {
        ok: true,
        meeting_id,
        message_id,
        stance,
        current_proposal_id: (draft != 0).then_some(draft),
        counted,
        approvals: view::approvals(&found),
        decided: decision != 0,
        decision_id: (decision != 0).then_some(decision),
    })
}

/// Gives a refusal the field: it is about the meeting, or about the proposal in it.
fn against(error: ApiError, meeting: &str, proposal: u64) -> ApiError {
    let proposal = format!("message {proposal}");
    let error = errors::named(error, "messageId", &proposal);
    if error.code == ErrorCode::NotFound && error.message.starts_with("messageId: ") {
        let what = format!("{proposal} of meeting {meeting}");
        let remedy = "read_messages shows the meeting's messages; a stance is on a PROPOSAL";
        return errors::not_found("messageId", &what, remedy);
    }
    refused(error, meeting)
}

/// Puts a stance on how a proposal stood before.
fn put(known: &mut Approvals, id: &str, (opinion, note): (command::Opinion, &str)) {
    let Approvals { required, endorsed, waiting, objections, reservations, .. } = known;
    for list in [&mut *endorsed, &mut *waiting] {
        list.retain(|other| other != id);
    }
    for list in [&mut *objections, &mut *reservations] {
        list.retain(|said| said.id != id);
    }
    let is_required = required.iter().any(|other| other == id);
    match opinion {
        command::Opinion::Endorse if is_required => enter(endorsed, id.to_owned(), |own| own),
        command::Opinion::Withdraw if is_required => enter(waiting, id.to_owned(), |own| own),
        command::Opinion::Endorse | command::Opinion::Object | command::Opinion::Withdraw => {}
    }
    let said = Said { id: id.to_owned(), note: note.to_owned() };
    match opinion {
        command::Opinion::Object => enter(objections, said, |said| &said.id),
        command::Opinion::Endorse if !note.is_empty() => {
            enter(reservations, said, |said| &said.id);
        }
        command::Opinion::Endorse | command::Opinion::Withdraw => {}
    }
}

/// Enters an item in its place: the lists are in the order of ids.
fn enter<T>(list: &mut Vec<T>, item: T, id: impl Fn(&T) -> &String) {
    let place = list.partition_point(|other| id(other) < id(&item));
    list.insert(place, item);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(list: &[&str]) -> Vec<String> {
        list.iter().map(|id| (*id).to_owned()).collect()
    }

    fn said(id: &str, note: &str) -> Said {
        Said { id: id.to_owned(), note: note.to_owned() }
    }

    fn known() -> Approvals {
        Approvals {
            message_id: 4,
            author: "a".into(),
            approvers_version: 1,
            required: ids(&["a", "b", "c", "d"]),
            endorsed: ids(&["a", "d"]),
            waiting: ids(&["b"]),
            objections: vec![said("c", "no")],
            reservations: vec![said("a", "if"), said("d", "but")],
        }
    }

    #[test]
    fn a_stance_that_is_not_here_yet_is_put_on_what_is_known() {
        let after = |id, opinion, note| {
            let mut known = known();
            put(&mut known, id, (opinion, note));
            known
        };
        let endorsed = Approvals {
            endorsed: ids(&["a", "b", "d"]),
            waiting: ids(&[]),
            reservations: vec![said("a", "if"), said("b", "well"), said("d", "but")],
            ..known()
        };
        assert_eq!(after("b", command::Opinion::Endorse, "well"), endorsed);
        let turned =
            Approvals { endorsed: ids(&["a", "c", "d"]), objections: Vec::new(), ..known() };
        assert_eq!(after("c", command::Opinion::Endorse, ""), turned);
        let withdrawn = Approvals {
            endorsed: ids(&["d"]),
            waiting: ids(&["a", "b"]),
            reservations: vec![said("d", "but")],
            ..known()
        };
        assert_eq!(after("a", command::Opinion::Withdraw, ""), withdrawn);
        // Who is not required is on no list but that of what was said.
        let guest = Approvals { objections: vec![said("bb", "no"), said("c", "no")], ..known() };
        assert_eq!(after("bb", command::Opinion::Object, "no"), guest);
        assert_eq!(after("bb", command::Opinion::Endorse, ""), known());
    }

    #[test]
    fn a_refusal_names_the_meeting_or_the_message() {
        let refusal = |code, text: &str| against(ApiError::new(code, text), "m", 7).message;
        for (code, text, expected) in [
            (
                ErrorCode::NotFound,
                "meeting m: does not exist",
                "meetingId: meeting m does not exist; list_meetings shows those there are",
            ),
            (
                ErrorCode::NotFound,
                "message 7 of meeting m: does not exist",
                "messageId: message 7 of meeting m does not exist; read_messages shows the \
                 meeting's messages; a stance is on a PROPOSAL",
            ),
            (
                ErrorCode::Full,
                "message 7: has 500 stances, no more; publish it anew",
                "messageId: message 7: has 500 stances, no more; publish it anew",
            ),
            (
                ErrorCode::Conflict,
                "messageId: message 7 is no PROPOSAL, a stance needs one",
                "messageId: message 7 is no PROPOSAL, a stance needs one",
            ),
            (ErrorCode::Conflict, "meeting m: has ended", "meetingId: meeting m: has ended"),
        ] {
            assert_eq!(refusal(code, text), expected);
        }
    }
}
