//! The MCP server alone, for trying a client against it: `nexus mcp` without the rest of `nexus`.
//!
//! It looks for the node in `NEXUS_ROOT` (default: the working directory) or at `NEXUS_ENDPOINT`.

use nexus_adapter::EndpointSource;
use nexus_adapter::stdio::{Options, serve};
use nexus_contract::catalog::Set;

#[expect(clippy::disallowed_methods, reason = "an example has no configuration to ask")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let endpoint = EndpointSource {
        data: variable("NEXUS_ROOT").unwrap_or_else(|| ".".into()).into(),
        endpoint: variable("NEXUS_ENDPOINT"),
        token: variable("NEXUS_TOKEN"),
    };
    serve(Options::here(endpoint, variable("NEXUS_INSTANCE_ID"), Set::All)?).await?;
    Ok(())
}
