//! What the tools of the chat, of conversations and of events must refuse.

use nexus_contract::ErrorCode::{Conflict, InvalidArguments, NotFound};
use serde_json::{Value, json};

use super::meetings::{HAS_ENDED, IS_ARCHIVED, MISSING, UNKNOWN, in_every_state};
use super::table::{Stage, Table};

/// The tools that are held here.
pub(crate) const TOOLS: &[&str] =
    &["peers", "set_profile", "send_message", "read_messages", "list_events"];

#[tokio::test(flavor = "multi_thread")]
async fn talk_is_refused_in_words() {
    let mut stage = Stage::new().await;
    let nowhere = &["meetingId: no meeting is active; start one (start_meeting) or name one"];
    let [active, closed, archived] = in_every_state(&stage).await;
    // Without an active meeting nothing goes anywhere by itself.
    stage.call("end_meeting", json!({"meetingId": active})).await;
    let say = json!({"message": "x"});
    let publish = json!({"message": "x", "draft": true});
    let put = |meeting: &str, args: &Value| {
        let mut args = args.clone();
        args["meetingId"] = meeting.into();
        args
    };
    let own = [
        Table::of("peers").spoken(),
        Table::of("set_profile")
            .spoken()
            .row("nothing", json!({}), InvalidArguments, &["name", "note", "title", "give"])
            .row("a name of two lines", json!({"title": "a\nb"}), InvalidArguments, &["title: "]),
        Table::of("send_message")
            .rows("meetingId", UNKNOWN, &say, NotFound, MISSING)
            .rows("meetingId", UNKNOWN, &publish, NotFound, MISSING)
            .row("a closed meeting", put(&closed, &say), Conflict, HAS_ENDED)
            .row("an archived meeting", put(&archived, &say), Conflict, IS_ARCHIVED)
            .row("a draft in a closed meeting", put(&closed, &publish), Conflict, HAS_ENDED)
            .row("a draft in an archived meeting", put(&archived, &publish), Conflict, IS_ARCHIVED)
            .row("a draft in no meeting", publish.clone(), Conflict, nowhere)
            .row(
                "a draft that is no proposal",
                json!({"message": "x", "draft": true, "category": "CHAT"}),
                InvalidArguments,
                &["category: is not PROPOSAL"],
            ),
        Table::of("read_messages")
            .open()
            .rows("meetingId", UNKNOWN, &json!({}), NotFound, MISSING)
            .rows("meetingId", UNKNOWN, &json!({"latest": true}), NotFound, MISSING)
            .rows("meetingId", UNKNOWN, &json!({"afterId": 0}), NotFound, MISSING)
            .row(
                "two modes at once",
                json!({"latest": true, "afterId": 1}),
                InvalidArguments,
                &["latest", "afterId"],
            ),
        Table::of("list_events"),
    ];
    stage.hold(TOOLS, own).await;
}
