//! `nexus completions`: what a shell needs to complete the command line.

use clap_complete::Shell;

use super::Exit;
use super::out::Out;

/// Arguments of `nexus completions`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  nexus completions bash > /etc/bash_completion.d/nexus")]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Prints the completions.
pub(crate) fn run(args: &CompletionsArgs, command: &mut clap::Command, out: &mut Out) -> Exit {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, command, "nexus", &mut text);
    out.line(String::from_utf8_lossy(&text).trim_end());
    Exit::Done
}
