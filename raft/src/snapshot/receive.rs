//! Receiving a snapshot: into a folder of its own, resumable for a day, checked before openraft
//! hears of it, because an error from `install_snapshot` is fatal to the node.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use minicbor::{Decode, Encode};

use super::manifest::{Manifest, checksum};
use super::{Inner, MANIFEST, SnapshotFolder, remove_folder};
use crate::store::failpoint::failpoint;
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
    /// The last one that was received whole, while somebody holds it.
    finished: Mutex<Weak<Inner>>,
    /// Checksums of files that were found damaged after they were taken from this disk.
    distrusted: Mutex<BTreeSet<Vec<u8>>>,
}

#[derive(Debug)]
struct Partial {
    id: String,
    path: PathBuf,
    manifest: Manifest,
    /// The newest own snapshot when it began: it may be the very same.
    own: Option<SnapshotFolder>,
}

impl Receiver {
    /// Makes a receiver under the state's folder.
    pub(crate) fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            partial: Mutex::new(None),
            finished: Mutex::default(),
            distrusted: Mutex::default(),
        }
    }

    /// Begins or resumes, and returns what is missing.
    ///
    /// Files that this disk has already are taken from there. One half-received snapshot is kept:
    /// what others have whole is taken over from them.
    ///
    /// # Errors
    /// What is wrong with the manifest, or the disk.
    pub(crate) fn begin(
        &self,
        manifest: Manifest,
        own: Option<&SnapshotFolder>,
    ) -> io::Result<Vec<Missing>> {
        manifest.check().map_err(io::Error::other)?;
        let mut partial = lock(&self.partial);
        let id = manifest.id();
        let path = self.root.join(format!("r-{id}"));
        fs::create_dir_all(&path)?;
        write_file(&path.join(MANIFEST), &manifest.to_bytes())?;
        failpoint("receive.begun");
        if let Some(own) = own {
            self.take_known(&manifest, own.path(), own.manifest(), &path);
        }
        self.take_over(&manifest, &path)?;
        let missing = missing(&manifest, &path)?;
        check_space(&self.root, &manifest, &missing)?;
        *partial = Some(Partial { id, path, manifest, own: own.cloned() });
        Ok(missing)
    }

    /// Takes what other half-received snapshots have whole, and deletes them.
    fn take_over(&self, manifest: &Manifest, path: &Path) -> io::Result<()> {
        for entry in fs::read_dir(&self.root)? {
            let other = entry?.path();
            let half =
                other.file_name().is_some_and(|name| name.to_string_lossy().starts_with("r-"));
            if !half || other == path {
                continue;
            }
            if let Ok(known) = Manifest::load(&other.join(MANIFEST)) {
                self.take_known(manifest, &other, &known, path);
            }
            fs::remove_dir_all(&other)?;
        }
        Ok(())
    }

    /// Links files that another folder has whole; what fails is simply sent.
    fn take_known(&self, manifest: &Manifest, folder: &Path, known: &Manifest, target: &Path) {
        let distrusted = lock(&self.distrusted);
        for file in &manifest.files {
            let same = known
                .files
                .iter()
                .find(|known| known.sha256 == file.sha256 && known.bytes == file.bytes);
            let Some(same) = same else { continue };
            let from = folder.join(&same.name);
            let whole = fs::metadata(&from).is_ok_and(|from| from.len() == file.bytes);
            if whole
                && same.name.ends_with(".sst")
                && !distrusted.contains(&file.sha256)
                && !target.join(&file.name).exists()
            {
                drop(fs::hard_link(from, target.join(&file.name)));
            }
        }
    }

    /// Writes the next chunk of a file.
    ///
    /// # Errors
    /// When no such snapshot is being received, the chunk is not the file's next, or the disk
    /// refuses.
    pub(crate) fn chunk(&self, id: &str, file: u32, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let partial = lock(&self.partial);
        let partial = expect_id(partial.as_ref(), id)?;
        let entry = usize::try_from(file).ok().and_then(|file| partial.manifest.files.get(file));
        let entry = entry.ok_or_else(|| io::Error::other("snapshot: no such file"))?;
        let end = u64::try_from(bytes.len()).ok().and_then(|length| offset.checked_add(length));
        if end.is_none_or(|end| end > entry.bytes) {
            return Err(io::Error::other("snapshot: chunk lies outside its file"));
        }
        let file = File::options().write(true).open(partial.path.join(&entry.name))?;
        // A file's length says how far it was received. A whole one may be linked to a table in
        // use, and nothing can follow its end.
        if file.metadata()?.len() != offset {
            return Err(io::Error::other("snapshot: chunk is not the next of its file"));
        }
        file.write_all_at(bytes, offset)?;
        failpoint("receive.chunk");
        Ok(())
    }

    /// Checks everything that was received and gives it its final name.
    ///
    /// It goes with its last holder unless it is installed.
    ///
    /// # Errors
    /// When something is missing or damaged; damaged files are deleted, so that they are sent
    /// again.
    pub(crate) fn finish(&self, id: &str) -> io::Result<SnapshotFolder> {
        let mut partial = lock(&self.partial);
        let found = expect_id(partial.as_ref(), id)?;
        self.check_files(found)?;
        sync_files(&found.path)?;
        failpoint("receive.checked");
        let name = final_name(&self.root, found.manifest.index(), id);
        let mut finished = lock(&self.finished);
        let live = finished.upgrade().map(|inner| SnapshotFolder { inner });
        let same = [found.own.clone(), live].into_iter().flatten();
        let same = same.into_iter().find(|folder| folder.path() == name);
        if let Some(same) = same {
            // The very same snapshot is here and in use: the name holds its hash.
            fs::remove_dir_all(&found.path)?;
            *partial = None;
            return Ok(same);
        }
        if name.exists() {
            remove_folder(&name)?;
        }
        fs::rename(&found.path, &name)?;
        failpoint("receive.renamed");
        sync_folder(&self.root)?;
        let folder = SnapshotFolder::provisional(name, found.manifest.clone());
        *finished = Arc::downgrade(&folder.inner);
        *partial = None;
        Ok(folder)
    }

    fn check_files(&self, partial: &Partial) -> io::Result<()> {
        for file in &partial.manifest.files {
            let path = partial.path.join(&file.name);
            let (bytes, sha256) = checksum(&path)?;
            if bytes != file.bytes || sha256 != file.sha256 {
                // Sent again, and not taken from this disk a second time.
                lock(&self.distrusted).insert(file.sha256.clone());
                fs::remove_file(&path)?;
                return Err(io::Error::other(format!("snapshot: {} was damaged", file.name)));
            }
        }
        Ok(())
    }
}

fn final_name(root: &Path, index: u64, id: &str) -> PathBuf {
    root.join(format!("s-{index:020}-{id}"))
}

/// Makes whole snapshots beyond the applied index half-received ones again.
///
/// They were received and not installed when the node died. openraft would install one at the
/// start, over a log that may hold other entries up to its index.
///
/// # Errors
/// When the folder cannot be read or renamed.
pub(crate) fn demote(root: &Path, applied: u64) -> io::Result<()> {
    for entry in fs::read_dir(root)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some((index, id)) = name.strip_prefix("s-").and_then(|rest| rest.split_once('-'))
        else {
            continue;
        };
        if index.parse::<u64>().is_ok_and(|index| index > applied) {
            let target = root.join(format!("r-{id}"));
            if target.exists() {
                fs::remove_dir_all(&target)?;
            }
            fs::rename(&path, target)?;
        }
    }
    Ok(())
}

fn expect_id<'a>(partial: Option<&'a Partial>, id: &str) -> io::Result<&'a Partial> {
    partial
        .filter(|partial| partial.id == id)
        .ok_or_else(|| io::Error::other("snapshot: is not being received; offer it again"))
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
