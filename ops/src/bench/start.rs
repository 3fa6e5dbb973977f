//! How long an existing node takes to its ready line, and what memory it has when it is idle.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "an answer that was not asked for fails in one way, whichever it is"
)]

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::Instant;

use super::Options;
use super::order::{Answer, Load, Order};
use super::process::{Process, Program};
use super::report::StartReport;
use super::usage::resident_bytes;

/// How long a node may take to its ready line.
const READY_LIMIT: Duration = Duration::from_secs(60);
/// How long writing the messages may take.
const FILL_LIMIT: Duration = Duration::from_secs(900);
/// Clients that write them.
const FILL_CLIENTS: usize = 256;

/// Fills a folder, then starts a node on it as often as there are rounds.
///
/// # Errors
/// When a node does not start.
pub(crate) async fn measure(options: &Options) -> anyhow::Result<StartReport> {
    let data = options.folder.join(format!("nexus-bench-start-{}", std::process::id()));
    fill(options, &data).await?;
    let mut report = StartReport {
        messages: options.messages,
        idle_seconds: options.idle.as_secs(),
        whole_node: options.up.is_some(),
        ..StartReport::default()
    };
    for round in 1..=options.rounds.max(1) {
        let begun = Instant::now();
        let mut running = match &options.up {
            Some(up) => Running::Whole(up_ready(up, &data).await?),
            None => {
                Running::Log(Box::new(Process::start(&options.node, &data, "one", None).await?))
            }
        };
        report.ready_millis.push(begun.elapsed().as_secs_f64() * 1e3);
        if round == options.rounds.max(1) {
            tokio::time::sleep(options.idle).await;
            report.resident_bytes = resident_bytes(running.id().context("node: has ended")?)?;
        }
        running.stop().await?;
    }
    std::fs::remove_dir_all(&data).with_context(|| data.display().to_string())?;
    Ok(report)
}

async fn fill(options: &Options, data: &Path) -> anyhow::Result<()> {
    let mut node = Process::start(&options.node, data, "one", None).await?;
    let load = Load {
        clients: FILL_CLIENTS,
        bytes: super::MESSAGE_BYTES,
        warm_millis: 0,
        run_millis: u64::try_from(FILL_LIMIT.as_millis())?,
        messages: options.messages,
    };
    match node.ask(&Order::Load(load), FILL_LIMIT).await? {
        Answer::Loaded(loaded) if loaded.sent >= options.messages => node.stop().await,
        other => bail!("filling the folder: {other:?}"),
    }
}

enum Running {
    Whole(Child),
    Log(Box<Process>),
}

impl Running {
    fn id(&self) -> Option<u32> {
        match self {
            Self::Whole(child) => child.id(),
            Self::Log(process) => process.id(),
        }
    }

    async fn stop(&mut self) -> anyhow::Result<()> {
        // A start after a kill is the harder one: nothing was put in order before.
        match self {
            Self::Whole(child) => child.kill().await?,
            Self::Log(process) => process.kill().await?,
        }
        Ok(())
    }
}

/// Starts `nexus up` and waits for its ready line.
async fn up_ready(up: &Program, data: &Path) -> anyhow::Result<Child> {
    let mut child = Command::new(&up.path)
        .args(&up.arguments)
        .arg("--data")
        .arg(data)
        .args(["--http", "127.0.0.1:0"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("{}: cannot be started", up.path.display()))?;
    let out = child.stdout.take().context("nexus up: has no standard output")?;
    let mut lines = BufReader::new(out).lines();
    let ready = async {
        while let Some(line) = lines.next_line().await? {
            if line.starts_with("nexus ready") {
                return anyhow::Ok(());
            }
        }
        bail!("nexus up: ended without a ready line; run it by hand on {}", data.display())
    };
    tokio::time::timeout(READY_LIMIT, ready).await.context("nexus up: no ready line in time")??;
    Ok(child)
}
