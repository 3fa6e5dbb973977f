//! The frames of Raft's messages, with numbered fields; unknown fields are ignored.

use bytes::Bytes;
use minicbor::{Decode, Encode};
use nexus_domain::digest::Digests;
use nexus_domain::{Rejection, Reply};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, StreamAppendError, StreamAppendResult,
    TransferLeaderRequest, VoteRequest, VoteResponse,
};

use crate::snapshot::manifest::Manifest;
use crate::snapshot::receive::Missing;
use crate::types::TypeConfig;
use crate::wire::{WireEntry, WireLogId, WireVote};

/// A request on a short stream.
#[derive(Debug, Encode, Decode)]
pub(crate) enum Call {
    /// One append request: a heartbeat, or entries outside a stream.
    #[n(0)]
    Append(#[n(0)] WireAppend),
    /// A request for a vote.
    #[n(1)]
    Vote(#[n(0)] WireVoteRequest),
    /// A question whether a vote would be given.
    #[n(2)]
    PreVote(#[n(0)] WireVoteRequest),
    /// The leader hands over.
    #[n(3)]
    Transfer {
        #[n(0)]
        from: WireVote,
        #[n(1)]
        to: u64,
        #[n(2)]
        last: Option<WireLogId>,
    },
    /// A snapshot is offered.
    #[n(4)]
    Offer {
        #[n(0)]
        vote: WireVote,
        #[n(1)]
        manifest: Manifest,
    },
    /// A piece of a snapshot's file.
    #[n(5)]
    Chunk {
        #[n(0)]
        id: String,
        #[n(1)]
        file: u32,
        #[n(2)]
        offset: u64,
        #[cbor(n(3), with = "crate::wire::bytes_codec")]
        bytes: Bytes,
    },
    /// The snapshot is complete: check and install it.
    #[n(6)]
    Install {
        #[n(0)]
        id: String,
        #[n(1)]
        vote: WireVote,
    },
    /// A proposal for the leader, encoded by the domain's codec.
    #[n(7)]
    Propose(#[cbor(n(0), with = "crate::wire::bytes_codec")] Bytes),
    /// The index that a linearizable read must wait for.
    #[n(8)]
    ReadIndex,
    /// The leader's view of the cluster.
    #[n(9)]
    Status,
    /// A machine wants to join: passed on to the leader by the member it found.
    #[n(10)]
    Admit(#[n(0)] JoinRequest),
    /// Where members are, as far as the one that is asked knows.
    #[n(12)]
    Addresses,
    /// A certificate is wanted for an admitted machine.
    #[n(11)]
    Certify {
        #[n(0)]
        node: u64,
    },
    /// The leader wants the digests at an index, or tells what most members have there.
    #[n(14)]
    Digest {
        #[n(0)]
        index: u64,
        #[n(1)]
        majority: Option<WireDigests>,
    },
    /// Are you there, and who leads?
    #[n(20)]
    Ping,
}

/// The answer to a [`Call`].
#[derive(Debug, Encode, Decode)]
pub(crate) enum Answer {
    /// To an append request, with the follower's clock.
    #[n(0)]
    Append(#[n(0)] WireAppendAnswer, #[n(1)] Option<Moment>),
    /// To a vote or pre-vote.
    #[n(1)]
    Vote {
        #[n(0)]
        vote: WireVote,
        #[n(1)]
        granted: bool,
        #[n(2)]
        last: Option<WireLogId>,
    },
    /// To a transfer: taken up, or why not.
    #[n(2)]
    Transfer(#[n(0)] Option<String>),
    /// To an offer: what is missing.
    #[n(3)]
    Want {
        #[n(0)]
        id: String,
        #[n(1)]
        missing: Vec<Missing>,
    },
    /// A chunk is written.
    #[n(4)]
    Written,
    /// The snapshot is installed, or the receiver has a higher vote.
    #[n(5)]
    Installed {
        #[n(0)]
        vote: WireVote,
    },
    /// The proposal was applied on the leader.
    #[n(6)]
    Proposed {
        #[n(0)]
        index: u64,
        #[n(1)]
        outcome: WireOutcome,
    },
    /// This node is not the leader; it knows of this one (0: none).
    #[n(7)]
    NotLeader {
        #[n(0)]
        leader: u64,
        /// Whether the proposal may have been written before that was known.
        #[n(1)]
        maybe_written: bool,
    },
    /// The index that a read must wait for.
    #[n(8)]
    ReadIndex {
        #[n(0)]
        index: u64,
    },
    /// The leader's view of the cluster.
    #[n(9)]
    Status(#[n(0)] crate::status::Status),
    /// It did not work; the text says why.
    #[n(10)]
    Failed {
        #[n(0)]
        text: String,
        /// Whether the same request may be sent again.
        #[n(1)]
        again: bool,
    },
    /// The answer to a join.
    #[n(11)]
    Joined(#[n(0)] JoinAnswer),
    /// Where members are.
    #[n(13)]
    Addresses(#[n(0)] Vec<Whereabouts>),
    /// A certificate (DER).
    #[n(12)]
    Certificate(#[cbor(n(0), with = "minicbor::bytes")] Vec<u8>),
    /// The digests that are kept of an index, if they are.
    #[n(14)]
    Digest {
        #[n(0)]
        kept: Option<WireDigests>,
    },
    /// This node is there.
    #[n(20)]
    Here {
        /// The leader that it knows of (0: none).
        #[n(0)]
        leader: u64,
    },
}

/// A moment on the suspend-aware clock of one node; only that node reads it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Moment {
    /// The node's boot number: the clock may begin anew with each start.
    #[n(0)]
    pub(crate) boot: u64,
    /// Suspend-aware milliseconds.
    #[n(1)]
    pub(crate) millis: u64,
}

/// When a quorum last acknowledged its leader, told so that the receiver can place it on its own
/// clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct WireQuorum {
    /// Everything that was answered before that time stands at or below this index.
    #[n(0)]
    pub(crate) commit: u64,
    /// What the receiver said in an acknowledgement that had come in before that time.
    #[n(1)]
    pub(crate) echo: Moment,
    /// How much later it was.
    #[n(2)]
    pub(crate) after_millis: u64,
}

/// The digests of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct WireDigests {
    #[cbor(n(0), with = "minicbor::bytes")]
    content: [u8; 32],
    #[cbor(n(1), with = "minicbor::bytes")]
    books: [u8; 32],
}

impl From<Digests> for WireDigests {
    fn from(digests: Digests) -> Self {
        Self { content: digests.content, books: digests.books }
    }
}

impl From<WireDigests> for Digests {
    fn from(wire: WireDigests) -> Self {
        Self { content: wire.content, books: wire.books }
    }
}

/// Where a member may be reached.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Whereabouts {
    #[n(0)]
    pub(crate) node: u64,
    #[n(1)]
    pub(crate) addresses: Vec<String>,
}

/// What a machine without a certificate says (traps.md 16).
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct JoinRequest {
    /// The public part of the invite.
    #[n(0)]
    pub(crate) invite: String,
    /// The secret part; it never gets into the log.
    #[cbor(n(1), with = "minicbor::bytes")]
    pub(crate) secret: Vec<u8>,
    /// The machine's public key.
    #[cbor(n(2), with = "minicbor::bytes")]
    pub(crate) public_key: Vec<u8>,
    /// The proof over the connection's binding; empty when a member passes it on.
    #[cbor(n(3), with = "minicbor::bytes")]
    pub(crate) proof: Vec<u8>,
    /// The name that it asks for.
    #[n(4)]
    pub(crate) name: String,
    /// What tells its machine from others.
    #[n(5)]
    pub(crate) host: String,
    /// Where it listens: until it has described itself in the log, nobody else knows.
    #[n(6)]
    pub(crate) addresses: Vec<String>,
}

/// What a joining machine is told.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) enum JoinAnswer {
    /// It is a member now.
    #[n(0)]
    Welcome {
        #[n(0)]
        node: u64,
        #[n(1)]
        name: String,
        #[n(2)]
        cluster: String,
        /// Its certificate and the CA's (DER).
        #[cbor(n(3), with = "minicbor::bytes")]
        certificate: Vec<u8>,
        #[cbor(n(4), with = "minicbor::bytes")]
        authority: Vec<u8>,
        /// The members that it can dial: ids, keys and addresses.
        #[n(5)]
        members: Vec<KnownMember>,
    },
    /// It is refused for good: the text says why and what to do.
    #[n(1)]
    Refused(#[n(0)] String),
    /// Not now: no leader, or no signer; try again.
    #[n(2)]
    Later(#[n(0)] String),
}

/// A member as a new machine must know it before it has the state.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct KnownMember {
    #[n(0)]
    pub(crate) node: u64,
    #[cbor(n(1), with = "minicbor::bytes")]
    pub(crate) public_key: Vec<u8>,
    #[n(2)]
    pub(crate) addresses: Vec<String>,
    #[n(3)]
    pub(crate) name: String,
}

/// What applying a proposal gave.
#[derive(Debug, Encode, Decode)]
pub(crate) enum WireOutcome {
    #[n(0)]
    Reply(#[n(0)] Reply),
    #[n(1)]
    Rejection(#[n(0)] Rejection),
}

impl From<Result<Reply, Rejection>> for WireOutcome {
    fn from(outcome: Result<Reply, Rejection>) -> Self {
        match outcome {
            Ok(reply) => Self::Reply(reply),
            Err(rejection) => Self::Rejection(rejection),
        }
    }
}

impl From<WireOutcome> for Result<Reply, Rejection> {
    fn from(outcome: WireOutcome) -> Self {
        match outcome {
            WireOutcome::Reply(reply) => Ok(reply),
            WireOutcome::Rejection(rejection) => Err(rejection),
        }
    }
}

/// An append request.
#[derive(Debug, Encode, Decode)]
pub(crate) struct WireAppend {
    #[n(0)]
    pub(crate) vote: WireVote,
    #[n(1)]
    prev: Option<WireLogId>,
    #[n(2)]
    commit: Option<WireLogId>,
    #[n(3)]
    entries: Vec<WireEntry>,
    /// How fresh what the leader knows is; number 4 was never in use.
    #[n(5)]
    pub(crate) quorum: Option<WireQuorum>,
}

impl WireAppend {
    /// Takes openraft's request apart.
    pub(crate) fn new(
        request: &AppendEntriesRequest<TypeConfig>,
        quorum: Option<WireQuorum>,
    ) -> Self {
        Self {
            vote: request.vote.into(),
            prev: request.prev_log_id.map(Into::into),
            commit: request.leader_commit.map(Into::into),
            entries: request.entries.iter().map(Into::into).collect(),
            quorum,
        }
    }

    /// Returns openraft's request.
    ///
    /// # Errors
    /// When a membership in it makes no sense.
    pub(crate) fn into_request(self) -> Result<AppendEntriesRequest<TypeConfig>, String> {
        let entries: Result<Vec<_>, String> =
            self.entries.into_iter().map(WireEntry::into_entry).collect();
        Ok(AppendEntriesRequest {
            vote: self.vote.into(),
            prev_log_id: self.prev.map(Into::into),
            entries: entries?,
            leader_commit: self.commit.map(Into::into),
        })
    }
}

/// The answer to an append request.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub(crate) enum WireAppendAnswer {
    #[n(0)]
    Success,
    #[n(1)]
    Partial(#[n(0)] Option<WireLogId>),
    #[n(2)]
    Conflict,
    #[n(3)]
    HigherVote(#[n(0)] WireVote),
}

impl From<AppendEntriesResponse<TypeConfig>> for WireAppendAnswer {
    fn from(answer: AppendEntriesResponse<TypeConfig>) -> Self {
        match answer {
            AppendEntriesResponse::Success => Self::Success,
            AppendEntriesResponse::PartialSuccess(id) => Self::Partial(id.map(Into::into)),
            AppendEntriesResponse::Conflict => Self::Conflict,
            AppendEntriesResponse::HigherVote(vote) => Self::HigherVote(vote.into()),
        }
    }
}

impl From<WireAppendAnswer> for AppendEntriesResponse<TypeConfig> {
    fn from(answer: WireAppendAnswer) -> Self {
        match answer {
            WireAppendAnswer::Success => Self::Success,
            WireAppendAnswer::Partial(id) => Self::PartialSuccess(id.map(Into::into)),
            WireAppendAnswer::Conflict => Self::Conflict,
            WireAppendAnswer::HigherVote(vote) => Self::HigherVote(vote.into()),
        }
    }
}

/// One answer on the append stream.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub(crate) enum WireStreamAnswer {
    #[n(0)]
    Matched(#[n(0)] Option<WireLogId>),
    #[n(1)]
    Conflict(#[n(0)] WireLogId),
    #[n(2)]
    HigherVote(#[n(0)] WireVote),
}

impl From<StreamAppendResult<TypeConfig>> for WireStreamAnswer {
    fn from(answer: StreamAppendResult<TypeConfig>) -> Self {
        match answer {
            Ok(id) => Self::Matched(id.map(Into::into)),
            Err(StreamAppendError::Conflict(id)) => Self::Conflict(id.into()),
            Err(StreamAppendError::HigherVote(vote)) => Self::HigherVote(vote.into()),
        }
    }
}

impl From<WireStreamAnswer> for StreamAppendResult<TypeConfig> {
    fn from(answer: WireStreamAnswer) -> Self {
        match answer {
            WireStreamAnswer::Matched(id) => Ok(id.map(Into::into)),
            WireStreamAnswer::Conflict(id) => Err(StreamAppendError::Conflict(id.into())),
            WireStreamAnswer::HigherVote(vote) => Err(StreamAppendError::HigherVote(vote.into())),
        }
    }
}

/// A request for a vote.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub(crate) struct WireVoteRequest {
    #[n(0)]
    pub(crate) vote: WireVote,
    #[n(1)]
    last: Option<WireLogId>,
    /// Without this a planned hand-over waits for the lease instead of milliseconds.
    #[n(2)]
    leadership_transfer: bool,
}

impl From<VoteRequest<TypeConfig>> for WireVoteRequest {
    fn from(request: VoteRequest<TypeConfig>) -> Self {
        Self {
            vote: request.vote.into(),
            last: request.last_log_id.map(Into::into),
            leadership_transfer: request.leadership_transfer,
        }
    }
}

impl From<WireVoteRequest> for VoteRequest<TypeConfig> {
    fn from(wire: WireVoteRequest) -> Self {
        let mut request = Self::new(wire.vote.into(), wire.last.map(Into::into));
        request.leadership_transfer = wire.leadership_transfer;
        request
    }
}

impl From<VoteResponse<TypeConfig>> for Answer {
    fn from(answer: VoteResponse<TypeConfig>) -> Self {
        Self::Vote {
            vote: answer.vote.into(),
            granted: answer.vote_granted,
            last: answer.last_log_id.map(Into::into),
        }
    }
}

impl From<TransferLeaderRequest<TypeConfig>> for Call {
    fn from(request: TransferLeaderRequest<TypeConfig>) -> Self {
        Self::Transfer {
            from: (*request.from_leader()).into(),
            to: *request.to_node_id(),
            last: request.last_log_id().copied().map(Into::into),
        }
    }
}
