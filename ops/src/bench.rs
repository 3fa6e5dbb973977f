//! Measuring: how many writes a second three nodes do, how fast a node starts, what it takes.
//!
//! Three nodes run on loopback, one process each, with everything flushed to disk as always.
//! Clients run inside them in closed loops through [`nexus_raft::Cluster::propose`]: each is a
//! conversation that writes messages of 256 bytes, one after the other. The process that measures
//! starts itself again as a node ([`node_main`]) and talks to it by lines of JSON on its standard
//! input and output.
//!
//! Nothing here judges: numbers depend on the machine, and on what else runs on it. The load
//! average is part of the report.

mod http;
mod latency;
mod load;
mod node;
mod order;
mod process;
mod report;
mod start;
mod trio;
mod usage;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;

pub use http::ToolCalls;

pub use node::node_main;
pub use process::Program;
pub use report::{Report, StartReport, ToolReport, WriteReport};
pub use trio::{Place, Round, Shape, Trio};

/// Bytes of one message.
pub const MESSAGE_BYTES: usize = 256;

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where data folders are made; it decides whose disk is measured. Folders in it are new and
    /// removed afterwards.
    pub folder: PathBuf,
    /// How a node of the benchmark is started: this program and its hidden verb.
    pub node: Program,
    /// How a whole node is started, for the time to its ready line: `nexus up`; the rest of its
    /// arguments is added.
    pub up: Option<Program>,
    /// How many clients, one load after the other.
    pub clients: Vec<usize>,
    /// Where clients are.
    pub places: Vec<Place>,
    /// How often each load is repeated.
    pub rounds: usize,
    /// For how long nothing is counted.
    pub warm: Duration,
    /// For how long it is counted.
    pub run: Duration,
    /// Messages of the node whose start is measured; 0: it is not measured.
    pub messages: u64,
    /// For how long that node is idle before its memory is read.
    pub idle: Duration,
    /// A node to send tool calls to.
    pub tools: Option<ToolCalls>,
}

impl Options {
    /// Returns what `nexus bench` measures without flags.
    #[must_use]
    pub fn new(folder: PathBuf, node: Program) -> Self {
        Self {
            folder,
            node,
            up: None,
            clients: vec![1, 64, 256],
            places: vec![Place::Leader],
            rounds: 3,
            warm: Duration::from_secs(1),
            run: Duration::from_secs(5),
            messages: 100_000,
            idle: Duration::from_secs(60),
            tools: None,
        }
    }

    /// Returns the loads, in order.
    pub fn shapes(&self) -> impl Iterator<Item = Shape> + '_ {
        self.places.iter().flat_map(move |place| {
            self.clients.iter().map(move |clients| Shape {
                clients: *clients,
                place: *place,
                bytes: MESSAGE_BYTES,
                warm: self.warm,
                run: self.run,
            })
        })
    }
}

/// Measures what the options say.
///
/// # Errors
/// When a node does not start or fails, or the folder cannot be written.
pub async fn run(options: Options) -> anyhow::Result<Report> {
    let mut report = Report::begin();
    if !options.clients.is_empty() {
        report.writes = writes(&options).await?;
    }
    if let Some(tools) = &options.tools {
        for clients in &options.clients {
            report.tools.push(http::measure(tools, *clients, options.warm, options.run).await?);
        }
    }
    if options.messages > 0 {
        report.start = Some(start::measure(&options).await?);
    }
    report.end();
    Ok(report)
}

async fn writes(options: &Options) -> anyhow::Result<Vec<WriteReport>> {
    let root = options.folder.join(format!("nexus-bench-{}", std::process::id()));
    std::fs::create_dir_all(&root).with_context(|| root.display().to_string())?;
    let mut trio = Trio::start(&options.node, &root).await?;
    let mut writes: Vec<WriteReport> = options.shapes().map(WriteReport::new).collect();
    // Round by round, not load by load: what else the machine does then falls on all alike.
    for _ in 0..options.rounds {
        for (write, shape) in writes.iter_mut().zip(options.shapes()) {
            write.rounds.push(trio.load(shape).await?);
        }
    }
    trio.stop().await?;
    std::fs::remove_dir_all(&root).with_context(|| root.display().to_string())?;
    Ok(writes)
}
