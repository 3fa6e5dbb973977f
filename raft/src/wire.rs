//! Our own encodings of Raft's values, for the disk and for frames.
//!
//! openraft's derives are no stable format. Here everything has numbered fields; unknown ones are
//! ignored, because frames and stored values may grow (commands may not, see
//! `nexus_domain::codec`).

use std::collections::BTreeSet;

use bytes::Bytes;
use minicbor::{Decode, Encode};
use openraft::EmptyNode;
use openraft::entry::RaftEntry as _;

use crate::types::{
    LogData, LogEntry, LogId, Membership, Payload, SnapshotMeta, StoredMembership, Vote, log_id,
};

/// A log id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct WireLogId {
    #[n(0)]
    pub(crate) term: u64,
    #[n(1)]
    pub(crate) node: u64,
    #[n(2)]
    pub(crate) index: u64,
}

impl From<LogId> for WireLogId {
    fn from(id: LogId) -> Self {
        Self { term: id.leader_id.term, node: id.leader_id.node_id, index: id.index }
    }
}

impl From<WireLogId> for LogId {
    fn from(id: WireLogId) -> Self {
        log_id(id.term, id.node, id.index)
    }
}

/// A vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct WireVote {
    #[n(0)]
    pub(crate) term: u64,
    #[n(1)]
    pub(crate) node: u64,
    #[n(2)]
    pub(crate) committed: bool,
}

impl From<Vote> for WireVote {
    fn from(vote: Vote) -> Self {
        Self { term: vote.leader_id.term, node: vote.leader_id.node_id, committed: vote.committed }
    }
}

impl From<WireVote> for Vote {
    fn from(vote: WireVote) -> Self {
        if vote.committed {
            Self::new_committed(vote.term, vote.node)
        } else {
            Self::new(vote.term, vote.node)
        }
    }
}

/// A membership: the voter sets (two while a change is under way) and all members.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub(crate) struct WireMembership {
    #[n(0)]
    voters: Vec<Vec<u64>>,
    #[n(1)]
    members: Vec<u64>,
}

impl From<&Membership> for WireMembership {
    fn from(membership: &Membership) -> Self {
        Self {
            voters: membership
                .get_joint_config()
                .iter()
                .map(|set| set.iter().copied().collect())
                .collect(),
            members: membership.nodes().map(|(id, _)| *id).collect(),
        }
    }
}

impl WireMembership {
    /// Returns openraft's membership.
    ///
    /// # Errors
    /// When a voter is no member or a voter set is empty.
    pub(crate) fn to_membership(&self) -> Result<Membership, String> {
        let sets: Vec<BTreeSet<u64>> =
            self.voters.iter().map(|set| set.iter().copied().collect()).collect();
        let members: std::collections::BTreeMap<u64, EmptyNode> =
            self.members.iter().map(|id| (*id, EmptyNode::new())).collect();
        if sets.is_empty() && members.is_empty() {
            return Ok(Membership::default());
        }
        Membership::new(sets, members).map_err(|error| error.to_string())
    }
}

/// A membership and the log entry that set it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub(crate) struct WireStoredMembership {
    #[n(0)]
    log_id: Option<WireLogId>,
    #[n(1)]
    membership: WireMembership,
}

impl From<&StoredMembership> for WireStoredMembership {
    fn from(stored: &StoredMembership) -> Self {
        Self { log_id: stored.log_id().map(Into::into), membership: stored.membership().into() }
    }
}

impl WireStoredMembership {
    /// Returns openraft's stored membership.
    ///
    /// # Errors
    /// As [`WireMembership::to_membership`].
    pub(crate) fn to_stored(&self) -> Result<StoredMembership, String> {
        Ok(StoredMembership::new(self.log_id.map(Into::into), self.membership.to_membership()?))
    }
}

/// A log entry.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct WireEntry {
    #[n(0)]
    id: WireLogId,
    #[n(1)]
    payload: WirePayload,
}

/// What an entry holds.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) enum WirePayload {
    #[n(0)]
    Blank,
    #[n(1)]
    Normal(#[cbor(n(0), with = "crate::wire::bytes_codec")] Bytes),
    #[n(2)]
    Membership(#[n(0)] WireMembership),
}

impl From<&LogEntry> for WireEntry {
    fn from(entry: &LogEntry) -> Self {
        let payload = match &entry.payload {
            Payload::Blank => WirePayload::Blank,
            Payload::Normal(data) => WirePayload::Normal(data.0.clone()),
            Payload::Membership(membership) => WirePayload::Membership(membership.into()),
        };
        Self { id: entry.log_id.into(), payload }
    }
}

impl WireEntry {
    /// Returns openraft's entry.
    ///
    /// # Errors
    /// As [`WireMembership::to_membership`].
    pub(crate) fn into_entry(self) -> Result<LogEntry, String> {
        let payload = match self.payload {
            WirePayload::Blank => Payload::Blank,
            WirePayload::Normal(bytes) => Payload::Normal(LogData(bytes)),
            WirePayload::Membership(wire) => Payload::Membership(wire.to_membership()?),
        };
        Ok(LogEntry::new(self.id.into(), payload))
    }
}

/// A snapshot's metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub(crate) struct WireSnapshotMeta {
    #[n(0)]
    pub(crate) last: Option<WireLogId>,
    #[n(1)]
    pub(crate) membership: WireStoredMembership,
}

impl From<&SnapshotMeta> for WireSnapshotMeta {
    fn from(meta: &SnapshotMeta) -> Self {
        Self { last: meta.last_log_id.map(Into::into), membership: (&meta.last_membership).into() }
    }
}

impl WireSnapshotMeta {
    /// Returns openraft's snapshot metadata.
    ///
    /// # Errors
    /// As [`WireMembership::to_membership`].
    pub(crate) fn to_meta(&self) -> Result<SnapshotMeta, String> {
        Ok(SnapshotMeta {
            last_log_id: self.last.map(Into::into),
            last_membership: self.membership.to_stored()?,
        })
    }
}

/// Encodes `Bytes` as a CBOR byte string.
pub(crate) mod bytes_codec {
    use bytes::Bytes;
    use minicbor::decode::{Decoder, Error as DecodeError};
    use minicbor::encode::{Encoder, Error as EncodeError, Write};

    /// Writes a byte string.
    pub(crate) fn encode<C, W: Write>(
        value: &Bytes,
        encoder: &mut Encoder<W>,
        _context: &mut C,
    ) -> Result<(), EncodeError<W::Error>> {
        encoder.bytes(value)?.ok()
    }

    /// Reads a byte string.
    pub(crate) fn decode<C>(
        decoder: &mut Decoder<'_>,
        _context: &mut C,
    ) -> Result<Bytes, DecodeError> {
        Ok(Bytes::copy_from_slice(decoder.bytes()?))
    }
}

/// Encodes a value with a version byte in front and a CRC32C behind the version byte.
pub(crate) fn seal<T: Encode<()>>(value: &T) -> Vec<u8> {
    let mut bytes = vec![SEAL_VERSION, 0, 0, 0, 0];
    // Writing into a `Vec` cannot fail, and none of our types refuses to be encoded.
    let _infallible = minicbor::encode(value, &mut bytes);
    let checksum = crc32c::crc32c(bytes.get(SEAL_HEAD..).unwrap_or_default()).to_be_bytes();
    if let Some(place) = bytes.get_mut(1..SEAL_HEAD) {
        place.copy_from_slice(&checksum);
    }
    bytes
}

/// Decodes what [`seal`] made.
///
/// # Errors
/// What is wrong with the bytes: too short, another version, a checksum that differs, or no such
/// value.
pub(crate) fn unseal<'b, T: Decode<'b, ()>>(bytes: &'b [u8]) -> Result<T, String> {
    let (head, body) = bytes.split_at_checked(SEAL_HEAD).ok_or("too short")?;
    let Some((version, checksum)) = head.split_first() else {
        return Err("too short".into());
    };
    if *version != SEAL_VERSION {
        return Err(format!("format version {version}, this program reads {SEAL_VERSION}"));
    }
    if crc32c::crc32c(body).to_be_bytes() != checksum {
        return Err("checksum differs: the bytes were damaged".into());
    }
    minicbor::decode(body).map_err(|error| error.to_string())
}

const SEAL_VERSION: u8 = 1;
const SEAL_HEAD: usize = 5;

/// Encodes a frame's value; frames are checked by the transport, so no checksum here.
pub(crate) fn encode<T: Encode<()>>(value: &T) -> Bytes {
    let mut bytes = Vec::with_capacity(128);
    let _infallible = minicbor::encode(value, &mut bytes);
    bytes.into()
}

/// Decodes a frame's value.
///
/// # Errors
/// What is wrong with the bytes.
pub(crate) fn decode<'b, T: Decode<'b, ()>>(bytes: &'b [u8]) -> Result<T, String> {
    minicbor::decode(bytes).map_err(|error| error.to_string())
}
