//! What stands beside an MCP client: the server that it starts over stdio, and the HTTP client of
//! the local node, which the command line uses too.
//!
//! The adapter keeps nothing of value and may be killed at any moment: what matters is in the node.
//! A call goes
//!
//! 1. from the client's line, which `wire` looks at first, to [`server::Server`] (rmcp speaks both
//!    generations of the protocol),
//! 2. through [`caller`], which says who calls and under which request id,
//! 3. to [`client::LocalNode`], which finds the node through the data folder ([`endpoint`]) and
//!    posts the call, again and under the same id while the node is away,
//! 4. and back as structured content plus the same JSON as text, or as an error whose text begins
//!    with its code.
//!
//! The environment is never read here: whoever builds [`stdio::Options`] and
//! [`endpoint::EndpointSource`] passes in what it found there.

pub mod caller;
pub mod client;
pub mod endpoint;
pub mod server;
pub mod stdio;
mod wire;

pub use client::{ClientError, LocalNode};
pub use endpoint::{Endpoint, EndpointError, EndpointSource};
