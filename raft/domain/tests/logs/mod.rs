//! Logs for the golden bytes, one file for some families.
//!
//! Each has files of its own under `tests/golden/v1/`, so that a later family changes no line of an
//! earlier one's.

mod base;
pub(crate) mod meetings;
mod projects;
mod work;

use nexus_domain::Entry;
use nexus_domain::command::Command;

/// Who says what; the empty name is a node.
type Said = (&'static str, Command);

/// A log.
pub(crate) struct Log {
    /// What the names of its files begin with.
    pub(crate) prefix: &'static str,
    /// Its entries.
    pub(crate) entries: Vec<Entry>,
    /// How many of them another log's files hold already.
    pub(crate) shared: usize,
}

/// Returns all logs.
pub(crate) fn all() -> [Log; 4] {
    let shared = base::SHARED;
    [
        Log { prefix: "", entries: base::log(), shared: 0 },
        Log { prefix: "projects-", entries: projects::log(), shared: 0 },
        Log { prefix: "meetings-", entries: meetings::log(), shared },
        Log { prefix: "work-", entries: work::log(), shared },
    ]
}
