//! Sending a snapshot: what it consists of first, then only what the other lacks.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "whatever was not expected here is answered in one way, whichever it is"
)]

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::time::Duration;

use nexus_domain::NodeId;
use tokio::time::Instant;

use super::SnapshotFolder;
use super::receive::Missing;
use crate::rpc::message::{Answer, Call};
use crate::transport::{CallError, Lane, Transport};
use crate::types::Vote;
use crate::wire::{decode, encode};

/// Bytes of one chunk: a slow link shows progress within a second.
const CHUNK_BYTES: u64 = 512 << 10;
/// How long one chunk may take: 512 KiB on a link of half a megabit.
pub(crate) const CHUNK_LIMIT: Duration = Duration::from_secs(10);
/// How long the receiver may take to check, open and install.
const INSTALL_LIMIT: Duration = Duration::from_secs(120);
/// The rate at which a snapshot is sent: entries and heartbeats on the same link stay ahead of it.
const BYTES_PER_SECOND: u64 = 64 << 20;
/// Progress is logged at most this often.
const PROGRESS_EVERY: Duration = Duration::from_secs(5);

/// Why a snapshot was not sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    #[error(transparent)]
    Call(CallError),
    #[error("snapshot file {name} cannot be read")]
    Read { name: String, source: io::Error },
    #[error("receiver: {0}")]
    Receiver(String),
}

/// Sends a snapshot and has it installed; returns the receiver's vote.
///
/// # Errors
/// When the link breaks, the receiver refuses, or a file cannot be read. What was received stays
/// there for a day: the next try goes on where this one ended.
pub(crate) async fn send(
    transport: &dyn Transport,
    to: NodeId,
    vote: Vote,
    snapshot: &SnapshotFolder,
) -> Result<Vote, SendError> {
    let manifest = snapshot.manifest();
    let offer = Call::Offer { vote: vote.into(), manifest: manifest.clone() };
    let (id, missing) = match call(transport, to, &offer, CHUNK_LIMIT).await? {
        Answer::Want { id, missing } => (id, missing),
        Answer::Installed { vote } => return Ok(vote.into()),
        other => return Err(unexpected(&other)),
    };
    let mut progress = Progress::new(to, missing.iter().map(|part| size(snapshot, *part)).sum());
    for part in missing {
        send_file(transport, to, snapshot, &id, part, &mut progress).await?;
    }
    match call(transport, to, &Call::Install { id, vote: vote.into() }, INSTALL_LIMIT).await? {
        Answer::Installed { vote } => Ok(vote.into()),
        other => Err(unexpected(&other)),
    }
}

async fn send_file(
    transport: &dyn Transport,
    to: NodeId,
    snapshot: &SnapshotFolder,
    id: &str,
    part: Missing,
    progress: &mut Progress,
) -> Result<(), SendError> {
    let entry = usize::try_from(part.file)
        .ok()
        .and_then(|file| snapshot.manifest().files.get(file))
        .ok_or_else(|| SendError::Receiver(format!("wants file {}, there is none", part.file)))?;
    let read = |source| SendError::Read { name: entry.name.clone(), source };
    let file = File::open(snapshot.path().join(&entry.name)).map_err(read)?;
    let mut offset = part.offset;
    while offset < entry.bytes {
        let length = CHUNK_BYTES.min(entry.bytes.saturating_sub(offset));
        let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
        file.read_exact_at(&mut bytes, offset).map_err(read)?;
        let chunk = Call::Chunk { id: id.into(), file: part.file, offset, bytes: bytes.into() };
        match call(transport, to, &chunk, CHUNK_LIMIT).await? {
            Answer::Written => {}
            other => return Err(unexpected(&other)),
        }
        offset = offset.saturating_add(length);
        progress.advance(length).await;
    }
    Ok(())
}

fn size(snapshot: &SnapshotFolder, part: Missing) -> u64 {
    usize::try_from(part.file)
        .ok()
        .and_then(|file| snapshot.manifest().files.get(file))
        .map_or(0, |file| file.bytes.saturating_sub(part.offset))
}

async fn call(
    transport: &dyn Transport,
    to: NodeId,
    call: &Call,
    limit: Duration,
) -> Result<Answer, SendError> {
    let answer = transport.call(to, Lane::Snapshot, encode(call), limit).await;
    let bytes = answer.map_err(SendError::Call)?;
    match decode(&bytes).map_err(SendError::Receiver)? {
        Answer::Failed { text, .. } => Err(SendError::Receiver(text)),
        answer => Ok(answer),
    }
}

fn unexpected(answer: &Answer) -> SendError {
    let name = format!("{answer:?}");
    let name = name.split([' ', '(', '{']).next().unwrap_or_default();
    SendError::Receiver(format!("answered {name}, which was not expected"))
}

/// Keeps to the rate and tells how far it is.
struct Progress {
    to: NodeId,
    total: u64,
    sent: u64,
    begun: Instant,
    told: Instant,
}

impl Progress {
    fn new(to: NodeId, total: u64) -> Self {
        tracing::info!(to, bytes = total, "snapshot: sending");
        let now = Instant::now();
        Self { to, total, sent: 0, begun: now, told: now }
    }

    async fn advance(&mut self, bytes: u64) {
        self.sent = self.sent.saturating_add(bytes);
        if self.told.elapsed() >= PROGRESS_EVERY {
            self.told = Instant::now();
            tracing::info!(to = self.to, sent = self.sent, of = self.total, "snapshot: sending");
        }
        let due = Duration::from_millis(self.sent.saturating_mul(1000) / BYTES_PER_SECOND);
        tokio::time::sleep_until(self.begun + due).await;
    }
}
