//! What must be said in words.

use crate::{Finding, Tree};

/// Modules that do not say what they are for.
///
/// Unit tests in `foo/tests.rs` need not: they are about `foo`.
pub(super) fn modules(tree: &Tree) -> Vec<Finding> {
    tree.rust()
        .filter(|(path, _)| !path.ends_with("/tests.rs") || path.ends_with("/tests/tests.rs"))
        .filter(|(_, text)| {
            !text
                .lines()
                .map(str::trim)
                .find(|line| !line.is_empty() && !line.starts_with("#!["))
                .is_some_and(|line| line.starts_with("//!"))
        })
        .map(|(path, _)| {
            Finding::new(
                path,
                1,
                "the module does not say what it is for",
                "begin the file with `//!` and one sentence",
            )
        })
        .collect()
}

/// Pages without exactly one title, and bounds without a reason.
pub(super) fn pages_and_limits(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.iter() {
        if path.ends_with(".md") {
            titles(path, text, &mut findings);
        } else if path == "limits.rs" || path.ends_with("/limits.rs") {
            reasons(path, text, &mut findings);
        }
    }
    findings
}

fn titles(path: &str, text: &str, findings: &mut Vec<Finding>) {
    let mut inside_code = false;
    let mut count = 0;
    for (line, number) in text.lines().zip(1..) {
        if line.trim_start().starts_with("```") {
            inside_code = !inside_code;
        } else if !inside_code && line.starts_with("# ") {
            count += 1;
            if count > 1 {
                findings.push(Finding::new(
                    path,
                    number,
                    "a second title",
                    "make it a section (`##`), or a page of its own",
                ));
            }
        }
    }
    if count == 0 {
        findings.push(Finding::new(path, 1, "a page without a title", "begin it with `# `"));
    }
}

fn reasons(path: &str, text: &str, findings: &mut Vec<Finding>) {
    let mut documented = false;
    for (line, number) in text.lines().zip(1..) {
        let line = line.trim();
        let constant = ["const ", "pub const ", "pub(crate) const "]
            .iter()
            .find_map(|start| line.strip_prefix(start))
            .filter(|name| !name.starts_with("_:") && !name.starts_with("fn "));
        if let Some(name) = constant {
            if !documented {
                let name = name.split(':').next().unwrap_or(name);
                findings.push(Finding::new(
                    path,
                    number,
                    format!("the bound {name} gives no reason"),
                    "say in a `///` line why it is so and what breaks beyond it",
                ));
            }
            documented = false;
        } else if line.starts_with("///") {
            documented = true;
        } else if !line.starts_with("#[") {
            documented = false;
        }
    }
}
