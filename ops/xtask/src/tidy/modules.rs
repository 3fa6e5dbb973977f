//! Source files that no `mod` reaches: the compiler never sees them, so nothing keeps them true.

use std::collections::BTreeSet;

use crate::{Finding, Tree};

/// Finds them.
pub(super) fn unreached(tree: &Tree) -> Vec<Finding> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<String> = tree
        .rust()
        .map(|(path, _)| path)
        .filter(|path| is_root(tree, path))
        .map(Into::into)
        .collect();
    while let Some(path) = open.pop() {
        if let Some(text) = tree.get(&path) {
            open.extend(children(tree, &path, text));
            reached.insert(path);
        }
        open.retain(|path| !reached.contains(path));
    }
    tree.rust()
        .filter(|(path, _)| tree.crate_of(path).is_some() && !reached.contains(*path))
        .map(|(path, _)| {
            Finding::new(
                path,
                1,
                "no `mod` reaches this file",
                "declare it in its parent module, or remove it",
            )
        })
        .collect()
}

/// Whether cargo starts a target with this file.
fn is_root(tree: &Tree, path: &str) -> bool {
    let Some(folder) = tree.crate_of(path) else { return false };
    let Some(inside) = path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/')) else {
        return false;
    };
    let parts: Vec<&str> = inside.split('/').collect();
    let by_place = matches!(
        parts.as_slice(),
        ["build.rs"]
            | ["src", "lib.rs" | "main.rs"]
            | ["src", "bin", _]
            | ["src", "bin", _, "main.rs"]
            | ["tests" | "benches" | "examples", _]
            | ["tests" | "benches" | "examples", _, "main.rs"]
    );
    let manifest = tree.get(&format!("{folder}/Cargo.toml")).unwrap_or_default();
    by_place || manifest.contains(&format!("path = \"{inside}\""))
}

/// The files that a source file declares as its modules, or includes.
fn children(tree: &Tree, path: &str, text: &str) -> Vec<String> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = name.strip_suffix(".rs").unwrap_or(name);
    let base = if stem == "mod" || is_root(tree, path) {
        folder.to_owned()
    } else {
        format!("{folder}/{stem}")
    };
    let mut found = Vec::new();
    let mut named: Option<&str> = None;
    for line in text.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("#[path = \"") {
            named = rest.split('"').next();
        } else if let Some(module) = declared_module(line) {
            match named.take() {
                Some(file) => found.push(join(folder, file)),
                None => {
                    found.push(format!("{base}/{module}.rs"));
                    found.push(format!("{base}/{module}/mod.rs"));
                }
            }
        } else if let Some((_, rest)) = line.split_once("include!(\"") {
            found.extend(rest.split('"').next().map(|file| join(folder, file)));
        } else if !line.starts_with("#[") {
            named = None;
        }
    }
    found
}

/// Returns `name` of `mod name;`, with any visibility before it.
fn declared_module(line: &str) -> Option<&str> {
    let line = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(')')?.1,
        Some(rest) => rest,
        None => line,
    };
    let name = line.trim_start().strip_prefix("mod ")?.strip_suffix(';')?;
    Some(name.strip_prefix("r#").unwrap_or(name))
}

/// Joins a folder and a path that may begin with `./` or `../`.
fn join(folder: &str, file: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').collect();
    for part in file.split('/') {
        match part {
            "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}
