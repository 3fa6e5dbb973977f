//! The tools, from every role.

use nexus_tests::call::{As, Failed};
use nexus_tests::process::{LIMIT, Node, every_role, text, three_voters};
use nexus_tests::wait;
use serde_json::{Value, json};

use super::files::{fetch, put};
use super::{bytes, call, get, make, manifest, refused};

#[tokio::test(flavor = "multi_thread")]
async fn every_tool_of_projects_works_from_every_role() {
    let nodes = every_role(["one", "two", "three", "four"]).await;
    let mut lives = Vec::new();
    for node in &nodes {
        lives.push(life(node, &nodes).await);
    }
    let first = &lives[0];
    assert!(lives.iter().all(|life| life == first), "{lives:#?}");
    let mut lists = Vec::new();
    for node in &nodes {
        lists.push(call(node, "get_global_topology", json!({})).await);
    }
    assert!(lists.iter().all(|list| *list == lists[0]), "{lists:#?}");
    assert_eq!(lists[0]["summary"]["totalProjects"], 1, "{}", lists[0]);
}

/// Takes a project through all that may happen to it, on one node; returns what was seen, with the
/// node's own names taken out.
async fn life(node: &Node, all: &[Node]) -> Vec<Value> {
    let mut seen = Vec::new();
    let (id, renamed) = (format!("web_{}", node.name()), format!("api_{}", node.name()));
    let made = make(node, &manifest(&id)).await;
    assert_eq!(made, json!({"ok": true, "projectId": id}));
    let project = get(node, &id).await;
    let expected = json!({"manifest": manifest(&id), "internalDocs": "# Notes", "assets": []});
    assert_eq!(project, expected);
    let brief = json!({"projectId": id, "includeDocs": false});
    let brief = call(node, "get_project", brief).await;
    assert_eq!(brief, json!({"manifest": manifest(&id), "assets": []}));

    let patch = json!({"projectId": id, "patch": {"description": "Sells more", "relations": []}});
    let changed = call(node, "update_project", patch).await;
    assert_eq!(changed, json!({"ok": true, "projectId": id}));
    let found = json!({"query": "SELLS m", "limit": 5});
    seen.push(call(node, "search_projects", found).await);

    seen.extend(files(node, &id).await);
    let other = relates_to(node, &id).await;
    let rename = json!({"oldId": id, "newId": renamed});
    let answer = call(node, "rename_project", rename).await;
    assert_eq!(answer, json!({"ok": true, "oldId": id, "newId": renamed}));
    for reader in all {
        let there = get(reader, &renamed).await;
        assert_eq!(there["manifest"]["description"], "Sells more", "on {}", reader.name());
        assert_eq!(there["assets"].as_array().unwrap().len(), 2, "{there}");
        assert_eq!(there, get(node, &renamed).await, "on {}", reader.name());
        // Who referred to it, by relations or needs, refers to it still.
        let referrer = get(reader, &other).await["manifest"].clone();
        assert_eq!(referrer["relations"], json!([{"targetId": renamed, "type": "parent"}]));
        assert_eq!(referrer["apiDependencies"], json!({renamed.as_str(): "1.x"}));
        let (code, said) = refused(reader, "get_project", json!({"projectId": id})).await;
        let gone = format!("projectId: project {id} does not exist; search_projects finds");
        assert!(code == "not_found" && said.starts_with(&gone), "{said}");
    }
    let focus = json!({"projectId": other});
    seen.push(call(node, "get_global_topology", focus).await);
    for gone in [&renamed, &other] {
        let answer = call(node, "host_delete_project", json!({"projectId": gone})).await;
        assert_eq!(answer, json!({"ok": true, "projectId": gone}));
    }
    let (code, _) = refused(node, "host_delete_project", json!({"projectId": renamed})).await;
    assert_eq!(code, "not_found");
    seen.push(events(node).await);
    make(node, &manifest("web_last")).await;
    seen.into_iter().map(|value| without_names(&value, node)).collect()
}

/// Stores a short and a longer file; returns what is listed of them.
async fn files(node: &Node, id: &str) -> Vec<Value> {
    let mut seen = Vec::new();
    for (name, length) in [("short ü.bin", 100), ("a/../long.bin", 200_000)] {
        let content = data_encoding::BASE64.encode(&bytes(length, 7));
        let args = json!({"projectId": id, "fileName": name, "base64Content": content});
        seen.push(call(node, "upload_project_asset", args).await);
    }
    assert_eq!(seen[1]["fileName"], "a___long.bin");
    let listed = get(node, id).await["assets"].clone();
    assert_eq!(listed[0]["fileName"], "a___long.bin");
    assert_eq!((&listed[0]["size"], &listed[1]["size"]), (&json!(200_000), &json!(100)));
    seen.extend(listed.as_array().unwrap().iter().cloned());
    seen
}

/// Makes a project without a known prefix that refers to another one, and returns its id.
async fn relates_to(node: &Node, id: &str) -> String {
    let other = format!("shop.{}", node.name());
    let mut whole = manifest(&other);
    whole["relations"] = json!([{"targetId": id, "type": "parent"}]);
    whole["apiDependencies"] = json!({id: "1.x"});
    let made = make(node, &whole).await;
    let note = text(&made["note"]);
    assert!(note.starts_with(&format!("{other} has no known prefix; by convention")), "{note}");
    other
}

/// Returns what was written down of this life, newest first.
async fn events(node: &Node) -> Value {
    let args = json!({"action": "project", "limit": 8});
    let list = call(node, "list_events", args).await;
    let event = |event: &Value| {
        let mut event = event.clone();
        event.as_object_mut().unwrap().remove("timestamp");
        event
    };
    list["events"].as_array().unwrap().iter().map(event).collect()
}

/// Takes the node's own name and times out of a value.
fn without_names(value: &Value, node: &Node) -> Value {
    let text = value.to_string().replace(&format!("worker-{}", node.name()), "WORKER");
    let text = ["web_", "api_", "shop."]
        .iter()
        .fold(text, |text, prefix| text.replace(&format!("{prefix}{}", node.name()), prefix));
    let mut value: Value = serde_json::from_str(&text).unwrap();
    timeless(&mut value);
    value
}

fn timeless(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for time in ["lastUpdated", "lastActive"] {
                fields.remove(time);
            }
            fields.values_mut().for_each(timeless);
        }
        Value::Array(items) => items.iter_mut().for_each(timeless),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_field_of_a_manifest_comes_back_and_changes_alone() {
    let node = Node::found("one").await;
    let mut expected = manifest("web_shop");
    make(&node, &expected).await;
    assert_eq!(get(&node, "web_shop").await["manifest"], expected);
    let changes = json!({
        "name": "Shop 2", "description": "", "techStack": [], "relations": [
            {"targetId": "web_shop", "type": "related"}, {"targetId": "doc_x", "type": "child"},
            {"targetId": "doc_x", "type": "parent"}],
        "repositoryUrl": "https://x/ü", "localPath": "", "endpoints": [], "apiSpec": [],
        "billing": {"plain": "", "price": "1"}, "lastUpdated": "2026-01-01", "apiDependencies": {},
        "gatewayCompatibility": "none", "api_versions": {"ü": "1"}, "feature_tier": "standard",
    });
    for (field, value) in changes.as_object().unwrap() {
        let args = json!({"projectId": "web_shop", "patch": {field: value}});
        call(&node, "update_project", args).await;
        expected[field] = value.clone();
        assert_eq!(get(&node, "web_shop").await["manifest"], expected, "{field}");
    }
    // What a manifest leaves out is not there, whatever stood there before.
    let optional = [
        "billing",
        "lastUpdated",
        "apiDependencies",
        "gatewayCompatibility",
        "api_versions",
        "feature_tier",
    ];
    for field in optional {
        expected.as_object_mut().unwrap().remove(field);
    }
    make(&node, &expected).await;
    assert_eq!(get(&node, "web_shop").await["manifest"], expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn long_notes_are_one_change_however_often_they_are_sent() {
    let [one, two, _three] = three_voters(["one", "two", "three"]).await;
    // Characters lie across the borders of chunks, and all of it is as long as it may be.
    let docs = format!("x{}", "ü€".repeat((1024 * 1024 - 1) / 5));
    let call = |docs: &str| json!({"manifest": manifest("web_shop"), "internalDocs": docs});
    let who = As { instance: "writer", request: Some("r-1") };
    let sync = async |node: &Node, docs: &str| {
        node.http().call("sync_project_assets", call(docs), who).await
    };
    let first = sync(&two, &docs).await.unwrap();
    assert_eq!(get(&one, "web_shop").await["internalDocs"], docs.as_str());
    let newer = json!({"manifest": manifest("web_shop"), "internalDocs": "newer"});
    super::call(&one, "sync_project_assets", newer).await;
    // The same call again has no effect, and the first answer; on other nodes too.
    for node in [&two, &one] {
        assert_eq!(sync(node, &docs).await.unwrap(), first);
        assert_eq!(get(node, "web_shop").await["internalDocs"], "newer");
    }
    for other in [docs.replace('x', "y"), "short".to_owned()] {
        let failed = sync(&two, &other).await.unwrap_err();
        assert_eq!(failed.code(), "conflict", "{failed}");
    }
    // Another manifest with the same notes is another call.
    let mut args = call(&docs);
    args["manifest"]["name"] = "Other".into();
    let failed = two.http().call("sync_project_assets", args, who).await.unwrap_err();
    assert_eq!(failed.code(), "conflict", "{failed}");
    assert_eq!(get(&one, "web_shop").await["manifest"]["name"], "The shop");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_majority_projects_are_shown_as_stale_and_not_changed() {
    let [one, two, three] = three_voters(["one", "two", "three"]).await;
    make(&one, &manifest("web_shop")).await;
    let file = bytes(100_000, 13);
    put(&two, ("web_shop", "a"), file.clone(), None).await.unwrap();
    fetch(&one, "web_shop", "a").await;
    two.freeze();
    three.freeze();
    for (tool, args) in [
        ("get_project", json!({"projectId": "web_shop"})),
        ("search_projects", json!({"query": "shop"})),
        ("get_global_topology", json!({})),
    ] {
        let stale = call(&one, tool, args).await;
        assert_eq!(stale["stale"], true, "{tool}: {stale}");
        assert!(stale["asOf"].is_string(), "{tool}: {stale}");
    }
    let (code, said) = refused(&one, "get_project", json!({"projectId": "web_none"})).await;
    assert!(code == "not_found" && said.contains("what this node knew last (as of "), "{said}");
    let (headers, back) = fetch(&one, "web_shop", "a").await;
    assert!(back == file && headers["nexus-stale"] == "true", "{headers:?}");
    assert!(headers["nexus-as-of"].to_str().unwrap().ends_with('Z'), "{headers:?}");
    let failed = put(&one, ("web_shop", "b"), file, None).await.unwrap_err();
    assert!(failed.code() == "no_quorum" && failed.to_string().contains("no file is taken"));
    let long = json!({"manifest": manifest("web_shop"), "internalDocs": "x".repeat(100_000)});
    let who = As { instance: "writer", request: Some("r-2") };
    let failed = one.http().call("sync_project_assets", long.clone(), who).await.unwrap_err();
    assert!(matches!(failed.code(), "no_quorum" | "unknown_outcome"), "{failed}");
    two.thaw();
    three.thaw();
    wait::until("the same call, done", LIMIT, async || {
        match one.http().call("sync_project_assets", long.clone(), who).await {
            Ok(done) => Ok(done),
            Err(failed @ Failed::Refused { .. }) if failed.may_pass() => Err(failed),
            Err(failed) => panic!("{failed}"),
        }
    })
    .await;
    assert_eq!(get(&two, "web_shop").await["internalDocs"], long["internalDocs"]);
}
