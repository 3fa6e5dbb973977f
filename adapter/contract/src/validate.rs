//! Arguments and results against their schemas.
//!
//! The schema made from the type is the judge, so that what a client was shown is what it is held
//! to. Unknown keys are dropped, as clients of all versions expect, unless an object says that it
//! allows none; an optional argument given as `null` counts as left out; `10.0` is an integer.
//! Every text of a tool must say something and hold no control characters ([`text`]). A refusal
//! names every field that is wrong, what is wrong and what would be right, and nothing runs before
//! all arguments are right.

use std::fmt;

use serde_json::{Map, Value};

use crate::error::ApiError;
use crate::limits::{ID_PATTERN, NAME_PATTERN, PROJECT_ID_PATTERN, VIOLATIONS_SHOWN_MAX};
use crate::schema::BEYOND;
use crate::text;
use crate::tool::{Tool, ToolSpec};

/// One field that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The field's path, such as `manifest.relations[2].type`.
    pub field: String,
    /// What is wrong, and what would be right.
    pub what: String,
}

impl Violation {
    /// Makes one.
    pub fn new(field: impl Into<String>, what: impl Into<String>) -> Self {
        Self { field: field.into(), what: what.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.field, self.what)
    }
}

/// Checks the arguments of a call and returns them without what the tool does not know.
///
/// # Errors
/// `invalid_arguments`: `Invalid arguments for <tool>: <field>: <what is wrong>; give <what is
/// right>`, for every field that is wrong.
pub fn arguments(spec: &ToolSpec, arguments: Value) -> Result<Value, ApiError> {
    let clean = against_schema(spec, arguments)?;
    (spec.typed)(clean.clone())?;
    Ok(clean)
}

/// Checks the arguments of a call and returns them as the tool's input.
///
/// # Errors
/// As [`arguments`].
pub fn input<T: Tool>(arguments: Value) -> Result<T::Input, ApiError> {
    let spec = crate::catalog::find(T::NAME)
        .ok_or_else(|| ApiError::internal(format!("{} is not in the catalogue", T::NAME)))?;
    typed::<T>(against_schema(spec, arguments)?)
}

/// Checks a result against the tool's schema, listed or not.
///
/// # Errors
/// Everything that does not fit.
pub fn result(spec: &ToolSpec, result: &Value) -> Result<(), Vec<Violation>> {
    let mut found = Vec::new();
    let mut copy = result.clone();
    Check { reading: Reading::Result, found: &mut found }.root(
        &spec.output_schema,
        &mut copy,
        "result",
    );
    if found.is_empty() { Ok(()) } else { Err(found) }
}

/// Turns checked arguments into the input, and asks the tool for its own rules.
pub(crate) fn typed<T: Tool>(arguments: Value) -> Result<T::Input, ApiError> {
    // The schema comes from the same type, so this fails only where schema and serde disagree;
    // even then the caller is told, and nothing runs.
    let input: T::Input = serde_json::from_value(arguments)
        .map_err(|error| ApiError::invalid_arguments(T::NAME, error))?;
    T::check(&input).map_err(|violation| ApiError::invalid_arguments(T::NAME, violation))?;
    Ok(input)
}

fn against_schema(spec: &ToolSpec, mut arguments: Value) -> Result<Value, ApiError> {
    if arguments.is_null() {
        arguments = Value::Object(Map::new());
    }
    fit(Reading::Arguments, &spec.input_schema, &mut arguments, "arguments")
        .map_err(|what| ApiError::invalid_arguments(spec.name, what))?;
    Ok(arguments)
}

/// Holds a value against a schema and cleans it; `root` is what the whole value is called.
///
/// # Errors
/// All that does not fit, on one line.
pub(crate) fn fit(
    reading: Reading,
    schema: &Map<String, Value>,
    value: &mut Value,
    root: &str,
) -> Result<(), String> {
    let mut found = Vec::new();
    Check { reading, found: &mut found }.root(schema, value, root);
    if found.is_empty() {
        return Ok(());
    }
    let more = found.len().saturating_sub(VIOLATIONS_SHOWN_MAX);
    let mut text: Vec<String> =
        found.iter().take(VIOLATIONS_SHOWN_MAX).map(Violation::to_string).collect();
    if more > 0 {
        text.push(format!("and {more} more"));
    }
    Err(text.join("; "))
}

/// How a value is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    /// Generously, and cleaned; texts are what people and models wrote.
    Arguments,
    /// Generously, and cleaned; what its texts must be is said where each of them is used.
    Body,
    /// Strictly: we made it.
    Result,
}

/// One walk over a value beside its schema.
struct Check<'a> {
    reading: Reading,
    found: &'a mut Vec<Violation>,
}

impl Check<'_> {
    fn root(&mut self, schema: &Map<String, Value>, value: &mut Value, name: &str) {
        if let Some(fields) = value.as_object_mut() {
            self.fields(schema, fields, "");
        } else {
            self.wrong(name, &shown(value), "an object");
        }
    }

    /// Returns whether somebody else made the value.
    fn is_given(&self) -> bool {
        self.reading != Reading::Result
    }

    fn wrong(&mut self, path: &str, is: &str, expected: &str) {
        self.found.push(Violation::new(path, format!("{is}; give {expected}")));
    }

    fn value(&mut self, schema: &Value, value: &mut Value, path: &str) {
        let Some(schema) = schema.as_object() else { return };
        if let Some(choices) = schema.get("anyOf").and_then(Value::as_array) {
            return self.any_of(schema, choices, value, path);
        }
        if let Some(choices) = schema.get("oneOf").and_then(Value::as_array) {
            return self.one_of(choices, value, path);
        }
        if self.is_given() && types(schema).any(|name| name == "integer") {
            whole(value);
        }
        let name = type_name(value);
        let mut allowed = types(schema).peekable();
        let fits = |allowed: &str| allowed == name || (allowed == "number" && name == "integer");
        if allowed.peek().is_some() && !allowed.any(fits) {
            return self.wrong(path, &shown(value), &expected(schema));
        }
        if let Some(words) = schema.get("enum").and_then(Value::as_array)
            && !words.contains(value)
        {
            return self.wrong(path, &shown(value), &expected(schema));
        }
        match value {
            Value::Object(fields) => self.fields(schema, fields, path),
            Value::Array(items) => self.items(schema, items, path),
            Value::String(text) => self.text(schema, text, path),
            Value::Number(_) => self.number(schema, value, path),
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn any_of(
        &mut self,
        schema: &Map<String, Value>,
        choices: &[Value],
        value: &mut Value,
        path: &str,
    ) {
        for choice in choices {
            let mut found = Vec::new();
            let mut copy = value.clone();
            let mut inner = Check { reading: self.reading, found: &mut found };
            inner.value(choice, &mut copy, path);
            if found.is_empty() {
                *value = copy;
                return;
            }
        }
        self.wrong(path, &shown(value), &expected(schema));
    }

    /// Objects of several kinds, which a field of each names.
    fn one_of(&mut self, choices: &[Value], value: &mut Value, path: &str) {
        let tag = choices.first().and_then(|choice| tag_of(choice)).map(|(key, _)| key.to_owned());
        let Some(tag) = tag else { return };
        let Some(fields) = value.as_object_mut() else {
            return self.wrong(path, &shown(value), "an object");
        };
        let given = fields.get(&tag);
        let fits = |choice: &&Value| tag_of(choice).is_some_and(|(_, word)| Some(word) == given);
        if let Some(schema) = choices.iter().find(fits).and_then(Value::as_object) {
            return self.fields(schema, fields, path);
        }
        let is = given.map_or("is missing".to_owned(), shown);
        let words = choices.iter().filter_map(tag_of).filter_map(|(_, word)| word.as_str());
        let words = words.collect::<Vec<_>>().join(", ");
        self.wrong(&format!("{path}.{tag}"), &is, &format!("one of {words}"));
    }

    fn fields(&mut self, schema: &Map<String, Value>, fields: &mut Map<String, Value>, path: &str) {
        let below = |key: &str| {
            if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
        };
        let empty = Map::new();
        let known = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
        let others = schema.get("additionalProperties");
        let required = |key: &str| {
            let names = schema.get("required").and_then(Value::as_array);
            names.is_some_and(|names| names.iter().any(|name| name == key))
        };
        if self.is_given() {
            // Left out and null are the same for what may be left out.
            fields.retain(|key, value| {
                !(value.is_null() && known.contains_key(key) && !required(key))
            });
            if others.is_none() && schema.contains_key("properties") {
                fields.retain(|key, _| known.contains_key(key));
            }
        }
        for (key, schema) in known {
            match fields.get_mut(key) {
                Some(value) => self.value(schema, value, &below(key)),
                None if required(key) => {
                    let expected = schema.as_object().map_or("a value".into(), expected);
                    self.wrong(&below(key), "is missing", &expected);
                }
                None => {}
            }
        }
        for (key, value) in fields.iter_mut().filter(|(key, _)| !known.contains_key(*key)) {
            match others {
                Some(Value::Bool(false)) => {
                    let names = known.keys().cloned().collect::<Vec<_>>().join(", ");
                    self.wrong(
                        &below(&brief_key(key)),
                        "is not a known field",
                        &format!("any of {names}"),
                    );
                }
                Some(schema) => self.value(schema, value, &below(&brief_key(key))),
                None => {}
            }
        }
    }

    fn items(&mut self, schema: &Map<String, Value>, items: &mut [Value], path: &str) {
        let count = u64::try_from(items.len()).unwrap_or(u64::MAX);
        if !within(schema, "minItems", "maxItems", count) {
            return self.wrong(path, &format!("has {count} items"), &expected(schema));
        }
        if let Some(schema) = schema.get("items") {
            for (at, item) in items.iter_mut().enumerate() {
                self.value(schema, item, &format!("{path}[{at}]"));
            }
        }
    }

    fn text(&mut self, schema: &Map<String, Value>, text: &str, path: &str) {
        let count = u64::try_from(text.chars().count()).unwrap_or(u64::MAX);
        if !within(schema, "minLength", "maxLength", count) {
            let is = if count == 0 { "is empty".into() } else { format!("has {count} characters") };
            let beyond = schema.get(BEYOND).and_then(Value::as_str).filter(|_| count > 0);
            let beyond = beyond.map(|text| format!("; {text}")).unwrap_or_default();
            return self.wrong(path, &is, &format!("{}{beyond}", expected(schema)));
        }
        let Some(pattern) = schema.get("pattern").and_then(Value::as_str) else {
            if self.reading == Reading::Arguments
                && let Err(rule) = text::check(text)
            {
                self.wrong(path, &rule.is, &format!("{} {}", expected(schema), rule.right));
            }
            return;
        };
        match alphabet(pattern) {
            Some(alphabet) => {
                if let Some(bad) = text.chars().find(|letter| !(alphabet.allows)(*letter)) {
                    self.wrong(path, &format!("has {bad:?} in it"), &expected(schema));
                }
            }
            // A new pattern needs an `alphabet`; a test walks all tools for it.
            None => self.wrong(path, "cannot be checked", &format!("text of {pattern}")),
        }
    }

    fn number(&mut self, schema: &Map<String, Value>, value: &Value, path: &str) {
        let number = value.as_f64().unwrap_or(0.0);
        let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
        let low = bound("minimum").is_some_and(|least| number < least);
        let high = bound("maximum").is_some_and(|most| number > most);
        if low || high {
            self.wrong(path, &shown(value), &expected(schema));
        }
    }
}

/// Returns the field that says which kind of object a choice is, and its word.
fn tag_of(choice: &Value) -> Option<(&str, &Value)> {
    let fields = choice.get("properties")?.as_object()?;
    fields.iter().find_map(|(key, schema)| Some((key.as_str(), schema.get("const")?)))
}

/// What a pattern of ours says, in code and in words.
struct Alphabet {
    allows: fn(char) -> bool,
    words: &'static str,
}

/// Returns what a pattern says; `None` for one that is not ours.
fn alphabet(pattern: &str) -> Option<Alphabet> {
    match pattern {
        NAME_PATTERN => Some(Alphabet {
            allows: |letter| letter.is_ascii_alphanumeric() || "._@#-".contains(letter),
            words: "A-Z a-z 0-9 . _ @ # -",
        }),
        ID_PATTERN => Some(Alphabet {
            allows: |letter| letter.is_ascii_alphanumeric() || "._:@#+=~-".contains(letter),
            words: "A-Z a-z 0-9 . _ : @ # + = ~ -",
        }),
        PROJECT_ID_PATTERN => Some(Alphabet {
            allows: |letter| letter.is_ascii_alphanumeric() || "._-".contains(letter),
            words: "A-Z a-z 0-9 . _ -",
        }),
        _ => None,
    }
}

fn types(schema: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let (one, many) = match schema.get("type") {
        Some(Value::Array(many)) => (None, many.as_slice()),
        Some(Value::String(one)) => (Some(one.as_str()), [].as_slice()),
        _ => (None, [].as_slice()),
    };
    one.into_iter().chain(many.iter().filter_map(Value::as_str))
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Makes `10.0` the integer that it is; JSON knows one kind of number.
fn whole(value: &mut Value) {
    if let Some(float) = value.as_f64().filter(|_| type_name(value) == "number")
        && float.fract() == 0.0
        && float.abs() < 9.0e15
        && let Ok(integer) = format!("{float:.0}").parse::<i64>()
    {
        *value = integer.into();
    }
}

fn within(schema: &Map<String, Value>, least: &str, most: &str, count: u64) -> bool {
    let bound = |key: &str| schema.get(key).and_then(Value::as_u64);
    bound(least).is_none_or(|least| count >= least) && bound(most).is_none_or(|most| count <= most)
}

/// Returns a key that somebody else chose, short and on one line.
fn brief_key(key: &str) -> String {
    key.chars().take(48).flat_map(char::escape_debug).collect()
}

/// Says what a value is, briefly: a whole body never gets into an error text.
fn shown(value: &Value) -> String {
    let brief = |text: &str| -> String {
        let mut brief: String = text.chars().take(40).collect();
        if brief.len() < text.len() {
            brief.push('…');
        }
        brief
    };
    match value {
        Value::Null => "is null".into(),
        Value::Bool(_) | Value::Number(_) => format!("is {value}"),
        Value::String(text) => format!("is the string {:?}", brief(text)),
        Value::Array(items) => format!("is an array of {}", items.len()),
        Value::Object(_) => "is an object".into(),
    }
}

/// Says in words what a schema wants.
fn expected(schema: &Map<String, Value>) -> String {
    if let Some(words) = schema.get("enum").and_then(Value::as_array) {
        let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
        return format!("one of {}", words.join(", "));
    }
    if let Some(choices) = schema.get("anyOf").and_then(Value::as_array) {
        let choices: Vec<String> =
            choices.iter().filter_map(Value::as_object).map(expected).collect();
        return choices.join(" or ");
    }
    let range = |least: &str, most: &str, unit: &str| match (schema.get(least), schema.get(most)) {
        (Some(least), Some(most)) => format!("{least} to {most}{unit}"),
        (Some(least), None) => format!("at least {least}{unit}"),
        (None, Some(most)) => format!("at most {most}{unit}"),
        (None, None) => String::new(),
    };
    let kinds: Vec<String> = types(schema)
        .map(|name| match name {
            "string" => {
                let length = range("minLength", "maxLength", " characters");
                let text = if length.is_empty() {
                    "a string".into()
                } else {
                    format!("a string of {length}")
                };
                match schema.get("pattern").and_then(Value::as_str).and_then(alphabet) {
                    Some(alphabet) => format!("{text} out of {}", alphabet.words),
                    None => text,
                }
            }
            "integer" | "number" => {
                let kind = if name == "integer" { "an integer" } else { "a number" };
                let bounds = range("minimum", "maximum", "");
                if bounds.is_empty() { kind.into() } else { format!("{kind}, {bounds}") }
            }
            "boolean" => "true or false".into(),
            "array" => {
                let size = range("minItems", "maxItems", " items");
                if size.is_empty() { "an array".into() } else { format!("an array of {size}") }
            }
            "object" => "an object".into(),
            other => other.to_owned(),
        })
        .collect();
    if kinds.is_empty() { "a value".into() } else { kinds.join(" or ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn patterns(schema: &Value, found: &mut Vec<String>) {
        match schema {
            Value::Object(fields) => {
                found.extend(fields.get("pattern").and_then(Value::as_str).map(str::to_owned));
                fields.values().for_each(|inner| patterns(inner, found));
            }
            Value::Array(items) => items.iter().for_each(|inner| patterns(inner, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    #[test]
    fn every_pattern_can_be_checked() {
        for tool in crate::catalog::whole() {
            let mut found = Vec::new();
            patterns(&Value::Object(tool.input_schema.clone()), &mut found);
            for pattern in found {
                assert!(alphabet(&pattern).is_some(), "{}: {pattern}", tool.name);
            }
        }
    }

    #[test]
    fn nested_closed_open_and_listed_objects() {
        let schema = json!({
            "type": "object",
            "properties": {
                "patch": {"type": "object", "properties": {"name": {"type": "string"}},
                          "additionalProperties": false},
                "links": {"type": "array", "maxItems": 2, "items": {
                    "type": "object", "properties": {"to": {"type": "string"}},
                    "required": ["to"]}},
                "since": {"anyOf": [{"type": "integer", "minimum": 0},
                                    {"type": "string", "enum": ["latest"]}]},
                "meta": {"type": "object", "additionalProperties": true},
            },
        });
        let schema = schema.as_object().unwrap();
        let run = |mut value: Value| {
            let mut found = Vec::new();
            let reading = Reading::Arguments;
            Check { reading, found: &mut found }.root(schema, &mut value, "all");
            (value, found.iter().map(Violation::to_string).collect::<Vec<_>>())
        };
        let good = json!({"patch": {"name": "n"}, "links": [{"to": "a", "x": 1}], "since": 4.0,
                          "meta": {"anything": [1]}, "unknown": 1});
        let (clean, found) = run(good);
        assert_eq!(found, Vec::<String>::new());
        assert_eq!(
            clean,
            json!({"patch": {"name": "n"}, "links": [{"to": "a"}], "since": 4,
                   "meta": {"anything": [1]}})
        );
        let (_, found) = run(json!({"patch": {"id": 1}, "links": [{}, {"to": 2}], "since": "x"}));
        assert_eq!(
            found,
            [
                "links[0].to: is missing; give a string",
                "links[1].to: is 2; give a string",
                "patch.id: is not a known field; give any of name",
                "since: is the string \"x\"; give an integer, at least 0 or one of latest",
            ]
        );
        let (_, found) = run(json!({"links": [{}, {}, {}]}));
        assert_eq!(found, ["links: has 3 items; give an array of at most 2 items"]);
    }
}
