//! Each rule of tidy, shown on a small tree of files.
//!
//! A fixture is one situation. Its first line says what should be seen; `-- PATH --` begins a
//! file, `-- findings --` what tidy says about them. `UPDATE_GOLDENFILES=1` rewrites that part.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use nexus_xtask::{Tree, tidy};

const FINDINGS: &str = "-- findings --\n";

#[test]
fn every_fixture_gives_its_findings() {
    let update = std::env::var_os("UPDATE_GOLDENFILES").is_some();
    let mut failures = String::new();
    for path in fixtures() {
        let text = fs::read_to_string(&path).expect("a fixture can be read");
        let (files, expected) = text.split_once(FINDINGS).unwrap_or((&text, ""));
        let found = findings(files);
        if update {
            fs::write(&path, format!("{files}{FINDINGS}{found}")).expect("it can be written");
        } else if found != expected {
            let name = path.display();
            writeln!(failures, "{name}\nexpected:\n{expected}found:\n{found}").expect("it fits");
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

fn fixtures() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let mut paths: Vec<PathBuf> = fs::read_dir(&folder)
        .expect("the fixtures are there")
        .map(|entry| entry.expect("a folder can be listed").path())
        .collect();
    paths.sort();
    assert!(paths.len() >= 10, "only {} fixtures in {}", paths.len(), folder.display());
    paths
}

fn findings(files: &str) -> String {
    let mut tree: Vec<(String, String)> = Vec::new();
    for line in files.lines().skip(1) {
        let path = line.strip_prefix("-- ").and_then(|rest| rest.strip_suffix(" --"));
        if let Some(path) = path {
            tree.push((path.to_owned(), String::new()));
        } else if let Some((_, text)) = tree.last_mut() {
            // Editors take out blanks at the end of a line, so a fixture writes `␠` for one. A
            // long file is one line with a count: `=600 text`.
            let line = line.replace('␠', " ");
            let (count, line) = repeated(&line).unwrap_or((1, &line));
            for _ in 0..count {
                text.push_str(line);
                text.push('\n');
            }
        }
    }
    let mut list = String::new();
    for finding in tidy::check(&tree.into_iter().collect::<Tree>()) {
        writeln!(list, "{finding}").expect("it fits");
    }
    list
}

fn repeated(line: &str) -> Option<(usize, &str)> {
    let (count, text) = line.strip_prefix('=')?.split_once(' ')?;
    Some((count.parse().ok()?, text))
}
