//! Scripts and goldens that no test reads: they look like coverage and are none.

use std::collections::BTreeMap;

use crate::{Finding, Tree};

/// Folders whose files are there to be read by a test.
const DATA_FOLDERS: [&str; 6] =
    ["scripts", "testscripts", "golden", "goldens", "fixtures", "snapshots"];

/// Finds them.
///
/// A file counts as read when a source file of its crate has a string that names it or a folder
/// above it, no higher than the data folder itself.
pub(super) fn unread(tree: &Tree) -> Vec<Finding> {
    let mut strings: BTreeMap<&str, Vec<Vec<&str>>> = BTreeMap::new();
    for (path, text) in tree.rust() {
        if let Some(folder) = tree.crate_of(path) {
            strings.entry(folder).or_default().extend(quoted(text).map(path_parts));
        }
    }
    let mut findings = Vec::new();
    for (path, _) in tree.iter().filter(|(path, _)| !path.ends_with(".rs")) {
        let Some(folder) = tree.crate_of(path) else { continue };
        let parts = path_parts(path);
        let own = path_parts(folder).len();
        let Some(data) = parts.iter().skip(own).position(|part| DATA_FOLDERS.contains(part)) else {
            continue;
        };
        let known = strings.get(folder).map(Vec::as_slice).unwrap_or_default();
        if !known.iter().any(|string| names(string, &parts, own + data)) {
            findings.push(Finding::new(
                path,
                1,
                "no test of its crate reads this file",
                "name it, or the folder above it, in a test; or remove it",
            ));
        }
    }
    findings
}

/// Whether `string` stands in `path` in one piece that ends at its part `data` or below.
fn names(string: &[&str], path: &[&str], data: usize) -> bool {
    !string.is_empty()
        && path.windows(string.len()).enumerate().any(|(at, window)| {
            at + string.len() > data
                && window.iter().zip(string).all(|(part, word)| word == part || fits(word, part))
        })
}

/// Whether a word with a `{name}` in it could become this part.
fn fits(word: &str, part: &str) -> bool {
    match (word.split_once('{'), word.rsplit_once('}')) {
        (Some((start, _)), Some((_, end))) if !(start.is_empty() && end.is_empty()) => {
            part.len() >= start.len() + end.len() && part.starts_with(start) && part.ends_with(end)
        }
        _ => false,
    }
}

fn path_parts(path: &str) -> Vec<&str> {
    path.split('/').filter(|part| !matches!(*part, "" | "." | "..")).collect()
}

/// Returns what stands between quotes on one line.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| line.split('"').skip(1).step_by(2))
}
