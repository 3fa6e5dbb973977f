//! The text of a checkout.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Context as _;

/// Folders that hold no text of ours, wherever they stand.
const SKIPPED_NAMES: [&str; 3] = [".git", "target", "node_modules"];

/// A folder whose files break the rules on purpose.
const SKIPPED_PATH: &str = "ops/xtask/fixtures";

/// The largest file that is read: what is bigger is data, not text that somebody wrote.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// The text files of a checkout, by their path from its root with `/` between the parts.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    files: BTreeMap<String, String>,
}

impl Tree {
    /// Reads the checkout at `root`.
    ///
    /// Files that are not UTF-8 are left out, and so are links.
    ///
    /// # Errors
    ///
    /// When a folder or a file cannot be read.
    pub fn read(root: &Path) -> anyhow::Result<Self> {
        let mut tree = Self::default();
        tree.read_folder(root, "")?;
        Ok(tree)
    }

    fn read_folder(&mut self, root: &Path, folder: &str) -> anyhow::Result<()> {
        let place = root.join(folder);
        let entries =
            fs::read_dir(&place).with_context(|| format!("cannot list {}", place.display()))?;
        for entry in entries {
            let entry = entry.with_context(|| format!("cannot list {}", place.display()))?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            let path = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
            let kind = entry.file_type().with_context(|| format!("cannot look at {path}"))?;
            if kind.is_dir() {
                if !SKIPPED_NAMES.contains(&name) && path != SKIPPED_PATH {
                    self.read_folder(root, &path)?;
                }
            } else if kind.is_file() {
                let size = entry.metadata().with_context(|| format!("cannot look at {path}"))?;
                if size.len() > FILE_BYTES_MAX {
                    continue;
                }
                let bytes =
                    fs::read(root.join(&path)).with_context(|| format!("cannot read {path}"))?;
                if let Ok(text) = String::from_utf8(bytes) {
                    self.files.insert(path, text);
                }
            }
        }
        Ok(())
    }

    /// Returns the text of a file, if there is one.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Returns all files in the order of their paths.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Returns the files whose names end in `.rs`.
    pub fn rust(&self) -> impl Iterator<Item = (&str, &str)> {
        self.iter().filter(|(path, _)| path.ends_with(".rs"))
    }

    /// Returns the folders that are crates: the root's own manifest is not among them.
    pub fn crates(&self) -> impl Iterator<Item = &str> {
        self.files.keys().filter_map(|path| path.strip_suffix("/Cargo.toml"))
    }

    /// Returns the innermost crate that a file stands in.
    #[must_use]
    pub fn crate_of(&self, path: &str) -> Option<&str> {
        self.crates()
            .filter(|folder| path.strip_prefix(*folder).is_some_and(|rest| rest.starts_with('/')))
            .max_by_key(|folder| folder.len())
    }
}

impl FromIterator<(String, String)> for Tree {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(files: I) -> Self {
        Self { files: files.into_iter().collect() }
    }
}
