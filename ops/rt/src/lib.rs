//! What every running part of nexus stands on: a clock, jobs, a backoff, and unique bytes.
//!
//! These are the only places that ask the operating system for the time and that start a task on
//! the runtime, so that a test can hold both in its hand. The crate depends on nothing of ours.
//!
//! - [`Clock`]: wall time for people, boot time for durations. [`SystemClock`] in a node,
//!   [`ManualClock`] in a test.
//! - [`Jobs`]: named tasks with one token that stops them, and a shutdown that tells which of
//!   them did not end in time.
//! - [`Backoff`]: growing, jittered pauses between tries.
//! - [`unique_bytes`]: randomness without a seed.

mod backoff;
mod clock;
mod jobs;
mod random;

pub use backoff::Backoff;
pub use clock::{Clock, ManualClock, SystemClock};
pub use jobs::{JobError, Jobs};
pub use random::unique_bytes;
pub use tokio_util::sync::CancellationToken;
