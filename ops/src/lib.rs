//! Operating nexus.

pub mod bench;
