//! What the tools of direct messages must refuse.

use nexus_contract::ErrorCode::{InvalidArguments, NotFound};
use nexus_tests::call::Speaker;
use nexus_tests::process::text;
use serde_json::{Value, json};

use super::table::{Stage, Table, keeper};

/// The tools that are held here.
pub(crate) const TOOLS: &[&str] = &["send", "read", "reply", "listen"];

/// Ids that name no message.
const UNKNOWN: [&str; 7] =
    ["12", "dm-12", "dm-000000000099", "..", "a#b", "dm-00000000001a", "dm-0000000000001"];

#[tokio::test(flavor = "multi_thread")]
async fn mail_is_refused_in_words() {
    let mut stage = Stage::new().await;
    // One message between two that are not the table's own, and one to each of those.
    let writer = Speaker::Codex("writer".to_owned());
    let reader = Speaker::Codex("reader".to_owned());
    stage.call_at(0, &reader, "set_profile", json!({"name": "reader"})).await;
    let note = json!({"to": "reader", "text": "for one alone"});
    let sent = stage.call_at(0, &writer, "send", note).await;
    let others = text(&sent["messageId"]);
    for place in 0..4 {
        let to = keeper(place, true).id();
        stage.call_at(0, &writer, "send", json!({"to": to, "text": "here"})).await;
    }
    let own = [send(), Table::of("read").spoken(), reply(&others), Table::of("listen").spoken()];
    stage.hold(TOOLS, own).await;
}

fn send() -> Table {
    let body = json!({"text": "x"});
    let gone = &["to: conversation ", " does not exist; peers shows those there are"];
    let nobody =
        &["to: no conversation that is not offline is called ", "; peers shows who is there"];
    Table::of("send")
        .spoken()
        .rows("to", ["codex:nobody", "claude:0", ":", "codex:.."], &body, NotFound, gone)
        .rows("to", ["nobody", "..", "a#b", "Reader"], &body, NotFound, nobody)
        .row(
            "an instance",
            json!({"to": "keeper-0", "text": "x"}),
            InvalidArguments,
            &["to: must be a conversation: an instance gets no direct messages"],
        )
}

fn reply(others: &str) -> Table {
    let body = json!({"text": "x"});
    let words = &[
        "messageId: message ",
        " to this conversation does not exist; read gives the ids of those that were sent to you",
    ];
    let others: Value = json!({"messageId": others, "text": "x"});
    Table::of("reply").spoken().rows("messageId", UNKNOWN, &body, NotFound, words).row(
        "another's message",
        others,
        NotFound,
        words,
    )
}
