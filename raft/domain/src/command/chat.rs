//! Commands of the chat.

use alloc::string::String;

use minicbor::{Decode, Encode};

/// What kind of chat message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
#[cbor(index_only)]
pub enum Category {
    /// No category.
    #[n(0)]
    None,
    /// A proposal.
    #[n(1)]
    Proposal,
    /// A decision.
    #[n(2)]
    Decision,
    /// News of work.
    #[n(3)]
    Update,
    /// Talk.
    #[n(4)]
    Chat,
    /// Reserved.
    #[n(5)]
    MeetingStart,
}

/// Where a message stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub enum Room {
    /// The global chat.
    #[n(0)]
    Global,
    /// A meeting, by its id.
    #[n(1)]
    Meeting(#[n(0)] String),
}

/// Commands of the chat; the actor is the sender or reader.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum ChatCommand {
    /// Posts a message.
    #[n(0)]
    Send {
        /// Where.
        #[n(0)]
        room: Room,
        /// Its text, 1 to 32,000 characters.
        #[n(1)]
        text: String,
        /// Its category.
        #[n(2)]
        category: Category,
    },
    /// Takes the next unread messages (traps.md 6).
    #[n(1)]
    Take {
        /// Where.
        #[n(0)]
        room: Room,
        /// How many at most, 1 to 500.
        #[n(1)]
        limit: u32,
    },
    /// Removes the oldest messages of the global chat.
    #[n(2)]
    Prune {
        /// How many, at least 1.
        #[n(0)]
        count: u64,
    },
    /// Removes all messages of the global chat.
    #[n(3)]
    Clear,
}

impl ChatCommand {
    /// Returns its name for logs; never its contents.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Send { .. } => "chat_send",
            Self::Take { .. } => "chat_take",
            Self::Prune { .. } => "chat_prune",
            Self::Clear => "chat_clear",
        }
    }
}
