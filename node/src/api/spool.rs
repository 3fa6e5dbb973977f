//! Files that are sent, kept on this machine's disk until all their bytes are here.
//!
//! The log must know a file's length and hash before its first byte (decision 41), and one of the
//! cluster's two places is too good for a client that sends slowly. So what is sent lands in a file
//! without a name in the data folder, hashed as it comes; nothing of it is ever in memory whole,
//! and it is gone with whoever holds it, also when the node is killed.

use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use futures::{Stream, TryStreamExt as _};
use nexus_contract::{ApiError, ErrorCode, limits};
use sha2::{Digest as _, Sha256};
use tokio::fs::File;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::service::assets;
use crate::service::uploads::Source;

/// Files that are kept at once: a GiB of disk. The cluster takes two at a time, and the next ones
/// are here when it does.
const FILES_MAX: usize = 4;
/// When a place for one more may be free.
const BUSY_SECONDS: u64 = 5;
/// How long the next bytes of a file may take: a client that is gone without a word is not waited
/// for longer.
const SILENCE: Duration = Duration::from_secs(30);
/// How many times its length a file takes on each machine for a while: here, in the log, in the
/// state, and in the state once more while that is tidied up.
const COPIES: u64 = 4;
/// Bytes that a disk must have beyond that: a node stops when it cannot write.
const RESERVE_BYTES: u64 = 256 * 1024 * 1024;

/// Where files are kept, and how many may be.
#[derive(Debug)]
pub(crate) struct Spool {
    folder: PathBuf,
    places: Arc<Semaphore>,
    silence: Duration,
}

/// A file that is here whole.
#[derive(Debug)]
pub(super) struct Spooled {
    /// What it is for the service.
    pub(super) file: assets::File,
    /// Its place, free when this is dropped.
    pub(super) place: OwnedSemaphorePermit,
}

impl Spool {
    /// Makes the spool in the data folder.
    pub(crate) fn new(folder: &Path) -> Self {
        let places = Arc::new(Semaphore::new(FILES_MAX));
        Self { folder: folder.to_owned(), places, silence: SILENCE }
    }

    /// Keeps what is sent; `length` is what its sender says of it.
    ///
    /// # Errors
    /// `busy`, `too_large`, `disk_full`, or `bad_request` when not all of it comes.
    pub(super) async fn keep<E>(
        &self,
        body: impl Stream<Item = Result<Bytes, E>>,
        length: Option<u64>,
    ) -> Result<Spooled, ApiError> {
        if length.is_some_and(|length| length > limits::ASSET_BYTES_MAX) {
            return Err(too_large());
        }
        let place = Arc::clone(&self.places).try_acquire_owned().map_err(|_full| {
            let text =
                format!("{FILES_MAX} files are on their way here: send it again in a moment");
            ApiError::new(ErrorCode::Busy, text).with_retry_after(BUSY_SECONDS)
        })?;
        let file = tempfile::tempfile_in(&self.folder).map_err(|error| unwritten(&error))?;
        let expected = length.unwrap_or(limits::ASSET_BYTES_MAX);
        has_room(free(&file), expected)?;
        let mut file = File::from_std(file);
        let mut hash = Sha256::new();
        let mut size: u64 = 0;
        let mut body = pin!(body);
        loop {
            let Some(part) = next(&mut body, self.silence).await? else { break };
            size = size.saturating_add(crate::service::count(part.len()));
            if size > limits::ASSET_BYTES_MAX {
                return Err(too_large());
            }
            hash.update(&part);
            file.write_all(&part).await.map_err(|error| unwritten(&error))?;
        }
        file.flush().await.map_err(|error| unwritten(&error))?;
        let sha256 = hash.finalize().into();
        let file = assets::File { size, sha256, source: Source::File(file) };
        Ok(Spooled { file, place })
    }
}

async fn next<E>(
    body: &mut (impl Stream<Item = Result<Bytes, E>> + Unpin),
    silence: Duration,
) -> Result<Option<Bytes>, ApiError> {
    match tokio::time::timeout(silence, body.try_next()).await {
        Ok(Ok(part)) => Ok(part),
        Ok(Err(_broken)) => {
            let text = "body did not arrive whole: send it again; nothing was stored";
            Err(ApiError::new(ErrorCode::BadRequest, text))
        }
        Err(_silent) => {
            let text = format!(
                "no more of the body came for {} s: send it again; nothing was stored",
                silence.as_secs()
            );
            Err(ApiError::new(ErrorCode::BadRequest, text))
        }
    }
}

fn too_large() -> ApiError {
    let text = format!(
        "body is over {} bytes, the most that an asset may have: split it, or store where it is",
        limits::ASSET_BYTES_MAX
    );
    ApiError::new(ErrorCode::TooLarge, text)
}

/// Returns how many bytes the disk of a file has free; `None` when that cannot be asked.
fn free(file: &std::fs::File) -> Option<u64> {
    let disk = rustix::fs::fstatvfs(file).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Checks that a file of this length does not fill the disk.
fn has_room(free: Option<u64>, length: u64) -> Result<(), ApiError> {
    let needed = length.saturating_mul(COPIES).saturating_add(RESERVE_BYTES);
    match free {
        Some(free) if free < needed => {
            let text = format!(
                "the disk of this machine has {free} bytes free, and a file of {length} needs \
                 {needed} for a while: free space under the data folder; nothing was stored"
            );
            Err(ApiError::new(ErrorCode::DiskFull, text))
        }
        Some(_) | None => Ok(()),
    }
}

fn unwritten(error: &io::Error) -> ApiError {
    if error.kind() == io::ErrorKind::StorageFull {
        let text = "the disk of this machine is full: free space under the data folder; nothing \
                    was stored";
        return ApiError::new(ErrorCode::DiskFull, text);
    }
    // Its path stays out: it is nobody's business.
    ApiError::internal(format!("what is sent cannot be kept on disk: {}", error.kind()))
}

#[cfg(test)]
mod tests {
    use futures::stream;

    use super::*;

    type Part = Result<Bytes, &'static str>;

    fn parts(parts: Vec<Part>) -> impl Stream<Item = Part> {
        stream::iter(parts)
    }

    fn part(bytes: &'static [u8]) -> Part {
        Ok(Bytes::from_static(bytes))
    }

    #[tokio::test]
    async fn what_is_sent_is_kept_with_its_length_and_hash() {
        let folder = tempfile::tempdir().unwrap();
        let spool = Spool::new(folder.path());
        let kept = spool.keep(parts(vec![part(&[1, 2]), part(&[]), part(&[3])]), None).await;
        let mut kept = kept.unwrap();
        let expected: [u8; 32] = Sha256::digest([1, 2, 3]).into();
        assert_eq!((kept.file.size, kept.file.sha256), (3, expected));
        assert_eq!(kept.file.source.read(1, 2).await.unwrap(), [2, 3]);
        // It has no name, so a kill leaves nothing.
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let empty = spool.keep(parts(Vec::new()), Some(0)).await.unwrap();
        assert_eq!(empty.file.size, 0);
    }

    #[tokio::test]
    async fn what_is_too_much_or_not_whole_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let spool = Spool::new(folder.path());
        let most = limits::ASSET_BYTES_MAX;
        let code = async |body: Vec<Part>, length| {
            spool.keep(parts(body), length).await.map(|_kept| ()).unwrap_err().code
        };
        assert_eq!(code(Vec::new(), Some(most + 1)).await, ErrorCode::TooLarge);
        assert_eq!(code(vec![part(&[1]), Err("gone")], None).await, ErrorCode::BadRequest);
        let mut kept = Vec::new();
        for _ in 0..FILES_MAX {
            kept.push(spool.keep(parts(Vec::new()), Some(0)).await.unwrap());
        }
        assert_eq!(code(Vec::new(), Some(0)).await, ErrorCode::Busy);
        kept.pop();
        assert!(spool.keep(parts(Vec::new()), Some(0)).await.is_ok());
    }

    #[tokio::test]
    async fn a_sender_that_is_silent_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let spool = Spool { silence: Duration::ZERO, ..Spool::new(folder.path()) };
        let error = spool.keep(stream::pending::<Part>(), None).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::BadRequest);
        assert!(error.message.starts_with("no more of the body came for 0 s"), "{error}");
    }

    #[test]
    fn a_disk_is_never_filled() {
        let needed = COPIES * 100 + RESERVE_BYTES;
        assert!(has_room(Some(needed), 100).is_ok());
        assert!(has_room(None, 100).is_ok());
        assert_eq!(has_room(Some(needed - 1), 100).unwrap_err().code, ErrorCode::DiskFull);
    }
}
