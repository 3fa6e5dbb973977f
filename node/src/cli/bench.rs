//! `nexus bench`: what this machine's disk and processors make of three nodes.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use nexus_ops::bench::{self, Options, Place, Program, ToolCalls};

use super::out::Out;
use super::{Exit, Failure, Local, value};

/// The hidden verb that a benchmark starts its nodes with.
pub(crate) const NODE_VERB: &str = "bench-node";

const AFTER_HELP: &str = "\
Three nodes run on loopback in processes of their own, with everything flushed to disk as always;
clients run inside them in closed loops. Nothing else is touched: the folders are new and removed
afterwards. With --tools the running node of this machine is called by HTTP too; it then needs
\"rateLimit\": 0 in its settings, or most calls are refused, and keeps the messages.

Examples:
  nexus bench
  nexus bench --clients 64 --rounds 1 --messages 0
  nexus bench --clients \"\" --messages 100000 --idle 60    only start and memory";

/// Arguments of `nexus bench`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct BenchArgs {
    /// How many clients, one load after the other
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_value = "1,64,256")]
    clients: Vec<String>,
    /// Spread the clients over the three nodes too
    #[arg(long)]
    spread: bool,
    /// How often each load is repeated
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = value::count,
          allow_negative_numbers = true)]
    rounds: usize,
    /// For how many seconds each load is counted
    #[arg(long, value_name = "S", default_value_t = 5, value_parser = value::whole,
          allow_negative_numbers = true)]
    seconds: u64,
    /// Messages of the node whose start is measured; 0 measures no start
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = value::whole,
          allow_negative_numbers = true)]
    messages: u64,
    /// For how many seconds that node is idle before its memory is read
    #[arg(long, value_name = "S", default_value_t = 60, value_parser = value::whole,
          allow_negative_numbers = true)]
    idle: u64,
    /// Where the folders are made, since the disk is what counts [default: the working directory]
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Call the tools of the running node too
    #[arg(long)]
    tools: bool,
    #[command(flatten)]
    local: Local,
    /// Answer in JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Measures and reports.
pub(crate) async fn run(args: BenchArgs, out: &mut Out) -> Result<Exit, Failure> {
    let options = options(&args)?;
    let report = bench::run(options).await?;
    if out.is_json() {
        out.value(&report);
    } else {
        out.line(report.to_string().trim_end());
    }
    Ok(Exit::Done)
}

fn options(args: &BenchArgs) -> Result<Options, Failure> {
    let mut clients = Vec::new();
    for text in args.clients.iter().filter(|text| !text.trim().is_empty()) {
        let number = text.trim().parse().ok().filter(|number| *number > 0);
        clients.push(number.ok_or_else(|| {
            Failure::Usage(format!("--clients: {text:?} is no number of clients; give 1,64,256"))
        })?);
    }
    let own = std::env::current_exe().context("own program cannot be found")?;
    let folder = match &args.folder {
        Some(folder) => folder.clone(),
        None => std::env::current_dir().context("working directory is gone")?,
    };
    let program = |verb: &str| Program { path: own.clone(), arguments: vec![verb.to_owned()] };
    let mut options = Options::new(folder, program(NODE_VERB));
    options.up = Some(program("up"));
    options.clients = clients;
    if args.spread {
        options.places.push(Place::Spread);
    }
    options.rounds = args.rounds.max(1);
    options.run = Duration::from_secs(args.seconds.max(1));
    options.messages = args.messages;
    options.idle = Duration::from_secs(args.idle);
    if args.tools {
        let place = args.local.source()?.resolve().map_err(anyhow::Error::new)?;
        let token = place.token.unwrap_or_default();
        options.tools = Some(ToolCalls { url: place.url, token });
    }
    Ok(options)
}

/// Arguments of the hidden verb.
#[derive(Debug, clap::Args)]
pub(crate) struct BenchNodeArgs {
    /// What the benchmark gives its node
    start: String,
}

/// Runs one node of a benchmark.
pub(crate) async fn run_node(args: BenchNodeArgs) -> Result<Exit, Failure> {
    bench::node_main(&args.start).await?;
    Ok(Exit::Done)
}
