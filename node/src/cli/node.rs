//! `nexus node`: the cluster's members.

use nexus_contract::http::{Done, PATH_MEMBERS};

use super::out::Out;
use super::{Exit, Failure, Local, value};

/// Arguments of `nexus node`.
#[derive(Debug, clap::Args)]
pub(crate) struct NodeArgs {
    #[command(subcommand)]
    verb: NodeVerb,
}

#[derive(Debug, clap::Subcommand)]
enum NodeVerb {
    /// Remove a machine that is gone for good; its id is never used again
    Remove(RemoveArgs),
}

#[derive(Debug, clap::Args)]
struct RemoveArgs {
    /// The member's name or id, as `nexus status` shows it
    #[arg(value_parser = value::member)]
    name: String,
    /// Remove the first machine too, with the key that lets machines join
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    local: Local,
    /// Answer in JSON
    #[arg(long)]
    json: bool,
}

impl NodeArgs {
    /// Returns whether the answer is JSON.
    pub(crate) fn json(&self) -> bool {
        let NodeVerb::Remove(args) = &self.verb;
        args.json
    }
}

/// Runs the verb.
pub(crate) async fn run(args: NodeArgs, out: &mut Out) -> Result<Exit, Failure> {
    let NodeVerb::Remove(args) = args.verb;
    let name = super::percent_encoded(&args.name);
    let force = if args.force { "?force=true" } else { "" };
    let path = format!("{PATH_MEMBERS}/{name}{force}");
    let done: Done = args.local.node()?.delete(&path).await?;
    if out.is_json() {
        out.value(&done);
    } else {
        out.line(&done.message);
    }
    Ok(Exit::Done)
}
