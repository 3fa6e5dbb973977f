//! Arguments that are wrong in one place: each refusal names the field and what would be right.

use std::collections::BTreeSet;

use nexus_contract::{ErrorCode, ToolSpec, catalog, validate};
use serde_json::{Map, Value, json};

use crate::examples;
use crate::spec;

/// Fields with a form of their own, which `rules.rs` tests.
const FORMS: [(&str, &str); 3] = [
    ("upload_project_asset", "base64Content"),
    ("update_task", "expected_updated_at"),
    ("cancel_task", "expected_updated_at"),
];

/// One place of the arguments: where it is, and what may be there.
struct Place {
    steps: Vec<Step>,
    schema: Value,
    need: Need,
}

#[derive(Clone, Copy, PartialEq)]
enum Need {
    /// A field that must be given.
    Required,
    /// A field that may be left out.
    Optional,
    /// An item of a list or a value of a map: not null when it is there.
    Part,
}

#[derive(Clone)]
enum Step {
    Key(String),
    First,
}

impl Place {
    fn path(&self) -> String {
        let mut path = String::new();
        for step in &self.steps {
            match step {
                Step::Key(key) if path.is_empty() => path.push_str(key),
                Step::Key(key) => path = format!("{path}.{key}"),
                Step::First => path.push_str("[0]"),
            }
        }
        path
    }

    fn bound(&self, key: &str) -> Option<usize> {
        self.schema.get(key)?.as_u64()?.try_into().ok()
    }

    /// Returns the value there, if this call gives one.
    fn find<'a>(&self, arguments: &'a mut Value) -> Option<&'a mut Value> {
        self.steps.iter().try_fold(arguments, |value, step| match step {
            Step::Key(key) => value.get_mut(key),
            Step::First => value.get_mut(0),
        })
    }
}

/// Returns every place of a schema, from the outside to the inside.
fn places(schema: &Map<String, Value>, steps: &[Step], found: &mut Vec<Place>) {
    let required = |key: &str| {
        let names = schema.get("required").and_then(Value::as_array);
        names.is_some_and(|names| names.iter().any(|name| name == key))
    };
    let named = schema.get("properties").and_then(Value::as_object);
    for (key, schema) in named.into_iter().flatten() {
        let need = if required(key) { Need::Required } else { Need::Optional };
        enter(schema, steps, Step::Key(key.clone()), need, found);
    }
    if let Some(items) = schema.get("items") {
        enter(items, steps, Step::First, Need::Part, found);
    }
    if let Some(values @ Value::Object(_)) = schema.get("additionalProperties") {
        let key = match steps {
            [.., Step::Key(key)] if key == "apiDependencies" => "lib_money",
            _ => "cart",
        };
        enter(values, steps, Step::Key(key.into()), Need::Part, found);
    }
}

fn enter(schema: &Value, steps: &[Step], step: Step, need: Need, found: &mut Vec<Place>) {
    let steps: Vec<Step> = steps.iter().cloned().chain([step]).collect();
    found.push(Place { steps: steps.clone(), schema: schema.clone(), need });
    places(schema.as_object().unwrap(), &steps, found);
}

fn all_places(spec: &ToolSpec) -> Vec<Place> {
    let mut found = Vec::new();
    places(&spec.input_schema, &[], &mut found);
    found
}

fn refusal(spec: &ToolSpec, arguments: &Value) -> String {
    let error = validate::arguments(spec, arguments.clone())
        .expect_err(&format!("{} accepts {arguments:.300}", spec.name));
    assert_eq!(error.code, ErrorCode::InvalidArguments);
    let start = format!("Invalid arguments for {}: ", spec.name);
    error.message.strip_prefix(&start).unwrap_or_else(|| panic!("{error}")).to_owned()
}

/// What is put in a place, and how what is said of it begins.
type Bad = (Value, &'static str);

/// Returns what a place must not hold.
fn bad_values(tool: &str, place: &Place) -> Vec<Bad> {
    let mut bad = wrong_types(place);
    let schema = &place.schema;
    if place.need != Need::Optional {
        bad.push((Value::Null, "is null"));
    }
    let is = |name: &str| schema["type"] == name;
    if schema.get("enum").is_some() {
        bad.push((json!("no such word"), "is the string"));
        bad.push((json!(""), "is the string"));
        bad.push((json!("ä"), "is the string"));
    } else if is("string") {
        if place.bound("minLength").is_some_and(|least| least > 0) {
            bad.push((json!(""), "is empty"));
        }
        let most = place.bound("maxLength").unwrap_or_else(|| panic!("{tool} {}", place.path()));
        bad.push((json!("x".repeat(most + 1)), "has "));
        bad.push((json!("ä".repeat(most + 1)), "has "));
        if schema.get("pattern").is_some() {
            for letter in ["/", "\\", "&", "?", "%", " ", "ä", "\n", "\u{0}", "\u{1b}"] {
                bad.push((json!(format!("a{letter}b")), "has "));
            }
        } else {
            for letter in ["\u{0}", "\u{7}", "\u{1b}[2J", "\u{7f}", "\u{85}"] {
                bad.push((json!(format!("a{letter}b")), "has the control character U+"));
            }
            for blank in [" ", "\n", "\t", "\u{a0}", "\u{200b}"] {
                bad.push((json!(blank), "is only white space"));
            }
        }
    } else if is("integer") || is("number") {
        if let Some(least) = schema["minimum"].as_f64() {
            bad.push((json!(least - 1.0), "is "));
        }
        if let Some(most) = schema["maximum"].as_f64() {
            bad.push((json!(most + 1.0), "is "));
        }
        bad.push((json!(1e300), "is "));
        if is("integer") {
            bad.push((json!(1.5), "is 1.5"));
        }
    } else if is("array") {
        let most = place.bound("maxItems").unwrap_or_else(|| panic!("{tool} {}", place.path()));
        bad.push((json!(vec![Value::Null; most + 1]), "has "));
    }
    bad
}

/// Returns one value of each type that a place must not hold.
fn wrong_types(place: &Place) -> Vec<Bad> {
    let schema = &place.schema;
    let choices = schema.get("anyOf").and_then(Value::as_array).cloned();
    let allowed: Vec<String> = choices
        .unwrap_or_else(|| vec![schema.clone()])
        .iter()
        .map(|choice| choice["type"].as_str().unwrap_or_default().to_owned())
        .collect();
    let is_number = |name: &str| name == "integer" || name == "number";
    let others = [
        ("boolean", json!(true), "is true"),
        ("integer", json!(7), "is 7"),
        ("string", json!("x"), "is the string \"x\""),
        ("array", json!([1, 2]), "is an array of 2"),
        ("object", json!({"a": 1}), "is an object"),
    ];
    others
        .into_iter()
        .filter(|(name, _, _)| {
            !allowed.iter().any(|one| one == name || (is_number(one) && is_number(name)))
        })
        .map(|(_, value, is)| (value, is))
        .collect()
}

#[test]
fn the_examples_give_every_field_of_every_tool() {
    let calls = examples::calls();
    for spec in catalog::whole() {
        let mut own = calls.iter().filter(|(tool, _)| *tool == spec.name).peekable();
        assert!(own.peek().is_some(), "{} has no example", spec.name);
        let own: Vec<&Value> = own.map(|(_, arguments)| arguments).collect();
        for place in all_places(spec) {
            let given = own.iter().any(|call| place.find(&mut (*call).clone()).is_some());
            assert!(given, "no example of {} gives {}", spec.name, place.path());
        }
    }
}

#[test]
fn a_right_call_comes_through_as_it_is_and_fits_what_is_listed() {
    for (tool, arguments) in examples::calls() {
        let spec = spec(tool);
        assert_eq!(validate::arguments(spec, arguments.clone()).unwrap(), arguments, "{tool}");
        let mut listed = spec.clone();
        listed.input_schema = spec.listed_input();
        validate::arguments(&listed, arguments.clone()).unwrap();
    }
}

#[test]
fn unknown_keys_are_dropped() {
    for (tool, arguments) in examples::calls() {
        let spec = spec(tool);
        let mut places = all_places(spec);
        let root = Value::Object(spec.input_schema.clone());
        places.push(Place { steps: Vec::new(), schema: root, need: Need::Required });
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
    for (tool, arguments) in examples::calls() {
        let spec = spec(tool);
        for place in all_places(spec).into_iter().filter(|place| place.need == Need::Optional) {
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
    for (tool, arguments) in examples::calls() {
        let spec = spec(tool);
        for place in all_places(spec) {
            let path = place.path();
            let mut call = arguments.clone();
            if place.find(&mut call).is_none() {
                continue;
            }
            tried.insert((tool, path.clone()));
            for (value, is) in bad_values(tool, &place) {
                let mut call = arguments.clone();
                *place.find(&mut call).unwrap() = value.clone();
                let said = refusal(spec, &call);
                let begin = format!("{path}: {is}");
                assert!(said.starts_with(&begin), "{tool}: {said:.300}, and not {begin}");
                assert!(said.contains("; give "), "{tool}: {said:.300}");
                assert!(said.len() < 1_000, "{tool}: {said:.300}");
                count += 1;
            }
            if let (true, Some((Step::Key(key), outside))) =
                (place.need == Need::Required, place.steps.split_last())
            {
                let mut call = arguments.clone();
                let outside =
                    Place { steps: outside.to_vec(), schema: json!({}), need: Need::Required };
                outside.find(&mut call).and_then(Value::as_object_mut).unwrap().remove(key);
                let said = refusal(spec, &call);
                assert!(said.starts_with(&format!("{path}: is missing; give ")), "{tool}: {said}");
                count += 1;
            }
            if place.schema.get("additionalProperties") == Some(&Value::Bool(false)) {
                let mut call = arguments.clone();
                let fields = place.find(&mut call).and_then(Value::as_object_mut).unwrap();
                fields.insert("unknownKey".into(), json!(1));
                let said = refusal(spec, &call);
                let begin = format!("{path}.unknownKey: is not a known field; give any of ");
                assert!(said.starts_with(&begin), "{tool}: {said}");
                count += 1;
            }
        }
        for whole in [json!([1]), json!("x"), json!(7), json!(true)] {
            assert!(refusal(spec, &whole).starts_with("arguments: is "), "{tool}");
            count += 1;
        }
    }
    println!("{count} wrong calls in {} places", tried.len());
    let places: usize = catalog::whole().iter().map(|spec| all_places(spec).len()).sum();
    assert_eq!(tried.len(), places, "every place is tried");
}

#[test]
fn what_is_long_or_not_ascii_is_taken_up_to_the_bound() {
    for (tool, arguments) in examples::calls() {
        let spec = spec(tool);
        for place in all_places(spec) {
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
