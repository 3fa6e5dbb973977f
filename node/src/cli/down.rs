//! `nexus down`: stops the node of this machine and waits until it is gone.

use std::time::Duration;

use nexus_contract::http::{Done, PATH_STOP};
use nexus_contract::{ApiError, ErrorCode};
use serde_json::json;
use tokio::time::Instant;

use super::out::Out;
use super::{Exit, Failure, Local};

/// How long a stop may take: running calls end within ten seconds, the rest is quick.
const LIMIT: Duration = Duration::from_secs(30);
/// How often the folder is looked at meanwhile.
const LOOK: Duration = Duration::from_millis(50);

/// Arguments of `nexus down`.
#[derive(Debug, clap::Args)]
pub(crate) struct DownArgs {
    #[command(flatten)]
    local: Local,
    /// Answer in JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Stops the node.
pub(crate) async fn run(args: DownArgs, out: &mut Out) -> Result<Exit, Failure> {
    let folder = args.local.folder()?;
    let node = args.local.node()?;
    let _done: Done = node.post(PATH_STOP, &json!({})).await?;
    if args.local.given_endpoint().is_some() {
        return Ok(done(out, "the node was told to stop"));
    }
    let since = Instant::now();
    while let Some(holder) = folder.holder() {
        if since.elapsed() >= LIMIT {
            let text = format!(
                "the node (process id {}) was told to stop and still runs after {} s: look at its \
                 log, or end it with: kill {}",
                holder.pid,
                LIMIT.as_secs(),
                holder.pid
            );
            return Err(ApiError::new(ErrorCode::Stopping, text).into());
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(done(out, "the node has stopped"))
}

fn done(out: &mut Out, message: &str) -> Exit {
    if out.is_json() {
        out.value(&Done::new(message));
    } else {
        out.line(message);
    }
    Exit::Done
}
