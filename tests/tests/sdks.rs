//! The official TypeScript and Python SDKs of MCP as clients: over standard input and output and
//! over HTTP, on both wires, each beside a node of its own.
//!
//! Skipped, with a line that says why, where they are not installed.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "all of this file is a test")]

use std::time::Duration;

use nexus_contract::catalog;
use nexus_tests::command::{self, Running};
use nexus_tests::process::{Node, three_voters};
use nexus_tests::sdks::{Sdk, Sdks};
use serde_json::{Value, json};

/// How long a client may take for all that it does.
const CLIENT: Duration = Duration::from_secs(60);

/// Where a client finds its server.
fn target(node: &Node, is_http: bool) -> Value {
    if is_http {
        let http = node.http();
        return json!({"url": format!("{}/mcp", http.url()), "token": http.token()});
    }
    json!({"command": command::binary(), "args": ["mcp"], "env": {"NEXUS_ROOT": node.data()}})
}

/// Checks what a client saw, and returns what it sent.
fn check(saw: &Value, language: &str, wire: &str) -> String {
    assert_eq!((&saw["wire"], &saw["server"]), (&json!(wire), &json!("n2n-nexus")), "{saw:#}");
    let names: Vec<&str> = catalog::all().iter().map(|tool| tool.name).collect();
    assert_eq!(saw["tools"], json!(names));
    let text = format!("from {language}, {wire}");
    assert_eq!(saw["sent"]["structuredContent"]["ok"], true, "{saw:#}");
    assert_eq!(saw["read"]["structuredContent"]["messages"][0]["text"], text, "{saw:#}");
    assert_eq!(saw["refused"]["isError"], true);
    let said = saw["refused"]["content"][0]["text"].as_str().unwrap();
    assert!(said.starts_with("invalid_arguments: send_message: message: "), "{said}");
    assert_eq!(saw["document"]["structuredContent"]["docId"], "sdk", "{saw:#}");
    let uris = saw["resources"].as_array().unwrap();
    for uri in ["nexus://strategy", "nexus://documents/sdk"] {
        assert!(uris.contains(&json!(uri)), "{uris:?}");
    }
    assert_eq!(saw["templates"][0], "nexus://documents/{docId}");
    assert_eq!(saw["text"], "# text");
    // An SDK may show the older code as the newer.
    assert!([json!(-32602), json!(-32002)].contains(&saw["missing"]), "{saw:#}");
    assert_eq!(saw["prompts"], json!(["use-nexus"]));
    assert!(saw["prompt"].as_str().unwrap().contains("read_messages"), "{saw:#}");
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn the_official_sdks_list_and_call_on_both_wires_over_stdio_and_http() {
    let sdks = match Sdks::find() {
        Ok(sdks) => sdks,
        Err(why) => {
            eprintln!("skipped: the clients of the official SDKs, {why}");
            return;
        }
    };
    let nodes = three_voters(["lead", "typescript", "python"]).await;
    let mut sent = Vec::new();
    for (sdk, language, node) in
        [(Sdk::TypeScript, "typescript", &nodes[1]), (Sdk::Python, "python", &nodes[2])]
    {
        for wire in ["2025-11-25", "2026-07-28"] {
            for is_http in [false, true] {
                let client = sdks.client(sdk, wire, &target(node, is_http));
                let ended = Running::start(client).end(CLIENT).await;
                assert!(ended.status.success(), "{language}, {wire}, HTTP {is_http}: {ended}");
                sent.push(check(&ended.json(), language, wire));
            }
        }
    }
    let history = nodes[0].http().history().await.unwrap();
    let texts: Vec<&str> = history.iter().map(|it| it["text"].as_str().unwrap()).collect();
    assert_eq!(texts, sent);
}
