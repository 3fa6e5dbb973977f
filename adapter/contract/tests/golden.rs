//! The contract as files: every change of the interface is a diff of `golden/`.
//!
//! `UPDATE_GOLDENFILES=1 cargo test -p nexus-contract` writes them anew.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::PathBuf;

use nexus_contract::{CONTRACT_VERSION, ErrorCode, catalog};
use serde_json::{Map, Value, json};

/// What 36 tools may take together is 20,000 bytes; these five must leave room for the others.
const LIST_BYTES_MAX: usize = 5_400;

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

#[test]
fn every_tool_is_complete() {
    let mut names = BTreeSet::new();
    for tool in catalog::all() {
        assert!(names.insert(tool.name), "{} is listed twice", tool.name);
        assert_eq!(catalog::find(tool.name).unwrap().name, tool.name);
        for (side, schema) in [("input", &tool.input_schema), ("output", &tool.output_schema)] {
            assert_eq!(schema["type"], "object", "{} {side}", tool.name);
            assert!(!schema.contains_key("additionalProperties"), "{} {side}", tool.name);
            let text = Value::Object(schema.clone()).to_string();
            for noise in ["$schema", "$ref", "$defs", "\"format\"", "oneOf"] {
                assert!(!text.contains(noise), "{} {side} has {noise}: {text}", tool.name);
            }
        }
        let listed = tool.listed();
        for hint in ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] {
            assert!(listed["annotations"][hint].is_boolean(), "{} lacks {hint}", tool.name);
        }
        assert_eq!(listed["annotations"]["openWorldHint"], false, "{}", tool.name);
        assert!(!(tool.hints.read_only && tool.hints.destructive), "{}", tool.name);
        assert_eq!(listed.get("outputSchema").is_some(), tool.publishes_output, "{}", tool.name);
        assert!((3..=40).contains(&tool.title.len()), "{}", tool.name);
        assert!((20..=160).contains(&tool.description.len()), "{}", tool.name);
        for (field, schema) in tool.input_schema["properties"].as_object().unwrap() {
            let Some(text) = schema["description"].as_str() else { continue };
            assert!((5..=80).contains(&text.len()), "{}.{field}: {text:?}", tool.name);
        }
    }
    assert!(catalog::find("no_such_tool").is_none());
}

#[test]
fn the_list_is_small_and_always_the_same() {
    let list = Value::Array(catalog::listed()).to_string();
    assert_eq!(list, Value::Array(catalog::listed()).to_string());
    assert!(list.len() <= LIST_BYTES_MAX, "the list takes {} bytes", list.len());
}
