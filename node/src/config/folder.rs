//! The data folder: where it is, and the small files in it that are not the log's.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use nexus_adapter::endpoint::{ENDPOINT_FILE, TOKEN_FILE};
use nexus_contract::http::EndpointFile;
use serde::{Deserialize, Serialize};

/// The file that a running node holds locked.
const LOCK_FILE: &str = "lock";
/// Bytes of the token: beyond guessing.
const TOKEN_BYTES: usize = 32;

/// Why the data folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FolderError {
    #[error("data folder is not known on this system: give --data DIR or NEXUS_ROOT")]
    Unknown,
    #[error("{} cannot be {verb}{}", path.display(), advice(source))]
    File { path: PathBuf, verb: &'static str, source: std::io::Error },
    #[error("data folder {} is in use by {holder}", path.display())]
    Held { path: PathBuf, holder: Box<Holder> },
    #[error("token file {} holds no token: delete it, and the next start makes one", .0.display())]
    Token(PathBuf),
}

/// Says what to do about an error of the disk, for those that a user can do something about.
pub(super) fn advice(error: &std::io::Error) -> &'static str {
    let kind = error.kind();
    if kind == ErrorKind::StorageFull || kind == ErrorKind::QuotaExceeded {
        ": the disk is full, free some space and start again"
    } else if kind == ErrorKind::PermissionDenied {
        ": this user may not, change the folder's owner or give another --data DIR"
    } else if kind == ErrorKind::ReadOnlyFilesystem {
        ": the file system is read-only, give another --data DIR"
    } else if kind == ErrorKind::NotADirectory || kind == ErrorKind::AlreadyExists {
        ": a file stands where a folder should be, give another --data DIR"
    } else {
        ""
    }
}

fn failed(path: &Path, verb: &'static str) -> impl FnOnce(std::io::Error) -> FolderError {
    move |source| FolderError::File { path: path.to_owned(), verb, source }
}

/// Who holds a data folder; written into the lock file by its holder.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Holder {
    /// Its process.
    pub(crate) pid: u32,
    /// Since when, in milliseconds since 1970.
    pub(crate) since: u64,
    /// Where it serves, once it does.
    #[serde(default)]
    pub(crate) http: Option<String>,
}

impl std::fmt::Display for Holder {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.pid == 0 {
            return out.write_str("another process");
        }
        write!(out, "the node with process id {}", self.pid)?;
        if self.since > 0 {
            write!(out, ", running since {}", crate::cli::out::local_time(self.since))?;
        }
        match &self.http {
            Some(http) => write!(out, ", at {http}"),
            None => out.write_str(", which is still starting"),
        }
    }
}

/// The data folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Returns the folder given, or the platform's.
    pub(crate) fn find(given: Option<&Path>) -> Result<Self, FolderError> {
        if let Some(given) = given.filter(|given| !given.as_os_str().is_empty()) {
            let whole = std::path::absolute(given).map_err(failed(given, "found"))?;
            return Ok(Self(whole));
        }
        let base = directories::BaseDirs::new().ok_or(FolderError::Unknown)?;
        Ok(Self(base.data_local_dir().join("n2n-nexus")))
    }

    /// Returns the folder's path.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Returns where the settings are.
    pub(crate) fn settings(&self) -> PathBuf {
        self.0.join("settings.json")
    }

    fn endpoint(&self) -> PathBuf {
        self.0.join(ENDPOINT_FILE)
    }

    /// Makes the folder, for this user alone.
    pub(crate) fn make(&self) -> Result<(), FolderError> {
        if self.0.is_dir() {
            return Ok(());
        }
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&self.0).map_err(failed(&self.0, "made"))
    }

    /// Takes the folder for this process, or says who has it.
    pub(crate) fn lock(&self, since: u64) -> Result<Lock, FolderError> {
        let path = self.0.join(LOCK_FILE);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(failed(&path, "opened"))?;
        match file.try_lock() {
            Ok(()) => {
                let holder = Holder { pid: std::process::id(), since, http: None };
                let mut lock = Lock { file, path, holder };
                lock.write()?;
                Ok(lock)
            }
            Err(std::fs::TryLockError::WouldBlock) => Err(FolderError::Held {
                path: self.0.clone(),
                holder: Box::new(read_holder(&mut file)),
            }),
            Err(std::fs::TryLockError::Error(source)) => {
                Err(FolderError::File { path, verb: "locked", source })
            }
        }
    }

    /// Returns who holds the folder now, if anybody does. Creates nothing.
    pub(crate) fn holder(&self) -> Option<Holder> {
        let mut file = OpenOptions::new().read(true).open(self.0.join(LOCK_FILE)).ok()?;
        match file.try_lock_shared() {
            Err(std::fs::TryLockError::WouldBlock) => Some(read_holder(&mut file)),
            // The lock ends with the file, which is closed here.
            Ok(()) | Err(std::fs::TryLockError::Error(_)) => None,
        }
    }

    /// Returns the endpoint file, if a node left one.
    pub(crate) fn read_endpoint(&self) -> Option<EndpointFile> {
        let text = std::fs::read(self.endpoint()).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Says where this node serves.
    pub(crate) fn write_endpoint(&self, endpoint: &EndpointFile) -> Result<(), FolderError> {
        let path = self.endpoint();
        let text = serde_json::to_vec(endpoint)
            .map_err(|error| failed(&path, "written")(std::io::Error::other(error)))?;
        write_whole(&path, &text, 0o644)
    }

    /// Takes back where this node served; a file that is gone already is fine.
    pub(crate) fn remove_endpoint(&self) {
        let path = self.endpoint();
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                tracing::warn!(path = %path.display(), %error, "file cannot be removed");
            }
            Ok(()) | Err(_) => {}
        }
    }

    /// Returns the token of this machine; the first start makes it.
    pub(crate) fn token(&self) -> Result<String, FolderError> {
        let path = self.0.join(TOKEN_FILE);
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                let token = text.trim();
                if token.is_empty() {
                    return Err(FolderError::Token(path));
                }
                Ok(token.to_owned())
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let bytes = nexus_rt::unique_bytes::<TOKEN_BYTES>();
                let token = data_encoding::HEXLOWER.encode(&bytes);
                write_whole(&path, format!("{token}\n").as_bytes(), 0o600)?;
                Ok(token)
            }
            Err(source) => Err(FolderError::File { path, verb: "read", source }),
        }
    }

    /// Moves the folder aside, keeps it whole, and begins a new one with the same settings and
    /// token. Returns where the old one is.
    pub(crate) fn set_aside(&self, stamp: &str) -> Result<PathBuf, FolderError> {
        let mut name = self.0.as_os_str().to_owned();
        name.push(format!(".before-join-{stamp}"));
        let aside = PathBuf::from(name);
        std::fs::rename(&self.0, &aside).map_err(failed(&self.0, "moved aside"))?;
        self.make()?;
        for file in ["settings.json", TOKEN_FILE] {
            let (from, to) = (aside.join(file), self.0.join(file));
            match std::fs::copy(&from, &to) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(failed(&to, "written")(error));
                }
                Ok(_) | Err(_) => {}
            }
        }
        Ok(aside)
    }

    /// Puts back what [`Self::set_aside`] moved; what it began in its place, which holds nothing
    /// else than copies, goes.
    pub(crate) fn put_back(&self, aside: &Path) -> Result<(), FolderError> {
        let mut name = aside.as_os_str().to_owned();
        name.push(".refused");
        let refused = PathBuf::from(name);
        std::fs::rename(&self.0, &refused).map_err(failed(&self.0, "moved away"))?;
        if let Err(error) = std::fs::rename(aside, &self.0) {
            std::fs::rename(&refused, &self.0).ok();
            return Err(failed(aside, "put back")(error));
        }
        for file in ["settings.json", TOKEN_FILE, LOCK_FILE] {
            std::fs::remove_file(refused.join(file)).ok();
        }
        // Anything else in it was put there by somebody: then it stays.
        if let Err(error) = std::fs::remove_dir(&refused) {
            tracing::warn!(path = %refused.display(), %error, "folder cannot be removed");
        }
        Ok(())
    }
}

/// The folder, taken; it is free again when this is dropped or the process ends.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
    path: PathBuf,
    holder: Holder,
}

impl Lock {
    /// Tells others where this node serves.
    pub(crate) fn serves_at(&mut self, http: &str) -> Result<(), FolderError> {
        self.holder.http = Some(http.to_owned());
        self.write()
    }

    fn write(&mut self) -> Result<(), FolderError> {
        let path = self.path.clone();
        let text = serde_json::to_vec(&self.holder).map_err(std::io::Error::other);
        let write = || {
            let text = text?;
            self.file.set_len(0)?;
            self.file.rewind()?;
            self.file.write_all(&text)?;
            self.file.sync_data()
        };
        write().map_err(failed(&path, "written"))
    }
}

fn read_holder(file: &mut File) -> Holder {
    let mut text = Vec::new();
    let read = file.take(4096).read_to_end(&mut text).ok();
    let holder = read.and_then(|_| serde_json::from_slice(&text).ok());
    // Another process may hold it that never wrote who it is.
    holder.unwrap_or(Holder { pid: 0, since: 0, http: None })
}

/// Writes a file as a whole: a reader sees the old or the new one, and so does a crash.
pub(crate) fn write_whole(path: &Path, bytes: &[u8], mode: u32) -> Result<(), FolderError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let new = PathBuf::from(name);
    let write = || {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
        let mut file = options.open(&new)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&new, path)?;
        match path.parent() {
            Some(folder) => File::open(folder)?.sync_all(),
            None => Ok(()),
        }
    };
    write().map_err(failed(path, "written"))
}
