//! Commands of direct messages; the actor is the sender or reader, always a conversation.

use alloc::string::String;

use minicbor::{Decode, Encode};

/// Commands of direct messages.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum MailCommand {
    /// Puts a message into somebody's inbox.
    #[n(0)]
    Send {
        /// A conversation's id, or the name of one that is not offline.
        #[n(0)]
        to: String,
        /// Its text, 1 to 32,000 characters.
        #[n(1)]
        text: String,
        /// Whether the sender wants an answer.
        #[n(2)]
        expects_reply: bool,
        /// Whether it may wake the reader or hold its turn.
        #[n(3)]
        wake: bool,
        /// Whether the sender wants to be told once when the reader's turn ends.
        #[n(4)]
        notify_when_idle: bool,
    },
    /// Answers a message that was sent to the actor.
    #[n(1)]
    Reply {
        /// The message's id.
        #[n(0)]
        message: u64,
        /// Its text, 1 to 32,000 characters.
        #[n(1)]
        text: String,
        /// Whether the sender wants an answer.
        #[n(2)]
        expects_reply: bool,
        /// Whether it may wake the reader or hold its turn.
        #[n(3)]
        wake: bool,
    },
    /// Takes the next unread messages (traps.md 6).
    #[n(2)]
    Take {
        /// How many at most, 1 to 50.
        #[n(0)]
        limit: u32,
    },
}

impl MailCommand {
    /// Returns its name for logs; never its contents.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Send { .. } => "mail_send",
            Self::Reply { .. } => "mail_reply",
            Self::Take { .. } => "mail_take",
        }
    }
}
