//! The one list of tools: the whole contract, and what of it a node of this version serves.

use std::sync::LazyLock;

use serde_json::Value;

use crate::tool::ToolSpec;
use crate::{chat, conversations, documents, events, mail, maintenance, meetings, projects, tasks};

/// Tools that belong together.
struct Family {
    tools: &'static [fn() -> ToolSpec],
    /// Whether nodes serve them: nobody is shown what does not work.
    served: bool,
}

/// Every tool, in the order in which clients see them. The order never depends on anything but this
/// list, so that a client's cached list stays valid.
const FAMILIES: [Family; 9] = [
    Family { tools: conversations::TOOLS, served: true },
    Family { tools: mail::TOOLS, served: true },
    Family { tools: chat::TOOLS, served: true },
    Family { tools: meetings::TOOLS, served: true },
    Family { tools: tasks::TOOLS, served: true },
    Family { tools: projects::TOOLS, served: true },
    Family { tools: documents::TOOLS, served: true },
    Family { tools: events::TOOLS, served: true },
    Family { tools: maintenance::TOOLS, served: true },
];

/// The tools that let conversations talk and share work: for clients that want a short list.
const CORE: [&str; 10] = [
    "peers",
    "send",
    "read",
    "reply",
    "listen",
    "set_profile",
    "send_message",
    "read_messages",
    "list_tasks",
    "update_task",
];

static WHOLE: LazyLock<Vec<ToolSpec>> = LazyLock::new(|| specs(|_| true));

static SERVED: LazyLock<Vec<ToolSpec>> = LazyLock::new(|| specs(|family| family.served));

fn specs(wanted: fn(&Family) -> bool) -> Vec<ToolSpec> {
    let families = FAMILIES.iter().filter(|family| wanted(family));
    families.flat_map(|family| family.tools).map(|spec| spec()).collect()
}

/// A choice of tools, which a client's user makes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Set {
    /// Everything that is served.
    #[default]
    All,
    /// The ten that let conversations talk and share work, as far as they are served.
    Core,
}

impl Set {
    /// Every set.
    pub const EVERY: [Set; 2] = [Set::All, Set::Core];

    /// Returns the name by which a user chooses it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Set::All => "all",
            Set::Core => "core",
        }
    }

    /// Returns the set of that name.
    pub fn named(name: &str) -> Option<Set> {
        Set::EVERY.into_iter().find(|set| set.as_str() == name)
    }

    /// Returns whether a tool of that name belongs to it, served or not.
    pub fn has(self, name: &str) -> bool {
        match self {
            Set::All => true,
            Set::Core => CORE.contains(&name),
        }
    }

    /// Returns its tools that are served, in the order in which clients see them.
    pub fn tools(self) -> impl Iterator<Item = &'static ToolSpec> {
        all().iter().filter(move |tool| self.has(tool.name))
    }

    /// Returns its served tool of that name.
    pub fn find(self, name: &str) -> Option<&'static ToolSpec> {
        self.tools().find(|tool| tool.name == name)
    }

    /// Returns the names of its served tools, in order, for a message that says what there is.
    pub fn names(self) -> String {
        self.tools().map(|tool| tool.name).collect::<Vec<_>>().join(", ")
    }
}

/// Returns every tool that nodes serve, in the order in which clients see them.
pub fn all() -> &'static [ToolSpec] {
    &SERVED
}

/// Returns every tool of the contract, served or not, in the same order.
pub fn whole() -> &'static [ToolSpec] {
    &WHOLE
}

/// Returns the served tool of that name.
pub fn find(name: &str) -> Option<&'static ToolSpec> {
    Set::All.find(name)
}

/// Returns the served tools as MCP and `GET /api/tools` show them.
pub fn listed() -> Vec<Value> {
    all().iter().map(ToolSpec::listed).collect()
}
