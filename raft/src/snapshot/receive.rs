//! Receiving a snapshot: into a folder of its own, resumable for a day, checked before openraft hears
//! of it, because an error from `install_snapshot` is fatal to the node.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use minicbor::{Decode, Encode};

use super::manifest::{Manifest, checksum};
use super::{MANIFEST, SnapshotFolder};
use crate::store::folder::{sync_files, sync_folder, write_file};
use crate::store::lock;

/// For how long a half-received snapshot is kept.
const PARTIAL_KEPT: Duration = Duration::from_secs(24 * 3600);
/// Bytes that stay free on the disk beside a snapshot that is received.
const DISK_RESERVE_BYTES: u64 = 64 << 20;

/// What the sender must send of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Missing {
    /// The file's place in the manifest.
    #[n(0)]
    pub(crate) file: u32,
    /// From which byte on.
    #[n(1)]
    pub(crate) offset: u64,
}

/// The snapshot that is being received, one at a time.
#[derive(Debug)]
pub(crate) struct Receiver {
    root: PathBuf,
    partial: Mutex<Option<Partial>>,
}

#[derive(Debug)]
struct Partial {
    id: String,
    path: PathBuf,
    manifest: Manifest,
}

impl Receiver {
    /// Makes a receiver under the state's folder.
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), partial: Mutex::new(None) }
    }

    /// Begins or resumes, and returns what is missing.
    ///
    /// # Errors
    /// What is wrong with the manifest, or the disk.
    pub(crate) fn begin(
        &self,
        manifest: Manifest,
        own: Option<&SnapshotFolder>,
    ) -> io::Result<Vec<Missing>> {
        manifest.check().map_err(io::Error::other)?;
        let id = manifest.id();
        let path = self.root.join(format!("r-{id}"));
        fs::create_dir_all(&path)?;
        write_file(&path.join(MANIFEST), &manifest.to_bytes())?;
        link_known(&manifest, own, &path);
        let missing = missing(&manifest, &path)?;
        check_space(&self.root, &manifest, &missing)?;
        *lock(&self.partial) = Some(Partial { id, path, manifest });
        Ok(missing)
    }

    /// Writes a chunk.
    ///
    /// # Errors
    /// When no such snapshot is being received, the chunk lies outside its file, or the disk refuses.
    pub(crate) fn chunk(&self, id: &str, file: u32, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let partial = lock(&self.partial);
        let partial = expect_id(partial.as_ref(), id)?;
        let entry = usize::try_from(file).ok().and_then(|file| partial.manifest.files.get(file));
        let entry = entry.ok_or_else(|| io::Error::other("snapshot: no such file"))?;
        let end = u64::try_from(bytes.len()).ok().and_then(|length| offset.checked_add(length));
        if end.is_none_or(|end| end > entry.bytes) {
            return Err(io::Error::other("snapshot: chunk lies outside its file"));
        }
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(partial.path.join(&entry.name))?;
        file.write_all_at(bytes, offset)
    }

    /// Checks everything that was received and gives it its final name.
    ///
    /// # Errors
    /// When something is missing or damaged; damaged files are deleted, so that they are sent again.
    pub(crate) fn finish(&self, id: &str) -> io::Result<SnapshotFolder> {
        let mut partial = lock(&self.partial);
        let found = expect_id(partial.as_ref(), id)?;
        for file in &found.manifest.files {
            let path = found.path.join(&file.name);
            let (bytes, sha256) = checksum(&path)?;
            if bytes != file.bytes || sha256 != file.sha256 {
                fs::remove_file(&path)?;
                return Err(io::Error::other(format!("snapshot: {} was damaged", file.name)));
            }
        }
        sync_files(&found.path)?;
        let index = found.manifest.index();
        let name = self.root.join(format!("s-{index:020}-{id}"));
        if name.exists() {
            // The very same snapshot is here already: the name holds its hash.
            fs::remove_dir_all(&found.path)?;
        } else {
            fs::rename(&found.path, &name)?;
            sync_folder(&self.root)?;
        }
        let folder = SnapshotFolder::new(name, found.manifest.clone());
        *partial = None;
        Ok(folder)
    }
}

fn expect_id<'a>(partial: Option<&'a Partial>, id: &str) -> io::Result<&'a Partial> {
    partial
        .filter(|partial| partial.id == id)
        .ok_or_else(|| io::Error::other("snapshot: is not being received; offer it again"))
}

/// Links files that an own snapshot has already; what fails is simply sent.
fn link_known(manifest: &Manifest, own: Option<&SnapshotFolder>, target: &Path) {
    let Some(own) = own else { return };
    for file in &manifest.files {
        let same = own
            .manifest()
            .files
            .iter()
            .find(|known| known.sha256 == file.sha256 && known.bytes == file.bytes);
        if let Some(same) = same
            && same.name.ends_with(".sst")
            && !target.join(&file.name).exists()
        {
            drop(fs::hard_link(own.path().join(&same.name), target.join(&file.name)));
        }
    }
}

/// Returns what is missing: a file's length says how far it was received.
fn missing(manifest: &Manifest, path: &Path) -> io::Result<Vec<Missing>> {
    let mut missing = Vec::new();
    for (number, file) in (0_u32..).zip(&manifest.files) {
        let have = match fs::metadata(path.join(&file.name)) {
            Ok(metadata) if metadata.len() <= file.bytes => metadata.len(),
            Ok(_) => {
                fs::remove_file(path.join(&file.name))?;
                0
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                File::create(path.join(&file.name))?;
                0
            }
            Err(error) => return Err(error),
        };
        if have < file.bytes {
            missing.push(Missing { file: number, offset: have });
        }
    }
    Ok(missing)
}

fn check_space(root: &Path, manifest: &Manifest, missing: &[Missing]) -> io::Result<()> {
    let needed = missing.iter().fold(0_u64, |sum, part| {
        let bytes = usize::try_from(part.file)
            .ok()
            .and_then(|file| manifest.files.get(file))
            .map_or(0, |file| file.bytes.saturating_sub(part.offset));
        sum.saturating_add(bytes)
    });
    let disk = rustix::fs::statvfs(root)?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    if free < needed.saturating_add(DISK_RESERVE_BYTES) {
        return Err(io::Error::new(
            io::ErrorKind::StorageFull,
            format!("snapshot: needs {needed} bytes, {} has {free} free", root.display()),
        ));
    }
    Ok(())
}

/// Deletes half-received snapshots that are older than a day.
///
/// # Errors
/// When the folder cannot be read or cleaned.
pub(crate) fn sweep(root: &Path) -> io::Result<()> {
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        let partial = entry.file_name().to_string_lossy().starts_with("r-");
        let age = entry.metadata()?.modified()?.elapsed().unwrap_or_default();
        if partial && age > PARTIAL_KEPT {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}
