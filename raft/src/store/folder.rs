//! Files and folders that survive a power cut: written whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use super::StoreError;
use super::failpoint::failpoint;

/// The format of the data folder that this program writes.
pub(crate) const FORMAT: u32 = 1;

/// Writes a file whole: temporary name, fsync, rename, fsync of the folder.
///
/// # Errors
/// When the disk refuses; the old file is then still there.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".new");
    let temporary = Path::new(&temporary);
    let mut file = File::create(temporary)?;
    file.write_all(bytes)?;
    failpoint("file.written");
    file.sync_all()?;
    drop(file);
    fs::rename(temporary, path)?;
    failpoint("file.renamed");
    sync_folder(path.parent().unwrap_or_else(|| Path::new(".")))
}

/// Makes the names in a folder durable.
///
/// # Errors
/// When the disk refuses.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Makes every file of a folder, and their names, durable.
///
/// # Errors
/// When the disk refuses.
pub(crate) fn sync_files(path: &Path) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            File::open(entry.path())?.sync_all()?;
        }
    }
    sync_folder(path)
}

/// Returns the format that a data folder says, if it says one.
///
/// # Errors
/// When the file cannot be read, or says a format that this program does not know.
pub(crate) fn check_format(data: &Path) -> Result<bool, StoreError> {
    let path = data.join("format");
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(StoreError::io(&path)(error)),
    };
    if text.trim() == FORMAT.to_string() {
        return Ok(true);
    }
    let found = text.trim().chars().take(40).collect();
    Err(StoreError::Format { path, found, known: FORMAT })
}

/// Marks a new data folder with the format.
///
/// # Errors
/// When the disk refuses.
pub(crate) fn write_format(data: &Path) -> Result<(), StoreError> {
    let path = data.join("format");
    write_file(&path, format!("{FORMAT}\n").as_bytes()).map_err(StoreError::io(&path))
}
