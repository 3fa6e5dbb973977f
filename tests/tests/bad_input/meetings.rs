//! What the tools of meetings must refuse.

use nexus_contract::ErrorCode::{Conflict, InvalidArguments, NotFound};
use nexus_tests::process::text;
use serde_json::{Value, json};

use super::table::{Stage, Table};

/// The tools that are held here.
pub(crate) const TOOLS: &[&str] = &[
    "list_meetings",
    "start_meeting",
    "end_meeting",
    "archive_meeting",
    "reopen_meeting",
    "join_meeting",
    "leave_meeting",
    "stance",
];

/// Ids that name no meeting.
pub(crate) const UNKNOWN: [&str; 5] = ["m-1", "..", "a#b", "20260102030405-plan-0001", "plan"];
/// What is said of them.
pub(crate) const MISSING: &[&str] =
    &["meetingId: meeting ", " does not exist; list_meetings shows those there are"];
/// What is said of a meeting that is closed.
pub(crate) const HAS_ENDED: &[&str] =
    &["meetingId: meeting ", ": has ended; reopen it (reopen_meeting) or start another"];
/// What is said of one that is put away.
pub(crate) const IS_ARCHIVED: &[&str] =
    &["meetingId: meeting ", ": is archived; reopen it (reopen_meeting) or start another"];

/// Meetings in every state, by their ids: active with one message and one proposal, closed,
/// archived.
pub(crate) async fn in_every_state(stage: &Stage) -> [String; 3] {
    let mut ids = Vec::new();
    for topic in ["active", "closed", "archived"] {
        let id = text(&stage.call("start_meeting", json!({"topic": topic})).await["meetingId"]);
        let say = json!({"message": "talk", "meetingId": id});
        stage.call("send_message", say).await;
        let propose = json!({"message": "so", "meetingId": id, "draft": true});
        stage.call("send_message", propose).await;
        if topic != "active" {
            stage.call("end_meeting", json!({"meetingId": id})).await;
        }
        if topic == "archived" {
            stage.call("archive_meeting", json!({"meetingId": id})).await;
        }
        ids.push(id);
    }
    ids.try_into().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn meetings_are_refused_in_words() {
    let mut stage = Stage::new().await;
    let [active, closed, archived] = in_every_state(&stage).await;
    let (active, closed, archived) = (
        json!({"meetingId": active}),
        json!({"meetingId": closed}),
        json!({"meetingId": archived}),
    );
    let before = &["before: meeting ", "does not exist; list_meetings shows those there are"];
    let own = [
        Table::of("list_meetings").rows("before", UNKNOWN, &json!({}), NotFound, before),
        Table::of("start_meeting").row(
            "a topic of two lines",
            json!({"topic": "a\nb"}),
            InvalidArguments,
            &["topic: has a line break or a tab in it; give a text of one line"],
        ),
        unknown("end_meeting").row("a closed one", closed.clone(), Conflict, HAS_ENDED).row(
            "an archived one",
            archived.clone(),
            Conflict,
            IS_ARCHIVED,
        ),
        unknown("archive_meeting")
            .row("an active one", active.clone(), Conflict, &["is active; end it first (end_"])
            .row("an archived one", archived.clone(), Conflict, &["is archived already"]),
        unknown("reopen_meeting").row(
            "an active one",
            active.clone(),
            Conflict,
            &["meetingId: meeting ", "is active already"],
        ),
        unknown("join_meeting")
            .row("a closed one", closed.clone(), Conflict, HAS_ENDED)
            .row("an archived one", archived.clone(), Conflict, IS_ARCHIVED)
            .row(
                "from behind the newest message",
                with(&active, &json!({"since": 3})),
                InvalidArguments,
                &["since: must be at most 2, the newest message's number"],
            ),
        unknown("leave_meeting").row(
            "one that it did not join",
            active.clone(),
            Conflict,
            &["meetingId: meeting ", "you are no member of it; join it (join_meeting)"],
        ),
        stance(&active, &closed, &archived),
    ];
    stage.hold(TOOLS, own).await;
}

fn unknown(tool: &str) -> Table {
    Table::of(tool).rows("meetingId", UNKNOWN, &json!({}), NotFound, MISSING)
}

fn stance(active: &Value, closed: &Value, archived: &Value) -> Table {
    let endorse = json!({"messageId": 2, "stance": "endorse"});
    let number = |number: u64| with(active, &json!({"messageId": number, "stance": "endorse"}));
    let object =
        |note: &str| with(active, &json!({"messageId": 2, "stance": "object", "note": note}));
    let nobody = &["messageId: message ", " does not exist; read_messages", "a PROPOSAL"];
    Table::of("stance")
        .rows("meetingId", UNKNOWN, &endorse, NotFound, MISSING)
        .row("a closed one", with(closed, &endorse), Conflict, HAS_ENDED)
        .row("an archived one", with(archived, &endorse), Conflict, IS_ARCHIVED)
        .row("a message behind the newest", number(3), NotFound, nobody)
        .row("a message of no meeting", number(u64::MAX), NotFound, nobody)
        .row(
            "a message that proposes nothing",
            number(1),
            Conflict,
            &["messageId: message 1 is no PROPOSAL, a stance needs one"],
        )
        .row(
            "an objection without a reason",
            with(active, &json!({"messageId": 2, "stance": "object"})),
            InvalidArguments,
            &["note: is missing; give the reason when the stance is object"],
        )
        .row(
            "an objection with an empty reason",
            object(""),
            InvalidArguments,
            &["note: is empty; give the reason when the stance is object"],
        )
        .row(
            "an objection of white space",
            object(" \n"),
            InvalidArguments,
            &["note: is only white space"],
        )
}

fn with(meeting: &Value, fields: &Value) -> Value {
    let mut args = fields.clone();
    args["meetingId"] = meeting["meetingId"].clone();
    args
}
