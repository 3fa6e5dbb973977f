//! The replicated state machine of nexus: pure, deterministic, `no_std`.
//!
//! Every node applies the same log entries to the same state and must end with the same bytes.
//! So nothing in this crate can reach the world: `no_std` takes away the clock, randomness, files,
//! sockets, threads, the environment and hash maps in one line. Time and ids come in the [`Entry`];
//! there are no floats; arithmetic is checked or saturates; and [`apply()`] is total: an entry that
//! panics one node panics all of them, and again after each restart.
//!
//! Three ends, never mixed: a reply and a [`Rejection`] are both replicated answers, the same
//! everywhere; a [`Fault`] is a store that cannot be used, and stops the node. A refusal changes
//! nothing but the books: clock, request records, timers.
//!
//! # Reading order
//!
//! 1. [`entry`], [`command`], [`reply`], [`rejection`], [`event`]: the words.
//! 2. [`store`]: the ordered key-value space and overlays; `keys` and `tables`: what stands in it.
//! 3. [`apply`](mod@apply): the fixed order of checks; `requests`: one effect for each request id.
//! 4. [`clock`], [`due`], [`system`]: ticks, timers, versions.
//! 5. The families: [`cluster`], [`conversations`], [`chat`], [`events`], [`projects`],
//!    [`documents`], [`meetings`], [`tasks`], [`mail`] and [`notices`]; and [`bodies`], where long
//!    texts and files lie. What is to be told to a conversation stands in three places and in one
//!    alone each: messages in its inbox, facts about them and about turns in its notices, and what
//!    follows from the rows of meetings in [`meetings::news`], which nobody writes down.
//! 6. [`codec`], [`digest`], [`limits`], [`invariants`]: bytes, comparison, bounds, what must hold;
//!    `names` and `texts`: forms that families share.
//!
//! # How to add a command, in six steps
//!
//! 1. [`command`]: the variant with the next number, in its family's file, who may bring it
//!    (`origin`), its name in logs (`kind`) and the state version that it needs (`needs`). When
//!    clusters with the present version are in use, that is a new one: raise [`SUPPORTED`], so that
//!    nobody meets it unprepared.
//! 2. `tables`: a row for what it keeps, with a number of its own in the range that says whether it
//!    is content or books; [`limits`]: a bound with its reason for everything that can grow.
//! 3. The family: one function, all checks in a fixed order first, then all writes, then the hints;
//!    a line in the family's `run`; a query for those who read. Nothing but `Context` and the state
//!    decides.
//! 4. [`invariants`]: what must hold between its rows and the others'.
//! 5. `tests/scripts/<family>/`: one file for each situation, every refusal among them (the word
//!    goes into `tests/script/`); `testing::Sequence` and `tests/common` learn to make it, so
//!    the properties cover it. What it costs among many is in `tests/families/`.
//! 6. `tests/golden.rs`: the command in `number`, and in a log of `tests/logs/`, so that its bytes
//!    stay; a new log rather than a longer one, where rows of others would follow. Then
//!    `UPDATE_GOLDENFILES=1 cargo nextest run -p nexus-domain`, and read the diff.
//!
//! `ClusterCommand::Voters` was added by exactly these steps, in a commit of its own:
//! `cluster/voters.rs` is its third, `tests/scripts/cluster/voters` its fifth.
#![no_std]
#![deny(
    clippy::float_arithmetic,
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::expect_used,
    clippy::panic
)]

extern crate alloc;

pub mod apply;
pub mod bodies;
mod calendar;
pub mod chat;
pub mod clock;
pub mod cluster;
pub mod codec;
pub mod command;
mod context;
pub mod conversations;
pub mod digest;
pub mod documents;
pub mod due;
pub mod entry;
pub mod event;
pub mod events;
pub mod invariants;
mod keys;
pub mod limits;
pub mod mail;
pub mod meetings;
pub mod names;
pub mod notices;
pub mod projects;
pub mod rejection;
pub mod reply;
mod requests;
pub mod store;
pub mod system;
mod tables;
pub mod tasks;
#[cfg(feature = "testing")]
pub mod testing;
#[cfg(test)]
mod tests;
mod texts;

pub use apply::apply;
pub use clock::Clock;
pub use command::{
    ChatCommand, ClusterCommand, Command, ConversationCommand, DocumentCommand, MailCommand,
    MeetingCommand, ProjectCommand, SystemCommand, TaskCommand,
};
pub use entry::{Actor, Answered, Entry, NodeId, Proposal, RequestId, Stamp};
pub use event::Event;
pub use rejection::Rejection;
pub use reply::Reply;
pub use store::{Direction, Fault, KeyRange, MemoryStore, Overlay, Read, Store};

/// The state version of a cluster that was never upgraded.
pub const FIRST_VERSION: u32 = 1;

/// The newest state version that this program can apply.
pub const SUPPORTED: u32 = 1;
