//! Projects and their files on running nodes.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "all of this is a test")]

mod files;
mod measure;
mod tools;
mod topology;
mod uploads;

use nexus_contract::testing;
use nexus_tests::call::{Failed, Speaker};
use nexus_tests::process::{Node, text};
use serde_json::{Value, json};

/// Who works in these tests, on each node under a name of its own: an actor has one home.
fn worker(node: &Node) -> Speaker {
    Speaker::Instance(format!("worker-{}", node.name()))
}

async fn call(node: &Node, tool: &str, args: Value) -> Value {
    let answer = node.http().call_as(&worker(node), tool, args.clone(), None).await;
    answer.unwrap_or_else(|failed| {
        panic!("{tool} {:.500} on {}: {failed}", args.to_string(), node.name())
    })
}

/// Makes a call that must be refused; returns the code and the text.
async fn refused(node: &Node, tool: &str, args: Value) -> (String, String) {
    match node.http().call_as(&worker(node), tool, args.clone(), None).await {
        Err(Failed::Refused { body, .. }) => (text(&body["code"]), text(&body["error"])),
        other => panic!("{tool} {args} on {}: {other:?}", node.name()),
    }
}

/// Returns a manifest with every field.
fn manifest(id: &str) -> Value {
    let mut manifest = testing::manifest();
    manifest["id"] = id.into();
    manifest
}

/// Makes a project with notes.
async fn make(node: &Node, manifest: &Value) -> Value {
    let args = json!({"manifest": manifest, "internalDocs": "# Notes"});
    call(node, "sync_project_assets", args).await
}

/// Makes a project that stands to these, with what each is to it.
async fn relate(node: &Node, id: &str, relations: &[(&str, &str)]) {
    let mut manifest = manifest(id);
    let relation = |(to, kind): &(&str, &str)| json!({"targetId": to, "type": kind});
    manifest["relations"] = relations.iter().map(relation).collect();
    manifest.as_object_mut().unwrap().remove("apiDependencies");
    make(node, &manifest).await;
}

async fn get(node: &Node, id: &str) -> Value {
    call(node, "get_project", json!({"projectId": id})).await
}

/// Returns bytes that no two places of a file have alike, many of them no UTF-8.
fn bytes(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed * 2 + 1;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        // Xorshift: the same bytes in every run.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}
