//! The replicated state machine of nexus: pure, deterministic, `no_std`.
//!
//! Every node applies the same log entries to the same state and must end with the same bytes.
//! So nothing in this crate can reach the world: `no_std` takes away the clock, randomness, files,
//! sockets, threads, the environment and hash maps in one line. Time and ids come in the [`Entry`].
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
pub mod chat;
pub mod clock;
pub mod cluster;
pub mod codec;
pub mod command;
mod context;
pub mod conversations;
pub mod digest;
pub mod due;
pub mod entry;
pub mod event;
pub mod events;
pub mod invariants;
mod keys;
pub mod limits;
pub mod names;
pub mod rejection;
pub mod reply;
mod requests;
pub mod store;
pub mod system;
mod tables;
#[cfg(feature = "testing")]
pub mod testing;

pub use apply::apply;
pub use clock::Clock;
pub use command::{ChatCommand, ClusterCommand, Command, ConversationCommand, SystemCommand};
pub use entry::{Actor, Answered, Entry, NodeId, Proposal, RequestId, Stamp};
pub use event::Event;
pub use rejection::Rejection;
pub use reply::Reply;
pub use store::{Direction, Fault, KeyRange, MemoryStore, Overlay, Read, Store};

/// The state version of a cluster that was never upgraded.
pub const FIRST_VERSION: u32 = 1;

/// The newest state version that this program can apply.
pub const SUPPORTED: u32 = 1;
