//! Everything that can be asked of the state: exactly what is in the log.
//!
//! Commands decode strictly and never change their bytes: a new field or variant comes with a new
//! state version (traps.md 3). No `Option` of an enum here: minicbor reads an unknown variant of it
//! as `None`.

mod chat;
mod cluster;
mod conversations;
pub mod documents;
pub mod mail;
pub mod meetings;
pub mod presence;
pub mod projects;
mod system;
pub mod tasks;

use minicbor::{Decode, Encode};

pub use crate::command::chat::{Category, ChatCommand, Room};
pub use crate::command::cluster::{ClusterCommand, Role, Timing};
pub use crate::command::conversations::{Change, Client, ConversationCommand, Status};
pub use crate::command::documents::DocumentCommand;
pub use crate::command::mail::MailCommand;
pub use crate::command::meetings::MeetingCommand;
pub use crate::command::projects::ProjectCommand;
pub use crate::command::system::{DueKind, SystemCommand};
pub use crate::command::tasks::TaskCommand;

/// A command, by family.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Command {
    /// The machine room: boots, clock, versions, timers.
    #[n(0)]
    System(#[n(0)] SystemCommand),
    /// Nodes and invites.
    #[n(1)]
    Cluster(#[n(0)] ClusterCommand),
    /// Conversations and instances.
    #[n(2)]
    Conversation(#[n(0)] ConversationCommand),
    /// The global chat.
    #[n(3)]
    Chat(#[n(0)] ChatCommand),
    /// Projects, their assets, and uploads.
    #[n(4)]
    Project(#[n(0)] ProjectCommand),
    /// Documents of the whole cluster.
    #[n(5)]
    Document(#[n(0)] DocumentCommand),
    /// Meetings.
    #[n(6)]
    Meeting(#[n(0)] MeetingCommand),
    /// Tasks.
    #[n(7)]
    Task(#[n(0)] TaskCommand),
    /// Direct messages.
    #[n(8)]
    Mail(#[n(0)] MailCommand),
}

/// Who may bring a command to the leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Only the leader makes it; one that is forwarded is refused.
    Leader,
    /// A member speaks for itself.
    Member,
    /// A conversation speaks, through its home node.
    Conversation,
}

impl Command {
    /// Returns who may bring this command to the leader.
    #[must_use]
    pub fn origin(&self) -> Origin {
        match self {
            Self::System(command) => command.origin(),
            Self::Cluster(command) => command.origin(),
            Self::Conversation(command) => command.origin(),
            Self::Project(command) => command.origin(),
            Self::Meeting(command) => command.origin(),
            Self::Chat(_) | Self::Document(_) | Self::Task(_) | Self::Mail(_) => {
                Origin::Conversation
            }
        }
    }

    /// Returns the state version that this command needs; a proposal says at least this.
    #[must_use]
    pub fn needs(&self) -> u32 {
        match self {
            Self::System(_)
            | Self::Cluster(_)
            | Self::Conversation(_)
            | Self::Chat(_)
            | Self::Project(_)
            | Self::Document(_)
            | Self::Meeting(_)
            | Self::Task(_)
            | Self::Mail(_) => crate::FIRST_VERSION,
        }
    }

    /// Returns the command's name for logs; never its contents.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::System(command) => command.kind(),
            Self::Cluster(command) => command.kind(),
            Self::Conversation(command) => command.kind(),
            Self::Chat(command) => command.kind(),
            Self::Project(command) => command.kind(),
            Self::Document(command) => command.kind(),
            Self::Meeting(command) => command.kind(),
            Self::Task(command) => command.kind(),
            Self::Mail(command) => command.kind(),
        }
    }
}
