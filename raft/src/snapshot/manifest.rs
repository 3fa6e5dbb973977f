//! What a snapshot consists of: its place in the log, and its files with sizes and checksums.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use minicbor::{Decode, Encode};
use sha2::{Digest as _, Sha256};

use crate::types::SnapshotMeta;
use crate::wire::{WireSnapshotMeta, seal, unseal};

/// The snapshot format that this program writes and reads; the handshake carries it.
pub(crate) const FORMAT: u32 = 1;
/// Files of one snapshot: a state of 1 GiB has some hundred.
const FILES_MAX: usize = 10_000;
/// Bytes of a SHA-256.
const SHA_BYTES: usize = 32;
/// Bytes of a file name: RocksDB's own are below 32.
const NAME_BYTES_MAX: usize = 64;

/// A snapshot's table of contents.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Manifest {
    #[n(0)]
    pub(crate) format: u32,
    #[n(1)]
    pub(crate) meta: WireSnapshotMeta,
    #[n(2)]
    pub(crate) files: Vec<FileEntry>,
}

/// One file of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct FileEntry {
    #[n(0)]
    pub(crate) name: String,
    #[n(1)]
    pub(crate) bytes: u64,
    #[cbor(n(2), with = "minicbor::bytes")]
    pub(crate) sha256: Vec<u8>,
}

impl Manifest {
    /// Describes the files of a folder.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub(crate) fn of(folder: &Path, meta: &SnapshotMeta) -> io::Result<Self> {
        let mut files = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if !entry.file_type()?.is_file() {
                continue;
            }
            let (bytes, sha256) = checksum(&entry.path())?;
            let name = entry.file_name().to_string_lossy().into_owned();
            files.push(FileEntry { name, bytes, sha256 });
        }
        files.sort_by(|left, right| left.name.cmp(&right.name));
        Ok(Self { format: FORMAT, meta: meta.into(), files })
    }

    /// Reads a manifest from its file.
    ///
    /// # Errors
    /// When it is not there, damaged, or names files that it may not.
    pub(crate) fn load(path: &Path) -> io::Result<Self> {
        let manifest: Self = unseal(&fs::read(path)?).map_err(io::Error::other)?;
        manifest.check().map_err(io::Error::other)?;
        Ok(manifest)
    }

    /// Returns its bytes for the file.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        seal(self)
    }

    /// Checks what a peer may not be trusted with: format, place in the log, names, sizes.
    ///
    /// # Errors
    /// What is wrong.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.format != FORMAT {
            return Err(format!("snapshot format {}: this program reads {FORMAT}", self.format));
        }
        if self.files.len() > FILES_MAX {
            return Err(format!("snapshot: {} files, at most {FILES_MAX}", self.files.len()));
        }
        if self.meta.last.is_none() {
            return Err("snapshot: says no place in the log".into());
        }
        self.meta.to_meta().map_err(|text| format!("snapshot membership: {text}"))?;
        let mut names = BTreeSet::new();
        let mut total = 0_u64;
        for FileEntry { name, bytes, sha256 } in &self.files {
            if !is_plain(name) {
                return Err(format!("snapshot: file name {name:?} is not a plain one"));
            }
            if !names.insert(name.to_ascii_lowercase()) {
                return Err(format!("snapshot: file {name} is named twice"));
            }
            if sha256.len() != SHA_BYTES {
                return Err(format!("snapshot: file {name} has no SHA-256"));
            }
            total = total.checked_add(*bytes).ok_or("snapshot: sizes are out of all bounds")?;
        }
        Ok(())
    }

    /// Returns the index that it reaches to.
    pub(crate) fn index(&self) -> u64 {
        self.meta.last.map_or(0, |last| last.index)
    }

    /// Returns openraft's metadata.
    ///
    /// # Errors
    /// When its membership makes no sense.
    pub(crate) fn meta(&self) -> io::Result<SnapshotMeta> {
        self.meta.to_meta().map_err(io::Error::other)
    }

    /// Returns the snapshot's name: a hash of its contents.
    pub(crate) fn id(&self) -> String {
        let digest = Sha256::digest(self.to_bytes());
        data_encoding::HEXLOWER.encode(digest.get(..12).unwrap_or_default())
    }

    /// Returns how many bytes all files have.
    pub(crate) fn total(&self) -> u64 {
        self.files.iter().fold(0, |sum, file| sum.saturating_add(file.bytes))
    }
}

fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= NAME_BYTES_MAX
        && !name.starts_with('.')
        && !name.contains("..")
        // The table of contents does not name itself.
        && !name.eq_ignore_ascii_case(super::MANIFEST)
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

/// Returns a file's size and SHA-256.
///
/// # Errors
/// When it cannot be read.
pub(crate) fn checksum(path: &Path) -> io::Result<(u64, Vec<u8>)> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0_u8; 256 << 10];
    let mut total = 0_u64;
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            return Ok((total, hash.finalize().to_vec()));
        }
        hash.update(buffer.get(..count).unwrap_or_default());
        total = total.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
    }
}
