//! The first exchange on a connection: who speaks, on which lane, and is it acceptable.

use bytes::Bytes;
use minicbor::{Decode, Encode};

use super::{Lane, NodeId, Refusal, code};

/// The version of this protocol; raised when two versions cannot talk at all.
pub const PROTOCOL: u32 = 1;

/// What a node says of itself when a connection is made.
///
/// Fields are numbered; a reader ignores those it does not know, so new ones may be added.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct Hello {
    /// [`PROTOCOL`] of the sender.
    #[n(0)]
    pub protocol: u32,
    /// The cluster's id.
    #[n(1)]
    pub cluster: String,
    /// The sender's id.
    #[n(2)]
    pub node: NodeId,
    /// The sender's boot number.
    #[n(3)]
    pub boot: u64,
    /// The sender's nonce of this boot.
    #[n(4)]
    pub nonce: u64,
    /// Term and index of the last flushed entry of the sender's log.
    #[n(5)]
    pub last_log: Option<(u64, u64)>,
    /// The snapshot format that the sender reads and writes.
    #[n(6)]
    #[cbor(default)]
    pub snapshot_format: u32,
    /// The highest state version that the sender supports.
    #[n(7)]
    #[cbor(default)]
    pub state_version: u32,
    /// The sender's program version, for people.
    #[n(8)]
    #[cbor(default)]
    pub software: String,
    /// The sender's wall clock, to name clocks that are off.
    #[n(9)]
    #[cbor(default)]
    pub wall_millis: u64,
}

/// The first frame of the dialling side.
#[derive(Debug, Encode, Decode)]
#[cbor(map)]
pub(crate) struct Greeting {
    #[n(0)]
    pub lane: u8,
    #[n(1)]
    pub hello: Hello,
}

/// A refusal as it travels.
#[derive(Debug, Encode, Decode)]
#[cbor(map)]
struct WireRefusal {
    #[n(0)]
    code: u32,
    #[n(1)]
    text: String,
}

/// Encodes the first frame of the dialling side.
pub(crate) fn encode_greeting(lane: Lane, hello: Hello) -> Bytes {
    encode(&Greeting { lane: lane.code(), hello })
}

/// Reads the first frame of the dialling side.
pub(crate) fn decode_greeting(frame: &[u8]) -> Result<(Lane, Hello), Refusal> {
    let greeting: Greeting = minicbor::decode(frame).map_err(unreadable)?;
    let lane = Lane::from_code(greeting.lane).ok_or_else(|| {
        let text = format!("lane {} is unknown to this version", greeting.lane);
        Refusal::new(code::PROTOCOL, text)
    })?;
    Ok((lane, greeting.hello))
}

pub(crate) fn encode_hello(hello: &Hello) -> Bytes {
    encode(hello)
}

pub(crate) fn decode_hello(frame: &[u8]) -> Result<Hello, Refusal> {
    minicbor::decode(frame).map_err(unreadable)
}

pub(crate) fn encode_refusal(refusal: Refusal) -> Bytes {
    encode(&WireRefusal { code: refusal.code, text: refusal.text })
}

/// Reads a refusal; an unreadable one is still a refusal.
pub(crate) fn decode_refusal(frame: &[u8]) -> Refusal {
    match minicbor::decode::<WireRefusal>(frame) {
        Ok(WireRefusal { code, text }) => Refusal { code, text },
        Err(error) => unreadable(error),
    }
}

/// Checks what every connection needs, whoever owns the transport; `proved` is the node id of
/// the peer's certificate.
pub(crate) fn check(ours: &Hello, peer: &Hello, proved: NodeId) -> Result<(), Refusal> {
    if peer.protocol != ours.protocol {
        let text = format!(
            "node {} speaks protocol version {}, node {} speaks {}: upgrade the older one",
            peer.node, peer.protocol, ours.node, ours.protocol
        );
        return Err(Refusal::new(code::PROTOCOL, text));
    }
    if peer.cluster != ours.cluster {
        let text = format!(
            "node {} belongs to cluster {}, node {} to cluster {}",
            peer.node, peer.cluster, ours.node, ours.cluster
        );
        return Err(Refusal::new(code::CLUSTER, text));
    }
    if peer.node != proved {
        let text = format!(
            "node {} came with the certificate of node {proved}: each needs its own",
            peer.node
        );
        return Err(Refusal::new(code::NODE, text));
    }
    if peer.node == ours.node {
        let text =
            format!("node {} was called by itself, or its folder is in use twice", ours.node);
        return Err(Refusal::new(code::NODE, text));
    }
    Ok(())
}

fn encode<T: Encode<()>>(value: &T) -> Bytes {
    let mut buffer = Vec::new();
    // Writing to memory cannot fail and the types have no encoder of their own.
    let Ok(()) = minicbor::encode(value, &mut buffer).map_err(|error| {
        tracing::error!("a message of the transport cannot be encoded: {error}");
    }) else {
        return Bytes::new();
    };
    buffer.into()
}

fn unreadable(error: minicbor::decode::Error) -> Refusal {
    Refusal::new(code::MALFORMED, format!("the first message cannot be read: {error}"))
}
