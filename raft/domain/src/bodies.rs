//! Bodies: the bytes of assets and of long texts, in chunks, each under a number of its own.
//!
//! What names a body (an asset, a document, a project's notes) holds its number and size, so to
//! replace or rename it moves no bytes (traps.md 21). A body never changes. When nothing names it
//! any more it is gone for readers at once, and its chunks go with the same command when they are
//! few, else by timers.
//!
//! What is longer than a chunk comes by an upload: its chunks are entries of their own, and the
//! command that names it is as short as any other.

mod hash;
mod sweeps;
#[cfg(test)]
mod tests;
mod uploads;

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use minicbor::{Decode, Encode};

use crate::clock::Clock;
use crate::command::projects::Content;
use crate::context::{Context, Stop};
use crate::event::Event;
use crate::rejection::Rejection;
use crate::store::{Fault, Read, Store};
use crate::{limits, tables};

pub(crate) use crate::bodies::sweeps::{Sweep, discard, sweep, sweep_project};
pub(crate) use crate::bodies::uploads::{
    Beginning, abandon, asset_full, begin, chunk, close, complete, upload_ends,
};
pub use crate::bodies::uploads::{Upload, UploadFor, upload, uploads};

/// A body: its number, and how many bytes it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Body {
    /// Its number; never given twice.
    #[n(0)]
    pub number: u64,
    /// Its bytes.
    #[n(1)]
    pub size: u64,
}

impl Body {
    /// Returns how many chunks it has.
    pub(crate) fn chunks(&self) -> u64 {
        self.size.div_ceil(limits::CHUNK_BYTES)
    }
}

/// One chunk of a body.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Chunk {
    /// Its bytes: all but the last are full.
    #[cbor(n(0), with = "minicbor::bytes")]
    pub(crate) bytes: Vec<u8>,
}

/// What bodies take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Storage {
    /// The newest body's number.
    #[n(0)]
    pub last: u64,
    /// How many bytes assets may have together, uploads under way included.
    #[n(1)]
    pub quota: u64,
    /// How many assets there are.
    #[n(2)]
    pub assets: u64,
    /// Their bytes.
    #[n(3)]
    pub asset_bytes: u64,
    /// Bytes that uploads of assets will have.
    #[n(4)]
    pub asset_bytes_coming: u64,
    /// Bytes of all texts.
    #[n(5)]
    pub text_bytes: u64,
    /// Bytes that uploads of texts will have.
    #[n(6)]
    pub text_bytes_coming: u64,
}

impl Default for Storage {
    fn default() -> Self {
        Self {
            last: 0,
            quota: limits::ASSETS_QUOTA,
            assets: 0,
            asset_bytes: 0,
            asset_bytes_coming: 0,
            text_bytes: 0,
            text_bytes_coming: 0,
        }
    }
}

impl Storage {
    /// Returns how many bytes more assets may have.
    #[must_use]
    pub fn asset_room(&self) -> u64 {
        self.quota.saturating_sub(self.asset_bytes).saturating_sub(self.asset_bytes_coming)
    }

    /// Returns how many bytes more texts may have.
    #[must_use]
    pub fn text_room(&self) -> u64 {
        limits::TEXTS_QUOTA.saturating_sub(self.text_bytes).saturating_sub(self.text_bytes_coming)
    }

    /// Returns the number of a new body.
    pub(crate) fn next(&mut self) -> u64 {
        self.last = self.last.saturating_add(1);
        self.last
    }
}

/// Returns what bodies take.
///
/// # Errors
/// A fault when the state cannot be read.
pub fn storage(state: &impl Read) -> Result<Storage, Fault> {
    Ok(tables::STORAGE.get(state, ())?.unwrap_or_default())
}

/// Reads a part of a body: from `offset`, at most `limit` bytes and 1 MiB; nothing behind its end.
///
/// `None` when the body is gone: it was replaced or deleted since its name was read. A long one is
/// read part by part, each on a view of its own.
///
/// # Errors
/// A fault when the state cannot be read.
pub fn read(
    state: &impl Read,
    body: Body,
    offset: u64,
    limit: u64,
) -> Result<Option<Vec<u8>>, Fault> {
    let length = limit.min(limits::BODY_READ_BYTES_MAX);
    let end = offset.saturating_add(length).min(body.size);
    let mut found = Vec::new();
    let mut at = offset;
    while at < end {
        let place = at.checked_div(limits::CHUNK_BYTES).unwrap_or_default();
        let begin = place.saturating_mul(limits::CHUNK_BYTES);
        let upto = end.min(begin.saturating_add(limits::CHUNK_BYTES));
        let key = (body.number, place);
        let Some(chunk) = tables::CHUNKS.get(state, key)? else { return Ok(None) };
        let from = usize::try_from(at.saturating_sub(begin)).unwrap_or(usize::MAX);
        let to = usize::try_from(upto.saturating_sub(begin)).unwrap_or(usize::MAX);
        let Some(part) = chunk.bytes.get(from..to) else {
            return Err(Fault::at(&tables::CHUNKS.key(key), "the chunk is too short"));
        };
        found.extend_from_slice(part);
        at = upto;
    }
    Ok(Some(found))
}

/// Returns a whole text.
pub(crate) fn text(state: &impl Read, body: Body) -> Result<String, Fault> {
    let damaged = |what| Fault::at(&tables::CHUNKS.key((body.number, 0)), what);
    let bytes = read(state, body, 0, limits::TEXT_BYTES_MAX)?;
    let bytes = bytes.ok_or_else(|| damaged("the text is not there"))?;
    String::from_utf8(bytes).map_err(|_bytes| damaged("the text is not UTF-8"))
}

/// A text that was checked and is not stored yet.
#[derive(Debug)]
pub(crate) enum Text<'a> {
    /// It came with the command.
    Inline(&'a str),
    /// It came by an upload.
    Uploaded(Body, Upload),
}

/// Checks a text that shall take the place of `replaced`: its length, its upload, and the room for
/// it.
pub(crate) fn check_text<'a>(
    state: &impl Read,
    context: &Context<'_>,
    field: &str,
    content: &'a Content,
    replaced: Option<Body>,
) -> Result<Text<'a>, Stop> {
    let text = match content {
        Content::Inline(text) => text,
        Content::Uploaded(number) => {
            let upload = complete(state, context, *number)?;
            if upload.target != UploadFor::Text {
                let rule = format!("must be a text; upload {number} is of an asset");
                return Err(Rejection::invalid(field, rule).into());
            }
            return Ok(Text::Uploaded(Body { number: *number, size: upload.size }, upload));
        }
    };
    let size = length(text.as_bytes());
    if size > limits::CHUNK_BYTES {
        let rule = "must have at most 64 KiB in one entry; upload a longer text first";
        return Err(Rejection::invalid(field, rule).into());
    }
    let freed = replaced.map_or(0, |old| old.size);
    let room = storage(state)?.text_room().saturating_add(freed);
    if size > room { Err(text_full(field, room).into()) } else { Ok(Text::Inline(text)) }
}

/// Makes the refusal of a text that finds no room.
fn text_full(field: &str, room: u64) -> Rejection {
    Rejection::full(format!(
        "{field}: all texts have 256 MiB, {room} bytes are free; delete documents first"
    ))
}

/// Stores a checked text in the place of `replaced`.
pub(crate) fn store_text(
    state: &mut impl Store,
    now: Clock,
    text: Text<'_>,
    replaced: Option<Body>,
    told: &mut Vec<Event>,
) -> Result<Body, Fault> {
    if let Some(old) = replaced {
        drop_text(state, now, old, told)?;
    }
    let mut storage = storage(state)?;
    let body = match text {
        Text::Inline(text) => put(state, &mut storage, text.as_bytes())?,
        Text::Uploaded(body, upload) => {
            close(state, body.number, &upload)?;
            storage.text_bytes_coming = storage.text_bytes_coming.saturating_sub(body.size);
            body
        }
    };
    storage.text_bytes = storage.text_bytes.saturating_add(body.size);
    tables::STORAGE.put(state, (), &storage)?;
    Ok(body)
}

/// Forgets a text that nothing names any more.
pub(crate) fn drop_text(
    state: &mut impl Store,
    now: Clock,
    body: Body,
    told: &mut Vec<Event>,
) -> Result<(), Fault> {
    let mut storage = storage(state)?;
    storage.text_bytes = storage.text_bytes.saturating_sub(body.size);
    tables::STORAGE.put(state, (), &storage)?;
    discard(state, now, body, told)
}

/// Stores the bytes of a new body that fits one chunk.
pub(crate) fn put(
    state: &mut impl Store,
    storage: &mut Storage,
    bytes: &[u8],
) -> Result<Body, Fault> {
    let body = Body { number: storage.next(), size: length(bytes) };
    if !bytes.is_empty() {
        let chunk = Chunk { bytes: bytes.to_owned() };
        tables::CHUNKS.put(state, (body.number, 0), &chunk)?;
    }
    Ok(body)
}

/// Returns a length as sizes are counted.
pub(crate) fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}
