//! The tools of nexus, written down once.
//!
//! Names, titles, hints, argument and result types, error codes and the bodies of the HTTP
//! interface stand here; the JSON Schemas are made from the types. The node validates against
//! them, the MCP server lists what clients need of them, the command line prints them, and
//! `golden/tools.json` (what is served), `golden/contract.json` (every tool, and what is checked)
//! and `golden/errors.json` show every change of the interface as a diff.
//!
//! The crate is pure: no clock, no network, no file. What a call *does* is decided in the node's
//! services; how it is logged is decided in the domain. Log commands and tool inputs are separate
//! types on purpose: the log's format lives for ever, this contract is negotiated with clients.
//!
//! # How to add a tool, in five steps
//!
//! 1. **Types.** In the module of its family (`chat.rs`, `events.rs`, …; a new family is a new
//!    module) write `FooInput` and `FooOutput` with `serde` and `schemars` derives and
//!    `rename_all = "camelCase"`. The fields' doc comments of an input become the schema's
//!    descriptions, so they are short, and `transform = silent` takes them out where the name says
//!    it; limits stand in [`limits`] and are given by `#[schemars(length(..), range(..))]`,
//!    defaults by `#[serde(default = "..")]`. Ids are `#[schemars(with = "KnownId")]` or
//!    `"ProjectId"`, and `transform = brief` lists a field by its type and words while all of it is
//!    checked.
//! 2. **The tool.** Below them write `pub struct Foo;` and `impl Tool for Foo`: name, title, one
//!    or two sentences of description, the four hints, whether the result's schema is published
//!    (no for a bare acknowledgement), and in `check` what no schema can say, such as two
//!    arguments that exclude each other.
//! 3. **The catalogue.** Add `ToolSpec::of::<Foo>` to the family's `TOOLS`; a new family is one
//!    more line of `FAMILIES` in `catalog.rs`. The list, the command line, the MCP server and the
//!    goldens go by it; nothing else lists tools.
//! 4. **The service.** `served` of the family's line says whether nodes serve it: nobody is shown a
//!    tool that does not work. In `node/src/service/<family>.rs` add the function from `FooInput`
//!    to `FooOutput`. The dispatcher there matches over the catalogue's names, and its test fails
//!    while a tool of the catalogue is not served.
//! 5. **Tests.** Add a right call that gives every field to `testing/calls.rs` (wrong ones are made
//!    from it), the rules of `check` to `tests/families/rules.rs`, results to
//!    `tests/families/results.rs`, the tool's line to the table of `tests/golden.rs`; then
//!    `UPDATE_GOLDENFILES=1 cargo test -p nexus-contract`, and read the diff. What running nodes
//!    must refuse is one more table of `tests/tests/bad_input/`.
//!
//! Reading order: [`tool`], [`catalog`], [`chat`], [`validate`], [`error`], [`http`].

pub mod catalog;
pub mod chat;
pub mod conversations;
pub mod documents;
pub mod error;
pub mod events;
pub mod http;
pub mod ids;
pub mod json;
pub mod limits;
pub mod mail;
pub mod maintenance;
pub mod marks;
pub mod meetings;
pub mod projects;
mod schema;
pub mod tasks;
#[cfg(feature = "testing")]
pub mod testing;
pub mod text;
pub mod tool;
pub mod validate;

pub use error::{ApiError, ErrorCode};
pub use marks::ReadMarks;
pub use tool::{Hints, Tool, ToolSpec};
pub use validate::Violation;

/// The contract's version: raised when a tool's input or result changes in a way that an older
/// client would misread. A client and a node of different versions say so instead of guessing.
pub const CONTRACT_VERSION: u32 = 1;
