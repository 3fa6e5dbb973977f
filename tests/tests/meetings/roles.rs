//! Every tool of meetings, on the leader, on followers and on a learner: the same results.

use nexus_tests::call::Speaker;
use nexus_tests::process::{LIMIT, Node, agree, every_role, text};
use serde_json::{Value, json};

use super::{call, codex, instance};

#[tokio::test(flavor = "multi_thread")]
async fn every_tool_of_meetings_works_from_every_role() {
    let nodes = every_role(["one", "two", "three", "four"]).await;
    let mut lives = Vec::new();
    for node in &nodes {
        lives.push(life(node, &nodes).await);
    }
    let first = lives[0].clone();
    for (node, life) in nodes.iter().zip(&lives) {
        assert_eq!(life.len(), first.len());
        for (own, of_first) in life.iter().zip(&first) {
            assert_eq!(own, of_first, "on {} otherwise than on one", node.name());
        }
    }
    let all: Vec<&Node> = nodes.iter().collect();
    agree(&all, LIMIT).await;
    let mut lists = Vec::new();
    for node in &nodes {
        lists.push(call(node, &Speaker::Nobody, "list_meetings", json!({})).await);
    }
    assert!(lists.iter().all(|list| *list == lists[0]), "{lists:#?}");
    assert_eq!((&lists[0]["count"], lists[0].get("more")), (&json!(4), None), "{}", lists[0]);
}

/// Takes a meeting through all that may happen to it, on one node; returns what was seen, without
/// what differs from meeting to meeting.
async fn life(node: &Node, all: &[Node]) -> Vec<Value> {
    let own = |name: &str| format!("{name}-{}", node.name());
    let (a, b, tool) = (codex(&own("a")), codex(&own("b")), instance(&own("tool")));
    for (by, name) in [(&a, "anna"), (&b, "bert")] {
        call(node, by, "set_profile", json!({"name": own(name)})).await;
    }
    let mut seen = vec![call(node, &a, "start_meeting", json!({"topic": "plan"})).await];
    let id = text(&seen[0]["meetingId"]);
    let with = |fields: Value| {
        let mut args = fields;
        args["meetingId"] = json!(id);
        args
    };
    let mut on = vec![
        (&b, "join_meeting", with(json!({"since": "beginning"}))),
        (&tool, "join_meeting", with(json!({"mode": "async", "since": 0}))),
        (&a, "send_message", json!({"message": "hello, ü"})),
        (&a, "send_message", with(json!({"message": "one", "draft": true}))),
        (&b, "read_messages", with(json!({}))),
        (&tool, "read_messages", with(json!({"count": 1}))),
        (&tool, "read_messages", with(json!({}))),
        (&b, "stance", with(json!({"messageId": 2, "stance": "object", "note": "why?"}))),
        (&a, "send_message", json!({"message": "two", "draft": true})),
        (&tool, "stance", with(json!({"messageId": 4, "stance": "endorse"}))),
        (&b, "stance", with(json!({"messageId": 4, "stance": "endorse", "note": "well"}))),
        (&a, "read_messages", with(json!({"afterId": 1, "count": 2}))),
        (&a, "stance", with(json!({"messageId": 4, "stance": "endorse"}))),
        (&a, "read_messages", with(json!({"latest": true}))),
        (&tool, "leave_meeting", with(json!({}))),
        (&a, "archive_meeting", with(json!({}))),
        (&b, "reopen_meeting", with(json!({}))),
        (&b, "end_meeting", json!({"summary": "enough"})),
    ];
    for (by, tool, args) in on.drain(..) {
        let result = call(node, by, tool, args).await;
        if tool == "stance" {
            // What one node answers with, another one shows at once.
            let number = result["messageId"].as_u64().unwrap();
            for other in all {
                let meeting = super::shown(other, &id).await;
                if meeting["proposal"]["messageId"] == number {
                    let approvals = result["approvals"].as_object().unwrap();
                    for (field, value) in approvals {
                        assert_eq!(&meeting["proposal"][field], value, "on {}", other.name());
                    }
                }
            }
        }
        seen.push(result);
    }
    seen.push(super::shown(node, &id).await);
    seen.iter().map(|result| plain(result, &id, node.name())).collect()
}

/// Takes out of a result what differs from node to node: the meeting's id, names, times.
fn plain(value: &Value, id: &str, node: &str) -> Value {
    match value {
        Value::String(text) if text.ends_with('Z') && text.starts_with("20") => json!("TIME"),
        Value::String(text) => {
            json!(text.replace(id, "MEETING").replace(&format!("-{node}"), "-NODE"))
        }
        Value::Array(items) => items.iter().map(|item| plain(item, id, node)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| (key.clone(), plain(value, id, node))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}
