//! Maintenance of the global chat.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::silent;
use crate::tool::{Hints, Tool, ToolSpec};
use crate::validate::Violation;

/// The tool of this family.
pub(crate) const TOOLS: &[fn() -> ToolSpec] = &[ToolSpec::of::<HostMaintenance>];

/// What is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MaintenanceAction {
    /// The oldest messages.
    Prune,
    /// All messages.
    Clear,
}

/// Arguments of `host_maintenance`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostMaintenanceInput {
    /// What is removed.
    #[schemars(transform = silent)]
    pub action: MaintenanceAction,
    /// For prune: how many of the oldest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}

/// Result of `host_maintenance`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostMaintenanceOutput {
    /// True: a refusal is an error, never a result.
    pub ok: bool,
    /// How many messages were removed.
    pub removed: u64,
    /// How many are left.
    pub remaining: u64,
}

/// The tool `host_maintenance`.
#[derive(Debug)]
pub struct HostMaintenance;

impl Tool for HostMaintenance {
    const NAME: &'static str = "host_maintenance";
    const TITLE: &'static str = "Maintain Chat";
    const DESCRIPTION: &'static str =
        "Removes the oldest messages of the global chat, or all, for everybody.";
    const HINTS: Hints = Hints::REPLACES;
    const PUBLISHES_OUTPUT: bool = false;
    type Input = HostMaintenanceInput;
    type Output = HostMaintenanceOutput;

    fn check(input: &HostMaintenanceInput) -> Result<(), Violation> {
        // Of clear it is ignored, whatever it says.
        match (input.action, input.count) {
            (MaintenanceAction::Prune, None) => {
                Err(Violation::new("count", "is missing; give an integer, at least 1, to prune"))
            }
            (MaintenanceAction::Prune, Some(0)) => {
                Err(Violation::new("count", "is 0; give an integer, at least 1, to prune"))
            }
            (MaintenanceAction::Prune | MaintenanceAction::Clear, _) => Ok(()),
        }
    }
}
