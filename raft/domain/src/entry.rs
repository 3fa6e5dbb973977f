//! What stands in the log: a proposal, and the stamp that the leader put on it.
//!
//! A member makes the [`Proposal`]; the leader adds the [`Stamp`] (time, and the node whose
//! certificate brought it); the log position gives the index. Nothing here is ever changed in
//! place: the bytes live for ever.

use alloc::string::String;

use minicbor::{Decode, Encode};

use crate::command::Command;

/// A node's number: the index of the log entry that admitted it; the first node is 1.
pub type NodeId = u64;

/// Who a command is from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub enum Actor {
    /// The node that proposed the entry, speaking for itself.
    #[n(0)]
    Node,
    /// A conversation (`claude:…`, `codex:…`) or an instance (`mcp-…`, `cli-…`), by its id.
    #[n(1)]
    Conversation(#[n(0)] String),
}

/// What makes a retried call the same call; its scope is the actor (traps.md 7, 8).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub enum RequestId {
    /// Made by a node: unique by its boot number and a counter of that boot.
    #[n(0)]
    Node {
        /// The node that made it.
        #[n(0)]
        node: NodeId,
        /// The boot in which it was made.
        #[n(1)]
        boot: u64,
        /// The counter within that boot, from 1.
        #[n(2)]
        counter: u64,
    },
    /// Given by a client, at most 200 bytes; kept for 24 hours of ticks.
    #[n(1)]
    Client(#[n(0)] String),
}

/// Below which counter every request of a node's boot has been answered: those records may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Answered {
    /// The boot that the counter belongs to.
    #[n(0)]
    pub boot: u64,
    /// Every counter below this one was answered and will not be asked again.
    #[n(1)]
    pub below: u64,
}

/// What a member asks to be written into the log.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Proposal {
    /// The state version that the command needs (traps.md 3).
    #[n(0)]
    pub version: u32,
    /// The request id, the same over every retry.
    #[n(1)]
    pub request: RequestId,
    /// Who it is from.
    #[n(2)]
    pub actor: Actor,
    /// What the proposing node has answered.
    #[n(3)]
    pub answered: Answered,
    /// The tick after which it must not run any more (`u64::MAX`: no end).
    #[n(4)]
    pub not_after: u64,
    /// What to do.
    #[n(5)]
    pub command: Command,
}

/// What the leader adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Stamp {
    /// Milliseconds of cluster life (traps.md 4); never runs faster than real time.
    #[n(0)]
    pub tick: u64,
    /// Milliseconds since 1970 for people, bounded by the tick's progress.
    #[n(1)]
    pub at: u64,
    /// The node that the proposal is from: its certificate brought it, or its key signed it.
    #[n(2)]
    pub node: NodeId,
}

/// One entry of the log as `apply` sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its position in the log.
    pub index: u64,
    /// What the leader stamped.
    pub stamp: Stamp,
    /// What was asked.
    pub proposal: Proposal,
}
