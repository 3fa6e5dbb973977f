//! `nexus mcp`: hands standard input and output over to the MCP server.

use nexus_adapter::stdio::{self, Options};

use super::{Exit, Failure, Local, value};

/// Arguments of `nexus mcp`.
#[derive(Debug, clap::Args)]
pub(crate) struct McpArgs {
    /// The instance id [default: made from host, working directory and client]
    #[arg(long, value_name = "ID", env = "NEXUS_INSTANCE_ID", value_parser = value::instance)]
    id: Option<String>,
    #[command(flatten)]
    local: Local,
}

/// Serves until the client goes.
pub(crate) async fn run(args: McpArgs) -> Result<Exit, Failure> {
    let options = Options::here(args.local.source()?, args.id)
        .map_err(|error| anyhow::Error::new(error).context("working directory is gone"))?;
    stdio::serve(options).await.map_err(anyhow::Error::new)?;
    Ok(Exit::Done)
}
