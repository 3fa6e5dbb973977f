//! The adapter before a node that is there, away, back elsewhere, or refuses.

mod client;
mod support;
mod wires;
