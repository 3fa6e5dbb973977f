//! The tools, once.
