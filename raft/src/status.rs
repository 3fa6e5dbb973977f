//! What can be said about the cluster, as the leader sees it.

use minicbor::{Decode, Encode};
use nexus_domain::NodeId;

use crate::compare::Difference;

/// The cluster at a glance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Status {
    /// The cluster's id.
    #[n(0)]
    pub cluster: String,
    /// The node that answers.
    #[n(1)]
    pub node: NodeId,
    /// The leader, if one is known.
    #[n(2)]
    pub leader: Option<NodeId>,
    /// Raft's term.
    #[n(3)]
    pub term: u64,
    /// The last applied index of the node that computed this.
    #[n(4)]
    pub applied: u64,
    /// How many voters must agree.
    #[n(5)]
    pub quorum: u64,
    /// How many of the voters that are up may fail now.
    #[n(6)]
    pub tolerance: u64,
    /// Whether this is a local view without a leader's word.
    #[n(7)]
    pub stale: bool,
    /// Since when it is not known any more (milliseconds since 1970).
    #[n(8)]
    pub as_of: Option<u64>,
    /// The members, by id.
    #[n(9)]
    pub members: Vec<MemberStatus>,
    /// Whose state differs, as the leader found it.
    #[n(10)]
    pub differs: Option<Difference>,
    /// Why another member refuses the node that answers, and what to do; never from the leader.
    #[cbor(skip)]
    pub refused: Option<String>,
}

/// One member.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct MemberStatus {
    /// Its node id.
    #[n(0)]
    pub id: NodeId,
    /// Its name.
    #[n(1)]
    pub name: String,
    /// Its role in Raft.
    #[n(2)]
    pub role: MemberRole,
    /// Whether it is there.
    #[n(3)]
    pub state: MemberState,
    /// Where it can be reached.
    #[n(4)]
    pub addresses: Vec<String>,
    /// Its program's version.
    #[n(5)]
    pub version: String,
    /// How many entries it is behind.
    #[n(6)]
    pub lag: u64,
    /// Since when it is in this state (milliseconds since 1970; 0: not known).
    #[n(7)]
    pub since: u64,
}

/// A member's role in Raft.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum MemberRole {
    /// It has a vote.
    #[n(0)]
    Voter,
    /// It has a copy.
    #[n(1)]
    Learner,
}

/// Whether a member is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum MemberState {
    /// It acknowledges.
    #[n(0)]
    Up,
    /// It said that it goes to sleep.
    #[n(1)]
    Asleep,
    /// It does not acknowledge.
    #[n(2)]
    Down,
    /// It was admitted and has not caught up yet.
    #[n(3)]
    Joining,
}
