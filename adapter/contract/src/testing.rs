//! Right calls of every tool, and wrong ones made from them: for the tests of this crate, and of
//! nodes that must refuse the same.
//!
//! What is wrong is made from a tool's own schema, one place at a time, so a new field is tried as
//! soon as it is there. Rules that no schema says are tried where they are tested by hand.

mod calls;

use serde_json::{Map, Value, json};

use crate::tool::ToolSpec;

pub use calls::{calls, manifest};

/// One place of a tool's arguments: where it is, and what may be there.
#[derive(Debug, Clone)]
pub struct Place {
    steps: Vec<Step>,
    /// The schema of what may be there.
    pub schema: Value,
    /// Whether it must be given.
    pub need: Need,
}

/// Whether a place must be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// A field that must be given.
    Required,
    /// A field that may be left out.
    Optional,
    /// An item of a list or a value of a map: not null when it is there.
    Part,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Key(String),
    First,
}

/// A call that is wrong in one place, and how its refusal must begin behind the tool's name.
#[derive(Debug, Clone)]
pub struct Wrong {
    /// The place's path.
    pub path: String,
    /// The arguments.
    pub arguments: Value,
    /// How what is said of it begins.
    pub begins: String,
}

impl Place {
    /// Returns the place that holds all others.
    #[must_use]
    pub fn root(spec: &ToolSpec) -> Self {
        let schema = Value::Object(spec.input_schema.clone());
        Self { steps: Vec::new(), schema, need: Need::Required }
    }

    /// Returns its path as refusals name it.
    #[must_use]
    pub fn path(&self) -> String {
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

    /// Returns a bound of its schema.
    #[must_use]
    pub fn bound(&self, key: &str) -> Option<usize> {
        self.schema.get(key)?.as_u64()?.try_into().ok()
    }

    /// Returns the value there, if this call gives one.
    pub fn find<'a>(&self, arguments: &'a mut Value) -> Option<&'a mut Value> {
        self.steps.iter().try_fold(arguments, |value, step| match step {
            Step::Key(key) => value.get_mut(key),
            Step::First => value.get_mut(0),
        })
    }

    /// Returns the place around it, and its own name there.
    fn outside(&self) -> Option<(Self, &str)> {
        let (last, outside) = self.steps.split_last()?;
        let Step::Key(key) = last else { return None };
        let steps = outside.to_vec();
        Some((Self { steps, schema: Value::Null, need: Need::Required }, key))
    }

    fn is(&self, name: &str) -> bool {
        self.schema.get("type").is_some_and(|given| given == name)
    }
}

/// Returns every place of a tool's arguments, from the outside to the inside.
#[must_use]
pub fn places(spec: &ToolSpec) -> Vec<Place> {
    let mut found = Vec::new();
    inside(&spec.input_schema, &[], &mut found);
    found
}

fn inside(schema: &Map<String, Value>, steps: &[Step], found: &mut Vec<Place>) {
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
        // The keys that the right calls have there.
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
    if let Some(schema) = schema.as_object() {
        inside(schema, &steps, found);
    }
}

/// Returns wrong calls made from a right one: each is wrong in one of the places that the right one
/// gives, or is no object at all.
#[must_use]
pub fn wrong(spec: &ToolSpec, right: &Value) -> Vec<Wrong> {
    let mut made = Vec::new();
    for place in places(spec) {
        wrong_there(&place, right, &mut made);
    }
    for whole in [json!([1]), json!("x"), json!(7), json!(true)] {
        let begins = "arguments: is ".to_owned();
        made.push(Wrong { path: String::new(), arguments: whole, begins });
    }
    made
}

fn wrong_there(place: &Place, right: &Value, made: &mut Vec<Wrong>) {
    let path = place.path();
    if place.find(&mut right.clone()).is_none() {
        return;
    }
    for (value, is) in bad_values(place) {
        let mut arguments = right.clone();
        if let Some(there) = place.find(&mut arguments) {
            *there = value;
        }
        made.push(Wrong { path: path.clone(), arguments, begins: format!("{path}: {is}") });
    }
    if place.need == Need::Required
        && let Some((outside, key)) = place.outside()
    {
        let mut arguments = right.clone();
        if let Some(fields) = outside.find(&mut arguments).and_then(Value::as_object_mut) {
            fields.remove(key);
        }
        let begins = format!("{path}: is missing; give ");
        made.push(Wrong { path: path.clone(), arguments, begins });
    }
    if place.schema.get("additionalProperties") == Some(&Value::Bool(false)) {
        let mut arguments = right.clone();
        if let Some(fields) = place.find(&mut arguments).and_then(Value::as_object_mut) {
            fields.insert("unknownKey".into(), json!(1));
        }
        let begins = format!("{path}.unknownKey: is not a known field; give any of ");
        made.push(Wrong { path, arguments, begins });
    }
}

/// What is put in a place, and how what is said of it begins.
type Bad = (Value, &'static str);

/// Returns what a place must not hold.
fn bad_values(place: &Place) -> Vec<Bad> {
    let mut bad = wrong_types(place);
    if place.need != Need::Optional {
        bad.push((Value::Null, "is null"));
    }
    if place.schema.get("enum").is_some() {
        bad.extend(["no such word", "", "ä"].map(|word| (json!(word), "is the string")));
    } else if place.is("string") {
        bad.extend(bad_texts(place));
    } else if place.is("integer") || place.is("number") {
        bad.extend(bad_numbers(place));
    } else if place.is("array") {
        // A list without a bound is tried too, and fails the test: there must be one.
        let most = place.bound("maxItems").unwrap_or_default();
        bad.push((json!(vec![Value::Null; most.saturating_add(1)]), "has "));
    }
    bad
}

fn bad_texts(place: &Place) -> Vec<Bad> {
    let mut bad = Vec::new();
    if place.bound("minLength").is_some_and(|least| least > 0) {
        bad.push((json!(""), "is empty"));
    }
    // As for lists: a text without a bound fails the test.
    let long = place.bound("maxLength").unwrap_or_default().saturating_add(1);
    bad.extend(["x", "ä"].map(|letter| (json!(letter.repeat(long)), "has ")));
    if place.schema.get("pattern").is_some() {
        for letter in ["/", "\\", "&", "?", "%", " ", "ä", "\n", "\u{0}", "\u{1b}"] {
            bad.push((json!(format!("a{letter}b")), "has "));
        }
        return bad;
    }
    for letter in ["\u{0}", "\u{7}", "\u{1b}[2J", "\u{7f}", "\u{85}"] {
        bad.push((json!(format!("a{letter}b")), "has the control character U+"));
    }
    for blank in [" ", "\n", "\t", "\u{a0}", "\u{200b}"] {
        bad.push((json!(blank), "is only white space"));
    }
    bad
}

fn bad_numbers(place: &Place) -> Vec<Bad> {
    let bound = |key: &str| place.schema.get(key).and_then(Value::as_f64);
    let mut bad = vec![(json!(1e300), "is ")];
    bad.extend(bound("minimum").map(|least| (json!(least - 1.0), "is ")));
    bad.extend(bound("maximum").map(|most| (json!(most + 1.0), "is ")));
    if place.is("integer") {
        bad.push((json!(1.5), "is 1.5"));
    }
    bad
}

/// Returns one value of each type that a place must not hold.
fn wrong_types(place: &Place) -> Vec<Bad> {
    let choices = place.schema.get("anyOf").and_then(Value::as_array).cloned();
    let choices = choices.unwrap_or_else(|| vec![place.schema.clone()]);
    let allowed = |name: &str| {
        let is_number = |name: &str| name == "integer" || name == "number";
        choices
            .iter()
            .filter_map(|choice| choice.get("type").and_then(Value::as_str))
            .any(|one| one == name || (is_number(one) && is_number(name)))
    };
    let all = [
        ("boolean", json!(true), "is true"),
        ("integer", json!(7), "is 7"),
        ("string", json!("x"), "is the string \"x\""),
        ("array", json!([1, 2]), "is an array of 2"),
        ("object", json!({"a": 1}), "is an object"),
    ];
    let others = all.into_iter().filter(|(name, _, _)| !allowed(name));
    others.map(|(_, value, is)| (value, is)).collect()
}
