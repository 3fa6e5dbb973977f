//! What a tool is: the trait its type implements, and the plain value made from it.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::error::ApiError;
use crate::schema;
use crate::validate::{self, Violation};

/// The four hints of MCP. They tell a client when to ask its user, never what is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hints {
    /// The tool changes nothing.
    pub read_only: bool,
    /// The tool may replace or remove what was there; false means that it purely adds.
    pub destructive: bool,
    /// The same call twice does no more than once.
    pub idempotent: bool,
    /// The tool reaches beyond the cluster. None of ours does.
    pub open_world: bool,
}

impl Hints {
    /// A tool that only looks.
    pub const READ_ONLY: Hints =
        Hints { read_only: true, destructive: false, idempotent: true, open_world: false };
    /// A tool that purely adds.
    pub const ADDS: Hints =
        Hints { read_only: false, destructive: false, idempotent: false, open_world: false };
    /// A tool that adds, and does no more when called twice.
    pub const ADDS_ONCE: Hints =
        Hints { read_only: false, destructive: false, idempotent: true, open_world: false };
    /// A tool that replaces or removes.
    pub const REPLACES: Hints =
        Hints { read_only: false, destructive: true, idempotent: false, open_world: false };
    /// A tool that replaces or removes, and does no more when called twice.
    pub const REPLACES_ONCE: Hints =
        Hints { read_only: false, destructive: true, idempotent: true, open_world: false };
}

/// One tool, as a type: everything about it that is known when the program is built.
pub trait Tool {
    /// The stable name, as clients call it.
    const NAME: &'static str;
    /// The name that people see.
    const TITLE: &'static str;
    /// What a model reads before it decides to call: one or two sentences.
    const DESCRIPTION: &'static str;
    /// The four hints.
    const HINTS: Hints;
    /// Whether the result's schema is listed: not for a bare acknowledgement, to keep lists small.
    const PUBLISHES_OUTPUT: bool;
    /// The arguments.
    type Input: DeserializeOwned + Serialize + JsonSchema;
    /// The result.
    type Output: DeserializeOwned + Serialize + JsonSchema;

    /// Checks what a schema cannot say, such as two arguments that exclude each other.
    ///
    /// # Errors
    /// The first rule that does not hold.
    fn check(input: &Self::Input) -> Result<(), Violation> {
        let _ = input;
        Ok(())
    }
}

/// One tool, as a value: what the catalogue holds and clients list.
#[derive(Clone)]
pub struct ToolSpec {
    /// The stable name.
    pub name: &'static str,
    /// The name that people see.
    pub title: &'static str,
    /// What a model reads.
    pub description: &'static str,
    /// The four hints.
    pub hints: Hints,
    /// The schema that arguments are held against; its root is an object.
    pub input_schema: Map<String, Value>,
    /// The schema that results are held against; its root is an open object.
    pub output_schema: Map<String, Value>,
    /// Whether the result's schema is listed.
    pub publishes_output: bool,
    pub(crate) typed: fn(Value) -> Result<(), ApiError>,
}

impl ToolSpec {
    /// Makes the value of a tool's type.
    pub fn of<T: Tool>() -> ToolSpec {
        ToolSpec {
            name: T::NAME,
            title: T::TITLE,
            description: T::DESCRIPTION,
            hints: T::HINTS,
            input_schema: schema::input::<T::Input>(),
            output_schema: schema::output::<T::Output>(),
            publishes_output: T::PUBLISHES_OUTPUT,
            typed: |arguments| validate::typed::<T>(arguments).map(drop),
        }
    }

    /// Returns the schema of the arguments as clients are shown it: without what only the check
    /// needs.
    pub fn listed_input(&self) -> Map<String, Value> {
        schema::listed_input(&self.input_schema)
    }

    /// Returns the schema of the result as clients are shown it: its own fields and their types.
    /// None for a bare acknowledgement.
    pub fn listed_output(&self) -> Option<Map<String, Value>> {
        self.publishes_output.then(|| schema::listed_output(&self.output_schema))
    }

    /// Returns the tool as MCP and `GET /api/tools` list it.
    pub fn listed(&self) -> Value {
        let mut listed = json!({
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": self.listed_input(),
            "annotations": {
                "readOnlyHint": self.hints.read_only,
                "destructiveHint": self.hints.destructive,
                "idempotentHint": self.hints.idempotent,
                "openWorldHint": self.hints.open_world,
            },
        });
        if let (Some(output), Some(fields)) = (self.listed_output(), listed.as_object_mut()) {
            fields.insert("outputSchema".into(), Value::Object(output));
        }
        listed
    }
}

impl fmt::Debug for ToolSpec {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ToolSpec").field("name", &self.name).finish_non_exhaustive()
    }
}
