//! The real Claude Code and Codex, with a scripted model behind them.
//!
//! The clients are the programs that people install; only the model's API is replaced, by
//! `tests/clients/scripted_model.py` on loopback. Each has a home of its own with nothing in it but
//! what its test needs.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::command::{self, Running};
use crate::wait;

/// How long the model's program may take to listen.
const LISTENS: Duration = Duration::from_secs(20);
/// What a client's environment has besides its own settings.
const SEARCH_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The installed clients.
#[derive(Debug, Clone)]
pub struct Clients {
    claude: PathBuf,
    codex: PathBuf,
}

impl Clients {
    /// Finds them: in `NEXUS_TEST_CLIENTS`, else where `ops/test --clients` installs them.
    ///
    /// # Errors
    /// What is missing, and what installs it.
    pub fn find() -> Result<Self, String> {
        let folder = command::installed("NEXUS_TEST_CLIENTS", "clients")?;
        let modules = folder.join("node_modules");
        let claude = modules.join("@anthropic-ai/claude-code-linux-x64/claude");
        let codex = find_file(&modules.join("@openai"), "codex");
        let missing = |what: &str| {
            format!(
                "{what} is not in {}; `ops/test --clients` installs the clients",
                folder.display()
            )
        };
        if !claude.is_file() {
            return Err(missing("Claude Code"));
        }
        let codex = codex.ok_or_else(|| missing("Codex"))?;
        if let Err(error) = Command::new("python3").arg("--version").output() {
            return Err(format!("python3, which plays the model, cannot be run: {error}"));
        }
        Ok(Self { claude, codex })
    }

    /// Returns the command of Claude Code for one conversation of `home`, whose MCP server is
    /// `nexus mcp` on that data folder.
    ///
    /// # Panics
    /// When its home cannot be written.
    pub fn claude(&self, home: &Home, model: &Model, data: &Path) -> Command {
        let servers = home.path.join("mcp.json");
        let server = json!({
            "command": command::binary(), "args": ["mcp"], "env": {"NEXUS_ROOT": data},
        });
        write(&servers, &json!({"mcpServers": {"n2n-nexus": server}}).to_string());
        let mut command = home.command(&self.claude);
        command
            .args(["-p", "do as you are told", "--output-format", "json", "--strict-mcp-config"])
            .arg("--mcp-config")
            .arg(&servers)
            .args(["--allowedTools", "mcp__n2n-nexus__*"])
            .env("IS_SANDBOX", "1")
            .env("ANTHROPIC_BASE_URL", &model.url)
            .env("ANTHROPIC_API_KEY", "sk-ant-dummy")
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .env("DISABLE_AUTOUPDATER", "1");
        command
    }

    /// Returns the command of Codex for one conversation of `home`, as [`Self::claude`].
    ///
    /// # Panics
    /// When its home cannot be written.
    pub fn codex(&self, home: &Home, model: &Model, data: &Path) -> Command {
        let settings = format!(
            "model = \"scripted\"\nmodel_provider = \"scripted\"\n\
             [model_providers.scripted]\nname = \"scripted\"\nbase_url = \"{}/v1\"\n\
             wire_api = \"responses\"\n\
             [mcp_servers.n2n-nexus]\ncommand = {}\nargs = [\"mcp\"]\n\
             env = {{ NEXUS_ROOT = {} }}\n",
            model.url,
            json!(command::binary()),
            json!(data),
        );
        write(&home.path.join(".codex/config.toml"), &settings);
        let mut command = home.command(&self.codex);
        command.args([
            "exec",
            "--json",
            "--skip-git-repo-check",
            "--dangerously-bypass-approvals-and-sandbox",
            "do as you are told",
        ]);
        command
    }
}

fn find_file(folder: &Path, name: &str) -> Option<PathBuf> {
    let mut below = Vec::new();
    for entry in std::fs::read_dir(folder).ok()?.flatten() {
        let path = entry.path();
        if path.is_dir() {
            below.push(path);
        } else if entry.file_name() == name && path.parent()?.ends_with("bin") {
            // The launcher of the npm package is codex.js; this is the program itself.
            return Some(path);
        }
    }
    below.sort();
    below.into_iter().find_map(|folder| find_file(&folder, name))
}

/// A home for one client, with a project folder in it.
#[derive(Debug)]
pub struct Home {
    path: PathBuf,
}

impl Home {
    /// Makes it.
    ///
    /// # Panics
    /// When it cannot be made.
    pub fn new(folder: &Path, name: &str) -> Self {
        let path = folder.join(name);
        std::fs::create_dir_all(path.join("project")).expect("a home can be made");
        Self { path }
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", SEARCH_PATH)
            .env("HOME", &self.path)
            .current_dir(self.path.join("project"));
        command
    }
}

/// The scripted model of one client.
#[derive(Debug)]
pub struct Model {
    url: String,
    log: PathBuf,
    program: Running,
}

impl Model {
    /// Starts it with the steps.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn start(folder: &Path, name: &str, steps: &Value) -> Self {
        let script = folder.join(format!("{name}-steps.json"));
        write(&script, &steps.to_string());
        let log = folder.join(format!("{name}-model.jsonl"));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/scripted_model.py");
        let mut command = Command::new("python3");
        command.arg(source).arg("--steps").arg(script).arg("--log").arg(&log);
        let mut program = Running::start(command);
        let url = wait::until("the scripted model", LISTENS, async || {
            let said = program.stdout();
            match said.lines().find_map(|line| line.strip_prefix("listening on ")) {
                Some(url) => Ok(url.to_owned()),
                None => Err(format!("runs: {}, {}", program.is_running(), program.stderr())),
            }
        });
        let url = url.await;
        Self { url, log, program }
    }

    /// Returns what the client asked it so far, a request a line.
    ///
    /// # Panics
    /// When the log holds anything but JSON.
    pub fn requests(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        // The last line may be still on its way.
        let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        lines.map(|line| serde_json::from_str(line).expect("the log holds JSON")).collect()
    }

    /// Returns the steps taken so far: what the model answered, and the tool result before it.
    pub fn steps(&self) -> Vec<(Value, Value)> {
        let taken = self.requests().into_iter().filter(|request| !request["step"].is_null());
        taken.map(|request| (request["answer"].clone(), request["result"].clone())).collect()
    }

    /// Returns what went against the script, if anything did.
    pub fn mismatch(&self) -> Option<String> {
        let requests = self.requests();
        requests.iter().find_map(|request| request.get("mismatch").map(Value::to_string))
    }

    /// Returns the process id of the model's program.
    pub fn pid(&self) -> u32 {
        self.program.pid()
    }
}

fn write(path: &Path, text: &str) {
    let folder = path.parent().expect("a file is in a folder");
    std::fs::create_dir_all(folder).expect("a folder can be made");
    std::fs::write(path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
