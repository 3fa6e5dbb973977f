//! Commands about conversations and instances.

use alloc::string::String;
use alloc::vec::Vec;

use minicbor::{Decode, Encode};

use super::Origin;
use super::presence::{NodeChange, Report};

/// The program that a conversation runs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
#[cbor(index_only)]
pub enum Client {
    /// Claude Code: the id begins with `claude:`.
    #[n(0)]
    Claude,
    /// Codex: the id begins with `codex:`.
    #[n(1)]
    Codex,
    /// Any MCP client without hooks, or the command line.
    #[n(2)]
    Instance,
}

/// What a conversation is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
#[cbor(index_only)]
pub enum Status {
    /// A prompt was sent or a tool is running.
    #[n(0)]
    Working,
    /// The turn ended.
    #[n(1)]
    Idle,
    /// It waits for messages.
    #[n(2)]
    Listening,
    /// It ended, or was silent for 30 minutes.
    #[n(3)]
    Offline,
}

/// Commands about conversations and instances; the actor is the conversation.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum ConversationCommand {
    /// Makes the conversation known, at home on the entry's node; moves it there if it was
    /// elsewhere.
    #[n(0)]
    Register {
        /// The program it runs in.
        #[n(0)]
        client: Client,
        /// Its working directory (empty: unknown).
        #[n(1)]
        cwd: String,
        /// A number of the process that speaks for it; another one means a resumed conversation.
        #[n(2)]
        incarnation: u64,
    },
    /// What changed in the states of conversations at home on the node; from the node itself.
    #[n(1)]
    Transition {
        /// Conversation id and new status, at most 240.
        #[n(0)]
        changes: Vec<Change>,
    },
    /// Sets the given fields of the conversation's profile.
    #[n(2)]
    SetProfile {
        /// The new name.
        #[n(0)]
        name: Option<String>,
        /// The new note.
        #[n(1)]
        note: Option<String>,
        /// The new title; empty gives the client's title its place back.
        #[n(2)]
        title: Option<String>,
    },
    /// What hooks reported of conversations at home on the node; from the node itself, at most once
    /// a second (traps.md 20).
    #[n(3)]
    Report {
        /// One for each conversation, the last word of each; at most 120.
        #[n(0)]
        reports: Vec<Report>,
    },
    /// Sets whether the end of a turn waits for messages.
    #[n(4)]
    Listen {
        /// Whether it does.
        #[n(0)]
        on: bool,
    },
    /// Notes which nodes are up, asleep or down (traps.md 20). Leader only.
    #[n(5)]
    Nodes {
        /// Nodes and their new states, at most 128.
        #[n(0)]
        changes: Vec<NodeChange>,
    },
}

/// One conversation's change of state.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Change {
    /// The conversation.
    #[n(0)]
    pub id: String,
    /// What it does now.
    #[n(1)]
    pub status: Status,
    /// The title that the client shows (empty: unknown or unchanged).
    #[n(2)]
    pub title: String,
}

impl ConversationCommand {
    /// Returns who may bring it.
    pub(super) fn origin(&self) -> Origin {
        match self {
            Self::Register { .. } | Self::SetProfile { .. } | Self::Listen { .. } => {
                Origin::Conversation
            }
            Self::Transition { .. } | Self::Report { .. } => Origin::Member,
            Self::Nodes { .. } => Origin::Leader,
        }
    }

    /// Returns its name for logs; never its contents.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Register { .. } => "register",
            Self::Transition { .. } => "transition",
            Self::SetProfile { .. } => "set_profile",
            Self::Report { .. } => "report",
            Self::Listen { .. } => "listen",
            Self::Nodes { .. } => "nodes",
        }
    }
}
