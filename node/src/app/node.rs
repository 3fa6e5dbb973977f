//! The running node, as its HTTP handlers see it.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use metrics_exporter_prometheus::PrometheusHandle;
use nexus_contract::{ApiError, ErrorCode};
use nexus_domain::cluster;
use nexus_raft::{Cluster, ReadError};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::lan::Lan;
use crate::service::Service;

/// How long the first linearizable read is waited for before it is tried again.
const FIRST_READ: Duration = Duration::from_secs(5);
/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(100);
/// How often it is looked whether a leader answers again, while somebody asks.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// How long the own name is waited for at the start: a new cluster needs a moment to know itself.
const NAME_LIMIT: Duration = Duration::from_secs(3);

/// Everything that serves calls.
pub(crate) struct Node {
    /// The log and the state.
    pub(crate) cluster: Cluster,
    /// The tools.
    pub(crate) service: Service,
    /// How this node stands to the LAN.
    pub(crate) lan: Arc<Lan>,
    /// What was measured.
    pub(crate) metrics: PrometheusHandle,
    /// This node's name in the cluster.
    pub(super) name: Mutex<String>,
    /// A linearizable read has succeeded since the start.
    pub(super) ready: AtomicBool,
    /// When it was last looked whether a leader answers again.
    pub(super) looked: Mutex<Option<Instant>>,
    /// Somebody asked for the end.
    pub(super) stop: CancellationToken,
    /// The end has begun.
    pub(super) stopping: CancellationToken,
}

impl std::fmt::Debug for Node {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Node").field("name", &self.name()).finish_non_exhaustive()
    }
}

impl Node {
    /// Returns this node's name in the cluster.
    pub(crate) fn name(&self) -> String {
        self.name.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns why calls are better sent to another node, as `/ready` says it; `None` when this one
    /// reads and writes.
    pub(crate) fn unready(&self) -> Option<ApiError> {
        if !self.ready.load(Ordering::Acquire) {
            let text = "no linearizable read has succeeded since the start: a leader is awaited; \
                        reads answer from what this node knows";
            return Some(ApiError::new(ErrorCode::Starting, text).with_retry_after(1));
        }
        let trouble = self.cluster.trouble()?;
        self.look_again();
        let text = format!(
            "no majority of the voters answers: {trouble}; reads answer from what this node knows, \
             and nothing can be written"
        );
        Some(ApiError::new(ErrorCode::NoQuorum, text).with_retry_after(1))
    }

    /// Looks whether the trouble is over: perhaps no call comes by which this node would find out.
    fn look_again(&self) {
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        // Anybody on this machine may ask, as often as it likes.
        if looked.is_none_or(|at| at.elapsed() >= LOOK_AGAIN) {
            *looked = Some(Instant::now());
            self.cluster.look_for_leader();
        }
    }

    /// Returns whether the end has begun.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.is_cancelled()
    }

    /// Waits for the beginning of the end.
    pub(crate) async fn stops(&self) {
        self.stopping.cancelled().await;
    }

    /// Begins the end.
    pub(crate) fn ask_to_stop(&self) {
        self.stop.cancel();
    }

    /// Returns the metrics in Prometheus' text form, gauges as of now.
    pub(crate) fn metrics_text(&self) -> String {
        let status = self.cluster.local_status();
        metrics::gauge!("nexus_applied_index").set(number(status.applied));
        metrics::gauge!("nexus_tolerance").set(number(crate::service::count(status.tolerance)));
        let storage = self.cluster.storage();
        metrics::gauge!("nexus_log_last_index").set(number(storage.last));
        metrics::gauge!("nexus_log_purged_index").set(number(storage.purged));
        metrics::gauge!("nexus_log_bytes").set(number(storage.log_bytes));
        metrics::gauge!("nexus_snapshot_index").set(number(storage.snapshot));
        metrics::gauge!("nexus_snapshot_bytes").set(number(storage.snapshot_bytes));
        self.metrics.render()
    }

    /// Asks once for a linearizable read, so that `/ready` tells the truth without a first caller.
    pub(super) async fn first_read(self: Arc<Self>, token: CancellationToken) {
        let work = async {
            while !self.cluster.ready(FIRST_READ).await {
                tokio::time::sleep(PAUSE).await;
            }
            self.ready.store(true, Ordering::Release);
        };
        token.run_until_cancelled(work).await;
    }

    /// Keeps the name as the cluster has it.
    pub(super) async fn follow_name(self: Arc<Self>, token: CancellationToken) {
        let mut members = self.cluster.members_changed();
        let work = async {
            loop {
                members.mark_unchanged();
                match own_name(&self.cluster) {
                    Ok(Some(name)) => {
                        *self.name.lock().unwrap_or_else(PoisonError::into_inner) = name;
                    }
                    Ok(None) => {}
                    Err(error) => tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "own name cannot be read"
                    ),
                }
                if members.changed().await.is_err() {
                    return;
                }
            }
        };
        token.run_until_cancelled(work).await;
    }
}

/// Returns this node's name: as the state has it, or as the folder has before the state does.
pub(super) async fn first_name(handle: &Cluster, data: &Path) -> Result<String, ReadError> {
    let mut members = handle.members_changed();
    let from_state = async {
        loop {
            if let Some(name) = own_name(handle)? {
                return Ok(Some(name));
            }
            if members.changed().await.is_err() {
                return Ok(None);
            }
        }
    };
    match tokio::time::timeout(NAME_LIMIT, from_state).await {
        Ok(Ok(Some(name))) => Ok(name),
        Ok(Err(error)) => Err(error),
        Ok(Ok(None)) | Err(_) => Ok(match nexus_raft::inspect(data) {
            Ok(nexus_raft::Folder::Member { name, .. }) => name,
            Ok(_) | Err(_) => format!("node-{}", handle.node()),
        }),
    }
}

/// Returns this node's name as the local state has it.
pub(super) fn own_name(handle: &Cluster) -> Result<Option<String>, ReadError> {
    let node = handle.node();
    let member = handle.look(|view| cluster::member(view, node))?;
    Ok(member.map(|member| member.name))
}

/// Prometheus counts in floating point; above 2^53 the last digits are lost, which harms nobody.
#[expect(clippy::cast_precision_loss, clippy::as_conversions, reason = "gauges are floats")]
fn number(value: u64) -> f64 {
    value as f64
}
