//! House rules as a test.
