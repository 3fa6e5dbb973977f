//! What can be asked about meetings.

use alloc::string::String;
use alloc::vec::Vec;

use minicbor::{Decode, Encode};

use super::{Category, Origin};

/// How a member takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
#[cbor(index_only)]
pub enum Mode {
    /// Others' messages wake it or hold its turn.
    #[n(0)]
    Active,
    /// It sees them at its next prompt or tool call.
    #[n(1)]
    Async,
}

/// Whether a draft needs a member's endorsement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
#[cbor(index_only)]
pub enum Approver {
    /// No consensus without it.
    #[n(0)]
    Required,
    /// It may say what it thinks.
    #[n(1)]
    Optional,
}

/// From where on a member reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub enum Since {
    /// A new member from the newest message on; a member from where it stands.
    #[n(0)]
    Unsaid,
    /// From the newest message on.
    #[n(1)]
    Latest,
    /// From behind this message on; 0 is the beginning.
    #[n(2)]
    After(#[n(0)] u64),
}

/// What one thinks of a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
#[cbor(index_only)]
pub enum Opinion {
    /// It is for it; a note is a reservation.
    #[n(0)]
    Endorse,
    /// It is against it; the note says why.
    #[n(1)]
    Object,
    /// It takes back what it said.
    #[n(2)]
    Withdraw,
}

/// Commands of meetings. An empty `meeting` means the default one, where that is said.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum MeetingCommand {
    /// Starts a meeting; its starter joins it, active and required.
    #[n(0)]
    Start {
        /// What it is about, 1 to 200 characters on one line.
        #[n(0)]
        topic: String,
    },
    /// Ends an active meeting.
    #[n(1)]
    End {
        /// Which one; empty: the default one.
        #[n(0)]
        meeting: String,
        /// What came of it, at most 8,000 characters; may be empty.
        #[n(1)]
        summary: String,
    },
    /// Puts a closed meeting away.
    #[n(2)]
    Archive {
        /// Which one.
        #[n(0)]
        meeting: String,
    },
    /// Makes a closed or archived meeting active again.
    #[n(3)]
    Reopen {
        /// Which one.
        #[n(0)]
        meeting: String,
    },
    /// Joins an active meeting, or changes how a member takes part.
    #[n(4)]
    Join {
        /// Which one.
        #[n(0)]
        meeting: String,
        /// How it takes part.
        #[n(1)]
        mode: Mode,
        /// Whether drafts need its endorsement.
        #[n(2)]
        approver: Approver,
        /// From where on it reads.
        #[n(3)]
        since: Since,
    },
    /// Leaves a meeting.
    #[n(5)]
    Leave {
        /// Which one.
        #[n(0)]
        meeting: String,
    },
    /// Posts a message where people talk now: in the default meeting, or in the global chat when
    /// no meeting is active.
    #[n(6)]
    Post {
        /// Its text, 1 to 32,000 characters.
        #[n(0)]
        text: String,
        /// Its category.
        #[n(1)]
        category: Category,
    },
    /// Posts a proposal as the meeting's current draft.
    #[n(7)]
    Draft {
        /// Which one; empty: the default one.
        #[n(0)]
        meeting: String,
        /// Its text, 1 to 32,000 characters.
        #[n(1)]
        text: String,
        /// After how many quiet minutes approvers without a stance are reminded; 0: never.
        #[n(2)]
        reminder_minutes: u32,
    },
    /// Takes a stance on a proposal of an active meeting.
    #[n(8)]
    Stance {
        /// Which one.
        #[n(0)]
        meeting: String,
        /// The proposal's number.
        #[n(1)]
        proposal: u64,
        /// What one thinks of it.
        #[n(2)]
        opinion: Opinion,
        /// Why, at most 2,000 characters; an objection must have one.
        #[n(3)]
        note: String,
    },
    /// What conversations at home on the node were told of meetings, and which of them it woke or
    /// held for it; from the node itself.
    #[n(9)]
    Told {
        /// One for each conversation and meeting, at most 240.
        #[n(0)]
        told: Vec<Told>,
    },
}

/// What a conversation was told of a meeting: marks that only rise, so saying it twice is harmless.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Told {
    /// The meeting.
    #[n(0)]
    pub meeting: String,
    /// The conversation.
    #[n(1)]
    pub conversation: String,
    /// Up to which message.
    #[n(2)]
    pub messages: u64,
    /// Up to which stance on its own draft (`taken`).
    #[n(3)]
    pub stances: u64,
    /// Of which draft's reminder, or of who is missing at its own draft; 0: of none.
    #[n(4)]
    pub reminder: u64,
    /// Of which end (`ended`); 0: of none.
    #[n(5)]
    pub ended: u64,
    /// Whether the meeting woke it or held its turn for this.
    #[n(6)]
    pub woke: bool,
}

impl MeetingCommand {
    /// Returns who may bring it.
    pub(super) fn origin(&self) -> Origin {
        match self {
            Self::Start { .. }
            | Self::End { .. }
            | Self::Archive { .. }
            | Self::Reopen { .. }
            | Self::Join { .. }
            | Self::Leave { .. }
            | Self::Post { .. }
            | Self::Draft { .. }
            | Self::Stance { .. } => Origin::Conversation,
            Self::Told { .. } => Origin::Member,
        }
    }

    /// Returns its name for logs; never its contents.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Start { .. } => "meeting_start",
            Self::End { .. } => "meeting_end",
            Self::Archive { .. } => "meeting_archive",
            Self::Reopen { .. } => "meeting_reopen",
            Self::Join { .. } => "meeting_join",
            Self::Leave { .. } => "meeting_leave",
            Self::Post { .. } => "meeting_post",
            Self::Draft { .. } => "meeting_draft",
            Self::Stance { .. } => "meeting_stance",
            Self::Told { .. } => "meeting_told",
        }
    }
}
