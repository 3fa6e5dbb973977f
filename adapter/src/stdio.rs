//! `nexus mcp`: the MCP server on standard input and output.
//!
//! Standard output carries JSON-RPC and nothing else: nothing here prints, and whoever sets up
//! logging sends it to standard error. The server ends when its input ends.

use std::path::PathBuf;
use std::time::Duration;

use nexus_contract::catalog::Set;
use rmcp::serve_server;
use rmcp::service::{QuitReason, ServerInitializeError};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::beside::Beside;
use crate::client::{ClientError, PATIENCE};
use crate::endpoint::EndpointSource;
use crate::server::Server;
use crate::wire;

/// What the server needs to know of the world.
#[derive(Debug, Clone)]
pub struct Options {
    /// How to find the local node.
    pub endpoint: EndpointSource,
    /// The instance id chosen by the user: `--id`, else `NEXUS_INSTANCE_ID`.
    pub id: Option<String>,
    /// The working directory: clients start the server in the project's.
    pub cwd: PathBuf,
    /// The host's name.
    pub hostname: String,
    /// How long a call waits for a node that is away; [`PATIENCE`] but in tests.
    pub patience: Duration,
    /// The tools that are listed and may be called.
    pub set: Set,
}

impl Options {
    /// Makes the options of this process: its working directory, its host.
    ///
    /// # Errors
    /// When the working directory is gone.
    pub fn here(endpoint: EndpointSource, id: Option<String>, set: Set) -> std::io::Result<Self> {
        Ok(Self {
            endpoint,
            id: id.map(|id| id.trim().to_owned()).filter(|id| !id.is_empty()),
            cwd: std::env::current_dir()?,
            hostname: gethostname::gethostname().to_string_lossy().into_owned(),
            patience: PATIENCE,
            set,
        })
    }
}

/// Why the server ended before its input did.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The HTTP client cannot be set up.
    #[error("mcp server cannot be set up")]
    Client(#[source] ClientError),
    /// The client did not begin as MCP says.
    #[error("mcp client does not speak the protocol")]
    Protocol(#[source] Box<ServerInitializeError>),
    /// The server's own loop broke.
    #[error("mcp server broke off")]
    Broken(#[source] tokio::task::JoinError),
}

/// Serves on standard input and output until the input ends.
///
/// # Errors
/// When the client does not speak MCP, or the server breaks.
pub async fn serve(options: Options) -> Result<(), ServeError> {
    let (input, output) = rmcp::transport::stdio_pipes();
    serve_on(options, input, output).await
}

/// Serves on any pair of streams until the input ends.
///
/// # Errors
/// As [`serve`].
pub async fn serve_on<R, W>(options: Options, input: R, output: W) -> Result<(), ServeError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let set = options.set;
    let (wire, output) = wire::open(input, output, set);
    let server = Server::new(Beside::new(options).map_err(ServeError::Client)?, set);
    let served = async {
        let running = match serve_server(server, wire).await {
            Ok(running) => running,
            // A client that looked and left is no failure.
            Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            Err(error) => return Err(ServeError::Protocol(Box::new(error))),
        };
        match running.waiting().await {
            Ok(QuitReason::JoinError(error)) | Err(error) => Err(ServeError::Broken(error)),
            Ok(_) => Ok(()),
        }
    };
    let (served, written) = tokio::join!(served, output.run());
    if let Err(error) = written {
        // A client that reads no more has gone.
        tracing::debug!(%error, "standard output is closed");
    }
    served
}
