//! JSON that comes in, read once for everybody who reads it: bodies of HTTP, lines of MCP, what is
//! typed, what stands in settings.
//!
//! It is what `serde_json` reads, but for one thing: a key that stands twice in an object is
//! refused. JSON leaves open which of the two counts (RFC 8259, section 4), so that what a guard
//! before the node has looked at need not be what the node takes. Depth is bounded as there, by
//! 128.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Number, Value};

/// Characters of a doubled key that an error repeats.
const SHOWN_CHARS_MAX: usize = 64;

/// Why a text is not read. It begins with a verb; whoever shows it says of what.
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    /// It is no JSON; the position stands behind.
    #[error("is not JSON: {0}")]
    Malformed(serde_json::Error),
    /// An object has a key twice; which, and where, stands behind.
    #[error("{0}: give each key once")]
    Doubled(serde_json::Error),
}

/// Reads one JSON text.
///
/// # Errors
/// [`JsonError`].
pub fn read(text: &[u8]) -> Result<Value, JsonError> {
    serde_json::from_slice(text).map(|Once(value)| value).map_err(|error| {
        // A value takes any JSON there is: what is wrong with the data was found here.
        if error.is_data() { JsonError::Doubled(error) } else { JsonError::Malformed(error) }
    })
}

/// A value in which no object has a key twice.
struct Once(Value);

impl<'de> Deserialize<'de> for Once {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Reader).map(Self)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("any JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Once(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = fields.next_key::<String>()? {
            match object.entry(key) {
                Entry::Vacant(place) => {
                    let Once(value) = fields.next_value()?;
                    place.insert(value);
                }
                Entry::Occupied(place) => {
                    let key: String = place.key().chars().take(SHOWN_CHARS_MAX).collect();
                    return Err(A::Error::custom(format_args!("has the key {key:?} twice")));
                }
            }
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_but_a_doubled_key_is_read_as_ever() {
        for text in [
            "null",
            " true ",
            "-1",
            "18446744073709551615",
            "1e3",
            "-0.0",
            "1e308",
            "123456789012345678901234567890",
            r#""a\u00e9\n\ud83d\ude00""#,
            "[]",
            r#"[1, [2, {"a": [null]}], "x"]"#,
            r#"{"b": 1, "a": {"b": {"b": 2}}, "": 3, "B": 4}"#,
            r#"[{"a": 1}, {"a": 2}]"#,
        ] {
            let plain: Value = serde_json::from_str(text).unwrap();
            assert_eq!(read(text.as_bytes()).unwrap(), plain, "{text}");
        }
    }

    #[test]
    fn a_doubled_key_is_named_wherever_it_stands() {
        for (text, key) in [
            (r#"{"a": 1, "a": 1}"#, r#"has the key "a" twice at line 1 column 12"#),
            (r#"{"x": [{"y": {"b c": 1, "d": 2, "b c": 3}}]}"#, r#"the key "b c" twice"#),
            // However it is written.
            (r#"{"tool": 1, "to\u006fl": 2}"#, r#"the key "tool" twice"#),
            ("{\"a\\u0000\": 1,\n\"a\\u0000\": 1}", r#"the key "a\0" twice at line 2"#),
        ] {
            let error = read(text.as_bytes()).unwrap_err();
            assert!(matches!(error, JsonError::Doubled(_)), "{text}: {error}");
            let error = error.to_string();
            assert!(error.contains(key), "{text}: {error}");
            assert!(error.ends_with(": give each key once"), "{text}: {error}");
        }
        let long = "k".repeat(5_000);
        let error = read(format!("{{\"{long}\": 1, \"{long}\": 1}}").as_bytes()).unwrap_err();
        assert!(error.to_string().len() < 200, "{error}");
    }

    #[test]
    fn what_is_no_json_is_told_with_its_place() {
        let deep = "[".repeat(100_000);
        let deep_object = "{\"a\":".repeat(100_000);
        for (text, what) in [
            ("{", "is not JSON: EOF while parsing an object at line 1 column 1"),
            ("{\"a\": 1} x", "trailing characters"),
            ("{\"a\": 1, }", "trailing comma"),
            ("", "EOF"),
            (&deep, "recursion limit exceeded"),
            (&deep_object, "recursion limit exceeded"),
        ] {
            let error = read(text.as_bytes()).unwrap_err();
            assert!(matches!(error, JsonError::Malformed(_)), "{error}");
            assert!(error.to_string().contains(what), "{error}");
        }
        assert!(read(&[b'"', 0xff, b'"']).is_err());
    }
}
