//! Frames: length, CRC32C, bytes; and the two ends of a long stream of them.
//!
//! The length is checked against the lane's limit before memory is taken, and memory grows with
//! what arrives, so that a claim alone costs nothing. TLS already keeps strangers out; the
//! checksum is for what stands between the disk of one node and the disk of another.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

use super::memory::{MemoryReceiver, MemorySender};
use super::quic::{QuicReceiver, QuicSender};

/// Bytes in front of each frame: length and checksum, little-endian.
pub(crate) const HEADER_BYTES: usize = 8;

/// Frames up to this size are copied beside their header: one small piece is cheaper to send than
/// two. Larger ones are passed on as they are.
const COPY_BYTES_MAX: usize = 2048;

/// Memory that a header alone may claim.
const RESERVE_BYTES_MAX: usize = 64 * 1024;

/// Why a stream ended in another way than by its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// The connection or the stream broke.
    #[error("stream broke: {0}")]
    Broken(String),
    /// A frame is above the limit of its lane.
    #[error("frame of {bytes} bytes is above the limit of {limit}")]
    TooLarge {
        /// The size of the frame.
        bytes: usize,
        /// The limit of the lane.
        limit: usize,
    },
    /// A frame does not have the checksum that it came with.
    #[error("frame is damaged: its checksum differs")]
    Damaged,
    /// The stream ended within a frame.
    #[error("stream ended within a frame")]
    CutOff,
    /// An earlier send was given up half-way, so what follows would be read as part of it.
    #[error("stream is not usable: a send was given up half-way")]
    HalfSent,
}

/// A long stream of frames, both ways; the halves may go to two jobs.
#[derive(Debug)]
pub struct Duplex {
    /// The half that sends.
    pub sender: FrameSender,
    /// The half that receives.
    pub receiver: FrameReceiver,
}

/// The sending half of a stream; dropping it ends the stream in good order.
#[derive(Debug)]
pub struct FrameSender {
    sink: Sink,
    limit: usize,
    /// Set while a write is under way: a write that was given up leaves half a frame behind.
    writing: bool,
}

#[derive(Debug)]
enum Sink {
    Quic(QuicSender),
    Memory(MemorySender),
}

impl FrameSender {
    pub(crate) fn quic(sender: QuicSender, limit: usize) -> Self {
        Self { sink: Sink::Quic(sender), limit, writing: false }
    }

    pub(crate) fn memory(sender: MemorySender, limit: usize) -> Self {
        Self { sink: Sink::Memory(sender), limit, writing: false }
    }

    /// Sends a frame: returns when it is queued, waits only when the peer does not keep up.
    ///
    /// Many small frames travel in one packet. A dropped call leaves the stream unusable.
    ///
    /// # Errors
    ///
    /// [`StreamError`] when the frame is too large or the stream is broken.
    pub async fn send(&mut self, frame: Bytes) -> Result<(), StreamError> {
        self.send_all(&[frame]).await
    }

    /// Sends frames in order, in one go.
    ///
    /// # Errors
    ///
    /// As [`FrameSender::send`]; a frame that is too large stops all before anything is sent.
    pub async fn send_all(&mut self, frames: &[Bytes]) -> Result<(), StreamError> {
        for frame in frames {
            check_length(frame.len(), self.limit)?;
        }
        if self.writing {
            return Err(StreamError::HalfSent);
        }
        self.writing = true;
        match &mut self.sink {
            Sink::Quic(sender) => sender.write(&mut pieces(&[], frames)).await?,
            Sink::Memory(sender) => sender.send(frames).await?,
        }
        self.writing = false;
        Ok(())
    }

    /// Ends the stream in good order; the peer's receiver gives `None` after the last frame.
    pub fn finish(&mut self) {
        match &mut self.sink {
            Sink::Quic(sender) => sender.finish(),
            Sink::Memory(sender) => sender.finish(),
        }
    }

    /// Breaks the stream off: the peer's receiver gives an error.
    pub fn abort(&mut self) {
        match &mut self.sink {
            Sink::Quic(sender) => sender.abort(),
            Sink::Memory(sender) => sender.abort(),
        }
    }
}

/// The receiving half of a stream; dropping it tells the peer to stop sending.
#[derive(Debug)]
pub struct FrameReceiver {
    source: Source,
}

#[derive(Debug)]
enum Source {
    Quic(QuicReceiver),
    Memory(MemoryReceiver),
}

impl FrameReceiver {
    pub(crate) fn quic(receiver: QuicReceiver) -> Self {
        Self { source: Source::Quic(receiver) }
    }

    pub(crate) fn memory(receiver: MemoryReceiver) -> Self {
        Self { source: Source::Memory(receiver) }
    }

    /// Returns the next frame, `None` at the end of the stream; a dropped call loses nothing.
    ///
    /// After an error the stream gives nothing more.
    pub async fn recv(&mut self) -> Option<Result<Bytes, StreamError>> {
        match &mut self.source {
            Source::Quic(receiver) => receiver.recv().await.transpose(),
            Source::Memory(receiver) => receiver.recv().await.transpose(),
        }
    }
}

/// Checks the length of a frame.
pub(crate) fn check_length(bytes: usize, limit: usize) -> Result<(), StreamError> {
    // The header has 32 bits for the length; the limits are far below.
    if bytes > limit || u32::try_from(bytes).is_err() {
        return Err(StreamError::TooLarge { bytes, limit });
    }
    Ok(())
}

/// Lays out frames with their headers for one vectored write, `prefix` in front.
///
/// The frames must have passed [`check_length`].
pub(crate) fn pieces(prefix: &[u8], frames: &[Bytes]) -> Vec<Bytes> {
    let mut pieces = Vec::new();
    let copied: usize = frames.iter().map(|frame| frame.len().min(COPY_BYTES_MAX)).sum();
    let mut small = BytesMut::with_capacity(prefix.len() + copied + frames.len() * HEADER_BYTES);
    small.put_slice(prefix);
    for frame in frames {
        small.put_u32_le(u32::try_from(frame.len()).unwrap_or(u32::MAX));
        small.put_u32_le(crc32c::crc32c(frame));
        if frame.len() <= COPY_BYTES_MAX {
            small.put_slice(frame);
        } else {
            pieces.push(small.split().freeze());
            pieces.push(frame.clone());
        }
    }
    if !small.is_empty() {
        pieces.push(small.freeze());
    }
    pieces
}

/// Cuts arriving bytes into frames.
#[derive(Debug)]
pub(crate) struct Decoder {
    limit: usize,
    /// What arrived last and was not looked at yet.
    pending: Bytes,
    /// A frame of which only a part has arrived, header included.
    partial: BytesMut,
}

impl Decoder {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, pending: Bytes::new(), partial: BytesMut::new() }
    }

    /// Adds bytes that arrived; all frames must have been taken before.
    pub(crate) fn push(&mut self, bytes: Bytes) {
        debug_assert!(self.pending.is_empty(), "frames are taken before bytes are added");
        self.pending = bytes;
    }

    /// Tells whether the bytes so far end within a frame.
    pub(crate) fn is_within_frame(&self) -> bool {
        !self.pending.is_empty() || !self.partial.is_empty()
    }

    /// Takes the next whole frame, `None` when more bytes are needed.
    pub(crate) fn next(&mut self) -> Result<Option<Bytes>, StreamError> {
        if self.partial.is_empty() {
            // The ordinary case: the frame lies in one piece and is not copied.
            if let Some((length, checksum)) = header(&self.pending) {
                check_length(length, self.limit)?;
                if self.pending.len() >= HEADER_BYTES + length {
                    self.pending.advance(HEADER_BYTES);
                    return verify(self.pending.split_to(length), checksum).map(Some);
                }
            }
        }
        self.gather(HEADER_BYTES);
        let Some((length, checksum)) = header(&self.partial) else { return Ok(None) };
        check_length(length, self.limit)?;
        let whole = HEADER_BYTES + length;
        if self.partial.capacity() < whole {
            self.partial.reserve(length.min(RESERVE_BYTES_MAX));
        }
        self.gather(whole);
        if self.partial.len() < whole {
            return Ok(None);
        }
        let mut frame = self.partial.split().freeze();
        frame.advance(HEADER_BYTES);
        verify(frame, checksum).map(Some)
    }

    /// Moves pending bytes over until the partial frame has `wanted` bytes.
    fn gather(&mut self, wanted: usize) {
        let missing = wanted.saturating_sub(self.partial.len());
        let taken = self.pending.split_to(missing.min(self.pending.len()));
        self.partial.extend_from_slice(&taken);
    }
}

fn header(bytes: &[u8]) -> Option<(usize, u32)> {
    let mut bytes = bytes;
    let length = bytes.try_get_u32_le().ok()?;
    let checksum = bytes.try_get_u32_le().ok()?;
    Some((usize::try_from(length).unwrap_or(usize::MAX), checksum))
}

fn verify(frame: Bytes, checksum: u32) -> Result<Bytes, StreamError> {
    if crc32c::crc32c(&frame) == checksum { Ok(frame) } else { Err(StreamError::Damaged) }
}

#[cfg(test)]
mod tests;
