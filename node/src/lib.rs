//! The daemon and the one binary.
