//! `nexus up`: starts the node and stays with it until it stops.

use nexus_contract::ApiError;

use super::out::Out;
use super::{Exit, Failure, chain};
use crate::app::{App, Ended};
use crate::config::{Config, Flags, Folder};
use crate::telemetry::LogFormat;

const AFTER_HELP: &str = "\
Prints one line to standard output once it serves:
  nexus ready http=http://127.0.0.1:5688 node=NAME cluster=ID
Logs go to standard error. Ctrl-C or SIGTERM stops the node (a second one at once); it hands over
the leadership and ends running calls first, which takes at most about 15 seconds.

Examples:
  nexus up                                      a node for this machine alone
  nexus up --join CODE                          join the cluster whose `nexus invite` gave CODE
  nexus up --join CODE --seed 192.168.1.5:5689  the same, on a LAN without multicast
  nexus up --data /tmp/a --http 127.0.0.1:0 --cluster 127.0.0.1:0   a second node, for a try";

/// Arguments of `nexus up`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct UpArgs {
    /// The data folder [default: the platform's, n2n-nexus]
    #[arg(long, value_name = "DIR", env = "NEXUS_ROOT")]
    data: Option<std::path::PathBuf>,
    #[command(flatten)]
    flags: Flags,
    /// How log lines are written; `NEXUS_LOG` says which
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub(crate) log: LogFormat,
}

/// Runs the node.
pub(crate) async fn run(args: UpArgs, out: &mut Out) -> Result<Exit, Failure> {
    let folder = Folder::find(args.data.as_deref())?;
    let config = Config::load(folder, args.flags).map_err(|error| {
        if error.is_usage() {
            Failure::Usage(chain(&error))
        } else {
            anyhow::Error::new(error).into()
        }
    })?;
    let app = match App::build(config, out).await {
        Ok(app) => app,
        Err(error) => {
            let (hint, is_usage) = (error.hint(), error.is_usage());
            out.refusal(&ApiError::internal(chain(&error)));
            if let Some(hint) = hint {
                out.hint(&hint);
            }
            return Ok(if is_usage { Exit::Usage } else { Exit::Failed });
        }
    };
    let running = app.spawn().map_err(anyhow::Error::new)?;
    out.line(&running.ready_line());
    match running.wait().await {
        Ended::Asked => Ok(Exit::Done),
        Ended::Fatal(message) => {
            out.refusal(&ApiError::internal(message));
            Ok(Exit::Failed)
        }
    }
}
