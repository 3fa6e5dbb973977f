//! The tasks of a process, by name.
//!
//! Every task is started here, so that a stop can cancel all of them, wait, and tell which did
//! not end. Two kinds differ in what a panic means:
//!
//! - an ordinary job ([`Jobs::spawn`], [`Jobs::blocking`]) ends with it, logged; the rest go on;
//! - a core job ([`Jobs::spawn_core`]) takes the process with it: without that job the node would
//!   look alive and do nothing, and a stopped node is safe where a wrong one is not.

use std::any::Any;
use std::collections::BTreeMap;
use std::future::Future;
use std::io::Write as _;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Why a blocking job gave no result.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// The job panicked.
    #[error("job {name} panicked: {message}")]
    Panicked {
        /// The name that the job was started with.
        name: &'static str,
        /// What the panic said.
        message: String,
    },
    /// The runtime ended before the job began.
    #[error("job {name} was not run: the process is stopping")]
    Cancelled {
        /// The name that the job was started with.
        name: &'static str,
    },
}

/// The jobs of one process; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Jobs {
    tracker: TaskTracker,
    token: CancellationToken,
    running: Running,
}

impl Jobs {
    /// Makes an empty set of jobs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts a job whose panic is logged and harms no other.
    ///
    /// The job must end soon after [`Jobs::token`] is cancelled.
    pub fn spawn<F>(&self, name: &'static str, job: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let present = self.running.enter(name);
        self.tracker.spawn(async move {
            let _present = present;
            if let Err(panic) = AssertUnwindSafe(job).catch_unwind().await {
                tracing::error!(job = name, "job panicked: {}", panic_message(&*panic));
            }
        });
    }

    /// Starts a job that the process cannot go on without: a panic in it stops the process.
    ///
    /// The message goes to the log and to standard error; the process aborts, so that nothing is
    /// written after it. The job must end soon after [`Jobs::token`] is cancelled.
    pub fn spawn_core<F>(&self, name: &'static str, job: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let present = self.running.enter(name);
        self.tracker.spawn(async move {
            let _present = present;
            if let Err(panic) = AssertUnwindSafe(job).catch_unwind().await {
                stop_process(name, &panic_message(&*panic));
            }
        });
    }

    /// Runs blocking work on a thread of its own, and gives its result.
    ///
    /// The work begins at once and runs to its end even when the returned future is dropped.
    ///
    /// # Errors
    ///
    /// [`JobError`] when the work panicked, or when the process stops before it began.
    pub fn blocking<T, W>(
        &self,
        name: &'static str,
        work: W,
    ) -> impl Future<Output = Result<T, JobError>> + Send + 'static
    where
        T: Send + 'static,
        W: FnOnce() -> T + Send + 'static,
    {
        let present = self.running.enter(name);
        let handle = self.tracker.spawn_blocking(move || {
            let _present = present;
            work()
        });
        async move {
            handle.await.map_err(|error| match error.try_into_panic() {
                Ok(panic) => JobError::Panicked { name, message: panic_message(&*panic) },
                Err(_cancelled) => JobError::Cancelled { name },
            })
        }
    }

    /// Returns the token that is cancelled when the process stops.
    #[must_use]
    pub fn token(&self) -> CancellationToken {
        self.token.clone()
    }

    /// Cancels the token and waits at most `limit` for all jobs; returns those still running.
    ///
    /// A name stands there once for each job that bears it. Jobs started later are not refused,
    /// but they find the token cancelled.
    pub async fn shutdown(&self, limit: Duration) -> Vec<&'static str> {
        self.token.cancel();
        self.tracker.close();
        match tokio::time::timeout(limit, self.tracker.wait()).await {
            Ok(()) => Vec::new(),
            Err(_elapsed) => self.running.names(),
        }
    }
}

/// How many jobs of each name run now.
#[derive(Clone, Debug, Default)]
struct Running(Arc<Mutex<BTreeMap<&'static str, usize>>>);

impl Running {
    fn enter(&self, name: &'static str) -> Present {
        // A poisoned lock still holds a whole map: no code panics between its two halves.
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry(name).or_default() += 1;
        Present { running: self.clone(), name }
    }

    fn leave(&self, name: &'static str) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match counts.get_mut(name) {
            Some(count) if *count > 1 => *count -= 1,
            _ => {
                counts.remove(name);
            }
        }
    }

    fn names(&self) -> Vec<&'static str> {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.iter().flat_map(|(name, count)| std::iter::repeat_n(*name, *count)).collect()
    }
}

/// Takes its job out of the running ones when it ends, however it ends.
#[derive(Debug)]
struct Present {
    running: Running,
    name: &'static str,
}

impl Drop for Present {
    fn drop(&mut self) {
        self.running.leave(self.name);
    }
}

/// Stops the process: aborts, because exit handlers would run beside threads that still write.
fn stop_process(name: &'static str, message: &str) -> ! {
    tracing::error!(job = name, "core job panicked, the process stops: {message}");
    // The log may be filtered or gone; standard error is the last word. A failure to write it
    // leaves nothing else to try.
    writeln!(std::io::stderr(), "nexus stops: core job {name} panicked: {message}").ok();
    std::process::abort()
}

/// Returns what a panic said, if it said it in words.
fn panic_message(panic: &(dyn Any + Send)) -> String {
    if let Some(text) = panic.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text.clone()
    } else {
        "a value that is not text".to_owned()
    }
}

#[cfg(test)]
mod tests;
