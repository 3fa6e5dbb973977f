//! What a process uses: processor time, flushes, memory.

use std::time::Duration;

use anyhow::{Context as _, anyhow};
use metrics_exporter_prometheus::PrometheusHandle;

use super::order::Usage;

/// Milliseconds of one tick of the kernel's accounting: 100 a second on Linux, everywhere.
const TICK_MILLIS: u64 = 10;
/// Where user and system time stand behind the program's name.
const USER_FIELD: usize = 11;

/// Returns what this process has used since its start.
///
/// # Errors
/// When the system does not tell.
pub(crate) fn usage(metrics: &PrometheusHandle) -> anyhow::Result<Usage> {
    metrics.run_upkeep();
    let text = metrics.render();
    Ok(Usage {
        cpu_millis: cpu_millis(std::process::id())?,
        fsyncs: value(&text, "nexus_fsync_seconds_count"),
        fsync_seconds: value(&text, "nexus_fsync_seconds_sum"),
        flushed: value(&text, "nexus_fsync_group_sum"),
    })
}

/// Returns the value of a metric without labels, 0 before its first.
fn value(text: &str, name: &str) -> f64 {
    let rest = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    rest.and_then(|rest| rest.trim().parse().ok()).unwrap_or(0.0)
}

/// Returns the processor time of a process.
///
/// # Errors
/// When the system does not tell.
pub(crate) fn cpu_millis(process: u32) -> anyhow::Result<u64> {
    let path = format!("/proc/{process}/stat");
    let text = std::fs::read_to_string(&path).with_context(|| path.clone())?;
    // The name stands in parentheses and may hold blanks.
    let (_, rest) = text.rsplit_once(')').ok_or_else(|| anyhow!("{path}: has no name"))?;
    let ticks = rest.split_whitespace().skip(USER_FIELD).take(2);
    let ticks = ticks.map(str::parse::<u64>).sum::<Result<u64, _>>();
    Ok(ticks.with_context(|| path)?.saturating_mul(TICK_MILLIS))
}

/// Returns the resident memory of a process in bytes.
///
/// # Errors
/// When the system does not tell.
pub(crate) fn resident_bytes(process: u32) -> anyhow::Result<u64> {
    let path = format!("/proc/{process}/status");
    let text = std::fs::read_to_string(&path).with_context(|| path.clone())?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes =
        line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    Ok(kilobytes.ok_or_else(|| anyhow!("{path}: does not tell VmRSS"))?.saturating_mul(1024))
}

/// Returns the load average of the last minute, if the system tells it.
pub(crate) fn load_average() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// Returns a duration in whole microseconds.
pub(crate) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
