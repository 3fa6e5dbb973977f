//! How the members of a cluster talk: short calls and long streams of frames, on lanes.
//!
//! The contract is deliberately weak. A call may be lost before or after it was handled, and may
//! (in the in-process network) be handled twice; what may not be repeated carries its own request
//! id. A stream keeps its frames in order until it breaks, and then says nothing about the last
//! ones. What the transport does promise:
//!
//! - no byte of a frame reaches a handler before the peer has proved its key, the key has been
//!   admitted by the [`Directory`], and both sides have accepted each other's [`Hello`];
//! - a [`CallError`] tells whether the request may have been handled
//!   ([`CallError::certainly_not_sent`]);
//! - every wait ends at the caller's limit;
//! - lanes do not wait behind one another, and a frame is refused by its length before memory is
//!   taken for it.
//!
//! [`quic`] is the real one, [`memory`] an in-process network with faults for tests; `detour`
//! leads either around links that are broken.

pub(crate) mod detour;
pub mod frame;
mod hello;
pub mod memory;
pub mod quic;

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use rustls::pki_types::CertificateDer;

pub use frame::{Duplex, FrameReceiver, FrameSender, StreamError};
pub use hello::{Hello, PROTOCOL};

/// A node's id: unique in the whole line of a cluster's history.
pub type NodeId = u64;

/// Bytes that both ends of one connection know and nobody else: what a join proof signs.
pub type ChannelBinding = [u8; 32];

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// The largest request and answer of a join: a key, a secret, a few certificates.
pub const JOIN_BYTES_MAX: usize = 64 * KIB;

/// Separate ways to a peer; each is a connection of its own, so that none waits behind another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// The append stream, votes, pre-votes and transfer of leadership.
    Log,
    /// Heartbeats, which must not queue behind entries.
    Heartbeat,
    /// Snapshots, which fill a link for as long as they last.
    Snapshot,
    /// Forwarded proposals, read indexes, status.
    Rpc,
    /// Circuits between two nodes of which this connection has at most one as its end.
    Relay,
}

impl Lane {
    /// All lanes, in the order of their codes.
    pub const ALL: [Self; 5] = [Self::Log, Self::Heartbeat, Self::Snapshot, Self::Rpc, Self::Relay];

    /// Returns the largest frame that the lane carries.
    ///
    /// - log: a batch of a megabyte with one entry over it, and room for the batch to grow;
    /// - heartbeat: no entries, so anything larger is a mistake;
    /// - snapshot: a chunk of a file, small enough that a slow link shows progress;
    /// - rpc: the largest entry many times over, and the status of a large cluster;
    /// - relay: a packet, which is at most 1,472 bytes, or the words of a refusal.
    #[must_use]
    pub const fn frame_bytes_max(self) -> usize {
        match self {
            Self::Log => 8 * MIB,
            Self::Heartbeat => 64 * KIB,
            Self::Snapshot | Self::Rpc => 4 * MIB,
            Self::Relay => 16 * KIB,
        }
    }

    /// Returns the lane's word in messages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Heartbeat => "heartbeat",
            Self::Snapshot => "snapshot",
            Self::Rpc => "rpc",
            Self::Relay => "relay",
        }
    }

    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Log => 1,
            Self::Heartbeat => 2,
            Self::Snapshot => 3,
            Self::Rpc => 4,
            Self::Relay => 5,
        }
    }

    pub(crate) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|lane| lane.code() == code)
    }
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The far end of an accepted connection.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The node that its certificate names.
    pub node: NodeId,
    /// What it said when it connected.
    pub hello: Hello,
    /// Where it spoke from.
    pub address: SocketAddr,
}

/// Codes of refusals; they travel, so they never change their meaning.
pub mod code {
    /// The node is stopping.
    pub const SHUTDOWN: u32 = 0;
    /// No client certificate on a connection that needs one.
    pub const NO_CERTIFICATE: u32 = 1;
    /// The certificate is not acceptable.
    pub const CERTIFICATE: u32 = 2;
    /// Another protocol version.
    pub const PROTOCOL: u32 = 3;
    /// Another cluster.
    pub const CLUSTER: u32 = 4;
    /// The node id in the hello, in the certificate and the one that was dialled differ.
    pub const NODE: u32 = 5;
    /// Newer connections of the same node and lane took this one's place.
    pub const SUPERSEDED: u32 = 6;
    /// The connection was in doubt, or its owner asked for a new one.
    pub const REDIAL: u32 = 7;
    /// Bytes that follow no rule of the protocol.
    pub const MALFORMED: u32 = 8;
    /// Too many at once; try later.
    pub const BUSY: u32 = 9;
    /// A frame above the limit of its lane.
    pub const TOO_LARGE: u32 = 10;
    /// The exchange is over and all is well.
    pub const DONE: u32 = 11;
    /// The first code that the owner of the transport may give a meaning to.
    pub const OWNER: u32 = 1000;
}

/// A refusal with a code for programs and a text for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text} (code {code})")]
pub struct Refusal {
    /// One of [`code`], or the owner's own from [`code::OWNER`] on.
    pub code: u32,
    /// What is wrong and what would be right.
    pub text: String,
}

impl Refusal {
    /// Makes a refusal.
    #[must_use]
    pub fn new(code: u32, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }
}

/// Why a call or a stream did not come about.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// Nothing was sent: no address, no connection, or one is not tried again yet.
    #[error("node {node} cannot be reached: {cause}")]
    Unreachable {
        /// The node that was called.
        node: NodeId,
        /// Why.
        cause: String,
    },
    /// The limit passed.
    #[error("node {node} did not answer in time ({})", sent_word(*sent))]
    TimedOut {
        /// The node that was called.
        node: NodeId,
        /// Whether the request may have arrived.
        sent: bool,
    },
    /// The connection broke.
    #[error("connection to node {node} broke ({}): {cause}", sent_word(*sent))]
    Broken {
        /// The node that was called.
        node: NodeId,
        /// Whether the request may have arrived.
        sent: bool,
        /// Why.
        cause: String,
    },
    /// The peer refused the connection or the request; the text is its own.
    #[error("node {node} refused: {text} (code {code})")]
    Refused {
        /// The node that was called.
        node: NodeId,
        /// The code of the refusal.
        code: u32,
        /// What the peer said.
        text: String,
        /// Whether it refused the request itself; else it refused the connection before.
        sent: bool,
    },
    /// The request or the answer is above the limit of its lane.
    #[error("frame of {bytes} bytes for node {node} is above the limit of {limit}")]
    TooLarge {
        /// The node that was called.
        node: NodeId,
        /// The size of the frame.
        bytes: usize,
        /// The limit of the lane.
        limit: usize,
        /// Whether it was the answer that was too large, after the request had been sent.
        sent: bool,
    },
}

impl CallError {
    /// Tells whether the request certainly never reached a handler.
    #[must_use]
    pub fn certainly_not_sent(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::TimedOut { sent, .. }
            | Self::Broken { sent, .. }
            | Self::Refused { sent, .. }
            | Self::TooLarge { sent, .. } => !sent,
        }
    }

    /// Returns the node that was called.
    #[must_use]
    pub fn node(&self) -> NodeId {
        match self {
            Self::Unreachable { node, .. }
            | Self::TimedOut { node, .. }
            | Self::Broken { node, .. }
            | Self::Refused { node, .. }
            | Self::TooLarge { node, .. } => *node,
        }
    }
}

fn sent_word(sent: bool) -> &'static str {
    if sent { "sent" } else { "not sent" }
}

/// A way to call other nodes.
pub trait Transport: Send + Sync + fmt::Debug + 'static {
    /// Sends one request and returns its answer, within `limit`.
    fn call(
        &self,
        to: NodeId,
        lane: Lane,
        request: Bytes,
        limit: Duration,
    ) -> BoxFuture<'static, Result<Bytes, CallError>>;

    /// Opens a long stream of frames both ways; `kind` reaches the peer's handler at once.
    ///
    /// `limit` is for the opening only. The stream lives until both halves are dropped, or it
    /// breaks; a peer that vanishes breaks it within the idle limit of the connection.
    fn open(
        &self,
        to: NodeId,
        lane: Lane,
        kind: u8,
        limit: Duration,
    ) -> BoxFuture<'static, Result<Duplex, CallError>>;

    /// Drops all connections to and from a node and forgets failed tries; the next use dials.
    fn disconnect(&self, to: NodeId);

    /// Drops the connections that this node has dialled to another; the next use dials.
    fn redial(&self, to: NodeId);

    /// Returns the address that peers can reach, if there is one.
    fn local_address(&self) -> Option<SocketAddr>;

    /// Closes all connections with a code and reason that peers are shown, and accepts no more.
    fn close(&self, code: u32, reason: &str) -> BoxFuture<'static, ()>;
}

/// What answers calls and streams of other nodes.
pub trait Handler: Send + Sync + 'static {
    /// Answers one request.
    fn call(
        &self,
        from: &Peer,
        lane: Lane,
        request: Bytes,
    ) -> BoxFuture<'static, Result<Bytes, Refusal>>;

    /// Serves a long stream; it ends when the returned future does.
    fn stream(&self, from: &Peer, lane: Lane, kind: u8, duplex: Duplex) -> BoxFuture<'static, ()>;

    /// Answers the one request of a machine that has no certificate yet.
    ///
    /// `binding` belongs to this connection: a valid proof over it (see
    /// [`crate::identity::join_proof_is_valid`]) shows that the sender holds the key it names.
    fn join(
        &self,
        from: SocketAddr,
        binding: ChannelBinding,
        request: Bytes,
    ) -> BoxFuture<'static, Bytes>;
}

/// What the transport asks its owner; every answer is cheap and never blocks.
pub trait Directory: Send + Sync + 'static {
    /// Returns what this node says of itself, now.
    fn hello(&self) -> Hello;

    /// Tells whether a key may act as a node on a lane.
    ///
    /// Asked on both sides when a connection is made, and by the accepting side again with each
    /// new call and stream.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] that the peer is shown.
    fn admit(&self, node: NodeId, spki: &[u8], lane: Lane) -> Result<(), Refusal>;

    /// Tells whether what a peer said fits what is known of it; its node id, cluster and protocol
    /// version have been checked.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] that the peer is shown.
    fn check_hello(&self, peer: &Hello) -> Result<(), Refusal>;

    /// Returns the other members.
    fn members(&self) -> Vec<NodeId>;

    /// Returns the addresses of a node, best first.
    fn addresses(&self, node: NodeId) -> Vec<SocketAddr>;

    /// Tells that a node was reached at an address that was dialled.
    fn reached(&self, node: NodeId, at: SocketAddr);

    /// Tells that a node has connected to us from an address: a hint where it listens.
    fn heard(&self, _node: NodeId, _from: SocketAddr) {}

    /// Returns the certificates of the authorities that are accepted now.
    fn roots(&self) -> Vec<CertificateDer<'static>>;
}
