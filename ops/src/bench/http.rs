//! Tool calls over HTTP, in closed loops, at a node that runs already.

use std::time::Duration;

use anyhow::Context as _;
use futures::future::try_join_all;
use tokio::time::Instant;

use super::latency::Latency;
use super::report::ToolReport;
use super::usage::micros;

/// A node that takes tool calls.
#[derive(Clone, Debug)]
pub struct ToolCalls {
    /// Its address, such as `http://127.0.0.1:5688`.
    pub url: String,
    /// Its token.
    pub token: String,
}

/// Sends messages by `POST /api/tools/call` and counts.
///
/// # Errors
/// When a call is not answered at all; refusals are counted.
pub(crate) async fn measure(
    tools: &ToolCalls,
    clients: usize,
    warm: Duration,
    run: Duration,
) -> anyhow::Result<ToolReport> {
    let from = Instant::now() + warm;
    let end = from + run;
    let calls = (0..clients).map(|number| client(tools, number, from, end));
    let mut latency = Latency::new();
    let mut report = ToolReport { clients, ..ToolReport::default() };
    let mut done = 0_u32;
    for client in try_join_all(calls).await? {
        for micros in client.micros {
            latency.add(micros, 1);
            done = done.saturating_add(1);
        }
        report.failed = report.failed.saturating_add(client.failed);
        report.failure = client.failure.or(report.failure);
    }
    report.per_second = f64::from(done) / run.as_secs_f64().max(f64::EPSILON);
    report.p50_micros = latency.percentile(50.0);
    report.p99_micros = latency.percentile(99.0);
    Ok(report)
}

#[derive(Debug, Default)]
struct Called {
    micros: Vec<u64>,
    failed: u64,
    failure: Option<String>,
}

async fn client(
    tools: &ToolCalls,
    number: usize,
    from: Instant,
    end: Instant,
) -> anyhow::Result<Called> {
    let http = reqwest::Client::builder().no_proxy().build()?;
    let url = format!("{}/api/tools/call", tools.url.trim_end_matches('/'));
    let body = serde_json::json!({
        "tool": "send_message",
        "args": { "message": "m".repeat(super::MESSAGE_BYTES) },
        "instanceId": format!("bench-http-{number}"),
    })
    .to_string();
    let mut called = Called::default();
    loop {
        let begun = Instant::now();
        if begun >= end {
            return Ok(called);
        }
        let request = http
            .post(&url)
            .bearer_auth(&tools.token)
            .header("content-type", "application/json")
            .body(body.clone());
        let answer = request.send().await.with_context(|| url.clone())?;
        let good = answer.status().is_success();
        let text = answer.text().await?;
        let now = Instant::now();
        if !good {
            called.failed = called.failed.saturating_add(1);
            called.failure = Some(text);
        } else if begun >= from && now < end {
            called.micros.push(micros(now - begun));
        }
    }
}
