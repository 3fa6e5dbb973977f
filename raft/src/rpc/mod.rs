//! What members say to each other: Raft's messages, snapshots, and forwarded requests.
//!
//! `message.rs` has the frames, `client.rs` openraft's network over the transport, `server.rs` the
//! serving side, `commit_notice.rs` what keeps the messages about commits few. Every message that
//! claims to come from a leader or candidate is checked against the certificate that brought it:
//! openraft would let any node claim any vote (traps.md 9).

pub(crate) mod client;
pub(crate) mod commit_notice;
pub(crate) mod message;
pub(crate) mod server;

/// The first byte of the long stream that carries append requests.
pub(crate) const KIND_APPEND: u8 = 1;
