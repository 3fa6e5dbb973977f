//! Building a snapshot: the checkpoint in the worker, everything slow in a job.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use openraft::RaftSnapshotBuilder;
use rocksdb::checkpoint::Checkpoint;

use super::manifest::Manifest;
use super::{MANIFEST, SnapshotFolder, Snapshots};
use crate::store::failpoint::failpoint;
use crate::store::folder::{sync_files, sync_folder, write_file};
use crate::store::rocks::io_error;
use crate::store::state::Generation;
use crate::types::{SnapshotMeta, TypeConfig};

/// Finishes a checkpoint that was taken in the worker.
#[derive(Debug)]
pub(crate) struct Builder {
    snapshots: Arc<Snapshots>,
    checkpoint: io::Result<Taken>,
}

/// What the worker took.
#[derive(Debug)]
enum Taken {
    /// A checkpoint, to be finished.
    Checkpoint(PathBuf, SnapshotMeta),
    /// Nothing was applied since the newest snapshot: it is the one.
    Newest(SnapshotFolder),
}

impl Snapshots {
    /// Takes a checkpoint of a generation: one small flush and hard links.
    ///
    /// A failure is kept for [`Builder::build_snapshot`], which can report it.
    pub(crate) fn checkpoint(self: &Arc<Self>, generation: &Generation) -> Builder {
        let begun = tokio::time::Instant::now();
        let checkpoint = self.take(generation);
        metrics::histogram!("nexus_checkpoint_seconds").record(begun.elapsed());
        Builder { snapshots: self.clone(), checkpoint }
    }

    fn take(&self, generation: &Generation) -> io::Result<Taken> {
        let (last_log_id, last_membership) = generation.position()?;
        let meta = SnapshotMeta { last_log_id, last_membership };
        if let Some(newest) = self.newest_folder()
            && newest.manifest().meta()? == meta
        {
            return Ok(Taken::Newest(newest));
        }
        let index = last_log_id.map_or(0, |id| id.index);
        let path = self.root.join(format!("s-{index:020}.new"));
        if path.exists() {
            fs::remove_dir_all(&path)?;
        }
        // The memtable is always flushed (size 0): any other bound never flushes (traps.md 18).
        Checkpoint::new(generation as &rocksdb::DB)
            .and_then(|checkpoint| checkpoint.create_checkpoint(&path))
            .map_err(io_error)?;
        failpoint("build.taken");
        Ok(Taken::Checkpoint(path, meta))
    }
}

impl RaftSnapshotBuilder<TypeConfig> for Builder {
    type SnapshotData = SnapshotFolder;

    async fn build_snapshot(&mut self) -> Result<crate::types::Snapshot, io::Error> {
        let taken = std::mem::replace(
            &mut self.checkpoint,
            Err(io::Error::other("snapshot: was built before")),
        );
        let (path, meta) = match taken? {
            Taken::Checkpoint(path, meta) => (path, meta),
            Taken::Newest(folder) => {
                let meta = folder.manifest().meta()?;
                return Ok(openraft::Snapshot { meta, snapshot: folder });
            }
        };
        let job_meta = meta.clone();
        let folder = self
            .snapshots
            .jobs
            .blocking("snapshot-build", move || finish(&path, &job_meta))
            .await
            .map_err(io::Error::other)??;
        self.snapshots.adopt(&folder);
        tracing::info!(
            index = folder.manifest().index(),
            bytes = folder.manifest().total(),
            "snapshot built"
        );
        Ok(openraft::Snapshot { meta, snapshot: folder })
    }
}

/// Makes a checkpoint durable and describes it; its final name says that it is whole.
fn finish(path: &Path, meta: &SnapshotMeta) -> io::Result<SnapshotFolder> {
    let manifest = Manifest::of(path, meta)?;
    write_file(&path.join(MANIFEST), &manifest.to_bytes())?;
    failpoint("build.described");
    sync_files(path)?;
    let index = manifest.index();
    let root = path.parent().unwrap_or_else(|| Path::new("."));
    let name = root.join(format!("s-{index:020}-{}", manifest.id()));
    if name.exists() {
        super::remove_folder(&name)?;
    }
    failpoint("build.synced");
    fs::rename(path, &name)?;
    failpoint("build.renamed");
    sync_folder(root)?;
    Ok(SnapshotFolder::new(name, manifest))
}
