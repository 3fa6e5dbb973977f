//! JSON Schemas from types, cut down to what a client needs.
//!
//! A list of tools stands in every model's context, so each byte is paid for by every
//! conversation. schemars' `$schema`, `title` and `format` say nothing to a model; a documented
//! enum becomes one `enum`; what may be left out needs no `null`; results carry no descriptions.

use schemars::JsonSchema;
use schemars::generate::{Contract, SchemaSettings};
use serde_json::{Map, Value};

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
        for (key, value) in only {
            // A comment of the field wins over the comment of its type.
            fields.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
}
