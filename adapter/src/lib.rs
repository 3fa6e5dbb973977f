//! What stands between an MCP client and a node: the server that a client starts over stdio, the
//! one that every node has at `/mcp`, and the HTTP client of the local node, which the command line
//! uses too.
//!
//! The adapter keeps nothing of value and may be killed at any moment: what matters is in the node.
//! A call goes
//!
//! 1. from the client's line or body, which `wire` looks at first, to `server` (rmcp speaks both
//!    generations of the protocol),
//! 2. through [`caller`], which says who calls and under which request id,
//! 3. over stdio to [`client::LocalNode`], which finds the node through the data folder
//!    ([`endpoint`]) and posts the call, again and under the same id while the node is away; over
//!    HTTP ([`streamable`]) to the node itself,
//! 4. and back as structured content plus the same JSON as text, or as an error whose text begins
//!    with its code.
//!
//! The environment is never read here: whoever builds [`stdio::Options`] and
//! [`endpoint::EndpointSource`] passes in what it found there.

mod beside;
pub mod caller;
pub mod client;
pub mod endpoint;
#[cfg(feature = "conformance")]
mod fixtures;
mod owed;
mod prompts;
mod resources;
mod server;
pub mod stdio;
pub mod streamable;
mod wire;

pub use client::{ClientError, LocalNode};
pub use endpoint::{Endpoint, EndpointError, EndpointSource};
