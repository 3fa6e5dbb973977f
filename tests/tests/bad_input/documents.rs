//! What the tools of documents and of the strategy must refuse.

use nexus_contract::ErrorCode::{InvalidArguments, NotFound};
use serde_json::json;

use super::table::{Stage, Table};

/// The tools that are held here.
pub(crate) const TOOLS: &[&str] = &[
    "update_global_strategy",
    "get_global_strategy",
    "list_global_docs",
    "get_global_doc",
    "sync_global_doc",
];

/// More bytes than a text may have, in fewer characters.
fn long() -> String {
    "ü".repeat(512 * 1024 + 1)
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_are_refused_in_words() {
    let mut stage = Stage::new().await;
    let rules = json!({"docId": "rules", "title": "Rules", "content": "# Rules\n"});
    stage.call("sync_global_doc", rules).await;
    stage.call("update_global_strategy", json!({"content": "all"})).await;
    let unknown = ["none", "Rules", "..", ".", "rules."];
    let missing = &["docId: document ", " does not exist; list_global_docs shows those there are"];
    let before = &["before: document ", " does not exist; list_global_docs shows those there are"];
    let folder = &["docId: is \".", "which is a folder in a path; give 1 to 128 of A-Z a-z 0-9"];
    let too_long = &["content: has 1048578 bytes; give at most 1048576 bytes"];
    let other = json!({"title": "T", "content": "x"});
    let own = [
        Table::of("update_global_strategy").row(
            "a text that is too long in bytes",
            json!({"content": long()}),
            InvalidArguments,
            too_long,
        ),
        Table::of("get_global_strategy"),
        Table::of("list_global_docs").rows("before", unknown, &json!({}), NotFound, before),
        Table::of("get_global_doc").rows("docId", unknown, &json!({}), NotFound, missing).rows(
            "docId",
            ["a#b", "a:b", "a@b"],
            &json!({}),
            InvalidArguments,
            &["docId: has "],
        ),
        Table::of("sync_global_doc")
            .rows("docId", ["..", "."], &other, InvalidArguments, folder)
            .rows("docId", ["a#b", "a:b", "a@b"], &other, InvalidArguments, &["docId: has "])
            .row(
                "a title of two lines",
                json!({"docId": "rules", "title": "a\nb", "content": "x"}),
                InvalidArguments,
                &["title: has a line break or a tab in it; give a text of one line"],
            )
            .row(
                "a text that is too long in bytes",
                json!({"docId": "rules", "title": "T", "content": long()}),
                InvalidArguments,
                too_long,
            ),
    ];
    stage.hold(TOOLS, own).await;
}
