//! What an applied command answers: ids, numbers and ranges, at most 256 bytes encoded, because the
//! table of request ids keeps it (traps.md 7). Bodies are loaded from a view afterwards.

use alloc::string::String;

use minicbor::{Decode, Encode};

use crate::command::meetings::{Approver, Mode};
use crate::command::tasks::TaskStatus;
use crate::entry::NodeId;

/// The answer to an applied command.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Reply {
    /// Done; nothing to tell.
    #[n(0)]
    Done,
    /// A machine was admitted.
    #[n(1)]
    Admitted {
        /// Its node id.
        #[n(0)]
        node: NodeId,
        /// The name that it got.
        #[n(1)]
        name: String,
    },
    /// A conversation is registered.
    #[n(2)]
    Registered {
        /// The name that it has (empty for an instance).
        #[n(0)]
        name: String,
        /// The node that it was at home on before (its present one if it did not move).
        #[n(1)]
        from: NodeId,
    },
    /// A message stands in a room.
    #[n(3)]
    Posted {
        /// Its number in the room.
        #[n(0)]
        id: u64,
    },
    /// Messages were taken: load them by their ranges.
    #[n(4)]
    Taken {
        /// Offered once more: taken before, perhaps never seen.
        #[n(0)]
        again: IdRange,
        /// Taken now for the first time.
        #[n(1)]
        fresh: IdRange,
        /// Whether this reader had never read here: it starts at the newest.
        #[n(2)]
        first: bool,
    },
    /// A timer fired, or found nothing to do.
    #[n(5)]
    Fired {
        /// How many rows it changed.
        #[n(0)]
        changed: u32,
    },
    /// A name was given.
    #[n(6)]
    Named {
        /// The name that holds now.
        #[n(0)]
        name: String,
    },
    /// An upload goes on.
    #[n(7)]
    Uploading {
        /// Its number.
        #[n(0)]
        upload: u64,
        /// The place of the chunk that it waits for; behind the last one when it is complete.
        #[n(1)]
        next: u64,
    },
    /// A meeting was started, ended, archived, reopened or left.
    #[n(12)]
    Meeting {
        /// Which one.
        #[n(0)]
        id: String,
    },
    /// A message stands where it was routed to.
    #[n(13)]
    PostedIn {
        /// The meeting; empty: the global chat.
        #[n(0)]
        meeting: String,
        /// Its number there.
        #[n(1)]
        id: u64,
    },
    /// A meeting was joined, or a member takes part in another way.
    #[n(14)]
    Joined {
        /// How it takes part.
        #[n(0)]
        mode: Mode,
        /// Whether drafts need its endorsement.
        #[n(1)]
        approver: Approver,
        /// Whether it was a member before.
        #[n(2)]
        again: bool,
    },
    /// A stance was taken.
    #[n(15)]
    Stanced {
        /// The number of the meeting's current draft; 0: it has none.
        #[n(0)]
        draft: u64,
        /// Whether it can count: those of instances never do.
        #[n(1)]
        counted: bool,
        /// The number of the decision that it brought about; 0: the meeting goes on.
        #[n(2)]
        decision: u64,
    },
    /// A direct message lies in an inbox.
    #[n(17)]
    Sent {
        /// The message's id.
        #[n(0)]
        id: u64,
        /// The conversation that it is for.
        #[n(1)]
        to: String,
    },
    /// A task was made or changed.
    #[n(18)]
    Task {
        /// Its number.
        #[n(0)]
        id: u64,
        /// How it stands.
        #[n(1)]
        status: TaskStatus,
        /// When it was changed last: what an `expected` of the next change may say.
        #[n(2)]
        updated_at: u64,
        /// Another task with the same target that is not finished.
        #[n(3)]
        same_target: Option<u64>,
    },
    /// Chat messages were removed.
    #[n(19)]
    Pruned {
        /// How many.
        #[n(0)]
        removed: u64,
        /// How many are left.
        #[n(1)]
        remaining: u64,
    },
}

impl Reply {
    /// Makes the answer of a timer that changed so many rows.
    pub(crate) fn fired(changed: usize) -> Self {
        Self::Fired { changed: u32::try_from(changed).unwrap_or(u32::MAX) }
    }
}

/// A half-open range of message numbers: above `after`, up to and including `upto`.
///
/// It may hold messages of the reader itself: those are skipped when the bodies are loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct IdRange {
    /// The last number before the range.
    #[n(0)]
    pub after: u64,
    /// The last number in the range; equal to `after` when it is empty.
    #[n(1)]
    pub upto: u64,
}
