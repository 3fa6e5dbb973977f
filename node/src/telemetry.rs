//! What the node says about itself: the log on standard error, and metrics.
//!
//! Texts of messages never get into the log at any level: entries are logged by their kind and
//! request id, calls by their tool.

use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use tracing_subscriber::EnvFilter;

/// Seconds, from a fast disk's flush to a write's time-out.
const SECONDS: &[f64] = &[
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    5.0, 10.0,
];

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Says at most this much, whatever the filter asks: below it the library writes what clients send,
/// texts of messages with it.
const SILENCED: &str = "rmcp=warn";

/// Starts the log on standard error. A filter that is none is told, and the default stands in.
pub(crate) fn start_log(format: LogFormat, default: &str) {
    let given = crate::config::log_filter();
    let ours = format!("{default},openraft=error,quinn_udp=error,mdns_sd=error,{SILENCED}");
    let parsed = given.map(|given| EnvFilter::try_new(format!("{given},{SILENCED}")));
    let (filter, wrong) = match parsed {
        None => (EnvFilter::new(ours), None),
        Some(Ok(filter)) => (filter, None),
        Some(Err(error)) => (EnvFilter::new(ours), Some(error)),
    };
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A second start in one process, as in tests, keeps the first log.
    match format {
        LogFormat::Text => builder.with_ansi(false).try_init().ok(),
        LogFormat::Json => builder.json().flatten_event(true).try_init().ok(),
    };
    if let Some(error) = wrong {
        tracing::error!(%error, "NEXUS_LOG is no filter: give a level such as info");
    }
}

/// Starts collecting metrics.
pub(crate) fn start_metrics() -> Result<PrometheusHandle, BuildError> {
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), SECONDS)?
        .install_recorder()?;
    describe();
    Ok(handle)
}

/// Says what each metric means; the log's own are recorded in its crate.
fn describe() {
    use metrics::{describe_counter, describe_gauge, describe_histogram};
    describe_counter!("nexus_http_requests_total", "HTTP requests by path and status");
    describe_counter!("nexus_tool_calls_total", "calls by tool and outcome");
    describe_histogram!("nexus_tool_call_seconds", "time of calls by tool");
    describe_counter!("nexus_leader_changes_total", "leaders that this node has seen come");
    describe_counter!("nexus_proposals_total", "writes that were proposed through this node");
    describe_counter!("nexus_detours_total", "times that this node called another through a relay");
    describe_counter!("nexus_detour_circuits_relayed_total", "circuits carried for other members");
    describe_counter!(
        "nexus_detour_packets_lost_total",
        "packets that found a circuit's queue full"
    );
    describe_histogram!("nexus_commit_seconds", "time from proposal to its answer here");
    describe_histogram!("nexus_fsync_seconds", "time of one flush of the log to disk");
    describe_histogram!("nexus_fsync_group", "writes to the log that one flush covered");
    describe_histogram!("nexus_checkpoint_seconds", "time for which a checkpoint held applying");
    describe_gauge!("nexus_applied_index", "index up to which the log is applied here");
    describe_gauge!("nexus_member_lag_entries", "entries that each member is behind");
    describe_gauge!("nexus_members_differing", "members whose state differs, as the leader found");
    describe_gauge!("nexus_tolerance", "voters that may fail before writes stop");
    describe_gauge!("nexus_log_last_index", "last index of the log here");
    describe_gauge!("nexus_log_purged_index", "index up to which entries are gone from the log");
    describe_gauge!("nexus_log_bytes", "bytes of the entries that the log keeps here");
    describe_gauge!("nexus_snapshot_index", "index of the newest snapshot here");
    describe_gauge!("nexus_snapshot_bytes", "bytes of the newest snapshot here");
}
