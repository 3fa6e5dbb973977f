//! The official SDKs of MCP, as programs that are clients of nexus.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::call::Http;
use crate::command;

/// The installed SDKs.
#[derive(Debug, Clone)]
pub struct Sdks {
    modules: PathBuf,
    python: PathBuf,
}

/// An SDK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sdk {
    /// `@modelcontextprotocol/client` of npm.
    TypeScript,
    /// `mcp` of `PyPI`.
    Python,
}

impl Sdks {
    /// Finds them: in `NEXUS_TEST_SDKS`, else where `ops/test --clients` installs them.
    ///
    /// # Errors
    /// What is missing, and what installs it.
    pub fn find() -> Result<Self, String> {
        let folder = command::installed("NEXUS_TEST_SDKS", "sdks")?;
        let found =
            Self { modules: folder.join("node_modules"), python: folder.join("python/bin/python") };
        let client = found.modules.join("@modelcontextprotocol/client/dist/index.mjs");
        for file in [&client, &found.node(), &found.python] {
            if !file.exists() {
                return Err(format!(
                    "{} is missing; `ops/test --clients` installs the SDKs",
                    file.display()
                ));
            }
        }
        Ok(found)
    }

    /// Returns Node.js, of the version that the SDKs want.
    pub fn node(&self) -> PathBuf {
        self.modules.join(".bin/node")
    }

    /// Returns the command that runs the conformance suite's server scenarios of a revision
    /// against the `/mcp` of a node; `expected` names what fails, and `output` takes the results.
    ///
    /// # Errors
    /// When the suite is not installed.
    pub fn conformance(
        &self,
        http: &Http,
        revision: &str,
        expected: &Path,
        output: &Path,
    ) -> Result<Command, String> {
        let suite = self.modules.join("@modelcontextprotocol/conformance/dist/index.js");
        if !suite.exists() {
            return Err(format!("{} is missing", suite.display()));
        }
        let mut command = Command::new(self.node());
        command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/clients/conformance.mjs"));
        command.arg(&self.modules).args([http.url(), &http.token(), revision]);
        command.arg(expected).arg(output);
        Ok(command)
    }

    /// Returns the command of a client of that SDK, that wire and that server:
    /// `tests/clients/sdk.*` say what a target is and what they print.
    pub fn client(&self, sdk: Sdk, wire: &str, target: &Value) -> Command {
        let programs = concat!(env!("CARGO_MANIFEST_DIR"), "/clients");
        let mut command = match sdk {
            Sdk::TypeScript => {
                let mut command = Command::new(self.node());
                command.arg(format!("{programs}/sdk.mjs")).arg(&self.modules);
                command
            }
            Sdk::Python => {
                let mut command = Command::new(&self.python);
                command.arg(format!("{programs}/sdk.py"));
                command
            }
        };
        command.arg(wire).arg(target.to_string());
        command
    }
}
