//! The adapter before a node that is there, away, back elsewhere, or refuses.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod client;
mod support;
mod wires;
