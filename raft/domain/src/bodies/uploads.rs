//! Uploads: a body that comes chunk by chunk, each an entry of its own (traps.md 21).
//!
//! The number of an upload is that of its body. Its bytes are hashed as they come, so that to check
//! them at the end costs nothing. It belongs to who began it, moves while chunks come, and ends by
//! being used, by being given up, or by itself an hour after it began.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use minicbor::{Decode, Encode};

use super::{Body, Chunk, discard, hash, length, storage, text_full};
use crate::clock::Clock;
use crate::command::DueKind;
use crate::context::{Context, Stop};
use crate::due::{self, Due};
use crate::entry::Actor;
use crate::event::Event;
use crate::rejection::Rejection;
use crate::reply::Reply;
use crate::store::{Direction, Fault, Read, Store};
use crate::{conversations, limits, tables};

/// What an upload is for.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum UploadFor {
    /// An asset.
    #[n(0)]
    Asset {
        /// The project's number, so that a rename meanwhile does no harm.
        #[n(0)]
        project: u64,
        /// The asset's name.
        #[n(1)]
        name: String,
    },
    /// A text.
    #[n(1)]
    Text,
}

/// An upload under way.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Upload {
    /// What it is for.
    #[n(0)]
    pub target: UploadFor,
    /// Who began it.
    #[n(1)]
    pub owner: String,
    /// All its bytes.
    #[n(2)]
    pub size: u64,
    /// Their SHA-256, as the owner says.
    #[cbor(n(3), with = "minicbor::bytes")]
    pub sha256: [u8; 32],
    /// How many have come.
    #[n(4)]
    pub received: u64,
    /// What SHA-256 knows of them; the hash itself when all have come.
    #[cbor(n(5), with = "minicbor::bytes")]
    pub(crate) known: [u8; 32],
    /// The first bytes of a character that the last chunk of a text cut.
    #[cbor(n(6), with = "minicbor::bytes")]
    pub(crate) cut: Vec<u8>,
    /// The tick at which it ends by itself.
    #[n(7)]
    pub ends_tick: u64,
    /// The tick at which its last chunk came.
    #[n(8)]
    pub moved_tick: u64,
}

impl Upload {
    /// Returns the place of the next chunk; behind the last one when it is complete.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.received.div_ceil(limits::CHUNK_BYTES)
    }

    /// Returns whether all bytes have come.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.received == self.size
    }

    fn is_silent(&self, now: Clock) -> bool {
        now.tick.saturating_sub(self.moved_tick) >= limits::UPLOAD_SILENT_TICKS
    }

    /// Returns whether it takes one of the two places of assets that move.
    #[must_use]
    pub fn is_moving(&self, now: Clock) -> bool {
        self.target != UploadFor::Text && !self.is_complete() && !self.is_silent(now)
    }

    fn timer(&self, number: u64) -> Due {
        Due { due: self.ends_tick, kind: DueKind::Upload, id: number.to_string(), generation: 1 }
    }
}

/// Returns all uploads under way with their numbers.
///
/// # Errors
/// A fault when the state cannot be read.
pub fn uploads(state: &impl Read) -> Result<Vec<(u64, Upload)>, Fault> {
    tables::UPLOADS.rows(state, tables::UPLOADS.all(), Direction::Forward).collect()
}

/// Returns an upload under way.
///
/// # Errors
/// A fault when the state cannot be read.
pub fn upload(state: &impl Read, number: u64) -> Result<Option<Upload>, Fault> {
    tables::UPLOADS.get(state, number)
}

/// What a new upload says of itself.
#[derive(Debug)]
pub(crate) struct Beginning<'a> {
    /// What it is for; checked.
    pub(crate) target: UploadFor,
    /// All its bytes.
    pub(crate) size: u64,
    /// Their SHA-256.
    pub(crate) sha256: &'a [u8],
}

pub(crate) fn begin(
    state: &mut impl Store,
    context: &Context<'_>,
    wanted: Beginning<'_>,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    let Beginning { target, size, sha256 } = wanted;
    let text = target == UploadFor::Text;
    let (size_max, shown) = if text {
        (limits::TEXT_BYTES_MAX, "1 MiB; a longer text belongs in a project's asset")
    } else {
        (limits::ASSET_BYTES_MAX, "256 MiB")
    };
    if size > size_max {
        return Err(Rejection::invalid("size", format!("must be at most {shown}")).into());
    }
    let Ok(sha256) = <[u8; 32]>::try_from(sha256) else {
        return Err(Rejection::invalid("sha256", "must have 32 bytes").into());
    };
    let mut storage = storage(state)?;
    if text && size > storage.text_room() {
        return Err(text_full("size", storage.text_room()).into());
    }
    if !text && size > storage.asset_room() {
        return Err(asset_full("size", storage.asset_room(), storage.quota).into());
    }
    let silent = make_room(state, context.now, text)?;
    let owner = conversations::active(state, context, told)?.id.clone();
    if let Some((number, upload)) = silent {
        drop_upload(state, context.now, number, &upload, told)?;
        storage = super::storage(state)?;
    }
    let number = storage.next();
    let coming =
        if text { &mut storage.text_bytes_coming } else { &mut storage.asset_bytes_coming };
    *coming = coming.saturating_add(size);
    tables::STORAGE.put(state, (), &storage)?;
    let known = if size == 0 { hash::finish(hash::start(), &[], 0) } else { hash::start() };
    let upload = Upload {
        target,
        owner,
        size,
        sha256,
        received: 0,
        known,
        cut: Vec::new(),
        ends_tick: context.now.tick.saturating_add(limits::UPLOAD_TICKS),
        moved_tick: context.now.tick,
    };
    tables::UPLOADS.put(state, number, &upload)?;
    due::arm(state, &upload.timer(number), told)?;
    Ok(Reply::Uploading { upload: number, next: 0 })
}

/// Makes the refusal of an asset that finds no room.
pub(crate) fn asset_full(field: &str, room: u64, quota: u64) -> Rejection {
    Rejection::full(format!(
        "{field}: all assets have {quota} bytes, {room} are free; delete assets first, or raise \
         the cluster's quota"
    ))
}

/// Checks that there is a place for a new upload; returns the one that must go for it.
fn make_room(state: &impl Read, now: Clock, text: bool) -> Result<Option<(u64, Upload)>, Stop> {
    if !text {
        check_moving(state, now, 0)?;
    }
    let open = uploads(state)?;
    if open.len() < limits::UPLOADS_MAX {
        return Ok(None);
    }
    let longest = open.into_iter().min_by_key(|(number, upload)| (upload.moved_tick, *number));
    match longest {
        Some((number, upload)) if upload.is_silent(now) => Ok(Some((number, upload))),
        _ => Err(Rejection::busy("uploads: 16 are under way; try again in a minute").into()),
    }
}

/// Checks that at most one other upload of an asset moves.
fn check_moving(state: &impl Read, now: Clock, own: u64) -> Result<(), Stop> {
    let open = uploads(state)?;
    let others = open.iter().filter(|(number, upload)| *number != own && upload.is_moving(now));
    if others.count() >= limits::UPLOADS_MOVING_MAX {
        let what = "uploads: two of assets are under way; try again when one has ended";
        return Err(Rejection::busy(what).into());
    }
    Ok(())
}

/// Returns an upload of the actor.
fn own(state: &impl Read, context: &Context<'_>, number: u64) -> Result<Upload, Stop> {
    let Some(found) = upload(state, number)? else {
        let what = format!("upload {number} (it ends by itself after an hour)");
        return Err(Rejection::not_found(what).into());
    };
    match context.actor {
        Actor::Conversation(id) if *id == found.owner => Ok(found),
        Actor::Conversation(_) | Actor::Node => {
            let what =
                format!("upload {number}: belongs to {}, nobody else may use it", found.owner);
            Err(Rejection::forbidden(what).into())
        }
    }
}

pub(crate) fn chunk(
    state: &mut impl Store,
    context: &Context<'_>,
    (number, place): (u64, u64),
    bytes: &[u8],
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    let mut upload = own(state, context, number)?;
    let next = upload.next();
    if upload.is_complete() {
        let what = format!("upload {number}: is complete; use it, or give it up");
        return Err(Rejection::conflict(what).into());
    }
    if place != next {
        let what = format!("upload {number}: waits for chunk {next}, not {place}");
        return Err(Rejection::conflict(what).into());
    }
    let left = upload.size.saturating_sub(upload.received);
    let wanted = left.min(limits::CHUNK_BYTES);
    if length(bytes) != wanted {
        let rule = format!("must be {wanted} in chunk {next} of upload {number}");
        return Err(Rejection::invalid("bytes", rule).into());
    }
    if upload.target == UploadFor::Text {
        let last = wanted == left;
        let Some(cut) = read_on(&upload.cut, bytes).filter(|cut| cut.is_empty() || !last) else {
            let rule = format!("must be UTF-8, chunk {next} of upload {number} is not");
            return Err(Rejection::invalid("bytes", rule).into());
        };
        upload.cut = cut;
    } else {
        check_moving(state, context.now, number)?;
    }
    conversations::active(state, context, told)?;
    tables::CHUNKS.put(state, (number, place), &Chunk { bytes: bytes.to_owned() })?;
    upload.received = upload.received.saturating_add(wanted);
    upload.known = if upload.is_complete() {
        hash::finish(upload.known, bytes, upload.size)
    } else {
        hash::go_on(upload.known, bytes)
    };
    upload.moved_tick = context.now.tick;
    tables::UPLOADS.put(state, number, &upload)?;
    Ok(Reply::Uploading { upload: number, next: upload.next() })
}

/// Goes on reading UTF-8 behind the beginning of a character; returns the beginning of the one that
/// this part cuts, `None` when it is no UTF-8.
fn read_on(cut: &[u8], part: &[u8]) -> Option<Vec<u8>> {
    let mut all = cut.to_owned();
    all.extend_from_slice(part);
    match core::str::from_utf8(&all) {
        Ok(_) => Some(Vec::new()),
        Err(error) if error.error_len().is_none() => {
            Some(all.split_off(error.valid_up_to().min(all.len())))
        }
        Err(_) => None,
    }
}

/// Returns an upload of the actor that has all its bytes, and the right ones.
pub(crate) fn complete(
    state: &impl Read,
    context: &Context<'_>,
    number: u64,
) -> Result<Upload, Stop> {
    let upload = own(state, context, number)?;
    if !upload.is_complete() {
        let (received, size) = (upload.received, upload.size);
        let what = format!("upload {number}: has {received} of {size} bytes; send the rest first");
        return Err(Rejection::conflict(what).into());
    }
    if upload.known != upload.sha256 {
        let what = format!(
            "upload {number}: its bytes do not have the sha256 that was given; give it up and \
             upload again"
        );
        return Err(Rejection::conflict(what).into());
    }
    Ok(upload)
}

/// Ends an upload whose body goes on under another name.
pub(crate) fn close(state: &mut impl Store, number: u64, upload: &Upload) -> Result<(), Fault> {
    tables::UPLOADS.delete(state, number)?;
    due::disarm(state, &upload.timer(number))
}

pub(crate) fn abandon(
    state: &mut impl Store,
    context: &Context<'_>,
    number: u64,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    let upload = own(state, context, number)?;
    conversations::active(state, context, told)?;
    drop_upload(state, context.now, number, &upload, told)?;
    Ok(Reply::Done)
}

/// Ends an upload that was not finished in time.
pub(crate) fn upload_ends(
    state: &mut impl Store,
    now: Clock,
    due: &Due,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    let Ok(number) = due.id.parse() else {
        return Err(due.misnamed("an upload").into());
    };
    let Some(upload) = upload(state, number)? else { return Ok(Reply::fired(0)) };
    drop_upload(state, now, number, &upload, told)?;
    let chunks = upload.next();
    let changed = if chunks > limits::DISCARD_CHUNKS_MAX { 0 } else { chunks };
    Ok(Reply::fired(usize::try_from(changed).unwrap_or(usize::MAX).saturating_add(2)))
}

/// Removes an upload with what has come of it.
fn drop_upload(
    state: &mut impl Store,
    now: Clock,
    number: u64,
    upload: &Upload,
    told: &mut Vec<Event>,
) -> Result<(), Fault> {
    close(state, number, upload)?;
    let mut storage = storage(state)?;
    let coming = match upload.target {
        UploadFor::Text => &mut storage.text_bytes_coming,
        UploadFor::Asset { .. } => &mut storage.asset_bytes_coming,
    };
    *coming = coming.saturating_sub(upload.size);
    tables::STORAGE.put(state, (), &storage)?;
    discard(state, now, Body { number, size: upload.received }, told)
}
