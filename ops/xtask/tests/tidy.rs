//! The house is in order.

use std::path::Path;

use nexus_xtask::{Finding, Tree, tidy};

#[test]
fn the_house_is_tidy() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let tree = Tree::read(&root).expect("the checkout can be read");
    assert!(tree.get("Cargo.toml").is_some(), "{} is not the root", root.display());
    let findings = tidy::check(&tree);
    let list: Vec<String> = findings.iter().map(Finding::to_string).collect();
    assert!(list.is_empty(), "{} findings:\n{}", list.len(), list.join("\n"));
}
