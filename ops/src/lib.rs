//! Operating nexus.
