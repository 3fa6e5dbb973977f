//! The command line: one verb a file, one enum that holds them.
//!
//! Each verb's `run` gives an exit code or a [`Failure`]; this file alone turns failures into text.
//! All verbs but `up` and `mcp` are short talks with the node that runs on this machine.

mod bench;
mod call;
mod completions;
mod down;
mod invite;
mod lan;
mod mcp;
mod node;
pub(crate) mod out;
mod peers;
mod status;
mod up;
pub(crate) mod value;
mod version;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory as _, Parser, Subcommand};
use nexus_adapter::{ClientError, EndpointSource, LocalNode};
use nexus_contract::{ApiError, ErrorCode};

use crate::config::{self, Folder, FolderError};
use crate::telemetry::{self, LogFormat};
use out::Out;
pub(crate) use version::VERSION;

const AFTER_HELP: &str = "\
Examples:
  nexus up                               start the node of this machine
  nexus invite --voter                   let another machine join, as a voter
  nexus up --join CODE                   join there
  nexus status                           see how the cluster is
  nexus call send_message '{\"message\":\"hello\"}'
  claude mcp add n2n-nexus -- nexus mcp  connect a client

Exit codes:
  0  done
  1  refused or failed; the message says why
  2  the command line is wrong
  3  no node answers on this machine
  4  no majority of the voters answers, or whether it was done is not known

Files and environment:
  The data folder is --data, else NEXUS_ROOT, else the platform's folder n2n-nexus. In it are
  settings.json, token and, while a node runs, endpoint.json. NEXUS_ENDPOINT and NEXUS_TOKEN name
  another node; NEXUS_LOG sets what is logged, such as info or nexus_raft=debug.";

/// Coordination for AI conversations across the machines of a team
#[derive(Debug, Parser)]
#[command(name = "nexus", version, after_help = AFTER_HELP, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Start the node of this machine, in the foreground
    Up(up::UpArgs),
    /// Stop the node of this machine
    Down(down::DownArgs),
    /// Let another machine join; list and withdraw codes
    Invite(invite::InviteArgs),
    /// Show the cluster: members, leader, what may fail
    Status(status::StatusArgs),
    /// Manage the cluster's members
    Node(node::NodeArgs),
    /// List the conversations of all machines
    Peers(peers::PeersArgs),
    /// Call a tool
    Call(call::CallArgs),
    /// Serve MCP on standard input and output, for one client
    Mcp(mcp::McpArgs),
    /// Take back what opened this machine to the LAN
    Lan(lan::LanArgs),
    /// Measure writes, start and memory on this machine
    Bench(bench::BenchArgs),
    /// Run one node of a benchmark
    #[command(hide = true, name = bench::NODE_VERB)]
    BenchNode(bench::BenchNodeArgs),
    /// Print the version
    Version(version::VersionArgs),
    /// Print completions for a shell
    Completions(completions::CompletionsArgs),
}

/// How every verb finds the node of this machine.
#[derive(Debug, Clone, Args)]
pub(crate) struct Local {
    /// The data folder [default: the platform's, n2n-nexus]
    #[arg(long, value_name = "DIR", env = "NEXUS_ROOT")]
    pub(crate) data: Option<PathBuf>,
    /// The node's address, instead of the one in the data folder
    #[arg(long, value_name = "URL", env = "NEXUS_ENDPOINT", value_parser = value::endpoint)]
    pub(crate) endpoint: Option<String>,
}

impl Local {
    /// Returns the data folder.
    pub(crate) fn folder(&self) -> Result<Folder, FolderError> {
        Folder::find(self.data.as_deref())
    }

    /// Returns the node's address, if one was given.
    pub(crate) fn given_endpoint(&self) -> Option<String> {
        self.endpoint.clone().filter(|given| !given.is_empty())
    }

    /// Returns how to find the node.
    pub(crate) fn source(&self) -> Result<EndpointSource, Failure> {
        let endpoint = self.given_endpoint();
        let data = self.folder()?.path().to_owned();
        let token = config::token_given();
        // It goes into a header, which carries no other characters.
        if token.as_ref().is_some_and(|token| !nexus_adapter::endpoint::is_token(token)) {
            return Err(Failure::Usage(
                "NEXUS_TOKEN has characters that no token has: give the one line that stands in \
                 the file token of the data folder"
                    .to_owned(),
            ));
        }
        Ok(EndpointSource { data, endpoint, token })
    }

    /// Returns the client of the node.
    pub(crate) fn node(&self) -> Result<LocalNode, Failure> {
        Ok(LocalNode::new(self.source()?)?)
    }
}

/// Why a verb did not do what it was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The node, or the way to it, said no; the code decides the exit code.
    Refused(Box<ApiError>),
    /// The command line is wrong in a way that its parser cannot see.
    Usage(String),
    /// Something on this machine failed.
    Failed(anyhow::Error),
}

impl From<ApiError> for Failure {
    fn from(error: ApiError) -> Self {
        Self::Refused(Box::new(error))
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        error.into_api_error(None).into()
    }
}

impl From<FolderError> for Failure {
    fn from(error: FolderError) -> Self {
        Self::Failed(error.into())
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(error)
    }
}

/// What a verb's end means for the shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Done = 0,
    Failed = 1,
    Usage = 2,
    NotReachable = 3,
    Unavailable = 4,
}

impl Exit {
    fn of(code: ErrorCode) -> Self {
        if matches!(code, ErrorCode::NodeUnreachable | ErrorCode::Starting | ErrorCode::Stopping) {
            Self::NotReachable
        } else if matches!(code, ErrorCode::NoQuorum | ErrorCode::UnknownOutcome) {
            Self::Unavailable
        } else {
            Self::Failed
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::NotReachable => 3,
            Exit::Unavailable => 4,
        })
    }
}

/// Parses the command line, runs the verb, and returns the process's exit code.
#[must_use]
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are such errors too; if nobody can read them, nobody misses them.
            error.print().ok();
            return if error.use_stderr() { Exit::Usage.into() } else { Exit::Done.into() };
        }
    };
    let mut out = Out::new(cli.verb.json());
    let exit = match run(cli.verb, &mut out) {
        Ok(exit) => exit,
        Err(failure) => report(&failure, &mut out),
    };
    exit.into()
}

fn run(verb: Verb, out: &mut Out) -> Result<Exit, Failure> {
    let is_daemon = matches!(verb, Verb::Up(_));
    let format = if let Verb::Up(args) = &verb { args.log } else { LogFormat::Text };
    telemetry::start_log(format, if is_daemon { "info" } else { "error" });
    let is_wide = is_daemon || matches!(verb, Verb::Bench(_) | Verb::BenchNode(_));
    let mut builder = if is_wide {
        tokio::runtime::Builder::new_multi_thread()
    } else {
        tokio::runtime::Builder::new_current_thread()
    };
    let runtime = builder
        .enable_all()
        .build()
        .map_err(|error| anyhow::Error::new(error).context("runtime cannot be started"))?;
    runtime.block_on(dispatch(verb, out))
}

async fn dispatch(verb: Verb, out: &mut Out) -> Result<Exit, Failure> {
    match verb {
        Verb::Up(args) => up::run(args, out).await,
        Verb::Down(args) => down::run(args, out).await,
        Verb::Invite(args) => invite::run(args, out).await,
        Verb::Status(args) => status::run(args, out).await,
        Verb::Node(args) => node::run(args, out).await,
        Verb::Peers(args) => peers::run(args, out).await,
        Verb::Call(args) => call::run(args, out).await,
        Verb::Mcp(args) => mcp::run(args).await,
        Verb::Lan(args) => lan::run(args, out).await,
        Verb::Bench(args) => bench::run(args, out).await,
        Verb::BenchNode(args) => bench::run_node(args).await,
        Verb::Version(args) => Ok(version::run(&args, out)),
        Verb::Completions(args) => Ok(completions::run(&args, &mut Cli::command(), out)),
    }
}

impl Verb {
    /// Returns whether answers and errors are JSON.
    fn json(&self) -> bool {
        match self {
            Self::Up(_) | Self::Mcp(_) | Self::Completions(_) | Self::BenchNode(_) => false,
            Self::Down(args) => args.json,
            Self::Invite(args) => args.json,
            Self::Status(args) => args.json,
            Self::Node(args) => args.json(),
            Self::Peers(args) => args.json,
            Self::Call(args) => args.json,
            Self::Lan(args) => args.json(),
            Self::Bench(args) => args.json,
            Self::Version(args) => args.json,
        }
    }
}

fn report(failure: &Failure, out: &mut Out) -> Exit {
    match failure {
        Failure::Refused(error) => {
            out.refusal(error);
            Exit::of(error.code)
        }
        Failure::Usage(text) => {
            out.refusal(&ApiError::new(ErrorCode::BadRequest, text));
            Exit::Usage
        }
        Failure::Failed(error) => {
            out.refusal(&ApiError::internal(chain(error.as_ref())));
            Exit::Failed
        }
    }
}

/// Returns a text as one segment of a URL's path.
pub(crate) fn percent_encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// Writes an error with its causes on one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests;
