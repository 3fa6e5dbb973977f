//! Arguments that are wrong in one place: each refusal names the field and what would be right.

use std::collections::BTreeSet;

use nexus_contract::testing::{self, Need, Place, Wrong};
use nexus_contract::{ErrorCode, ToolSpec, catalog, validate};
use serde_json::{Value, json};

use crate::spec;

/// Fields with a form of their own, which `rules.rs` tests.
const FORMS: [(&str, &str); 3] = [
    ("upload_project_asset", "base64Content"),
    ("update_task", "expected_updated_at"),
    ("cancel_task", "expected_updated_at"),
];

fn refusal(spec: &ToolSpec, arguments: &Value) -> String {
    let error = validate::arguments(spec, arguments.clone())
        .expect_err(&format!("{} accepts {arguments:.300}", spec.name));
    assert_eq!(error.code, ErrorCode::InvalidArguments);
    let start = format!("Invalid arguments for {}: ", spec.name);
    error.message.strip_prefix(&start).unwrap_or_else(|| panic!("{error}")).to_owned()
}

#[test]
fn the_examples_give_every_field_of_every_tool() {
    let calls = testing::calls();
    for spec in catalog::whole() {
        let mut own = calls.iter().filter(|(tool, _)| *tool == spec.name).peekable();
        assert!(own.peek().is_some(), "{} has no example", spec.name);
        let own: Vec<&Value> = own.map(|(_, arguments)| arguments).collect();
        for place in testing::places(spec) {
            let given = own.iter().any(|call| place.find(&mut (*call).clone()).is_some());
            assert!(given, "no example of {} gives {}", spec.name, place.path());
        }
    }
}

#[test]
fn a_right_call_comes_through_as_it_is_and_fits_what_is_listed() {
    for (tool, arguments) in testing::calls() {
        let spec = spec(tool);
        assert_eq!(validate::arguments(spec, arguments.clone()).unwrap(), arguments, "{tool}");
        let mut listed = spec.clone();
        listed.input_schema = spec.listed_input();
        validate::arguments(&listed, arguments.clone()).unwrap();
    }
}

#[test]
fn unknown_keys_are_dropped() {
    for (tool, arguments) in testing::calls() {
        let spec = spec(tool);
        let mut places = testing::places(spec);
        places.push(Place::root(spec));
        for place in places {
            let open = place.schema.get("properties").is_some()
                && place.schema.get("additionalProperties").is_none();
            let mut call = arguments.clone();
            let fields = place.find(&mut call).and_then(Value::as_object_mut);
            if let (true, Some(fields)) = (open, fields) {
                fields.insert("unknownKey".into(), json!({"a": [1]}));
                let clean = validate::arguments(spec, call).unwrap();
                assert_eq!(clean, arguments, "{tool} {}", place.path());
            }
        }
    }
}

#[test]
fn what_may_be_left_out_may_be_null() {
    let mut needed = Vec::new();
    for (tool, arguments) in testing::calls() {
        let spec = spec(tool);
        for place in testing::places(spec).into_iter().filter(|place| place.need == Need::Optional)
        {
            let mut call = arguments.clone();
            let Some(value) = place.find(&mut call) else { continue };
            *value = Value::Null;
            match validate::arguments(spec, call) {
                Ok(mut clean) => {
                    assert!(place.find(&mut clean).is_none(), "{tool} {}", place.path());
                }
                Err(_) => needed.push((tool, place.path())),
            }
        }
    }
    // These calls need them for what else they say.
    let expected = [("stance", "note".to_owned()), ("host_maintenance", "count".to_owned())];
    assert_eq!(needed, expected);
}

#[test]
fn what_is_wrong_in_one_place_is_refused_by_its_name() {
    let mut tried = BTreeSet::new();
    let mut count = 0_usize;
    for (tool, arguments) in testing::calls() {
        let spec = spec(tool);
        for Wrong { path, arguments, begins } in testing::wrong(spec, &arguments) {
            let said = refusal(spec, &arguments);
            assert!(said.starts_with(&begins), "{tool}: {said:.300}, and not {begins}");
            assert!(said.contains("; give "), "{tool}: {said:.300}");
            assert!(said.len() < 1_000, "{tool}: {said:.300}");
            tried.insert((tool, path));
            count += 1;
        }
    }
    println!("{count} wrong calls in {} places", tried.len());
    // The whole of the arguments is a place too.
    let places: usize = catalog::whole().iter().map(|spec| testing::places(spec).len() + 1).sum();
    assert_eq!(tried.len(), places, "every place is tried");
}

#[test]
fn what_is_long_or_not_ascii_is_taken_up_to_the_bound() {
    for (tool, arguments) in testing::calls() {
        let spec = spec(tool);
        for place in testing::places(spec) {
            let path = place.path();
            let free = place.schema["type"] == "string"
                && place.schema.get("pattern").is_none()
                && place.schema.get("enum").is_none()
                && !FORMS.contains(&(tool, path.as_str()));
            if !free {
                continue;
            }
            let most = place.bound("maxLength").unwrap();
            for text in ["ü 👍 \u{202e}".to_owned(), "x".repeat(most)] {
                let mut call = arguments.clone();
                let Some(value) = place.find(&mut call) else { continue };
                *value = json!(text);
                assert_eq!(validate::arguments(spec, call.clone()).unwrap(), call, "{tool} {path}");
            }
        }
    }
}
