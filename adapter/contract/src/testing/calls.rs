//! One right call of each tool, or two where fields exclude each other, that give every field.

use serde_json::{Value, json};

/// Returns a right call of each tool of the contract, served or not, and two where fields exclude
/// each other: together they give every field.
#[must_use]
pub fn calls() -> Vec<(&'static str, Value)> {
    let mut calls = talk();
    calls.extend(work());
    calls
}

fn talk() -> Vec<(&'static str, Value)> {
    let meeting = "20260102030405-release-plan-000k";
    vec![
        ("peers", json!({"includeOffline": true})),
        ("set_profile", json!({"name": "codex@app#2", "note": "the ü", "title": "One line"})),
        (
            "send",
            json!({
                "to": "claude:0a1b", "text": "two\nlines", "notifyWhenIdle": true,
                "expectsReply": false, "wake": false,
            }),
        ),
        ("read", json!({"count": 50})),
        (
            "reply",
            json!({
                "messageId": "dm-000000000012", "text": "yes", "expectsReply": false, "wake": true,
            }),
        ),
        ("listen", json!({"on": false})),
        (
            "send_message",
            json!({
                "message": "we do it", "category": "PROPOSAL", "meetingId": meeting, "draft": true,
            }),
        ),
        ("read_messages", json!({"count": 500, "meetingId": meeting, "latest": true})),
        ("read_messages", json!({"count": 1, "afterId": 7})),
        ("list_meetings", json!({"status": "closed", "limit": 200, "before": meeting})),
        ("start_meeting", json!({"topic": "Übergabe"})),
        ("end_meeting", json!({"meetingId": meeting, "summary": "Nothing.\nTwice."})),
        ("archive_meeting", json!({"meetingId": meeting})),
        ("reopen_meeting", json!({"meetingId": meeting})),
        (
            "join_meeting",
            json!({
                "meetingId": meeting, "mode": "async", "approver": "required", "since": "latest",
            }),
        ),
        ("join_meeting", json!({"meetingId": meeting, "since": 0})),
        ("leave_meeting", json!({"meetingId": meeting})),
        (
            "stance",
            json!({"meetingId": meeting, "messageId": 4, "stance": "object", "note": "too soon"}),
        ),
        ("list_events", json!({"limit": 500, "action": "node.join"})),
        ("host_maintenance", json!({"action": "prune", "count": 1})),
    ]
}

fn work() -> Vec<(&'static str, Value)> {
    vec![
        (
            "create_task",
            json!({
                "source_meeting_id": "20260102030405-x-000k",
                "metadata": {"target": "issue 7", "any": [1, {"deep": null}]},
                "ttl": 31_622_400_000_u64,
            }),
        ),
        ("get_task", json!({"taskId": "7"})),
        ("list_tasks", json!({"status": "running", "limit": 500, "before": "7"})),
        (
            "update_task",
            json!({
                "taskId": "7", "status": "completed", "progress": 0.5, "result_uri": "http://x/ü",
                "error_message": "two\nlines", "metadata": {}, "expected_status": "pending",
                "expected_updated_at": "2026-01-02T03:04:05.678Z",
            }),
        ),
        (
            "cancel_task",
            json!({
                "taskId": "7", "expected_status": "running",
                "expected_updated_at": "2026-01-02T03:04:05.678Z",
            }),
        ),
        ("sync_project_assets", json!({"manifest": manifest(), "internalDocs": "# Notes\n"})),
        (
            "upload_project_asset",
            json!({"projectId": "web_shop", "fileName": "a b.png", "base64Content": "TWE="}),
        ),
        ("update_project", json!({"projectId": "web_shop", "patch": patch()})),
        ("rename_project", json!({"oldId": "web_shop", "newId": "web_store"})),
        ("search_projects", json!({"query": "shop", "limit": 200})),
        ("get_global_topology", json!({"projectId": "web_shop"})),
        ("get_project", json!({"projectId": "web_shop", "includeDocs": false})),
        ("host_delete_project", json!({"projectId": "web_shop"})),
        ("update_global_strategy", json!({"content": "# All\n"})),
        ("get_global_strategy", json!({})),
        ("list_global_docs", json!({"before": "rules"})),
        ("get_global_doc", json!({"docId": "rules"})),
        ("sync_global_doc", json!({"docId": "rules", "title": "Rules", "content": ""})),
    ]
}

/// Returns a manifest with every field.
#[must_use]
pub fn manifest() -> Value {
    json!({
        "id": "web_shop",
        "name": "The shop",
        "description": "Sells\nthings",
        "techStack": ["rust", ""],
        "relations": [{"targetId": "lib_money", "type": "dependency"}],
        "repositoryUrl": "",
        "localPath": "C:\\src\\shop",
        "endpoints": [{"name": "web", "url": "http://shop", "description": "for people"}],
        "apiSpec": [{"method": "GET", "path": "/cart", "summary": "what is in it"}],
        "billing": {"plain": "free", "price": "0 €"},
        "lastUpdated": "yesterday",
        "apiDependencies": {"lib_money": "^1.2"},
        "gatewayCompatibility": "all",
        "api_versions": {"cart": "v2"},
        "feature_tier": "team",
    })
}

/// Returns a patch with every field.
fn patch() -> Value {
    let mut patch = manifest();
    if let Some(fields) = patch.as_object_mut() {
        fields.remove("id");
    }
    patch
}
