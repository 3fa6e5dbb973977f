//! The two halves of a QUIC stream as frames.

use bytes::Bytes;
use quinn::{ReadError, RecvStream, SendStream, VarInt};

use super::describe;
use crate::transport::code;
use crate::transport::frame::{Decoder, StreamError, pieces};

/// Bytes taken from a stream at once.
const READ_BYTES: usize = 256 * 1024;

/// The sending half.
#[derive(Debug)]
pub(crate) struct QuicSender {
    stream: SendStream,
}

impl QuicSender {
    pub(super) fn new(stream: SendStream) -> Self {
        Self { stream }
    }

    /// Writes all pieces; waits only for flow control.
    pub(crate) async fn write(&mut self, pieces: &mut [Bytes]) -> Result<(), StreamError> {
        self.stream
            .write_all_chunks(pieces)
            .await
            .map_err(|error| StreamError::Broken(error.to_string()))
    }

    /// Writes one frame after a prefix and ends the stream.
    pub(super) async fn write_last(&mut self, prefix: u8, frame: Bytes) -> Result<(), StreamError> {
        self.write(&mut pieces(&[prefix], &[frame])).await?;
        self.finish();
        Ok(())
    }

    /// Sets the priority against the other streams of the connection.
    pub(super) fn set_priority(&self, priority: i32) {
        self.stream.set_priority(priority).ok();
    }

    pub(crate) fn finish(&mut self) {
        // A stream that is already over needs no end.
        self.stream.finish().ok();
    }

    pub(crate) fn abort(&mut self) {
        self.stream.reset(VarInt::from_u32(code::MALFORMED)).ok();
    }
}

/// The receiving half.
#[derive(Debug)]
pub(crate) struct QuicReceiver {
    stream: RecvStream,
    decoder: Decoder,
    /// Set after an error or the end: nothing follows.
    over: bool,
}

impl QuicReceiver {
    pub(super) fn new(stream: RecvStream, limit: usize) -> Self {
        Self { stream, decoder: Decoder::new(limit), over: false }
    }

    /// Reads one byte ahead of the frames.
    pub(super) async fn byte(&mut self) -> Result<u8, StreamError> {
        let mut byte = [0];
        self.stream.read_exact(&mut byte).await.map_err(|error| match error {
            quinn::ReadExactError::FinishedEarly(_) => StreamError::CutOff,
            quinn::ReadExactError::ReadError(error) => broken(&error),
        })?;
        let [byte] = byte;
        Ok(byte)
    }

    /// Returns the next frame, `None` at the end of the stream.
    pub(crate) async fn recv(&mut self) -> Result<Option<Bytes>, StreamError> {
        if self.over {
            return Ok(None);
        }
        let result = self.next().await;
        if !matches!(result, Ok(Some(_))) {
            self.over = true;
        }
        if let Err(StreamError::TooLarge { .. } | StreamError::Damaged) = result {
            self.stream.stop(VarInt::from_u32(code::TOO_LARGE)).ok();
        }
        result
    }

    /// Returns the one frame that must be there.
    pub(super) async fn only(&mut self) -> Result<Bytes, StreamError> {
        self.recv().await?.ok_or(StreamError::CutOff)
    }

    async fn next(&mut self) -> Result<Option<Bytes>, StreamError> {
        loop {
            if let Some(frame) = self.decoder.next()? {
                return Ok(Some(frame));
            }
            match self.stream.read_chunk(READ_BYTES, true).await {
                Ok(Some(chunk)) => self.decoder.push(chunk.bytes),
                Ok(None) if self.decoder.is_within_frame() => return Err(StreamError::CutOff),
                Ok(None) => return Ok(None),
                Err(error) => return Err(broken(&error)),
            }
        }
    }
}

fn broken(error: &ReadError) -> StreamError {
    if let ReadError::ConnectionLost(error) = error {
        return StreamError::Broken(describe(error));
    }
    StreamError::Broken(error.to_string())
}
