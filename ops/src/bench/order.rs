//! What the measuring process and its nodes say to each other: one JSON value a line.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// How a node of the benchmark starts; it is the one argument of its process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct NodeStart {
    /// Its data folder.
    pub(crate) data: PathBuf,
    /// Its name.
    pub(crate) name: String,
    /// Invite code and address of a member to join; none founds a cluster or goes on.
    pub(crate) join: Option<(String, String)>,
}

/// An order to a node.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Open an invite for a voter.
    Invite,
    /// Say how the cluster looks from here.
    Look,
    /// Say what was used since the start.
    Usage,
    /// Run clients.
    Load(Load),
    /// Stop in good order.
    Stop,
}

/// Clients in a closed loop: each sends its next message when the last one is applied.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Load {
    /// How many.
    pub(crate) clients: usize,
    /// Bytes of a message's text.
    pub(crate) bytes: usize,
    /// For how long nothing is counted.
    pub(crate) warm_millis: u64,
    /// For how long it is counted.
    pub(crate) run_millis: u64,
    /// Ends sooner, after that many messages.
    pub(crate) messages: u64,
}

/// A node's answer; exactly one to each order, and one when it is ready.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// It serves; its QUIC address.
    Ready { address: String },
    /// An invite code.
    Invited { code: String },
    /// The cluster as seen from here.
    Seen { node: u64, leader: Option<u64>, voters: usize, applied: u64 },
    /// What was used.
    Used(Usage),
    /// What clients did.
    Loaded(Loaded),
    /// It stopped.
    Stopped,
    /// It could not do it.
    Failed { text: String },
}

/// What a process has used since its start.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Usage {
    /// Processor time, user and system.
    pub(crate) cpu_millis: u64,
    /// Flushes of the log to disk.
    pub(crate) fsyncs: f64,
    /// Seconds spent in them.
    pub(crate) fsync_seconds: f64,
    /// Appends and other writes that they served.
    pub(crate) flushed: f64,
}

impl Usage {
    /// Returns what was used since `before`.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            cpu_millis: self.cpu_millis.saturating_sub(before.cpu_millis),
            fsyncs: self.fsyncs - before.fsyncs,
            fsync_seconds: self.fsync_seconds - before.fsync_seconds,
            flushed: self.flushed - before.flushed,
        }
    }
}

/// What clients did.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Loaded {
    /// Messages applied while it was counted.
    pub(crate) done: u64,
    /// Messages applied in all.
    pub(crate) sent: u64,
    /// Messages that failed.
    pub(crate) failed: u64,
    /// The last failure.
    pub(crate) failure: Option<String>,
    /// For how long it was counted.
    pub(crate) counted_micros: u64,
    /// Microseconds and how many messages took that long.
    pub(crate) latencies: Vec<(u64, u64)>,
}
