//! Commands about nodes and invites.

use alloc::string::String;
use alloc::vec::Vec;

use minicbor::{Decode, Encode};

use super::Origin;
use crate::entry::NodeId;

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
}

impl ClusterCommand {
    /// Returns who may bring it.
    pub(super) fn origin(&self) -> Origin {
        match self {
            Self::Invite { .. }
            | Self::Withdraw { .. }
            | Self::Describe { .. }
            | Self::Remove { .. }
            | Self::SetTiming { .. } => Origin::Member,
            Self::Found { .. } | Self::Admit { .. } | Self::Burn { .. } | Self::Voters { .. } => {
                Origin::Leader
            }
        }
    }

    /// Returns its name for logs; never its contents.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Found { .. } => "found",
            Self::Invite { .. } => "invite",
            Self::Withdraw { .. } => "withdraw",
            Self::Admit { .. } => "admit",
            Self::Describe { .. } => "describe",
            Self::Remove { .. } => "remove",
            Self::SetTiming { .. } => "set_timing",
            Self::Burn { .. } => "burn",
            Self::Voters { .. } => "voters",
        }
    }
}
