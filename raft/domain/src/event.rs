//! Hints of what an entry changed. State decides, events only wake (traps.md 10): nothing is ever
//! told to anybody from an event's payload.

use alloc::string::String;

use crate::command::Room;
use crate::entry::NodeId;

/// A hint that something changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A conversation was registered, moved, renamed or changed its state.
    Conversation {
        /// Which one.
        id: String,
    },
    /// A message was posted.
    Posted {
        /// Where.
        room: Room,
        /// Its number.
        id: u64,
    },
    /// Nodes, their names, addresses or invites changed.
    Members {
        /// The node concerned, or 0.
        node: NodeId,
    },
    /// The first due thing may have changed.
    Due,
    /// The timing profile changed.
    Timing,
    /// The state version changed.
    Version,
    /// A project was made, changed, renamed or deleted, or its assets were.
    Project {
        /// Which one; a renamed one by both ids.
        id: String,
    },
    /// A document was written or deleted.
    Document {
        /// Which one.
        id: String,
    },
    /// The strategy was written.
    Strategy,
    /// A meeting, its members, its draft or the stances on it changed.
    Meeting {
        /// Which one.
        id: String,
    },
    /// A message or a notice came into a conversation's inbox.
    Inbox {
        /// Whose.
        conversation: String,
    },
    /// A task was made, changed or removed.
    Task {
        /// Which one.
        id: u64,
    },
}
