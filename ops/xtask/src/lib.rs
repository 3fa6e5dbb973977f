//! The rules of the house, as a test.
//!
//! What a compiler or clippy can check is checked there. The rest stands here: sizes, leftovers,
//! files that nothing reaches, arrows between our crates, words that do not belong. Each finding
//! says what to do instead, and the whole runs as an ordinary test (`cargo test -p nexus-xtask`),
//! so that nobody has to remember it.
//!
//! - [`Tree`] is the text of a checkout, read from a folder or made by a test.
//! - [`tidy::check`] is pure: a tree in, findings out.
//! - [`wrap`] breaks comment lines that rustfmt leaves too wide.
//! - The binary has two verbs: `verify` never writes, `fix` does.
//!
//! A new rule is a function over [`Tree`] in a file of [`tidy`], a line in [`tidy::check`], and a
//! fixture under `fixtures/` that shows one case it refuses and one that it lets pass.

mod finding;
pub mod tidy;
mod tree;
pub mod wrap;

pub use finding::Finding;
pub use tree::Tree;
