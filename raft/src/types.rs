//! openraft's type configuration and the names that the rest of the crate uses for its types.
//!
//! Only this crate names openraft, and within it these names are used, so that a move to another
//! version costs few places.

use std::fmt;

use bytes::Bytes;
use nexus_domain::{NodeId, Rejection, Reply};
use openraft::type_config::alias;

openraft::declare_raft_types!(
    /// nexus's choice of types. The leader id mode is on disk for ever: `leader_id_adv`, the
    /// default, whose log ids carry term and node id.
    pub TypeConfig:
        D = LogData,
        R = Outcome,
        NodeId = NodeId,
        Node = openraft::EmptyNode,
);

/// An encoded domain entry, as it stands in the log.
#[derive(Clone, PartialEq, Eq)]
pub struct LogData(pub Bytes);

impl fmt::Debug for LogData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Shows only the size: openraft prints this at debug level, and bodies never appear in logs.
impl fmt::Display for LogData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "entry of {} bytes", self.0.len())
    }
}

/// What applying an entry gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A blank entry or a change of membership.
    Nothing,
    /// A command was applied or refused.
    Done(Result<Reply, Rejection>),
}

pub(crate) type LogId = alias::LogIdOf<TypeConfig>;
pub(crate) type LeaderId = alias::LeaderIdOf<TypeConfig>;
pub(crate) type Vote = alias::VoteOf<TypeConfig>;
pub(crate) type LogEntry = alias::EntryOf<TypeConfig>;
pub(crate) type Payload = alias::PayloadOf<TypeConfig>;
pub(crate) type Membership = openraft::Membership<NodeId, openraft::EmptyNode>;
pub(crate) type StoredMembership = alias::StoredMembershipOf<TypeConfig>;
pub(crate) type Snapshot = alias::SnapshotOf<TypeConfig, crate::snapshot::SnapshotFolder>;
pub(crate) type SnapshotMeta = alias::SnapshotMetaOf<TypeConfig>;
pub(crate) type Raft = openraft::Raft<TypeConfig, crate::machine::Machine>;

/// Makes a log id from its three numbers.
pub(crate) fn log_id(term: u64, node: NodeId, index: u64) -> LogId {
    LogId { leader_id: LeaderId { term, node_id: node }, index }
}
