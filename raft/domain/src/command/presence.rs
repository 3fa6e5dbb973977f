//! What nodes say of presence: their conversations' by hooks, their own by the leader.

use alloc::string::String;

use minicbor::{Decode, Encode};

use crate::command::Status;
use crate::entry::NodeId;

/// What hooks reported of one conversation since its node's last entry: the last word of each
/// field. The marks only ever rise, so a report that comes twice or late does no harm.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Report {
    /// The conversation.
    #[n(0)]
    pub id: String,
    /// What it does now.
    #[n(1)]
    pub status: Status,
    /// The title that the client shows (empty: unknown or unchanged).
    #[n(2)]
    pub title: String,
    /// Whether it is offline because its client said so, not because it was silent.
    #[n(3)]
    pub ended: bool,
    /// Silent since this tick: it does not turn offline when it was active after it.
    #[n(4)]
    pub silent_since: u64,
    /// Up to which number of its inbox messages were announced to it (0: none).
    #[n(5)]
    pub announced: u64,
    /// Up to which number notices were shown to it (0: none).
    #[n(6)]
    pub noticed: u64,
    /// Up to which number of its inbox messages had been taken when a hook event came (0: none):
    /// those surely arrived.
    #[n(7)]
    pub arrived: u64,
}

/// What a node is doing, as the leader sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
#[cbor(index_only)]
pub enum NodeState {
    /// It answers.
    #[default]
    #[n(0)]
    Up,
    /// It said that it goes to sleep, and does not answer.
    #[n(1)]
    Asleep,
    /// It does not answer.
    #[n(2)]
    Down,
}

/// One node's change of state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct NodeChange {
    /// The node.
    #[n(0)]
    pub node: NodeId,
    /// What it does now.
    #[n(1)]
    pub state: NodeState,
}
