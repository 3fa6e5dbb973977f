//! Rules that no schema says: fields that need or exclude each other, and forms of their own.

use nexus_contract::{ErrorCode, testing, validate};
use serde_json::{Value, json};

use crate::spec;

fn refusal(tool: &str, arguments: Value) -> String {
    let error = validate::arguments(spec(tool), arguments.clone())
        .expect_err(&format!("{tool} accepts {arguments:.300}"));
    assert_eq!(error.code, ErrorCode::InvalidArguments);
    let start = format!("Invalid arguments for {tool}: ");
    error.message.strip_prefix(&start).unwrap_or_else(|| panic!("{error}")).to_owned()
}

fn refused(table: &[(&str, Value, &str)]) {
    for (tool, arguments, expected) in table {
        assert_eq!(refusal(tool, arguments.clone()), *expected, "{tool} {arguments:.300}");
    }
}

fn accepted(tool: &str, arguments: Value) {
    let clean = validate::arguments(spec(tool), arguments.clone());
    assert_eq!(clean.unwrap(), arguments, "{tool}");
}

#[test]
fn drafts_are_proposals() {
    let what = "category: is not PROPOSAL; a draft is one: give PROPOSAL or leave it out";
    for category in ["DECISION", "UPDATE", "CHAT", "MEETING_START"] {
        let call = json!({"message": "x", "draft": true, "category": category});
        assert_eq!(refusal("send_message", call), what);
        accepted("send_message", json!({"message": "x", "draft": false, "category": category}));
    }
    accepted("send_message", json!({"message": "x", "draft": true}));
    accepted("send_message", json!({"message": "x", "draft": true, "category": "PROPOSAL"}));
}

#[test]
fn objections_say_why_and_topics_are_one_line() {
    let stance = |stance: &str, note: Option<&str>| {
        let mut call = json!({"meetingId": "m", "messageId": 1, "stance": stance});
        if let Some(note) = note {
            call["note"] = json!(note);
        }
        call
    };
    refused(&[
        (
            "stance",
            stance("object", None),
            "note: is missing; give the reason when the stance is object",
        ),
        (
            "stance",
            stance("object", Some("")),
            "note: is empty; give the reason when the stance is object",
        ),
        (
            "start_meeting",
            json!({"topic": "a\nb"}),
            "topic: has a line break or a tab in it; give a text of one line",
        ),
        (
            "join_meeting",
            json!({"meetingId": "m", "since": "noon"}),
            "since: is the string \"noon\"; give an integer, at least 0 or one of beginning, \
             latest",
        ),
        (
            "join_meeting",
            json!({"meetingId": "m", "since": -1}),
            "since: is -1; give an integer, at least 0 or one of beginning, latest",
        ),
    ]);
    accepted("stance", stance("object", Some("too soon")));
    accepted("stance", stance("endorse", None));
    accepted("stance", stance("withdraw", Some("")));
    accepted("join_meeting", json!({"meetingId": "m", "since": "beginning"}));
}

#[test]
fn who_joins_is_asked_for_drafts_by_how_it_takes_part() {
    use nexus_contract::meetings::{Approver, JoinMeetingInput, Mode, Place, Since};
    let read = |call: Value| serde_json::from_value::<JoinMeetingInput>(call).unwrap();
    for (call, mode, approver) in [
        (json!({"meetingId": "m"}), Mode::Active, Approver::Required),
        (json!({"meetingId": "m", "mode": "async"}), Mode::Async, Approver::Optional),
        (json!({"meetingId": "m", "approver": "optional"}), Mode::Active, Approver::Optional),
        (
            json!({"meetingId": "m", "mode": "async", "approver": "required"}),
            Mode::Async,
            Approver::Required,
        ),
    ] {
        let input = read(call);
        assert_eq!((input.mode, input.approver(), input.since), (mode, approver, None));
    }
    assert_eq!(read(json!({"meetingId": "m", "since": 3})).since, Some(Since::After(3)));
    let latest = Some(Since::Place(Place::Latest));
    assert_eq!(read(json!({"meetingId": "m", "since": "latest"})).since, latest);
}

#[test]
fn a_prune_needs_a_count_and_a_clear_ignores_it() {
    for (count, is) in [(json!(null), "is missing"), (json!(0), "is 0")] {
        assert_eq!(
            refusal("host_maintenance", json!({"action": "prune", "count": count})),
            format!("count: {is}; give an integer, at least 1, to prune")
        );
    }
    accepted("host_maintenance", json!({"action": "clear"}));
    accepted("host_maintenance", json!({"action": "clear", "count": 0}));
}

#[test]
fn tasks_change_in_something_and_their_texts_are_counted_in_bytes() {
    let fields = "status, progress, result_uri, error_message, metadata";
    let claim = json!({"taskId": "1", "expected_status": "pending"});
    assert_eq!(
        refusal("update_task", claim),
        format!("{fields}: none is given; give at least one of them")
    );
    for (field, bytes_max) in [("result_uri", 2_048), ("error_message", 8_192)] {
        let mut call = json!({"taskId": "1"});
        call[field] = json!("ä".repeat(bytes_max / 2));
        accepted("update_task", call.clone());
        call[field] = json!("ä".repeat(bytes_max / 2 + 1));
        assert_eq!(
            refusal("update_task", call),
            format!("{field}: has {} bytes; give at most {bytes_max} bytes", bytes_max + 2)
        );
    }
    // {"a":"…"} is eight bytes longer than its text.
    for (length, fits) in [(16_384 - 8, true), (16_384 - 7, false)] {
        let metadata = json!({"a": "x".repeat(length)});
        for (tool, mut call) in
            [("create_task", json!({})), ("update_task", json!({"taskId": "1"}))]
        {
            call["metadata"] = metadata.clone();
            if fits {
                accepted(tool, call);
            } else {
                assert_eq!(
                    refusal(tool, call),
                    "metadata: has 16385 bytes; give at most 16384 bytes; keep more in a document \
                     and name it here"
                );
            }
        }
    }
    accepted("create_task", json!({"metadata": {"target": "x".repeat(512)}}));
    accepted("create_task", json!({"metadata": {"target": {"any": "x".repeat(600)}}}));
    assert_eq!(
        refusal("create_task", json!({"metadata": {"target": "x".repeat(513)}})),
        "metadata.target: has 513 bytes; give at most 512 bytes"
    );
    // Metadata is anybody's own: nothing in it is dropped or judged.
    accepted("create_task", json!({"metadata": {"null": null, "": " \u{1b}", "a": {"b": [[]]}}}));
    accepted("update_task", json!({"taskId": "1", "progress": 1}));
}

#[test]
fn what_a_task_is_expected_to_be_is_said_in_the_form_that_it_shows() {
    for given in [
        "yesterday",
        "2026-01-02T03:04:05Z",
        "2026-01-02T03:04:05.678+01",
        "2026-01-02t03:04:05.6Z",
    ] {
        for (tool, mut call) in [
            ("update_task", json!({"taskId": "1", "status": "running"})),
            ("cancel_task", json!({"taskId": "1"})),
        ] {
            call["expected_updated_at"] = json!(given);
            assert_eq!(
                refusal(tool, call),
                "expected_updated_at: is no time of a task; give its updated_at as it was shown, \
                 such as 2026-01-02T03:04:05.678Z"
            );
        }
    }
}

#[test]
fn ids_of_projects_and_documents_are_no_folders() {
    let right = "give 1 to 128 of A-Z a-z 0-9 . _ -";
    for id in [".", ".."] {
        let is = format!("is {id:?}, which is a folder in a path; {right}");
        assert_eq!(
            refusal("rename_project", json!({"oldId": "a", "newId": id})),
            format!("newId: {is}")
        );
        let doc = json!({"docId": id, "title": "t", "content": ""});
        assert_eq!(refusal("sync_global_doc", doc), format!("docId: {is}"));
        let mut manifest = testing::manifest();
        manifest["relations"][0]["targetId"] = json!(id);
        let sync = json!({"manifest": manifest, "internalDocs": ""});
        assert_eq!(
            refusal("sync_project_assets", sync),
            format!("manifest.relations[0].targetId: {is}")
        );
        let mut manifest = testing::manifest();
        manifest["id"] = json!(id);
        let sync = json!({"manifest": manifest, "internalDocs": ""});
        assert_eq!(refusal("sync_project_assets", sync), format!("manifest.id: {is}"));
    }
    refused(&[(
        "rename_project",
        json!({"oldId": "a", "newId": "a"}),
        "newId: is the same as oldId; give another id",
    )]);
    // What looks a project up may look for anything that could be one.
    accepted("get_project", json!({"projectId": ".."}));
}

#[test]
fn manifests_and_patches_follow_the_same_rules() {
    let sync = |field: &str, value: Value| {
        let mut manifest = testing::manifest();
        manifest[field] = value;
        refusal("sync_project_assets", json!({"manifest": manifest, "internalDocs": ""}))
    };
    let update = |field: &str, value: Value| {
        let mut patch = json!({});
        patch[field] = value;
        refusal("update_project", json!({"projectId": "a", "patch": patch}))
    };
    let right = "give 1 to 128 of A-Z a-z 0-9 . _ -";
    let many: serde_json::Map<String, Value> =
        (0..1_001).map(|at| (format!("v{at}"), json!("1"))).collect();
    for (field, value, what) in [
        (
            "name",
            json!("a\tb"),
            "name: has a line break or a tab in it; give a text of one line".into(),
        ),
        (
            "apiDependencies",
            json!({"a/b": "1"}),
            format!("apiDependencies: has '/' in it; {right}"),
        ),
        ("apiDependencies", json!({"": "1"}), format!("apiDependencies: is empty; {right}")),
        (
            "api_versions",
            json!({"a\u{7}": "1"}),
            "api_versions: has the control character U+0007 in it; give a text without control \
             characters other than line breaks and tabs"
                .into(),
        ),
        (
            "api_versions",
            json!({"x".repeat(101): "1"}),
            "api_versions: has 101 bytes; give at most 100 bytes".into(),
        ),
        (
            "api_versions",
            Value::Object(many.clone()),
            "api_versions: has 1001 entries; give at most 1000".into(),
        ),
        (
            "apiDependencies",
            Value::Object(many),
            "apiDependencies: has 1001 entries; give at most 1000".into(),
        ),
    ] {
        assert_eq!(sync(field, value.clone()), format!("manifest.{what}"));
        assert_eq!(update(field, value), format!("patch.{what}"));
    }
    assert_eq!(
        update("id", json!("web_other")).split(';').next().unwrap(),
        "patch.id: is not a known field"
    );
    for empty in [json!({}), json!({"name": null})] {
        assert_eq!(
            refusal("update_project", json!({"projectId": "a", "patch": empty})),
            "patch: gives no field; give at least one of a manifest, never id"
        );
    }
    accepted("update_project", json!({"projectId": "a", "patch": {"relations": []}}));
}

#[test]
fn a_key_that_a_caller_chose_is_shown_briefly() {
    let key = format!("a\u{1b}\n{}", "x".repeat(100_000));
    for field in ["apiDependencies", "api_versions", "unknown"] {
        let mut patch = json!({});
        patch[field] = json!({key.clone(): 7});
        patch[&key] = json!(7);
        let said = refusal("update_project", json!({"projectId": "a", "patch": patch}));
        assert!(said.contains("a\\u{1b}\\nxx") && said.len() < 1_000, "{said:.2000}");
        assert!(!said.contains(char::is_control), "{said:.2000}");
    }
}

#[test]
fn assets_have_a_name_and_whole_base64() {
    let upload = |name: &str, content: &str| {
        let (id, file) = ("a", name);
        json!({"projectId": id, "fileName": file, "base64Content": content})
    };
    let plain = "give base64 with padding and without line breaks";
    for (call, what) in [
        (upload(".", "TWE="), "fileName: is a folder; give the name of a file".to_owned()),
        (
            upload("a\nb", "TWE="),
            "fileName: has a line break or a tab in it; give a text of one line".into(),
        ),
        (
            upload(&"ä".repeat(101), "TWE="),
            "fileName: has 202 bytes; give at most 200 bytes".into(),
        ),
        (upload("a", "TWE"), format!("base64Content: has 3 characters, no multiple of 4; {plain}")),
        (upload("a", "TWFu\nTWFu"), format!("base64Content: has '\\n' in it; {plain}")),
        (upload("a", "TÄE="), format!("base64Content: has 'Ä' in it; {plain}")),
    ] {
        assert_eq!(refusal("upload_project_asset", call), what);
    }
    // What is unsafe in a path is replaced when it is stored, so it may be given.
    accepted("upload_project_asset", upload("../a:b?.png", ""));
    accepted("upload_project_asset", upload("a", &"A".repeat(4 * 1024 * 1024)));
}

#[test]
fn documents_are_counted_in_bytes_and_may_be_empty() {
    let long = "ä".repeat(512 * 1024 + 1);
    let what = "has 1048578 bytes; give at most 1048576 bytes";
    let manifest = testing::manifest();
    for (tool, call, field) in [
        ("update_global_strategy", json!({"content": long}), "content"),
        ("sync_global_doc", json!({"docId": "a", "title": "t", "content": long}), "content"),
        (
            "sync_project_assets",
            json!({"manifest": manifest, "internalDocs": long}),
            "internalDocs",
        ),
    ] {
        assert_eq!(refusal(tool, call), format!("{field}: {what}"));
    }
    refused(&[(
        "sync_global_doc",
        json!({"docId": "a", "title": "t\nu", "content": ""}),
        "title: has a line break or a tab in it; give a text of one line",
    )]);
    accepted("update_global_strategy", json!({"content": ""}));
}
