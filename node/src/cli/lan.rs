//! `nexus lan off`: takes back what an invite opened, while no other machine has joined.

use nexus_contract::http::Done;

use super::out::Out;
use super::{Exit, Failure, Local};
use crate::api::PATH_LAN;

/// Arguments of `nexus lan`.
#[derive(Debug, clap::Args)]
pub(crate) struct LanArgs {
    #[command(subcommand)]
    verb: LanVerb,
}

#[derive(Debug, clap::Subcommand)]
enum LanVerb {
    /// Listen on loopback only and be silent on the LAN again
    Off(OffArgs),
}

#[derive(Debug, clap::Args)]
struct OffArgs {
    #[command(flatten)]
    local: Local,
    /// Answer in JSON
    #[arg(long)]
    json: bool,
}

impl LanArgs {
    /// Returns whether the answer is JSON.
    pub(crate) fn json(&self) -> bool {
        let LanVerb::Off(args) = &self.verb;
        args.json
    }
}

/// Runs the verb.
pub(crate) async fn run(args: LanArgs, out: &mut Out) -> Result<Exit, Failure> {
    let LanVerb::Off(args) = args.verb;
    let done: Done = args.local.node()?.delete(PATH_LAN).await?;
    if out.is_json() {
        out.value(&done);
    } else {
        out.line(&done.message);
    }
    Ok(Exit::Done)
}
