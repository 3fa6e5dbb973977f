//! Rules about manifests: who may know whom, and where a dependency comes from.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::{Finding, Tree};

/// Which of our crates each of ours may depend on: the boundaries of the design.
///
/// A new arrow is a decision and gets a page in `ops/docs/decisions`.
const ARROWS: [(&str, &[&str]); 12] = [
    ("nexus-domain", &["nexus-domain"]),
    ("nexus-rt", &[]),
    ("nexus-raft", &["nexus-domain", "nexus-rt"]),
    ("nexus-discovery", &["nexus-rt"]),
    ("nexus-contract", &["nexus-contract", "nexus-domain"]),
    ("nexus-adapter", &["nexus-contract", "nexus-rt"]),
    ("nexus-ops", &["nexus-raft", "nexus-domain", "nexus-rt"]),
    (
        "nexus-node",
        &[
            "nexus-adapter",
            "nexus-ops",
            "nexus-raft",
            "nexus-discovery",
            "nexus-contract",
            "nexus-domain",
            "nexus-rt",
        ],
    ),
    ("base2histogram", &[]),
    ("nexus-bench", &["nexus-rt"]),
    ("nexus-xtask", &["nexus-contract"]),
    (
        "nexus-tests",
        &[
            "nexus-node",
            "nexus-adapter",
            "nexus-ops",
            "nexus-raft",
            "nexus-discovery",
            "nexus-contract",
            "nexus-domain",
            "nexus-rt",
        ],
    ),
];

/// Crates that must not come in, not even through others, and why.
const BANNED: [(&str, &str); 6] = [
    ("openssl", "TLS is rustls with ring"),
    ("openssl-sys", "TLS is rustls with ring"),
    ("native-tls", "TLS is rustls with ring"),
    ("aws-lc-rs", "cryptography is ring"),
    ("aws-lc-sys", "cryptography is ring; it needs cmake"),
    ("cmake", "the build needs clang and nothing more"),
];

const KINDS: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];

/// Checks all manifests and the lock file.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.iter() {
        if path.ends_with("/Cargo.toml") {
            manifest(path, text, &mut findings);
        } else if path == "Cargo.lock" {
            lock_file(path, text, &mut findings);
        }
    }
    findings
}

fn manifest(path: &str, text: &str, findings: &mut Vec<Finding>) {
    let table = match DeTable::parse(text) {
        Ok(table) => table.into_inner(),
        Err(error) => {
            let line = error.span().map_or(1, |span| line_at(text, span.start));
            findings.push(Finding::new(path, line, error.message(), "write valid TOML"));
            return;
        }
    };
    let Some(name) = text_at(&table, &["package", "name"]) else { return };
    if !is_true(&table, &["lints", "workspace"]) {
        findings.push(Finding::new(
            path,
            1,
            "the crate does not take the lints of the house",
            "add `[lints]` with `workspace = true`",
        ));
    }
    let arrows = ARROWS.iter().find(|(from, _)| *from == name).map(|(_, to)| *to);
    if arrows.is_none() {
        findings.push(Finding::new(
            path,
            1,
            format!("{name} has no row in the table of arrows"),
            "add one in ops/xtask/src/tidy/manifests.rs, and a page in ops/docs/decisions",
        ));
    }
    for (dependency, value) in dependencies(&table) {
        let line = line_at(text, dependency.span().start);
        let dependency = dependency.get_ref().as_ref();
        if !value.as_table().is_some_and(|table| is_true(table, &["workspace"])) {
            findings.push(Finding::new(
                path,
                line,
                format!("{dependency} has a version of its own"),
                format!(
                    "put it under [workspace.dependencies] in the root and write \
                     `{dependency}.workspace = true`"
                ),
            ));
        }
        let forbidden = dependency.starts_with("nexus-")
            && arrows.is_some_and(|arrows| !arrows.contains(&dependency));
        if forbidden {
            findings.push(Finding::new(
                path,
                line,
                format!("the arrow {name} -> {dependency} is not in the design"),
                "move the code to where it may be known, or write a decision page and a row",
            ));
        }
    }
}

fn lock_file(path: &str, text: &str, findings: &mut Vec<Finding>) {
    for (line, number) in text.lines().zip(1..) {
        let name = line.strip_prefix("name = \"").and_then(|rest| rest.strip_suffix('"'));
        if let Some((name, reason)) = BANNED.iter().find(|(banned, _)| name == Some(*banned)) {
            findings.push(Finding::new(
                path,
                number,
                format!("{name} is banned: {reason}"),
                format!("see who brings it (`cargo tree -i {name} --target all`), turn that off"),
            ));
        }
    }
}

type Key<'i> = Spanned<toml::de::DeString<'i>>;

/// All dependencies of a manifest, of every kind and platform.
fn dependencies<'t, 'i>(table: &'t DeTable<'i>) -> Vec<(&'t Key<'i>, &'t DeValue<'i>)> {
    let platforms = value_at(table, &["target"]).and_then(DeValue::as_table);
    let platforms = platforms.into_iter().flat_map(|table| table.values());
    let tables = platforms.filter_map(|value| value.get_ref().as_table());
    std::iter::once(table)
        .chain(tables)
        .flat_map(|table| KINDS.iter().filter_map(|kind| value_at(table, &[kind])?.as_table()))
        .flat_map(|table| table.iter().map(|(key, value)| (key, value.get_ref())))
        .collect()
}

fn value_at<'t, 'i>(table: &'t DeTable<'i>, keys: &[&str]) -> Option<&'t DeValue<'i>> {
    let (first, rest) = keys.split_first()?;
    let (_, value) = table.iter().find(|(key, _)| key.get_ref().as_ref() == *first)?;
    let value = value.get_ref();
    if rest.is_empty() { Some(value) } else { value_at(value.as_table()?, rest) }
}

fn text_at<'t>(table: &'t DeTable<'_>, keys: &[&str]) -> Option<&'t str> {
    value_at(table, keys)?.as_str()
}

fn is_true(table: &DeTable<'_>, keys: &[&str]) -> bool {
    value_at(table, keys).and_then(DeValue::as_bool).unwrap_or(false)
}

fn line_at(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}
