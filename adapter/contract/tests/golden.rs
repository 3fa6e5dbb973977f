//! The contract as files: every change of the interface is a diff of `golden/`.
//!
//! `UPDATE_GOLDENFILES=1 cargo test -p nexus-contract` writes them anew.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::PathBuf;

use nexus_contract::catalog::{self, Set};
use nexus_contract::{CONTRACT_VERSION, ErrorCode};
use serde_json::{Map, Value, json};

/// What an answer to `tools/list` with all tools may take.
const ALL_BYTES_MAX: usize = 20_000;
/// What one with the set `core` may take: 2,000 tokens.
const CORE_BYTES_MAX: usize = 6_000;

fn golden(name: &str, value: &Value) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden").join(name);
    let text = serde_json::to_string_pretty(&sorted(value)).unwrap() + "\n";
    if std::env::var_os("UPDATE_GOLDENFILES").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        stored,
        text,
        "{} is not what the types say; run UPDATE_GOLDENFILES=1 cargo test -p nexus-contract and \
         review the diff",
        path.display()
    );
}

/// Sorts keys, so that the files do not depend on how another crate configures `serde_json`.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut keys: Vec<&String> = fields.keys().collect();
            keys.sort();
            let mut out = Map::new();
            for key in keys {
                out.insert(key.clone(), sorted(&fields[key]));
            }
            Value::Object(out)
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

#[test]
fn tools_are_as_recorded() {
    golden("tools.json", &json!({"contractVersion": CONTRACT_VERSION, "tools": catalog::listed()}));
}

/// Every tool of the contract, served or not: as it is listed, and what is checked.
#[test]
fn the_contract_is_as_recorded() {
    let tools: Vec<Value> = catalog::whole()
        .iter()
        .map(|tool| {
            json!({
                "listed": tool.listed(),
                "arguments": tool.input_schema,
                "result": tool.output_schema,
            })
        })
        .collect();
    golden("contract.json", &json!({"contractVersion": CONTRACT_VERSION, "tools": tools}));
}

#[test]
fn errors_are_as_recorded() {
    let errors: Vec<Value> = ErrorCode::ALL
        .iter()
        .map(|code| {
            json!({
                "code": code.as_str(),
                "status": code.status(),
                "mayPass": code.may_pass(),
                "advice": code.advice(),
            })
        })
        .collect();
    golden("errors.json", &json!({ "errors": errors }));
}

#[test]
fn every_code_has_one_name_everywhere() {
    let mut seen = BTreeSet::new();
    for code in ErrorCode::ALL {
        assert_eq!(serde_json::to_value(code).unwrap(), json!(code.as_str()));
        assert_eq!(serde_json::from_value::<ErrorCode>(json!(code.as_str())).unwrap(), *code);
        assert!(seen.insert(code.as_str()), "{code} is listed twice");
    }
    assert_eq!(seen.len(), 26, "a code that is not in ALL is in no golden file");
    assert_eq!(serde_json::from_value::<ErrorCode>(json!("brand_new")).unwrap(), ErrorCode::Other);
}

/// The table of the tools: name, title, the hints that it only reads, destroys and is idempotent,
/// and whether the result's schema is listed.
const TABLE: [(&str, &str, [bool; 3], bool); 36] = {
    const READS: [bool; 3] = [true, false, true];
    const ADDS: [bool; 3] = [false, false, false];
    const ADDS_ONCE: [bool; 3] = [false, false, true];
    const REPLACES: [bool; 3] = [false, true, false];
    const REPLACES_ONCE: [bool; 3] = [false, true, true];
    [
        ("peers", "List Peers", READS, true),
        ("set_profile", "Set Profile", REPLACES_ONCE, true),
        ("send", "Send Direct Message", ADDS, false),
        ("read", "Read Direct Messages", ADDS, true),
        ("reply", "Reply", ADDS, false),
        ("listen", "Listen", REPLACES_ONCE, false),
        ("send_message", "Post Message", ADDS, false),
        ("read_messages", "Read Messages", ADDS, true),
        ("list_meetings", "List Meetings", READS, true),
        ("start_meeting", "Start Meeting", ADDS, false),
        ("end_meeting", "End Meeting", REPLACES_ONCE, false),
        ("archive_meeting", "Archive Meeting", REPLACES_ONCE, false),
        ("reopen_meeting", "Reopen Meeting", REPLACES, false),
        ("join_meeting", "Join Meeting", ADDS_ONCE, false),
        ("leave_meeting", "Leave Meeting", REPLACES, false),
        ("stance", "Take Stance", REPLACES, true),
        ("create_task", "Create Task", ADDS, false),
        ("get_task", "Get Task", READS, true),
        ("list_tasks", "List Tasks", READS, true),
        ("update_task", "Update Task", ADDS_ONCE, false),
        ("cancel_task", "Cancel Task", REPLACES, false),
        ("sync_project_assets", "Sync Project", REPLACES_ONCE, false),
        ("upload_project_asset", "Upload Asset", REPLACES, false),
        ("update_project", "Update Project", REPLACES_ONCE, false),
        ("rename_project", "Rename Project", REPLACES, false),
        ("search_projects", "Search Projects", READS, true),
        ("get_global_topology", "Get Topology", READS, true),
        ("get_project", "Get Project", READS, true),
        ("host_delete_project", "Delete Project", REPLACES, false),
        ("update_global_strategy", "Update Strategy", REPLACES_ONCE, false),
        ("get_global_strategy", "Get Strategy", READS, true),
        ("list_global_docs", "List Documents", READS, true),
        ("get_global_doc", "Get Document", READS, true),
        ("sync_global_doc", "Sync Document", REPLACES_ONCE, false),
        ("list_events", "List Events", READS, true),
        ("host_maintenance", "Maintain Chat", REPLACES, false),
    ]
};

#[test]
fn the_contract_is_the_table() {
    let whole: Vec<_> = catalog::whole()
        .iter()
        .map(|tool| {
            let hints = tool.hints;
            assert!(!hints.open_world, "{}", tool.name);
            let three = [hints.read_only, hints.destructive, hints.idempotent];
            (tool.name, tool.title, three, tool.publishes_output)
        })
        .collect();
    assert_eq!(whole, TABLE);
    let count = |is: fn(&[bool; 3]) -> bool| whole.iter().filter(|(_, _, h, _)| is(h)).count();
    assert_eq!(count(|hints| hints[0]), 11, "tools that only read");
    assert_eq!(count(|hints| !hints[0] && !hints[1]), 9, "tools that purely add");
    assert_eq!(count(|hints| hints[1]), 16, "tools that replace or remove");
    assert_eq!(whole.iter().filter(|(_, _, _, listed)| *listed).count(), 15);
}

#[test]
fn every_tool_is_complete() {
    for tool in catalog::whole() {
        for (side, schema) in [("input", &tool.input_schema), ("output", &tool.output_schema)] {
            assert_eq!(schema["type"], "object", "{} {side}", tool.name);
            assert!(!schema.contains_key("additionalProperties"), "{} {side}", tool.name);
            let text = Value::Object(schema.clone()).to_string();
            for noise in ["$schema", "$ref", "$defs", "\"format\"", "oneOf"] {
                assert!(!text.contains(noise), "{} {side} has {noise}: {text}", tool.name);
            }
        }
        let listed = tool.listed();
        // What is marked as brief is listed so, and the mark itself is nobody's business.
        assert!(!listed.to_string().contains("\"x-"), "{listed}");
        for hint in ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] {
            assert!(listed["annotations"][hint].is_boolean(), "{} lacks {hint}", tool.name);
        }
        assert_eq!(listed.get("outputSchema").is_some(), tool.publishes_output, "{}", tool.name);
        assert!((20..=160).contains(&tool.description.len()), "{}", tool.name);
        // What is listed has every field by its name, and says of each what type it is.
        let names = |schema: &Map<String, Value>| {
            let fields = schema.get("properties").and_then(Value::as_object);
            fields.map(|fields| fields.keys().cloned().collect::<BTreeSet<_>>()).unwrap_or_default()
        };
        assert_eq!(names(&tool.listed_input()), names(&tool.input_schema), "{}", tool.name);
        if let Some(output) = tool.listed_output() {
            assert_eq!(names(&output), names(&tool.output_schema), "{}", tool.name);
        }
        for (field, schema) in tool.listed_input()["properties"].as_object().into_iter().flatten() {
            assert!(schema.get("type").or(schema.get("anyOf")).is_some(), "{}.{field}", tool.name);
            let Some(text) = schema.get("description") else { continue };
            let length = text.as_str().unwrap().len();
            assert!((5..=80).contains(&length), "{}.{field}: {text}", tool.name);
        }
    }
}

#[test]
fn what_is_served_is_a_part_of_the_contract_in_its_order() {
    let mut whole = catalog::whole().iter().map(|tool| tool.name);
    for tool in catalog::all() {
        assert!(whole.any(|name| name == tool.name), "{} is out of order", tool.name);
        assert_eq!(catalog::find(tool.name).unwrap().name, tool.name);
    }
    assert!(catalog::find("no_such_tool").is_none());
}

#[test]
fn sets_are_chosen_by_name_and_show_what_is_served() {
    let names: Vec<&str> = Set::EVERY.into_iter().map(Set::as_str).collect();
    assert_eq!(names, ["all", "core"]);
    for set in Set::EVERY {
        assert_eq!(Set::named(set.as_str()), Some(set));
        for tool in set.tools() {
            assert!(set.has(tool.name) && catalog::find(tool.name).is_some(), "{}", tool.name);
        }
    }
    assert_eq!((Set::named("Core"), Set::default()), (None, Set::All));
    assert_eq!(Set::All.tools().count(), catalog::all().len());
    let core: Vec<&str> =
        catalog::whole().iter().map(|tool| tool.name).filter(|name| Set::Core.has(name)).collect();
    let expected = [
        "peers",
        "set_profile",
        "send",
        "read",
        "reply",
        "listen",
        "send_message",
        "read_messages",
        "list_tasks",
        "update_task",
    ];
    assert_eq!(core, expected);
}

#[test]
fn lists_are_small_and_always_the_same() {
    let answer = |set: Set| {
        let tools = catalog::whole().iter().filter(|tool| set.has(tool.name));
        let tools: Vec<Value> = tools.map(nexus_contract::ToolSpec::listed).collect();
        json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": tools}}).to_string()
    };
    for (set, bytes_max) in [(Set::All, ALL_BYTES_MAX), (Set::Core, CORE_BYTES_MAX)] {
        let text = answer(set);
        assert_eq!(text, answer(set));
        println!("tools/list, {}: {} of {bytes_max} bytes", set.as_str(), text.len());
        assert!(text.len() <= bytes_max, "{} takes {} bytes", set.as_str(), text.len());
    }
    let served = Value::Array(catalog::listed()).to_string();
    println!("tools/list, as served: {} bytes", served.len());
    assert_eq!(served, Value::Array(catalog::listed()).to_string());
}
