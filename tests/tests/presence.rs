//! Who is there, as every node shows it: machines that come and go.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "all of this file is a test")]

use std::time::Duration;

use nexus_tests::call::Speaker;
use nexus_tests::process::{LIMIT, Node, every_role, text};
use nexus_tests::wait;
use serde_json::{Value, json};
use tokio::time::Instant;

fn codex(name: &str) -> Speaker {
    Speaker::Codex(name.to_owned())
}

async fn call(node: &Node, by: &Speaker, tool: &str, args: Value) -> Value {
    let answer = node.http().call_as(by, tool, args.clone(), None).await;
    answer.unwrap_or_else(|failed| panic!("{tool} {args} on {}: {failed}", node.name()))
}

/// Returns how people see a conversation on a node; null when it is not listed.
async fn shown(node: &Node, id: &str) -> Value {
    let path = "/api/peers?includeOffline=true";
    let list = node.http().get(path).await.unwrap_or_else(|failed| panic!("peers: {failed}"));
    let mut peers = list["peers"].as_array().unwrap().iter();
    peers.find(|peer| peer["id"] == id).cloned().unwrap_or(Value::Null)
}

/// Waits until a conversation has a status on all of these nodes.
async fn status(nodes: &[&Node], by: &Speaker, wanted: &str) {
    for node in nodes {
        wait::until(&format!("{} {wanted}", by.id()), LIMIT, async || {
            let shown = shown(node, &by.id()).await;
            if shown["status"] == wanted { Ok(()) } else { Err(shown) }
        })
        .await;
    }
}

/// Watches a node for so long; nothing may be written meanwhile.
async fn quiet(node: &Node, span: Duration) {
    let applied =
        async || node.http().get("/api/digest").await.unwrap()["now"]["index"].as_u64().unwrap();
    let (since, before) = (Instant::now(), applied().await);
    wait::until("the end of a quiet time", LIMIT, async || {
        assert_eq!(applied().await, before, "an idle cluster writes");
        if since.elapsed() >= span { Ok(()) } else { Err("still quiet") }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_goes_takes_its_conversations_along_and_brings_them_back() {
    let [one, mut two, three, four] = every_role(["one", "two", "three", "four"]).await;
    let (stays, goes) = (codex("stays"), codex("goes"));
    call(&one, &stays, "set_profile", json!({"name": "stays"})).await;
    call(&two, &goes, "set_profile", json!({"name": "goes"})).await;
    status(&[&one, &three, &four], &goes, "idle").await;
    let killed = Instant::now();
    two.kill();
    status(&[&one, &three, &four], &goes, "offline").await;
    let took = killed.elapsed();
    assert!(took >= Duration::from_secs(9), "taken for gone after {took:?}");
    assert!(took <= Duration::from_secs(30), "taken for gone only after {took:?}");
    status(&[&one, &three, &four], &stays, "idle").await;
    // Its name stays its own, and mail waits for it; the sender sees how it is.
    let sent = call(&one, &stays, "send", json!({"to": "goes", "text": "for later"})).await;
    assert_eq!(sent["to"], json!({"id": goes.id(), "name": "goes", "status": "offline"}));

    // Nothing changes any more, so nothing is written.
    quiet(&one, Duration::from_secs(3)).await;

    two.start(&[]).await;
    status(&[&one, &two, &three, &four], &goes, "idle").await;
    let read = call(&two, &goes, "read", json!({})).await;
    assert_eq!(text(&read["messages"][0]["text"]), "for later");
}
