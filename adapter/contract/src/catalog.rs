//! The one list of tools.

use std::sync::LazyLock;

use serde_json::Value;

use crate::tool::ToolSpec;
use crate::{chat, conversations, events};

static CATALOG: LazyLock<Vec<ToolSpec>> = LazyLock::new(|| {
    vec![
        ToolSpec::of::<conversations::Peers>(),
        ToolSpec::of::<conversations::SetProfile>(),
        ToolSpec::of::<chat::SendMessage>(),
        ToolSpec::of::<chat::ReadMessages>(),
        ToolSpec::of::<events::ListEvents>(),
    ]
});

/// Returns every tool, in the order in which clients see them. The order never depends on anything
/// but this file, so that a client's cached list stays valid.
pub fn all() -> &'static [ToolSpec] {
    &CATALOG
}

/// Returns the tool of that name.
pub fn find(name: &str) -> Option<&'static ToolSpec> {
    CATALOG.iter().find(|tool| tool.name == name)
}

/// Returns every tool's name, in order, for a message that says what there is.
pub fn names() -> String {
    CATALOG.iter().map(|tool| tool.name).collect::<Vec<_>>().join(", ")
}

/// Returns the whole list as MCP and `GET /api/tools` show it.
pub fn listed() -> Vec<Value> {
    CATALOG.iter().map(ToolSpec::listed).collect()
}
