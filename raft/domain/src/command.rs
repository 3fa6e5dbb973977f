//! Everything that can be asked of the state: exactly what is in the log.
//!
//! Commands decode strictly and never change their bytes: a new field or variant comes with a new
//! state version (traps.md 3). No `Option` of an enum here: minicbor reads an unknown variant of it
//! as `None`.

mod documents;
pub mod mail;
pub mod meeting;
pub mod presence;
mod projects;
pub mod tasks;

use alloc::string::String;
use alloc::vec::Vec;

use minicbor::{Decode, Encode};

pub use crate::command::documents::DocumentCommand;
use crate::command::mail::MailCommand;
use crate::command::meeting::MeetingCommand;
use crate::command::presence::{NodeChange, Report};
pub use crate::command::projects::{
    Billing, Content, Endpoint, FeatureTier, Manifest, Operation, Patch, ProjectCommand, Relation,
    RelationKind, UploadTarget,
};
use crate::command::tasks::TaskCommand;
use crate::entry::NodeId;

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

/// Commands of the machine room.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum SystemCommand {
    /// A node's first act after each start (traps.md 23).
    #[n(0)]
    Started {
        /// The boot number, one more than the last.
        #[n(0)]
        boot: u64,
        /// A number drawn at this start.
        #[n(1)]
        nonce: u64,
        /// The newest state version that the program supports.
        #[n(2)]
        supports: u32,
        /// The program's version, for people.
        #[n(3)]
        software: String,
    },
    /// Sets the people's clock forward by more than the tick allows (traps.md 4). Leader only.
    #[n(1)]
    ClockStep {
        /// The new time, milliseconds since 1970.
        #[n(0)]
        at: u64,
    },
    /// Raises the state version (traps.md 3). Leader only.
    #[n(2)]
    Upgrade {
        /// The new state version.
        #[n(0)]
        to: u32,
    },
    /// Something is due (traps.md 4). Leader only.
    #[n(3)]
    Fire {
        /// When it is due, as the index says.
        #[n(0)]
        due: u64,
        /// What kind of thing.
        #[n(1)]
        kind: DueKind,
        /// Which one (a key of its kind).
        #[n(2)]
        id: String,
        /// The generation that the timer was set for.
        #[n(3)]
        generation: u64,
    },
}

/// What can be due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
#[cbor(index_only)]
pub enum DueKind {
    /// An invite ends.
    #[n(0)]
    Invite,
    /// The request records that clients gave, 24 hours old.
    #[n(1)]
    Requests,
    /// What a removed member leaves behind.
    #[n(2)]
    Removal,
    /// An upload that was not finished ends.
    #[n(3)]
    Upload,
    /// Chunks and assets that nothing names any more.
    #[n(4)]
    Sweep,
    /// A meeting with a draft was quiet for long.
    #[n(5)]
    Reminder,
    /// An archived meeting was kept long enough.
    #[n(6)]
    Meeting,
    /// What a meeting that was kept long enough leaves behind.
    #[n(7)]
    MeetingRest,
    /// A task's time to live, or the end of a finished one.
    #[n(8)]
    Task,
    /// Messages that nobody took for a day in which their reader's node was awake.
    #[n(9)]
    Unread,
    /// Texts that were read, and messages of 30 days, in one inbox.
    #[n(10)]
    Mail,
    /// The end of a wish to be told when somebody's turn ends.
    #[n(11)]
    Watch,
    /// Those who wished to be told of the states that one entry changed.
    #[n(12)]
    Turns,
    /// Chat messages that were pruned.
    #[n(13)]
    Chat,
    /// Conversations that nobody used for 30 days.
    #[n(14)]
    Closed,
}

/// The role that a machine is invited to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
#[cbor(index_only)]
pub enum Role {
    /// Said nothing: a learner, promoted when it has been steady for ten minutes.
    #[n(0)]
    Auto,
    /// Promoted as soon as it is caught up.
    #[n(1)]
    Voter,
    /// Never promoted by itself.
    #[n(2)]
    Learner,
}

/// The cluster's timing (traps.md 24).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
#[cbor(index_only)]
pub enum Timing {
    /// Heartbeat 250 ms, election 1000-1500 ms.
    #[n(0)]
    Wifi,
    /// Heartbeat 100 ms, election 400-600 ms.
    #[n(1)]
    Wired,
    /// Heartbeat 500 ms, election 1500-2500 ms.
    #[n(2)]
    Relaxed,
}

/// Commands about nodes and invites.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum ClusterCommand {
    /// Makes the cluster; the first entry of node 1. Refused when there is one.
    #[n(0)]
    Found {
        /// The cluster's id.
        #[n(0)]
        cluster: String,
        /// The CA certificate (DER).
        #[cbor(n(1), with = "minicbor::bytes")]
        authority: Vec<u8>,
        /// Node 1's public key (SPKI, DER).
        #[cbor(n(2), with = "minicbor::bytes")]
        public_key: Vec<u8>,
        /// Node 1's name.
        #[n(3)]
        name: String,
        /// What tells its machine from others.
        #[n(4)]
        host: String,
    },
    /// Opens an invite.
    #[n(1)]
    Invite {
        /// The public part of the code, six characters.
        #[n(0)]
        id: String,
        /// SHA-256 of the secret.
        #[cbor(n(1), with = "minicbor::bytes")]
        secret_hash: Vec<u8>,
        /// What the machine shall be.
        #[n(2)]
        role: Role,
        /// For how many ticks (milliseconds) it is good.
        #[n(3)]
        ttl: u64,
    },
    /// Takes an open invite back.
    #[n(2)]
    Withdraw {
        /// The public part of the code.
        #[n(0)]
        id: String,
    },
    /// Admits a machine; its node id is this entry's index. Leader only, after the secret was
    /// checked.
    #[n(3)]
    Admit {
        /// The invite that it burns.
        #[n(0)]
        invite: String,
        /// The machine's public key (SPKI, DER).
        #[cbor(n(1), with = "minicbor::bytes")]
        public_key: Vec<u8>,
        /// The name that it asks for; a taken one gets `-2`.
        #[n(2)]
        name: String,
        /// What tells its machine from others.
        #[n(3)]
        host: String,
    },
    /// A node says what it is now: name, host and addresses.
    #[n(4)]
    Describe {
        /// The name that it asks for (empty: keep).
        #[n(0)]
        name: String,
        /// What tells its machine from others.
        #[n(1)]
        host: String,
        /// Where it can be reached, best first; never link-local.
        #[n(2)]
        addresses: Vec<String>,
    },
    /// Removes a member for good.
    #[n(5)]
    Remove {
        /// Which one.
        #[n(0)]
        node: NodeId,
    },
    /// Sets the timing profile.
    #[n(6)]
    SetTiming {
        /// The profile.
        #[n(0)]
        timing: Timing,
    },
    /// Burns an invite after too many wrong secrets. Leader only.
    #[n(7)]
    Burn {
        /// The public part of the code.
        #[n(0)]
        id: String,
    },
    /// Notes who votes, after a change of membership, so that people see promotions. Leader only.
    #[n(8)]
    Voters {
        /// All voters, in the order of their ids.
        #[n(0)]
        voters: Vec<NodeId>,
    },
    /// Notes that a member has not been heard for an hour, or is heard again (traps.md 3). Leader
    /// only.
    #[n(9)]
    Presence {
        /// Which one.
        #[n(0)]
        node: NodeId,
        /// Whether it is away.
        #[n(1)]
        away: bool,
    },
}

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
            Self::System(SystemCommand::Started { .. })
            | Self::Cluster(
                ClusterCommand::Invite { .. }
                | ClusterCommand::Withdraw { .. }
                | ClusterCommand::Describe { .. }
                | ClusterCommand::Remove { .. }
                | ClusterCommand::SetTiming { .. },
            )
            | Self::Conversation(
                ConversationCommand::Transition { .. } | ConversationCommand::Report { .. },
            )
            | Self::Project(ProjectCommand::SetQuota { .. })
            | Self::Meeting(MeetingCommand::Told { .. }) => Origin::Member,
            Self::System(
                SystemCommand::ClockStep { .. }
                | SystemCommand::Upgrade { .. }
                | SystemCommand::Fire { .. },
            )
            | Self::Cluster(
                ClusterCommand::Found { .. }
                | ClusterCommand::Admit { .. }
                | ClusterCommand::Burn { .. }
                | ClusterCommand::Voters { .. }
                | ClusterCommand::Presence { .. },
            )
            | Self::Conversation(ConversationCommand::Nodes { .. }) => Origin::Leader,
            Self::Conversation(
                ConversationCommand::Register { .. }
                | ConversationCommand::SetProfile { .. }
                | ConversationCommand::Listen { .. },
            )
            | Self::Chat(_)
            | Self::Project(_)
            | Self::Document(_)
            | Self::Meeting(
                MeetingCommand::Start { .. }
                | MeetingCommand::End { .. }
                | MeetingCommand::Archive { .. }
                | MeetingCommand::Reopen { .. }
                | MeetingCommand::Join { .. }
                | MeetingCommand::Leave { .. }
                | MeetingCommand::Post { .. }
                | MeetingCommand::Draft { .. }
                | MeetingCommand::Stance { .. },
            )
            | Self::Task(_)
            | Self::Mail(_) => Origin::Conversation,
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
            Self::System(SystemCommand::Started { .. }) => "started",
            Self::System(SystemCommand::ClockStep { .. }) => "clock_step",
            Self::System(SystemCommand::Upgrade { .. }) => "upgrade",
            Self::System(SystemCommand::Fire { .. }) => "fire",
            Self::Cluster(ClusterCommand::Found { .. }) => "found",
            Self::Cluster(ClusterCommand::Invite { .. }) => "invite",
            Self::Cluster(ClusterCommand::Withdraw { .. }) => "withdraw",
            Self::Cluster(ClusterCommand::Admit { .. }) => "admit",
            Self::Cluster(ClusterCommand::Describe { .. }) => "describe",
            Self::Cluster(ClusterCommand::Remove { .. }) => "remove",
            Self::Cluster(ClusterCommand::SetTiming { .. }) => "set_timing",
            Self::Cluster(ClusterCommand::Burn { .. }) => "burn",
            Self::Cluster(ClusterCommand::Voters { .. }) => "voters",
            Self::Cluster(ClusterCommand::Presence { .. }) => "presence",
            Self::Conversation(ConversationCommand::Register { .. }) => "register",
            Self::Conversation(ConversationCommand::Transition { .. }) => "transition",
            Self::Conversation(ConversationCommand::SetProfile { .. }) => "set_profile",
            Self::Conversation(ConversationCommand::Report { .. }) => "report",
            Self::Conversation(ConversationCommand::Listen { .. }) => "listen",
            Self::Conversation(ConversationCommand::Nodes { .. }) => "nodes",
            Self::Chat(ChatCommand::Send { .. }) => "chat_send",
            Self::Chat(ChatCommand::Take { .. }) => "chat_take",
            Self::Chat(ChatCommand::Prune { .. }) => "chat_prune",
            Self::Chat(ChatCommand::Clear) => "chat_clear",
            Self::Project(command) => command.kind(),
            Self::Document(command) => command.kind(),
            Self::Meeting(command) => command.kind(),
            Self::Task(command) => command.kind(),
            Self::Mail(command) => command.kind(),
        }
    }
}
