//! The node of the conformance suite: `nexus` with the suite's fixtures at `/mcp`.

use std::process::ExitCode;

fn main() -> ExitCode {
    nexus_node::main()
}
