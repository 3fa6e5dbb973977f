//! Bad input of every kind against real nodes: a clear error on the right stream, nothing changed,
//! no panic, and the node serves on.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::indexing_slicing,
    reason = "all of this file is a test"
)]

mod disk;
mod documents;
mod http;
mod mail;
mod maintenance;
mod meetings;
mod projects;
mod quic;
mod starts;
mod table;
mod talk;
mod tasks;

use std::collections::BTreeSet;

use nexus_contract::catalog;
use nexus_tests::call::As;
use nexus_tests::command::Ended;
use nexus_tests::process::{LIMIT, Node};
use nexus_tests::wait;
use serde_json::json;

/// The tools that the tables hold, by family.
const FAMILIES: [&[&str]; 7] = [
    talk::TOOLS,
    mail::TOOLS,
    meetings::TOOLS,
    tasks::TOOLS,
    projects::TOOLS,
    documents::TOOLS,
    maintenance::TOOLS,
];

#[test]
fn every_served_tool_has_a_table() {
    let held: BTreeSet<&str> = FAMILIES.into_iter().flatten().copied().collect();
    let served: BTreeSet<&str> = catalog::all().iter().map(|tool| tool.name).collect();
    assert_eq!(held, served);
    assert_eq!(held.len(), FAMILIES.into_iter().flatten().count(), "a tool is held twice");
}

/// A node with one message, and what it holds.
struct Intact {
    node: Node,
    content: String,
    messages: usize,
}

impl Intact {
    async fn new() -> Self {
        let node = Node::found("intact").await;
        // A new cluster writes down who votes a moment after its start.
        wait::until("the first voter's entry", LIMIT, async || {
            let events = node.nexus(&["call", "list_events"]).await;
            if events.stdout.contains("node.promote") { Ok(()) } else { Err(events) }
        })
        .await;
        say(&node, "kept").await;
        let content = node.content().await;
        Self { node, content, messages: 1 }
    }

    /// Holds the node to what it was: it holds the same, has not panicked, and serves on.
    async fn check(&mut self, after: &str) {
        let digest = self.node.digest().await;
        assert_eq!(
            digest["now"]["content"],
            self.content.as_str(),
            "{after} changed something: {digest}\n{}",
            self.node.nexus(&["call", "list_events"]).await
        );
        self.serves(after).await;
    }

    /// As [`Self::check`], where something may have been written that is no message.
    async fn serves(&mut self, after: &str) {
        let log = self.node.log();
        assert!(!log.contains("panicked"), "{after}: {log}");
        let history = self.node.http().history().await.unwrap();
        assert_eq!(history.len(), self.messages, "{after}: {history:#?}");
        say(&self.node, after).await;
        self.messages += 1;
        self.content = self.node.content().await;
    }
}

async fn say(node: &Node, message: &str) {
    let who = As { instance: "writer", request: None };
    let said = node.http().call("send_message", json!({"message": message}), who).await;
    assert!(said.is_ok(), "{message}: {}", said.unwrap_err());
}

/// Holds a program to how it must refuse: with this code, nothing on standard output, all of these
/// words on standard error, and no panic.
fn refused(ended: &Ended, code: i32, words: &[&str]) {
    assert_eq!((ended.code(), ended.stdout.as_str()), (code, ""), "{ended}");
    assert!(ended.stderr.contains("error: "), "{ended}");
    assert!(!ended.stderr.contains("panicked"), "{ended}");
    for word in words {
        assert!(ended.stderr.contains(word), "{word:?} is not in: {ended}");
    }
}
