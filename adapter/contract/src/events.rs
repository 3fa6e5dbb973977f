//! Events: what happened in the cluster, newest first.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits;
use crate::schema::silent;
use crate::tool::{Hints, Tool, ToolSpec};

/// The tool of this family.
pub(crate) const TOOLS: &[fn() -> ToolSpec] = &[ToolSpec::of::<ListEvents>];

/// Arguments of `list_events`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListEventsInput {
    /// How many at most.
    #[serde(default = "limit_default")]
    #[schemars(transform = silent, range(min = 1, max = limits::EVENTS_MAX))]
    pub limit: u32,
    /// An action such as node.join, or the part before its dot.
    #[schemars(length(min = 1, max = limits::ACTION_CHARS_MAX))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
}

impl Default for ListEventsInput {
    fn default() -> Self {
        Self { limit: limit_default(), action: None }
    }
}

fn limit_default() -> u32 {
    limits::EVENTS_DEFAULT
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// When it happened (RFC 3339, UTC, milliseconds).
    pub timestamp: String,
    /// Who did it: a session id, an instance id, or a node.
    pub actor: String,
    /// What was done, `family.verb`.
    pub action: String,
    /// To what.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// More, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// Result of `list_events`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListEventsOutput {
    /// How many there are.
    pub count: u32,
    /// The events, newest first.
    pub events: Vec<Event>,
}

/// The tool `list_events`.
#[derive(Debug)]
pub struct ListEvents;

impl Tool for ListEvents {
    const NAME: &'static str = "list_events";
    const TITLE: &'static str = "List Events";
    const DESCRIPTION: &'static str = "Lists what happened in the team, newest first.";
    const HINTS: Hints = Hints::READ_ONLY;
    const PUBLISHES_OUTPUT: bool = true;
    type Input = ListEventsInput;
    type Output = ListEventsOutput;
}
