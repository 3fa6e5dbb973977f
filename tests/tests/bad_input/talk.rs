//! What the tools of the chat, of conversations and of events must refuse.

use nexus_contract::ErrorCode::{Conflict, InvalidArguments, NotFound};
use serde_json::json;

use super::table::{Stage, Table};

/// The tools that are held here.
pub(crate) const TOOLS: &[&str] =
    &["peers", "set_profile", "send_message", "read_messages", "list_events"];

#[tokio::test(flavor = "multi_thread")]
async fn talk_is_refused_in_words() {
    let mut stage = Stage::new().await;
    let unknown = ["m-1", "..", "a#b"];
    let none = &["does not exist", "leave meetingId out"];
    let own = [
        Table::of("peers").spoken(),
        Table::of("set_profile")
            .spoken()
            .row("nothing", json!({}), InvalidArguments, &["name", "note", "title", "give"])
            .row("a name of two lines", json!({"title": "a\nb"}), InvalidArguments, &["title: "]),
        Table::of("send_message")
            .rows("meetingId", unknown, &json!({"message": "x"}), NotFound, none)
            .row("a draft", json!({"message": "x", "draft": true}), Conflict, &["draft: "])
            .row(
                "a draft that is no proposal",
                json!({"message": "x", "draft": true, "category": "CHAT"}),
                InvalidArguments,
                &["category: is not PROPOSAL"],
            ),
        Table::of("read_messages")
            .open()
            .rows("meetingId", unknown, &json!({}), NotFound, none)
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
