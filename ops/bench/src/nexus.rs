//! nexus, by its own `nexus bench`.

use std::process::Stdio;

use anyhow::Context as _;
use serde::Deserialize;
use tokio::process::Command;

use crate::{Flags, Round};

/// What this crate reads of a report.
#[derive(Debug, Deserialize)]
struct Report {
    writes: Vec<Writes>,
}

#[derive(Debug, Deserialize)]
struct Writes {
    rounds: Vec<Round>,
}

/// Measures each load once, on three new nodes; returns the rounds by load.
///
/// # Errors
/// When the program does not measure.
pub(crate) async fn measure(flags: &Flags) -> anyhow::Result<Vec<Vec<Round>>> {
    let clients: Vec<String> = flags.clients.iter().map(ToString::to_string).collect();
    let mut command = Command::new(&flags.nexus);
    command.args(["bench", "--json", "--rounds", "1", "--messages", "0", "--clients"]);
    command.arg(clients.join(",")).args(["--seconds", &flags.seconds.to_string()]);
    command.arg("--folder").arg(&flags.folder);
    if flags.spread {
        command.arg("--spread");
    }
    let running = command.stdin(Stdio::null()).stderr(Stdio::inherit()).kill_on_drop(true).output();
    let output = running.await.with_context(|| format!("{}", flags.nexus.display()))?;
    anyhow::ensure!(output.status.success(), "{} bench: failed", flags.nexus.display());
    let report: Report = serde_json::from_slice(&output.stdout).context("nexus bench: its JSON")?;
    Ok(report.writes.into_iter().map(|writes| writes.rounds).collect())
}
