//! Maintenance of the global chat on running nodes: messages go for everybody, places stay.
#![expect(clippy::unwrap_used, reason = "all of this file is a test")]

use nexus_tests::call::Speaker;
use nexus_tests::process::{LIMIT, Node, agree, every_role, text};
use serde_json::{Value, json};

async fn call(node: &Node, by: &Speaker, tool: &str, args: Value) -> Value {
    let answer = node.http().call_as(by, tool, args.clone(), None).await;
    answer.unwrap_or_else(|failed| panic!("{tool} {args} on {}: {failed}", node.name()))
}

fn instance(name: &str) -> Speaker {
    Speaker::Instance(name.to_owned())
}

async fn say(node: &Node, count: usize) {
    for _ in 0..count {
        call(node, &instance("writer"), "send_message", json!({"message": "x"})).await;
    }
}

fn ids(page: &Value) -> Vec<u64> {
    page["messages"].as_array().unwrap().iter().map(|one| one["id"].as_u64().unwrap()).collect()
}

async fn history(node: &Node) -> Vec<u64> {
    let all = json!({"latest": true, "count": 500});
    ids(&call(node, &Speaker::Nobody, "read_messages", all).await)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_oldest_go_for_everybody_and_numbers_go_on() {
    let nodes = every_role(["one", "two", "three", "four"]).await;
    let reader = instance("reader");
    // The first look begins at the newest; the place is kept from there.
    call(&nodes[3], &reader, "read_messages", json!({})).await;
    say(&nodes[0], 20).await;
    for (place, node) in nodes.iter().enumerate() {
        let janitor = instance(&format!("janitor-{}", node.name()));
        let prune = json!({"action": "prune", "count": 2});
        let answer = call(node, &janitor, "host_maintenance", prune).await;
        let left = 20 - 2 * (place + 1);
        assert_eq!(answer, json!({"ok": true, "removed": 2, "remaining": left}), "{}", node.name());
    }
    for node in &nodes {
        assert_eq!(history(node).await, (9..=20).collect::<Vec<_>>(), "on {}", node.name());
    }
    // Who has read nothing yet gets what is left, once.
    let unread = call(&nodes[3], &reader, "read_messages", json!({"count": 5})).await;
    assert_eq!(ids(&unread), [9, 10, 11, 12, 13]);

    let clear = json!({"action": "clear", "count": 0});
    let answer = call(&nodes[1], &instance("janitor"), "host_maintenance", clear.clone()).await;
    assert_eq!(answer, json!({"ok": true, "removed": 12, "remaining": 0}));
    let again = call(&nodes[1], &instance("janitor"), "host_maintenance", clear).await;
    assert_eq!(again, json!({"ok": true, "removed": 0, "remaining": 0}));
    for node in &nodes {
        assert_eq!(history(node).await, [0; 0], "on {}", node.name());
    }
    say(&nodes[2], 2).await;
    for node in &nodes {
        assert_eq!(history(node).await, [21, 22], "on {}", node.name());
    }
    let unread = call(&nodes[3], &reader, "read_messages", json!({})).await;
    assert_eq!(ids(&unread), [21, 22]);
    agree(&nodes.iter().collect::<Vec<_>>(), LIMIT).await;

    let action = json!({"action": "maintenance"});
    let events = call(&nodes[3], &reader, "list_events", action).await;
    let told: Vec<(String, String, String)> = events["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| (text(&event["action"]), text(&event["actor"]), text(&event["detail"])))
        .collect();
    let event = |action: &str, actor: &str, detail: &str| {
        (format!("maintenance.{action}"), actor.to_owned(), detail.to_owned())
    };
    assert_eq!(
        told,
        [
            event("clear", "janitor", "0 removed, 0 left"),
            event("clear", "janitor", "12 removed, 0 left"),
            event("prune", "janitor-four", "2 removed, 12 left"),
            event("prune", "janitor-three", "2 removed, 14 left"),
            event("prune", "janitor-two", "2 removed, 16 left"),
            event("prune", "janitor-one", "2 removed, 18 left"),
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn more_than_there_is_is_all_and_a_repeated_call_removes_nothing_more() {
    let node = Node::found("sole").await;
    say(&node, 5).await;
    let by = instance("janitor");
    let prune = json!({"action": "prune", "count": 2});
    let repeated = async || {
        let answer = node.http().call_as(&by, "host_maintenance", prune.clone(), Some("r-1"));
        answer.await.unwrap()
    };
    let first = repeated().await;
    assert_eq!(first, json!({"ok": true, "removed": 2, "remaining": 3}));
    assert_eq!(repeated().await, first);
    assert_eq!(history(&node).await, [3, 4, 5]);
    for count in [json!(u64::MAX), json!(1.0)] {
        say(&node, 1).await;
        let left = history(&node).await.len();
        let all = json!({"action": "prune", "count": count});
        let answer = call(&node, &by, "host_maintenance", all).await;
        assert_eq!(answer, json!({"ok": true, "removed": left, "remaining": 0}));
    }
}
