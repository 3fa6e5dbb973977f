//! What belongs to this machine alone: what peers showed it, and where they were reached.
//!
//! Small files, each written whole. Losing one costs a check or a dial, never data.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use minicbor::{Decode, Encode};
use nexus_domain::NodeId;

use super::StoreError;
use super::folder::write_file;
use crate::wire::{seal, unseal};

/// What this node has seen of a peer (traps.md 23).
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Seen {
    /// Its highest boot number.
    #[n(0)]
    pub(crate) boot: u64,
    /// The nonce of that boot.
    #[n(1)]
    pub(crate) nonce: u64,
    /// Term and index of the highest log id that it acknowledged to this node as leader.
    #[n(2)]
    pub(crate) acknowledged: Option<(u64, u64)>,
    /// The address that last worked.
    #[n(3)]
    pub(crate) address: Option<String>,
}

/// What is kept of all peers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Peers {
    #[n(0)]
    pub(crate) seen: BTreeMap<NodeId, Seen>,
}

/// The folder `local/`.
#[derive(Clone, Debug)]
pub(crate) struct Local {
    root: PathBuf,
}

impl Local {
    /// Opens the folder, or makes it.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(crate) fn open(data: &Path) -> Result<Self, StoreError> {
        let root = data.join("local");
        fs::create_dir_all(&root).map_err(StoreError::io(&root))?;
        Ok(Self { root })
    }

    /// Reads a value; one that is missing or damaged is the default, and said so.
    pub(crate) fn read<T: Default + for<'b> Decode<'b, ()>>(&self, name: &str) -> T {
        let path = self.root.join(name);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) => {
                if error.kind() != io::ErrorKind::NotFound {
                    tracing::warn!("{}: cannot be read: {error}", path.display());
                }
                return T::default();
            }
        };
        unseal(&bytes).unwrap_or_else(|text| {
            tracing::warn!("{}: {text}; begun anew", path.display());
            T::default()
        })
    }

    /// Writes a value whole.
    ///
    /// # Errors
    /// When the disk refuses.
    pub(crate) fn write<T: Encode<()>>(&self, name: &str, value: &T) -> io::Result<()> {
        write_file(&self.root.join(name), &seal(value))
    }
}
