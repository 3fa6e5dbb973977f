//! `nexus up`: starts the node and stays with it until it stops.

use std::pin::pin;

use nexus_contract::ApiError;
use tokio_util::sync::CancellationToken;

use super::out::Out;
use super::{Exit, Failure, chain};
use crate::app::{App, Ended, Signals, at_once};
use crate::config::{Config, Flags, Folder};
use crate::telemetry::LogFormat;

const AFTER_HELP: &str = "\
Prints one line to standard output once it serves:
  nexus ready http=http://127.0.0.1:5688 node=NAME cluster=ID
Logs go to standard error. Ctrl-C or SIGTERM stops the node (a second one at once); it hands over
the leadership and ends running calls first, which takes at most about 15 seconds. A join that
waits is given up, and leaves the folder as it was unless a member has been asked already.

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
    let mut signals = Signals::listen();
    let stop = CancellationToken::new();
    let built = {
        let mut build = pin!(App::build(config, out, stop.clone()));
        tokio::select! {
            built = &mut build => built,
            () = signals.next() => {
                stop.cancel();
                tracing::info!("stopping once the start is through; a second signal ends at once");
                tokio::select! {
                    built = &mut build => built,
                    () = signals.next() => at_once(),
                }
            }
        }
    };
    let app = match built {
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
    // Who waits for the line would take it for a node that stays.
    if !stop.is_cancelled() {
        out.line(&running.ready_line());
    }
    match running.wait(&mut signals).await {
        Ended::Asked => Ok(Exit::Done),
        Ended::Fatal(message) => {
            out.refusal(&ApiError::internal(message));
            Ok(Exit::Failed)
        }
    }
}
