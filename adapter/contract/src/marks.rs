//! What any result may carry besides its own fields.
//!
//! They stand in the result object itself, so that HTTP, structured content and text agree and a
//! model sees them; they are declared here once and not in each tool's schema, which stays open.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::ApiError;

/// How much an answer can be relied on. Everything is left out when there is nothing to say.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadMarks {
    /// True: no majority answered, and this is what this node knew last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale: Option<bool>,
    /// The time at which a stale answer was known to be true (RFC 3339, UTC), or in words why no
    /// such time is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of: Option<String>,
    /// False: the messages were shown, but the reader's place could not be moved; they come again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor_moved: Option<bool>,
    /// True: this stale answer is older than a write that was acknowledged to this caller here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_your_write: Option<bool>,
    /// False: the write is done in the cluster, and not yet visible in this node's stale reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_here: Option<bool>,
}

impl ReadMarks {
    /// Returns a tool's result with these marks in it.
    ///
    /// # Errors
    /// `internal` when the output does not become a JSON object, which no output of ours does.
    pub fn stamp<T: Serialize>(&self, output: &T) -> Result<Map<String, Value>, ApiError> {
        let mut result = object(output)?;
        result.append(&mut object(self)?);
        Ok(result)
    }
}

/// Returns whether a flag says nothing: then a result or a body leaves it out.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(crate) fn is_false(value: &bool) -> bool {
    !*value
}

fn object<T: Serialize>(value: &T) -> Result<Map<String, Value>, ApiError> {
    match serde_json::to_value(value) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(other) => Err(ApiError::internal(format!("result is not an object: {other}"))),
        Err(error) => Err(ApiError::internal(format!("result does not become JSON: {error}"))),
    }
}
