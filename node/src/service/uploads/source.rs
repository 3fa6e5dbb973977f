//! Bytes that shall come into the log, wherever they are.

use std::io::SeekFrom;

use nexus_contract::ApiError;
use nexus_domain::command::projects::UploadTarget;
use nexus_domain::limits;
use sha2::{Digest as _, Sha256};
use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};

use crate::service::count;

/// Where bytes are.
#[derive(Debug)]
pub(crate) enum Source {
    /// In memory: what came with a call.
    Memory(Vec<u8>),
    /// In a file of this node's, however long.
    File(File),
}

/// A body that shall come into the log: its hash is known before its first byte is sent.
#[derive(Debug)]
pub(in crate::service) struct Coming {
    /// What it is for.
    pub(super) target: UploadTarget,
    /// All its bytes.
    pub(super) size: u64,
    /// Their SHA-256.
    pub(super) sha256: [u8; 32],
    /// What its caller calls it.
    pub(super) field: &'static str,
    source: Source,
}

impl Coming {
    /// Makes it of a text, by the name that its caller has for it.
    pub(super) fn text(field: &'static str, text: String) -> Self {
        let bytes = text.into_bytes();
        let (size, sha256) = (count(bytes.len()), digest(&bytes));
        Self { target: UploadTarget::Text, size, sha256, field, source: Source::Memory(bytes) }
    }

    /// Makes it of what is known, by the name that its caller has for it.
    pub(in crate::service) fn new(
        (field, target): (&'static str, UploadTarget),
        (size, sha256): (u64, [u8; 32]),
        source: Source,
    ) -> Self {
        Self { target, size, sha256, field, source }
    }

    /// Returns how many chunks it has.
    pub(super) fn chunks(&self) -> u64 {
        self.size.div_ceil(limits::CHUNK_BYTES)
    }

    /// Returns the chunk at a place.
    pub(super) async fn chunk(&mut self, place: u64) -> Result<Vec<u8>, ApiError> {
        let from = place.saturating_mul(limits::CHUNK_BYTES);
        let bytes = self.size.saturating_sub(from).min(limits::CHUNK_BYTES);
        self.source.read(from, bytes).await
    }
}

impl Source {
    /// Reads so many bytes from there.
    pub(crate) async fn read(&mut self, from: u64, bytes: u64) -> Result<Vec<u8>, ApiError> {
        let length = usize::try_from(bytes).unwrap_or(usize::MAX);
        match self {
            Self::Memory(whole) => {
                let from = usize::try_from(from).unwrap_or(usize::MAX);
                let part = whole.get(from..from.saturating_add(length));
                let part =
                    part.ok_or_else(|| ApiError::internal("an upload has less than its size"))?;
                Ok(part.to_vec())
            }
            Self::File(file) => {
                let mut part = vec![0; length];
                let read = async {
                    file.seek(SeekFrom::Start(from)).await?;
                    file.read_exact(&mut part).await
                };
                read.await.map_err(|error| {
                    ApiError::internal(format!("what came cannot be read again: {error}"))
                })?;
                Ok(part)
            }
        }
    }
}

/// Returns the SHA-256 of bytes.
pub(in crate::service) fn digest(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    #[tokio::test]
    async fn chunks_are_the_same_wherever_the_bytes_are() {
        let size = limits::CHUNK_BYTES * 2 + 7;
        let bytes: Vec<u8> = (0..size).map(|at| (at % 251).to_le_bytes()[0]).collect();
        let mut file = File::from_std(tempfile::tempfile().unwrap());
        file.write_all(&bytes).await.unwrap();
        for source in [Source::Memory(bytes.clone()), Source::File(file)] {
            let known = (size, digest(&bytes));
            let mut coming = Coming::new(("content", UploadTarget::Text), known, source);
            assert_eq!(coming.chunks(), 3);
            let mut all = Vec::new();
            for place in [2, 0, 1] {
                all.push((place, coming.chunk(place).await.unwrap()));
            }
            all.sort();
            let all: Vec<u8> = all.into_iter().flat_map(|(_, chunk)| chunk).collect();
            assert!(all == bytes);
        }
    }
}
