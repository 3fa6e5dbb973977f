//! Bytes of proposals, entries and stored values. Golden bytes under `tests/golden/` hold them
//! still.
//!
//! A version byte stands in front of each. Proposals and entries are strict: they are decoded,
//! encoded again and compared, because a field that one program skips and another obeys would make
//! two states of one log (traps.md 3). Stored values are lenient: unknown fields are ignored.
//!
//! An entry is the version byte, the stamp, and the proposal as it came, one after the other, so a
//! leader can stamp the bytes that a member sent without encoding them again.

use alloc::vec::Vec;

use minicbor::decode::Decoder;
use minicbor::encode::{Encoder, Write};
use minicbor::{Decode, Encode};
use sha2::{Digest as _, Sha256};

use crate::SUPPORTED;
use crate::command::Command;
use crate::entry::{Actor, Entry, Proposal, Stamp};
use crate::limits::ENTRY_BYTES_MAX;
use crate::store::Fault;

/// The version byte of proposals and entries.
const LOG_FORMAT: u8 = 1;

/// The version byte of stored values.
const VALUE_FORMAT: u8 = 1;

/// Why bytes are no proposal or entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// A newer program wrote it: going on would make another state than the others'.
    #[error("entry: needs a newer program, this node is too old for the cluster: upgrade")]
    TooNew,
    /// It is no entry, or not in the one form that its content has.
    #[error("entry: is damaged or not in canonical form")]
    Malformed,
    /// It is longer than an entry may be.
    #[error("entry: is longer than {ENTRY_BYTES_MAX} bytes, send less at once")]
    TooLarge,
}

/// Encodes a proposal.
#[must_use]
pub fn encode_proposal(proposal: &Proposal) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    out.push(LOG_FORMAT);
    append(proposal, &mut out);
    out
}

/// Decodes a proposal strictly.
///
/// # Errors
/// When it is too large, of a newer program, damaged, or not in canonical form.
pub fn decode_proposal(bytes: &[u8]) -> Result<Proposal, DecodeError> {
    let mut decoder = begin(bytes)?;
    proposal(&mut decoder)
}

/// Encodes an entry.
#[must_use]
pub fn encode_entry(stamp: &Stamp, proposal: &Proposal) -> Vec<u8> {
    let mut out = Vec::with_capacity(160);
    out.push(LOG_FORMAT);
    append(stamp, &mut out);
    append(proposal, &mut out);
    out
}

/// Decodes the entry at an index of the log strictly.
///
/// # Errors
/// When it is too large, of a newer program, damaged, or not in canonical form.
pub fn decode_entry(index: u64, bytes: &[u8]) -> Result<Entry, DecodeError> {
    let mut decoder = begin(bytes)?;
    let stamp: Stamp = strict(&mut decoder)?;
    Ok(Entry { index, stamp, proposal: proposal(&mut decoder)? })
}

/// Checks length and version byte.
fn begin(bytes: &[u8]) -> Result<Decoder<'_>, DecodeError> {
    if bytes.len() > ENTRY_BYTES_MAX {
        return Err(DecodeError::TooLarge);
    }
    match bytes.split_first() {
        Some((&LOG_FORMAT, rest)) => Ok(Decoder::new(rest)),
        Some((format, _)) if *format > LOG_FORMAT => Err(DecodeError::TooNew),
        _ => Err(DecodeError::Malformed),
    }
}

/// Decodes a proposal up to the end of the input.
fn proposal(decoder: &mut Decoder<'_>) -> Result<Proposal, DecodeError> {
    // The version comes first: it tells a newer command from a damaged one.
    let mut ahead = decoder.clone();
    let needs = ahead.array().and_then(|_| ahead.u32());
    if needs.is_ok_and(|needs| needs > SUPPORTED) {
        return Err(DecodeError::TooNew);
    }
    let proposal: Proposal = strict(decoder)?;
    // A command must say what it needs, or an older program could not tell it from damage.
    let says = proposal.version >= proposal.command.needs();
    if says && decoder.position() == decoder.input().len() {
        Ok(proposal)
    } else {
        Err(DecodeError::Malformed)
    }
}

/// Decodes a value and compares what was read with the one form that the value has.
fn strict<'b, T: Encode<()> + Decode<'b, ()>>(decoder: &mut Decoder<'b>) -> Result<T, DecodeError> {
    let from = decoder.position();
    let value: T = decoder.decode().map_err(|_damage| DecodeError::Malformed)?;
    let read = decoder.input().get(from..decoder.position()).unwrap_or_default();
    let mut rest = Comparison { rest: read };
    match minicbor::encode(&value, &mut rest) {
        Ok(()) if rest.rest.is_empty() => Ok(value),
        _ => Err(DecodeError::Malformed),
    }
}

/// A writer that compares instead of writing.
struct Comparison<'a> {
    rest: &'a [u8],
}

/// What is written is not what was expected.
#[derive(Debug)]
struct Differs;

impl Write for Comparison<'_> {
    type Error = Differs;

    fn write_all(&mut self, bytes: &[u8]) -> Result<(), Differs> {
        self.rest = self.rest.strip_prefix(bytes).ok_or(Differs)?;
        Ok(())
    }
}

/// Encodes a stored value.
#[must_use]
pub fn encode_value<T: Encode<()>>(value: &T) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
    out.push(VALUE_FORMAT);
    append(value, &mut out);
    out
}

/// Decodes a stored value; fields that this program does not know are ignored.
///
/// # Errors
/// A fault that names the key, when the value does not decode.
pub fn decode_value<'b, T: Decode<'b, ()>>(key: &[u8], bytes: &'b [u8]) -> Result<T, Fault> {
    match bytes.split_first() {
        Some((&VALUE_FORMAT, rest)) => minicbor::decode(rest)
            .map_err(|damage| Fault::at(key, alloc::format!("the value is damaged: {damage}"))),
        Some(_) => Err(Fault::at(key, "the value is in a format of a newer program")),
        None => Err(Fault::at(key, "the value is empty")),
    }
}

/// Returns what tells one call from another under the same request id: half a SHA-256 of actor and
/// command.
pub(crate) fn call_hash(actor: &Actor, command: &Command) -> [u8; 16] {
    let mut hash = Hashing(Sha256::new());
    let mut encoder = Encoder::new(&mut hash);
    // Hashing cannot fail.
    let _hashed = encoder.encode(actor).and_then(|encoder| encoder.encode(command)).is_ok();
    let full: [u8; 32] = hash.0.finalize().into();
    let (half, _) = full.split_first_chunk::<16>().unwrap_or((&[0; 16], &[]));
    *half
}

struct Hashing(Sha256);

impl Write for Hashing {
    type Error = core::convert::Infallible;

    fn write_all(&mut self, bytes: &[u8]) -> Result<(), Self::Error> {
        self.0.update(bytes);
        Ok(())
    }
}

fn append<T: Encode<()>>(value: &T, out: &mut Vec<u8>) {
    // Our types encode into memory without any failure of their own.
    let _encoded = minicbor::encode(value, out);
}
