//! Whole clusters.
