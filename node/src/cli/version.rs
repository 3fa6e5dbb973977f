//! `nexus version`.

use serde_json::json;

use super::Exit;
use super::out::Out;

/// The program's version.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Arguments of `nexus version`.
#[derive(Debug, clap::Args)]
pub(crate) struct VersionArgs {
    /// Answer in JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Prints the version.
pub(crate) fn run(args: &VersionArgs, out: &mut Out) -> Exit {
    if args.json {
        let contract = nexus_contract::CONTRACT_VERSION;
        out.value(&json!({"name": "nexus", "version": VERSION, "contractVersion": contract}));
    } else {
        out.line(&format!("nexus {VERSION}"));
    }
    Exit::Done
}
