//! Whole clusters, as their users run them: the built binary, its processes, its network.
//!
//! The tests are under `tests/tests/`, one situation a file; what they stand on is here: a
//! [`process`] for each node, a [`command`] run to its end, a [`call`] by HTTP, and [`wait`] for
//! everything that takes time. `tests/clients/` holds the scripted model behind the real clients,
//! and the programs that are clients by the official SDKs.
#![expect(clippy::indexing_slicing, reason = "JSON without the key gives null, and a test fails")]

pub mod call;
pub mod command;
pub mod network;
pub mod process;
pub mod scripted;
pub mod sdks;
pub mod wait;
