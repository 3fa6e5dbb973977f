//! Snapshots: checkpoints of the state, kept as folders, sent file by file, installed as a
//! generation.
//!
//! ```text
//! build    worker: checkpoint (hard links) → job: fsync, checksums, manifest, rename  `build.rs`
//! send     manifest → what the other lacks → chunks → install                         `send.rs`
//! receive  into r-ID/, resumable, checked before openraft hears of it                 `receive.rs`
//! ```
//!
//! At most two snapshot folders exist: the newest, and one that is still being read.

pub(crate) mod build;
pub(crate) mod manifest;
pub(crate) mod receive;
pub(crate) mod send;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};

pub(crate) use build::Builder;
use manifest::Manifest;
use nexus_rt::Jobs;

use crate::store::failpoint::failpoint;
use crate::store::folder::sync_files;
use crate::store::lock;
use crate::store::rocks::Direct;
use crate::store::state::StateStore;
use crate::types::SnapshotMeta;

/// The file inside a snapshot's folder that describes it.
const MANIFEST: &str = "MANIFEST.nexus";

/// A snapshot on this disk; its folder is deleted when it is replaced and nobody reads it any more.
#[derive(Clone, Debug)]
pub(crate) struct SnapshotFolder {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    manifest: Manifest,
    doomed: AtomicBool,
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.doomed.load(Ordering::Relaxed)
            && let Err(error) = remove_folder(&self.path)
        {
            tracing::warn!("{}: old snapshot cannot be deleted: {error}", self.path.display());
        }
    }
}

impl SnapshotFolder {
    fn new(path: PathBuf, manifest: Manifest) -> Self {
        Self { inner: Arc::new(Inner { path, manifest, doomed: AtomicBool::new(false) }) }
    }

    /// Makes one that goes with its last holder unless it is adopted.
    fn provisional(path: PathBuf, manifest: Manifest) -> Self {
        Self { inner: Arc::new(Inner { path, manifest, doomed: AtomicBool::new(true) }) }
    }

    /// Returns its folder.
    pub(crate) fn path(&self) -> &Path {
        &self.inner.path
    }

    /// Returns what it consists of.
    pub(crate) fn manifest(&self) -> &Manifest {
        &self.inner.manifest
    }
}

/// All snapshots of this node.
#[derive(Debug)]
pub(crate) struct Snapshots {
    root: PathBuf,
    newest: Mutex<Option<SnapshotFolder>>,
    /// Replaced ones that somebody may still read.
    replaced: Mutex<Vec<Weak<Inner>>>,
    jobs: Jobs,
}

impl Snapshots {
    /// Finds the newest snapshot under the state's folder and deletes what is left of others.
    ///
    /// # Errors
    /// When the folder cannot be read or cleaned.
    pub(crate) fn open(root: &Path, jobs: Jobs) -> io::Result<Self> {
        let mut found: Option<SnapshotFolder> = None;
        for entry in fs::read_dir(root)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if !name.starts_with("s-") {
                continue;
            }
            // A name with an ending is a checkpoint that was not finished, whatever is in it.
            let whole = !name.contains('.');
            let Some(manifest) =
                Manifest::load(&path.join(MANIFEST)).ok().filter(|_manifest| whole)
            else {
                remove_folder(&path)?;
                continue;
            };
            let folder = SnapshotFolder::new(path, manifest);
            match &found {
                Some(best) if best.manifest().index() >= folder.manifest().index() => {
                    folder.inner.doomed.store(true, Ordering::Relaxed);
                }
                Some(_) | None => {
                    if let Some(old) = found.replace(folder) {
                        old.inner.doomed.store(true, Ordering::Relaxed);
                    }
                }
            }
        }
        receive::sweep(root)?;
        let replaced = Mutex::default();
        Ok(Self { root: root.to_owned(), newest: Mutex::new(found), replaced, jobs })
    }

    /// Returns the newest snapshot as openraft wants it.
    ///
    /// # Errors
    /// When its membership cannot be understood.
    pub(crate) fn newest(&self) -> io::Result<Option<crate::types::Snapshot>> {
        let Some(folder) = lock(&self.newest).clone() else { return Ok(None) };
        let meta = folder.manifest().meta()?;
        Ok(Some(openraft::Snapshot { meta, snapshot: folder }))
    }

    /// Returns the newest snapshot's folder.
    pub(crate) fn newest_folder(&self) -> Option<SnapshotFolder> {
        lock(&self.newest).clone()
    }

    /// Returns whether another snapshot would be the third folder: one of before is still read.
    pub(crate) fn crowded(&self) -> bool {
        let mut replaced = lock(&self.replaced);
        replaced.retain(|inner| inner.strong_count() > 0);
        !replaced.is_empty()
    }

    /// Makes a finished folder the newest snapshot.
    fn adopt(&self, folder: &SnapshotFolder) {
        let mut newest = lock(&self.newest);
        let older = newest
            .as_ref()
            .is_some_and(|newest| newest.manifest().index() > folder.manifest().index());
        // An install may have brought a newer one while this was built.
        folder.inner.doomed.store(older, Ordering::Relaxed);
        if older {
            return;
        }
        if let Some(old) = newest.replace(folder.clone())
            && old.path() != folder.path()
        {
            old.inner.doomed.store(true, Ordering::Relaxed);
            lock(&self.replaced).push(Arc::downgrade(&old.inner));
        }
    }

    /// Opens a received snapshot beside its final place and compares it with what it says; returns
    /// why this program cannot go on with it, if it cannot.
    ///
    /// # Errors
    /// When it does not open, or holds another state.
    pub(crate) fn verify(&self, snapshot: &SnapshotFolder) -> io::Result<Option<String>> {
        let mut options = rocksdb::Options::default();
        options.set_paranoid_checks(true);
        let db = rocksdb::DB::open_for_read_only(&options, snapshot.path(), false)
            .map_err(crate::store::rocks::io_error)?;
        let meta = snapshot.manifest().meta()?;
        let (applied, membership) = crate::store::state::position(&db)?;
        if applied != meta.last_log_id || membership != meta.last_membership {
            return Err(io::Error::other("snapshot: holds another state than it says"));
        }
        match nexus_domain::system::known_version(&Direct(&db)) {
            Ok(_known) => Ok(None),
            Err(fault) if fault.is_too_old() => Ok(Some(fault.what)),
            Err(fault) => Err(io::Error::other(fault.to_string())),
        }
    }

    /// Installs a received snapshot as a new generation of the state, on a thread for slow work.
    ///
    /// # Errors
    /// When the disk refuses or the files do not hold what the metadata says.
    pub(crate) async fn install(
        self: &Arc<Self>,
        state: Arc<StateStore>,
        meta: SnapshotMeta,
        snapshot: SnapshotFolder,
    ) -> io::Result<()> {
        let snapshots = self.clone();
        let install = move || {
            state.install(
                |target| link_files(&snapshot, target),
                |generation| {
                    let (applied, membership) = generation.position()?;
                    if applied != meta.last_log_id || membership != meta.last_membership {
                        return Err(io::Error::other("snapshot: holds another state than it says"));
                    }
                    Ok(())
                },
            )?;
            snapshots.adopt(&snapshot);
            failpoint("install.adopted");
            Ok(())
        };
        self.jobs.blocking("snapshot-install", install).await.map_err(io::Error::other)?
    }
}

/// Deletes a snapshot's folder: what describes it first, so that a half-deleted one is none.
fn remove_folder(path: &Path) -> io::Result<()> {
    match fs::remove_file(path.join(MANIFEST)) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    fs::remove_dir_all(path)
}

/// Fills a folder with a snapshot's files: tables are immutable and linked, the rest is copied.
pub(crate) fn link_files(snapshot: &SnapshotFolder, target: &Path) -> io::Result<()> {
    for file in &snapshot.manifest().files {
        let (from, to) = (snapshot.path().join(&file.name), target.join(&file.name));
        let is_table = Path::new(&file.name).extension().is_some_and(|ending| ending == "sst");
        if !(is_table && fs::hard_link(&from, &to).is_ok()) {
            fs::copy(&from, &to)?;
        }
        failpoint("install.file");
    }
    sync_files(target)
}
