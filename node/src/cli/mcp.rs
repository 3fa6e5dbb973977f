//! `nexus mcp`: hands standard input and output over to the MCP server.

use nexus_adapter::stdio::{self, Options};
use nexus_contract::catalog::Set;

use super::{Exit, Failure, Local, value};
use crate::config::{self, Settings};

/// Arguments of `nexus mcp`.
#[derive(Debug, clap::Args)]
pub(crate) struct McpArgs {
    /// The instance id [env: `NEXUS_INSTANCE_ID`] [default: made from host, working directory and
    /// client]
    #[arg(long, value_name = "ID", value_parser = value::some_instance)]
    id: Option<String>,
    /// Which tools the client sees and may call: all or core, the ten that let conversations talk
    /// and share work [default: tools of settings.json, else all]
    #[arg(long, value_name = "SET", value_parser = value::tools)]
    tools: Option<Set>,
    #[command(flatten)]
    local: Local,
}

/// Serves until the client goes.
pub(crate) async fn run(args: McpArgs) -> Result<Exit, Failure> {
    // An empty variable is none, an empty flag is a mistake: so the variable is read here.
    let id = match (args.id, config::instance_given()) {
        (Some(id), _) => Some(id),
        (None, Some(given)) => Some(value::some_instance(&given).map_err(|error| {
            Failure::Usage(format!("NEXUS_INSTANCE_ID is {given:?}: it {error}"))
        })?),
        (None, None) => None,
    };
    let set = match args.tools {
        Some(set) => set,
        None => Settings::read(&args.local.folder()?.settings()).map_err(anyhow::Error::new)?.tools,
    };
    let options = Options::here(args.local.source()?, id, set)
        .map_err(|error| anyhow::Error::new(error).context("working directory is gone"))?;
    stdio::serve(options).await.map_err(anyhow::Error::new)?;
    Ok(Exit::Done)
}
