//! Commands of the machine room.

use alloc::string::String;

use minicbor::{Decode, Encode};

use super::Origin;

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

impl SystemCommand {
    /// Returns who may bring it.
    pub(super) fn origin(&self) -> Origin {
        match self {
            Self::Started { .. } => Origin::Member,
            Self::ClockStep { .. } | Self::Upgrade { .. } | Self::Fire { .. } => Origin::Leader,
        }
    }

    /// Returns its name for logs; never its contents.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Started { .. } => "started",
            Self::ClockStep { .. } => "clock_step",
            Self::Upgrade { .. } => "upgrade",
            Self::Fire { .. } => "fire",
        }
    }
}
