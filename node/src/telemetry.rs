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

/// Starts the log on standard error. A filter that is none is told, and the default stands in.
pub(crate) fn start_log(format: LogFormat, default: &str) {
    let given = crate::config::log_filter();
    let ours = format!("{default},openraft=warn,mdns_sd=error");
    let parsed = given.as_deref().map(EnvFilter::try_new);
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
        tracing::error!(%error, "NEXUS_LOG is no filter: give a level such as info, or target=level");
    }
}

/// Starts collecting metrics.
pub(crate) fn start_metrics() -> Result<PrometheusHandle, BuildError> {
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), SECONDS)?
        .install_recorder()?;
    metrics::describe_counter!("nexus_http_requests_total", "HTTP requests by path and status");
    metrics::describe_counter!("nexus_tool_calls_total", "calls by tool and outcome");
    metrics::describe_histogram!("nexus_tool_call_seconds", "time of calls by tool");
    metrics::describe_gauge!("nexus_applied_index", "index up to which the log is applied here");
    metrics::describe_gauge!("nexus_lag_entries", "entries that each member is behind");
    metrics::describe_gauge!("nexus_tolerance", "voters that may fail before writes stop");
    Ok(handle)
}
