//! Meetings on running nodes: the rules of a meeting as its tools show them, from every role, and
//! through the death of whoever leads.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "all of this file is a test")]

mod consensus;
mod drafts;
mod life;
mod lists;
mod members;
mod roles;

use nexus_tests::call::{Failed, Speaker};
use nexus_tests::process::{Node, text};
use serde_json::{Value, json};

fn codex(name: &str) -> Speaker {
    Speaker::Codex(name.to_owned())
}

fn instance(name: &str) -> Speaker {
    Speaker::Instance(name.to_owned())
}

async fn call(node: &Node, by: &Speaker, tool: &str, args: Value) -> Value {
    let answer = node.http().call_as(by, tool, args.clone(), None).await;
    answer.unwrap_or_else(|failed| panic!("{tool} {args:.300} on {}: {failed}", node.name()))
}

/// Makes a call that must be refused; returns the code and the text.
async fn refused(node: &Node, by: &Speaker, tool: &str, args: Value) -> (String, String) {
    match node.http().call_as(by, tool, args.clone(), None).await {
        Err(Failed::Refused { body, .. }) => (text(&body["code"]), text(&body["error"])),
        other => panic!("{tool} {args:.300} on {}: {other:?}", node.name()),
    }
}

/// Starts a meeting; returns its id.
async fn start(node: &Node, by: &Speaker, topic: &str) -> String {
    text(&call(node, by, "start_meeting", json!({"topic": topic})).await["meetingId"])
}

async fn join(node: &Node, by: &Speaker, meeting: &str) -> Value {
    call(node, by, "join_meeting", json!({"meetingId": meeting})).await
}

/// Says something in a meeting; returns its number.
async fn say(node: &Node, by: &Speaker, meeting: &str, words: &str) -> u64 {
    let args = json!({"message": words, "meetingId": meeting});
    call(node, by, "send_message", args).await["messageId"].as_u64().unwrap()
}

/// Publishes a draft; returns its number.
async fn draft(node: &Node, by: &Speaker, meeting: &str, words: &str) -> u64 {
    let args = json!({"message": words, "meetingId": meeting, "draft": true});
    let sent = call(node, by, "send_message", args).await;
    assert_eq!(sent["currentProposalId"], sent["messageId"]);
    sent["messageId"].as_u64().unwrap()
}

async fn stance(node: &Node, by: &Speaker, meeting: &str, number: u64, opinion: &str) -> Value {
    let mut args = json!({"meetingId": meeting, "messageId": number, "stance": opinion});
    if opinion == "object" {
        args["note"] = "too soon".into();
    }
    call(node, by, "stance", args).await
}

/// Returns a meeting as the node lists it.
async fn shown(node: &Node, meeting: &str) -> Value {
    let list = call(node, &Speaker::Nobody, "list_meetings", json!({"limit": 200})).await;
    let mut found = list["meetings"].as_array().unwrap().iter();
    let found = found.find(|one| one["id"] == meeting).cloned();
    found.unwrap_or_else(|| panic!("meeting {meeting} is not in {list}"))
}

/// Returns the newest messages of a meeting.
async fn history(node: &Node, meeting: &str) -> Vec<Value> {
    let args = json!({"meetingId": meeting, "latest": true, "count": 500});
    let page = call(node, &Speaker::Nobody, "read_messages", args).await;
    assert_eq!((&page["source"], &page["meetingId"]), (&json!("meeting"), &json!(meeting)));
    page["messages"].as_array().unwrap().clone()
}

/// Returns the texts of what a reader gets that it has not read.
async fn unread(node: &Node, by: &Speaker, meeting: &str) -> Vec<String> {
    let args = json!({"meetingId": meeting, "count": 500});
    let page = call(node, by, "read_messages", args).await;
    assert_eq!((&page["mode"], &page["meetingId"]), (&json!("unread"), &json!(meeting)));
    page["messages"].as_array().unwrap().iter().map(|one| text(&one["text"])).collect()
}

/// Returns the ids of a list of members, meetings or remarks.
fn ids(list: &Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(|one| text(&one["id"])).collect()
}

/// Returns the ids of several, as the tools show them.
fn of(speakers: &[&Speaker]) -> Value {
    speakers.iter().map(|speaker| speaker.id()).collect()
}

async fn events(node: &Node, action: &str, meeting: &str) -> Vec<Value> {
    let args = json!({"action": action, "limit": 500});
    let page = call(node, &Speaker::Nobody, "list_events", args).await;
    let all = page["events"].as_array().unwrap().iter();
    all.filter(|event| event["target"] == meeting).cloned().collect()
}
