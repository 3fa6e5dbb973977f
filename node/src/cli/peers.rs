//! `nexus peers`: the conversations of all machines. A query, so it needs no identity.

use nexus_contract::conversations::{ClientKind, PeersOutput, Profile, Status};
use nexus_contract::http::PATH_PEERS;
use serde_json::{Map, Value};

use super::out::{Out, local_text};
use super::{Exit, Failure, Local, call};

/// Arguments of `nexus peers`.
#[derive(Debug, clap::Args)]
pub(crate) struct PeersArgs {
    #[command(flatten)]
    local: Local,
    /// Also those that went offline in the last 24 hours
    #[arg(long)]
    all: bool,
    /// Answer in JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Shows the conversations.
pub(crate) async fn run(args: PeersArgs, out: &mut Out) -> Result<Exit, Failure> {
    let path = format!("{PATH_PEERS}?includeOffline={}", args.all);
    let result: Map<String, Value> = args.local.node()?.get(&path).await?;
    if out.is_json() {
        out.value(&result);
        return Ok(Exit::Done);
    }
    let answer: PeersOutput = serde_json::from_value(Value::Object(result.clone()))
        .map_err(|error| anyhow::Error::new(error).context("node's answer cannot be read"))?;
    if answer.peers.is_empty() {
        out.line("no conversations");
        out.hint("connect a client: claude mcp add n2n-nexus -- nexus mcp");
    } else {
        let rows = answer.peers.iter().map(row).collect();
        let header = ["NAME", "STATUS", "CLIENT", "NODE", "ACTIVE", "TITLE", "NOTE", "ID"];
        out.table(&header, rows);
    }
    call::show_marks(&result, out);
    Ok(Exit::Done)
}

fn row(peer: &Profile) -> Vec<String> {
    let status = match peer.status {
        Status::Working => "working",
        Status::Idle => "idle",
        Status::Listening => "listening",
        Status::Asleep => "asleep",
        Status::Offline => "offline",
    };
    let client = match peer.client {
        ClientKind::Claude => "claude",
        ClientKind::Codex => "codex",
    };
    vec![
        peer.name.clone(),
        status.to_owned(),
        client.to_owned(),
        peer.node.clone(),
        local_text(&peer.last_active_at),
        peer.title.clone(),
        peer.note.clone(),
        peer.id.clone(),
    ]
}
