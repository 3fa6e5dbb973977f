//! Rules about single lines.

use super::COLUMNS_MAX;
use crate::{Finding, Tree};

/// A file longer than this is two files.
const LINES_MAX: usize = 600;

// Words that the rules look for are put together here, so that this file does not break them.
const FIX_ME: &str = concat!("FIX", "ME");
const TO_DO: &str = concat!("TO", "DO");
const DEBUG_PRINT: &str = concat!("dbg", "!(");
const IGNORE: &str = concat!("#[", "ignore]");
const EXTERN_STD: &str = concat!("extern crate ", "std");

/// Names of the machines and folders that a change was made with say nothing to its reader, and
/// a registry's host is the business of each user's own settings.
pub(super) const FOREIGN_WORDS: [&str; 13] = [
    concat!("/wo", "rk/"),
    concat!("/fa", "rm/"),
    concat!("/tmp/", "bash_jobs"),
    concat!("sub", "agent"),
    concat!("helper ", "session"),
    concat!("steering ", "repo"),
    concat!("farm-", "bench"),
    concat!("farm-", "studio"),
    concat!("registry.", "npmjs.org"),
    concat!("index.", "crates.io"),
    concat!("static.", "crates.io"),
    concat!("files.", "pythonhosted.org"),
    concat!("deb.", "debian.org"),
];

/// Compiler settings that a script must not make: they override `.cargo/config.toml`.
const COMPILER_SETTINGS: [&str; 5] = ["RUSTFLAGS", "CFLAGS", "CXXFLAGS", "CC", "CXX"];

/// Files too long, lines too wide, blanks at the end of a line.
pub(super) fn sizes(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.iter().filter(|(path, text)| is_source(path, text)) {
        let code = is_rust(path) || is_script(path, text);
        let lines = text.lines().count();
        if code && lines > LINES_MAX {
            findings.push(Finding::new(
                path,
                LINES_MAX + 1,
                format!("{lines} lines, at most {LINES_MAX}"),
                "split it by subject; long tests go to foo/tests.rs",
            ));
        }
        for (line, number) in text.lines().zip(1..) {
            let columns = line.chars().count();
            if code && columns > COLUMNS_MAX && !line.contains("://") {
                findings.push(Finding::new(
                    path,
                    number,
                    format!("{columns} columns, at most {COLUMNS_MAX}"),
                    "break it (`cargo run -p nexus-xtask -- fix` breaks comments), a string \
                     after a `\\`",
                ));
            }
            if line.ends_with([' ', '\t', '\r']) {
                findings.push(Finding::new(
                    path,
                    number,
                    "blanks at the end of the line",
                    "take them out",
                ));
            }
        }
    }
    findings
}

/// What somebody meant to come back to.
pub(super) fn leftovers(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.iter().filter(|(path, text)| is_source(path, text)) {
        for (line, number) in text.lines().zip(1..) {
            if has_word(line, FIX_ME) {
                findings.push(Finding::new(
                    path,
                    number,
                    format!("{FIX_ME} is not for a commit"),
                    format!("mend it now, or file an issue and write {TO_DO}(#number)"),
                ));
            }
            if has_word(line, TO_DO) && !names_issue(line) {
                findings.push(Finding::new(
                    path,
                    number,
                    format!("{TO_DO} without an issue"),
                    format!("write {TO_DO}(#number), or do it"),
                ));
            }
            if is_rust(path) && line.contains(DEBUG_PRINT) {
                findings.push(Finding::new(
                    path,
                    number,
                    "a debug print",
                    "take it out, or use tracing::debug",
                ));
            }
        }
    }
    findings
}

/// Tests switched off without a word.
pub(super) fn ignored_tests(tree: &Tree) -> Vec<Finding> {
    lines_with(tree, is_rust, IGNORE)
        .map(|(path, number)| {
            Finding::new(
                path,
                number,
                "a test is ignored without a reason",
                "write #[ignore = \"reason, and how to run it\"], or make it pass",
            )
        })
        .collect()
}

/// Words that do not belong in the project.
pub(super) fn foreign_words(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for word in FOREIGN_WORDS {
        for (path, number) in lines_with(tree, |path| path != "Cargo.lock", word) {
            findings.push(Finding::new(
                path,
                number,
                format!("`{word}` names a place that is not the project's"),
                "say it without: a path from the root, a package by its name",
            ));
        }
    }
    findings
}

/// The state machine must not reach the world.
pub(super) fn no_std_domain(tree: &Tree) -> Vec<Finding> {
    lines_with(tree, |path| path.starts_with("raft/domain/src/"), EXTERN_STD)
        .map(|(path, number)| {
            Finding::new(
                path,
                number,
                "the state machine is no_std, so that it can reach no clock, file or hash map",
                "use core and alloc; what needs std belongs to raft/src or a test under tests/",
            )
        })
        .collect()
}

/// Scripts that override how RocksDB is compiled, and so build it again for ten minutes.
pub(super) fn compiler_settings(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.iter().filter(|(path, text)| is_script(path, text)) {
        for (line, number) in text.lines().zip(1..) {
            for name in COMPILER_SETTINGS {
                if sets_variable(line, name) {
                    findings.push(Finding::new(
                        path,
                        number,
                        format!("{name} overrides .cargo/config.toml and rebuilds RocksDB"),
                        "leave it to .cargo/config.toml",
                    ));
                }
            }
        }
    }
    findings
}

fn is_rust(path: &str) -> bool {
    path.ends_with(".rs")
}

fn is_script(path: &str, text: &str) -> bool {
    path.ends_with(".sh") || text.starts_with("#!") && !is_rust(path)
}

/// Whether people write this file by hand.
fn is_source(path: &str, text: &str) -> bool {
    [".rs", ".toml", ".md", ".py"].iter().any(|end| path.ends_with(end)) || is_script(path, text)
}

/// Whether `word` stands in the line by itself and not as a part of another.
fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line.get(..at).and_then(|text| text.chars().next_back());
        let after = line.get(at + word.len()..).and_then(|text| text.chars().next());
        let inside = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        !inside(before) && !inside(after)
    })
}

/// Whether the line holds `#` and a digit.
fn names_issue(line: &str) -> bool {
    line.split('#').skip(1).any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Whether a line of shell assigns to exactly this variable.
fn sets_variable(line: &str, name: &str) -> bool {
    let line = line.trim_start();
    !line.starts_with('#')
        && line
            .split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '='))
            .any(|word| word.strip_prefix(name).is_some_and(|rest| rest.starts_with('=')))
}

fn lines_with<'a>(
    tree: &'a Tree,
    wanted: impl Fn(&str) -> bool + 'a,
    needle: &'a str,
) -> impl Iterator<Item = (&'a str, usize)> {
    tree.iter().filter(move |(path, _)| wanted(path)).flat_map(move |(path, text)| {
        text.lines()
            .zip(1..)
            .filter(move |(line, _)| line.contains(needle))
            .map(move |(_, number)| (path, number))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words cannot stand in a fixture: it is a file of the project too.
    #[test]
    fn every_foreign_word_is_found() {
        for word in FOREIGN_WORDS {
            let file = ("README.md".to_owned(), format!("one\nsee {word}more\n"));
            let found = foreign_words(&Tree::from_iter([file]));
            assert_eq!(found.len(), 1, "{word}");
            assert_eq!((found[0].path.as_str(), found[0].line), ("README.md", 2));
        }
    }

    #[test]
    fn a_lock_file_may_name_its_registry() {
        let file = ("Cargo.lock".to_owned(), FOREIGN_WORDS.join("\n"));
        assert_eq!(foreign_words(&Tree::from_iter([file])), []);
    }
}
