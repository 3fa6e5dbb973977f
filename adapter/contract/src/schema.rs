//! JSON Schemas from types, cut down to what is checked, and further to what a client needs.
//!
//! A list of tools stands in every model's context, so each byte is paid for by every
//! conversation. schemars' `$schema`, `title` and `format` say nothing to a model; a documented
//! enum becomes one `enum`; what may be left out needs no `null`; results carry no descriptions.
//!
//! What is checked is more than what is listed. A part that is marked by [`brief`] is listed by
//! its type and description, and a result by the names and types of its own fields: a model reads
//! the result itself, and a client that checks it against the list checks something true.

use std::borrow::Cow;

use schemars::generate::{Contract, SchemaSettings};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use crate::limits;

/// The mark of what is checked whole and listed by its type, description and default alone.
const BRIEF: &str = "x-brief";

/// Marks a schema as [`BRIEF`].
pub(crate) fn brief(schema: &mut Schema) {
    schema.insert(BRIEF.into(), true.into());
}

/// What is said of a text that is too long, besides how long it may be.
pub(crate) const BEYOND: &str = "x-beyond";

/// Says of a file in a text that is too long how it is sent instead.
pub(crate) fn streamed(schema: &mut Schema) {
    schema.insert(BEYOND.into(), crate::http::STREAM_A_FILE.into());
}

/// Lists a field without words, where its name says what there is to say.
pub(crate) fn silent(schema: &mut Schema) {
    schema.remove("description");
}

/// The schema of an id that the caller was told before: who copies it needs no rule for it.
pub(crate) enum KnownId {}

/// The schema of the id of a project or document.
pub(crate) enum ProjectId {}

/// The schema of a text that has a bound and needs no word about it.
pub(crate) enum ShortText<const CHARS_MAX: u32> {}

impl JsonSchema for KnownId {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "KnownId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "minLength": 1,
            "maxLength": limits::ID_CHARS_MAX,
            "pattern": limits::ID_PATTERN,
            BRIEF: true,
        })
    }
}

impl JsonSchema for ProjectId {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "ProjectId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "minLength": 1,
            "maxLength": limits::PROJECT_ID_CHARS_MAX,
            "pattern": limits::PROJECT_ID_PATTERN,
            BRIEF: true,
        })
    }
}

impl<const CHARS_MAX: u32> JsonSchema for ShortText<CHARS_MAX> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("ShortText{CHARS_MAX}").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "maxLength": CHARS_MAX, BRIEF: true})
    }
}

/// Whose schema it is: what is cut differs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Input,
    Output,
}

/// Returns the schema of an argument type.
pub(crate) fn input<T: JsonSchema>() -> Map<String, Value> {
    generate::<T>(Contract::Deserialize, Side::Input)
}

/// Returns the schema of a result type.
pub(crate) fn output<T: JsonSchema>() -> Map<String, Value> {
    generate::<T>(Contract::Serialize, Side::Output)
}

/// Returns what clients are shown of the schema of arguments.
pub(crate) fn listed_input(schema: &Map<String, Value>) -> Map<String, Value> {
    let mut listed = schema.clone();
    shorten(&mut listed);
    listed
}

/// Returns what clients are shown of the schema of a result.
pub(crate) fn listed_output(schema: &Map<String, Value>) -> Map<String, Value> {
    let mut fields = Map::new();
    for (name, schema) in schema.get("properties").and_then(Value::as_object).into_iter().flatten()
    {
        let words = schema.get("enum").and_then(Value::as_array);
        let nullable = words.is_some_and(|words| words.contains(&Value::Null));
        let word_type = if nullable { json!(["string", "null"]) } else { json!("string") };
        let name_of_type = schema.get("type").cloned().unwrap_or(word_type);
        fields.insert(name.clone(), json!({"type": name_of_type}));
    }
    let mut listed = Map::new();
    listed.insert("type".into(), "object".into());
    listed.insert("properties".into(), Value::Object(fields));
    listed
}

fn shorten(fields: &mut Map<String, Value>) {
    if fields.remove(BRIEF).is_some() {
        fields.retain(|key, _| matches!(key.as_str(), "type" | "description" | "default"));
        return;
    }
    // Nobody means less than nothing, gives an empty text, or makes a list of thousands; and what
    // is left out is false.
    fields.retain(|key, value| match key.as_str() {
        "maxItems" => false,
        "minLength" | "minimum" => value.as_u64().is_none_or(|least| least > 1),
        "default" => *value != Value::Bool(false),
        "additionalProperties" => *value != Value::Bool(true),
        _ => true,
    });
    let named = fields.get_mut("properties").and_then(Value::as_object_mut);
    named.into_iter().flat_map(Map::values_mut).filter_map(Value::as_object_mut).for_each(shorten);
    for key in ["items", "additionalProperties"] {
        fields.get_mut(key).into_iter().for_each(shorten_part);
    }
    let choices = fields.get_mut("anyOf").and_then(Value::as_array_mut);
    choices.into_iter().flatten().for_each(shorten_part);
}

/// Shortens a part that has no name: the words about its type are for readers of the code.
fn shorten_part(schema: &mut Value) {
    if let Some(fields) = schema.as_object_mut() {
        fields.remove("description");
        shorten(fields);
    }
}

fn generate<T: JsonSchema>(contract: Contract, side: Side) -> Map<String, Value> {
    let mut settings = SchemaSettings::draft2020_12();
    settings.meta_schema = None;
    settings.inline_subschemas = true;
    settings.contract = contract;
    let mut value = settings.into_generator().into_root_schema_for::<T>().to_value();
    tidy(&mut value, side);
    let mut root = match value {
        Value::Object(root) => root,
        // `true` is the schema of "anything": as a root it means an open object.
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Map::new()
        }
    };
    // The tool's description is given apart; the type's own comment is for readers of the code.
    root.remove("description");
    root.insert("type".into(), "object".into());
    if side == Side::Input {
        // Some clients refuse an object that says nothing of its fields, even when it has none.
        root.entry("properties").or_insert_with(|| json!({}));
    }
    root
}

fn tidy(schema: &mut Value, side: Side) {
    let Some(fields) = schema.as_object_mut() else { return };
    for noise in ["$schema", "title", "format"] {
        fields.remove(noise);
    }
    if side == Side::Output {
        for noise in ["description", "minimum", "maximum", "minLength", "maxLength", "pattern"] {
            fields.remove(noise);
        }
        fields.remove("maxItems");
        fields.remove(BRIEF);
    }
    collapse_enum(fields);
    let required: Vec<Value> =
        fields.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    if let Some(properties) = fields.get_mut("properties").and_then(Value::as_object_mut) {
        for (name, property) in properties {
            tidy(property, side);
            // What may be left out is left out instead of being null.
            if !required.iter().any(|required| required == name.as_str()) {
                drop_null(property);
            }
        }
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = fields.get_mut(key) {
            tidy(inner, side);
        }
    }
    for key in ["anyOf", "oneOf"] {
        for inner in fields.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten() {
            tidy(inner, side);
        }
    }
    if side == Side::Output {
        // The words say their type themselves.
        if fields.contains_key("enum") {
            fields.remove("type");
        }
        null_into_enum(fields);
    }
}

/// Turns "these words or null" into one `enum`.
fn null_into_enum(fields: &mut Map<String, Value>) {
    let Some([Value::Object(first), second]) =
        fields.get("anyOf").and_then(Value::as_array).map(Vec::as_slice)
    else {
        return;
    };
    let Some(Value::Array(words)) = first.get("enum") else { return };
    if first.len() == 1 && second == &serde_json::json!({"type": "null"}) {
        let mut words = words.clone();
        words.push(Value::Null);
        fields.remove("anyOf");
        fields.insert("enum".into(), Value::Array(words));
    }
}

/// Turns the `oneOf` of documented variants into one `enum`.
fn collapse_enum(fields: &mut Map<String, Value>) {
    let mut words = Vec::new();
    for variant in fields.get("oneOf").and_then(Value::as_array).into_iter().flatten() {
        match (variant.get("const"), variant.get("enum").and_then(Value::as_array)) {
            (Some(word), _) if word.is_string() => words.push(word.clone()),
            (None, Some(more)) => words.extend(more.iter().cloned()),
            _ => return,
        }
    }
    if !words.is_empty() {
        fields.remove("oneOf");
        fields.insert("type".into(), "string".into());
        fields.insert("enum".into(), Value::Array(words));
    }
}

/// Takes `null` out of an optional field: leaving it out says the same, and a `null` that comes
/// as an argument anyway is read as left out.
fn drop_null(property: &mut Value) {
    let Some(fields) = property.as_object_mut() else { return };
    if let Some(types) = fields.get_mut("type").and_then(Value::as_array_mut) {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            fields.insert("type".into(), only);
        }
    }
    if let Some(words) = fields.get_mut("enum").and_then(Value::as_array_mut) {
        words.retain(|word| !word.is_null());
    }
    let mut choices = match fields.get("anyOf") {
        Some(Value::Array(choices)) => choices.clone(),
        _ => return,
    };
    choices.retain(|choice| choice.get("type").is_none_or(|name| name != "null"));
    if let [Value::Object(only)] = choices.as_slice() {
        fields.remove("anyOf");
        // The type's comment is for readers of the code; the field's is the client's.
        for (key, value) in only.iter().filter(|(key, _)| *key != "description") {
            fields.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
}
