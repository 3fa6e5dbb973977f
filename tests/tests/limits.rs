//! How often a caller may call: by HTTP with a status and a time to wait, over MCP in words.
#![expect(clippy::unwrap_used, reason = "all of this file is a test")]

use nexus_tests::call::Speaker;
use nexus_tests::process::{LIMIT, Node, Setup};
use nexus_tests::wait;
use serde_json::{Value, json};

/// More calls than any of these tests may make before it is refused.
const CALLS_MAX: usize = 300;

async fn started(settings: Value) -> Node {
    let mut node = Node::with("limited", Setup { settings, ..Setup::default() });
    node.start(&[]).await;
    node
}

/// Calls once; returns the status, how long to wait by the header, and the body.
async fn call(node: &Node, speaker: &Speaker) -> (u16, Option<String>, Value) {
    let http = node.http();
    let body = speaker.body("list_events", &json!({}), None);
    let request = http.client().post(format!("{}/api/tools/call", http.url()));
    let response = request.bearer_auth(http.token()).json(&body).send().await.unwrap();
    let wait = response.headers().get("retry-after");
    let wait = wait.map(|value| value.to_str().unwrap().to_owned());
    (response.status().as_u16(), wait, response.json().await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn each_caller_is_refused_for_itself_and_told_how_long() {
    let node = started(json!({"rateLimit": 1, "rateBurst": 3})).await;
    let speakers = [
        Speaker::Instance("a".to_owned()),
        Speaker::Codex("a".to_owned()),
        Speaker::Instance("b".to_owned()),
        Speaker::Nobody,
    ];
    for speaker in &speakers {
        // The bucket of each is full, whatever the others did.
        for _ in 0..3 {
            assert_eq!(call(&node, speaker).await.0, 200, "{speaker:?}");
        }
        let mut calls = 3;
        let (wait, body) = loop {
            let (status, wait, body) = call(&node, speaker).await;
            calls += 1;
            if status == 429 {
                break (wait, body);
            }
            assert!(calls < CALLS_MAX, "{speaker:?} was never refused: {body}");
        };
        assert_eq!(wait.as_deref(), Some("1"), "{body}");
        assert_eq!((&body["code"], &body["retryAfter"]), (&json!("rate_limited"), &json!(1)));
        assert_eq!(body["error"], "Rate limit exceeded: retry after 1s");
    }
    // Whoever waited as long as it says is served.
    let speaker = &speakers[0];
    wait::until("the next call", LIMIT, async || {
        let (status, _, body) = call(&node, speaker).await;
        if status == 200 { Ok(()) } else { Err(body.to_string()) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rate_of_zero_refuses_nobody() {
    let node = started(json!({"rateLimit": 0, "rateBurst": 1})).await;
    for _ in 0..CALLS_MAX {
        assert_eq!(call(&node, &Speaker::Nobody).await.0, 200);
    }
}
