//! One node as a process: started, killed, started again, and asked by HTTP and command line.
//!
//! A node has a data folder of its own and ports of its own. Whatever runs when its test ends is
//! killed, by process id; when the test fails, its log is shown and its folder is kept.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::call::Http;
use crate::command::{self, Ended};
use crate::wait;

/// How long a start, a stop or an agreement may take before the test fails: far more than they
/// need, since a machine may be busy.
pub const LIMIT: Duration = Duration::from_secs(60);
/// How often the ready line is looked for.
const LOOK: Duration = Duration::from_millis(5);
/// Lines of a log that a failing test shows.
const LOG_LINES: usize = 40;

/// How a node is set up, once for all of its starts.
#[derive(Debug, Clone)]
pub struct Setup {
    /// What stands in `settings.json`.
    pub settings: Value,
    /// What is given to every `nexus up`, besides name and ports.
    pub arguments: Vec<String>,
    /// The network namespace to run in; then ports and addresses are the defaults.
    pub namespace: Option<String>,
    /// The data folder; none makes one.
    pub data: Option<PathBuf>,
    /// What is logged.
    pub log: String,
    /// The program; none is the one under test.
    pub binary: Option<PathBuf>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            settings: json!({"timing": "wired", "rateLimit": 0}),
            arguments: vec!["--no-mdns".to_owned()],
            namespace: None,
            data: None,
            log: "info".to_owned(),
            binary: None,
        }
    }
}

/// One node.
#[derive(Debug)]
pub struct Node {
    name: String,
    setup: Setup,
    folder: Option<tempfile::TempDir>,
    home: PathBuf,
    data: PathBuf,
    child: Option<Child>,
    starts: u32,
    ready_line: String,
    /// The address of the cluster's port, once it is known: it stays over restarts.
    cluster: Option<String>,
    /// Where it was before it moved away.
    before: Option<String>,
    http: Http,
}

impl Node {
    /// Makes the node's folder; starts nothing.
    ///
    /// # Panics
    /// When the folder cannot be made.
    pub fn new(name: &str) -> Self {
        Self::with(name, Setup::default())
    }

    /// Makes the node with another setup; starts nothing.
    ///
    /// # Panics
    /// When the folder cannot be made.
    pub fn with(name: &str, setup: Setup) -> Self {
        let folder = tempfile::Builder::new()
            .prefix(&format!("{name}-"))
            .tempdir_in(command::scratch())
            .expect("a folder can be made");
        let data = setup.data.clone().unwrap_or_else(|| folder.path().join("data"));
        if !setup.settings.is_null() {
            std::fs::create_dir_all(&data).expect("the data folder can be made");
            let text = setup.settings.to_string();
            std::fs::write(data.join("settings.json"), text).expect("settings can be written");
        }
        Self {
            name: name.to_owned(),
            setup,
            home: folder.path().to_owned(),
            folder: Some(folder),
            data,
            child: None,
            starts: 0,
            ready_line: String::new(),
            cluster: None,
            before: None,
            http: Http::default(),
        }
    }

    /// Makes a node and starts a cluster of one with it.
    ///
    /// # Panics
    /// When it does not become ready.
    pub async fn found(name: &str) -> Self {
        let mut node = Self::new(name);
        node.start(&[]).await;
        node
    }

    /// Makes a node and lets it join by a code of `inviter`; `role` is `--voter`, `--learner` or
    /// nothing.
    ///
    /// # Panics
    /// When it does not become ready.
    pub async fn join(name: &str, inviter: &Node, role: &[&str]) -> Self {
        let mut node = Self::new(name);
        node.join_at(inviter, role).await;
        node
    }

    /// Lets a node that was made join by a code of `inviter`, as [`Self::join`].
    ///
    /// # Panics
    /// When it does not become ready.
    pub async fn join_at(&mut self, inviter: &Node, role: &[&str]) {
        let invite = inviter.invite(role).await;
        let mut arguments = vec!["--join".to_owned(), text(&invite["code"])];
        for address in invite["addresses"].as_array().into_iter().flatten() {
            arguments.extend(["--seed".to_owned(), text(address)]);
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        self.start(&arguments).await;
    }

    /// Returns the node's name, as it asked for it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Asks for another name from the next start on.
    pub fn rename(&mut self, name: &str) {
        name.clone_into(&mut self.name);
    }

    /// Returns the data folder.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// Returns how to ask the node by HTTP.
    pub fn http(&self) -> &Http {
        &self.http
    }

    /// Returns the ready line of the last start.
    pub fn ready_line(&self) -> &str {
        &self.ready_line
    }

    /// Returns the process id of the node that runs.
    ///
    /// # Panics
    /// When none runs.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("the node runs").id()
    }

    /// Returns what `nexus up` has logged since the last start.
    pub fn log(&self) -> String {
        command::read(&self.file("stderr"))
    }

    fn file(&self, kind: &str) -> PathBuf {
        self.home.join(format!("start-{}.{kind}", self.starts))
    }

    /// Starts `nexus up` and waits until it serves; returns how long that took.
    ///
    /// # Panics
    /// When it ends or does not become ready in time.
    pub async fn start(&mut self, arguments: &[&str]) -> Duration {
        self.launch(arguments);
        let took = self.ready().await;
        if self.cluster.is_none() && self.setup.namespace.is_none() {
            let what = "the node's own address in the cluster";
            self.cluster = Some(wait::until(what, LIMIT, async || self.own_address().await).await);
        }
        took
    }

    /// Starts `nexus up` and waits for nothing.
    ///
    /// # Panics
    /// When it cannot be started, or runs already.
    pub fn launch(&mut self, arguments: &[&str]) {
        assert!(self.child.is_none(), "{} runs already", self.name);
        self.starts += 1;
        let mut command = self.command(&["up", "--name", &self.name]);
        if self.setup.namespace.is_none() {
            let cluster = self.cluster.as_deref().unwrap_or("127.0.0.1:0");
            command.args(["--http", "127.0.0.1:0", "--cluster", cluster]);
        }
        command
            .args(&self.setup.arguments)
            .args(arguments)
            .env("NEXUS_LOG", &self.setup.log)
            .stdin(Stdio::null())
            .stdout(command::create(&self.file("stdout")))
            .stderr(command::create(&self.file("stderr")));
        let child = command.spawn();
        self.child = Some(child.unwrap_or_else(|error| panic!("{command:?}: {error}")));
    }

    /// Waits for the ready line of a start; returns how long that took.
    ///
    /// # Panics
    /// When the node ends, or the line does not come in time.
    pub async fn ready(&mut self) -> Duration {
        let since = Instant::now();
        loop {
            let said = command::read(&self.file("stdout"));
            if let Some(line) = said.lines().find(|line| line.starts_with("nexus ready ")) {
                self.ready_line = line.to_owned();
                let url = line.split(' ').find_map(|word| word.strip_prefix("http="));
                let url = url.unwrap_or_else(|| panic!("no address in {line:?}"));
                self.http = Http::at(url, &self.data, self.setup.namespace.is_none());
                return since.elapsed();
            }
            let child = self.child.as_mut().expect("the node was launched");
            if let Some(status) = child.try_wait().expect("a child can be asked") {
                self.child = None;
                panic!("{} ended before it was ready: {status}\n{}", self.name, self.log());
            }
            assert!(since.elapsed() < LIMIT, "{} is not ready\n{}", self.name, self.log());
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Returns how the node ended, if it has.
    ///
    /// # Panics
    /// When it was not launched.
    pub fn ended(&mut self) -> Option<Ended> {
        let child = self.child.as_mut().expect("the node was launched");
        let status = child.try_wait().expect("a child can be asked")?;
        self.child = None;
        Some(Ended { status, stdout: command::read(&self.file("stdout")), stderr: self.log() })
    }

    /// Waits for the end of a start that is expected to fail; returns how it ended.
    ///
    /// # Panics
    /// When it does not end in time.
    pub async fn refused(&mut self) -> Ended {
        let status = self.exit(LIMIT).await;
        Ended { status, stdout: command::read(&self.file("stdout")), stderr: self.log() }
    }

    async fn exit(&mut self, limit: Duration) -> std::process::ExitStatus {
        let since = Instant::now();
        loop {
            let child = self.child.as_mut().expect("the node was launched");
            if let Some(status) = child.try_wait().expect("a child can be asked") {
                self.child = None;
                return status;
            }
            assert!(since.elapsed() < limit, "{} does not end\n{}", self.name, self.log());
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Kills the node as a crash does.
    ///
    /// # Panics
    /// When it does not run.
    pub fn kill(&mut self) {
        let mut child = self.child.take().expect("the node runs");
        child.kill().expect("a child can be killed");
        child.wait().expect("a child can be waited for");
    }

    /// Holds the node still, as a machine that sleeps without a word.
    ///
    /// # Panics
    /// When it does not run.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it go on.
    ///
    /// # Panics
    /// When it does not run.
    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(self.child.as_ref().expect("the node runs"));
        kill_process(pid, signal).expect("a child can be signalled");
    }

    /// Forgets the address of the cluster's port, so that the next start takes another.
    pub fn move_away(&mut self) {
        self.before = self.cluster.take();
    }

    /// Asks the node to stop, as a service manager does, and waits until it has; returns how long
    /// that took.
    ///
    /// # Panics
    /// When it does not stop in time, or not well.
    pub async fn terminate(&mut self) -> Duration {
        let since = Instant::now();
        self.signal_stop();
        let status = self.exit(LIMIT).await;
        assert!(status.success(), "{} stopped with {status}\n{}", self.name, self.log());
        since.elapsed()
    }

    /// Asks the node to stop as Ctrl-C does, and waits for nothing.
    ///
    /// # Panics
    /// When it does not run.
    pub fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    /// Asks the node to stop, and waits for nothing.
    ///
    /// # Panics
    /// When it does not run.
    pub fn signal_stop(&self) {
        self.signal(Signal::TERM);
    }

    /// Waits until a node that was told to stop has ended, and returns its status.
    ///
    /// # Panics
    /// When it does not end in time.
    pub async fn stopped(&mut self) -> std::process::ExitStatus {
        self.exit(LIMIT).await
    }

    /// Returns the command of a `nexus` verb on this node, to be changed before it runs.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let binary = self.setup.binary.clone().unwrap_or_else(command::binary);
        let mut command = match &self.setup.namespace {
            Some(namespace) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", namespace]).arg(binary);
                command
            }
            None => Command::new(binary),
        };
        command
            .args(arguments)
            .env("NEXUS_ROOT", &self.data)
            .env_remove("NEXUS_ENDPOINT")
            .env_remove("NEXUS_TOKEN")
            .env_remove("NEXUS_INSTANCE_ID")
            .env_remove("NEXUS_LOG");
        command
    }

    /// Runs a `nexus` verb on this node to its end.
    ///
    /// # Panics
    /// When it does not end within a minute.
    pub async fn nexus(&self, arguments: &[&str]) -> Ended {
        command::run(self.command(arguments)).await
    }

    /// Makes an invite; `role` is `--voter`, `--learner` or nothing, and more of that.
    ///
    /// # Panics
    /// When it is refused.
    pub async fn invite(&self, role: &[&str]) -> Value {
        let mut arguments = vec!["invite", "--json"];
        arguments.extend(role);
        self.nexus(&arguments).await.good().json()
    }

    /// Returns `nexus status --json`.
    ///
    /// # Panics
    /// When the node does not answer.
    pub async fn status(&self) -> Value {
        self.nexus(&["status", "--json"]).await.good().json()
    }

    /// Returns this node's digests.
    ///
    /// # Panics
    /// When the node does not answer.
    pub async fn digest(&self) -> Value {
        self.nexus(&["status", "--digest", "--json"]).await.good().json()
    }

    /// Returns the digest of what the conversations hold.
    ///
    /// # Panics
    /// When the node does not answer.
    pub async fn content(&self) -> String {
        text(&self.digest().await["now"]["content"])
    }

    /// Returns the address under which the cluster knows this node.
    async fn own_address(&self) -> Result<String, String> {
        let view = self.http.get("/api/cluster").await.map_err(|error| error.to_string())?;
        let members = view["members"].as_array().into_iter().flatten();
        let own = members.filter(|member| member["name"] == view["node"]);
        let mut addresses = own.filter_map(|member| member["addresses"][0].as_str());
        let address = addresses.next().map(str::to_owned);
        address
            .filter(|address| self.before.as_ref() != Some(address))
            .ok_or_else(|| view.to_string())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended by itself.
            child.kill().ok();
            child.wait().ok();
        }
        if std::thread::panicking() {
            self.show_log();
        }
    }
}

impl Node {
    #[expect(clippy::print_stderr, reason = "a failing test shows what its nodes said")]
    fn show_log(&mut self) {
        let Some(folder) = self.folder.take() else { return };
        let said = self.log();
        let skipped = said.lines().count().saturating_sub(LOG_LINES);
        let last: Vec<&str> = said.lines().skip(skipped).collect();
        let (name, kept) = (&self.name, folder.keep());
        eprintln!("--- log of {name}, kept whole in {}\n{}", kept.display(), last.join("\n"));
    }
}

/// Returns a JSON text as it is.
///
/// # Panics
/// When the value is none.
pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

/// Waits until all nodes have applied the same and hold the same, and returns the content's digest.
///
/// # Panics
/// When they do not agree in time, with what each holds.
pub async fn agree(nodes: &[&Node], limit: Duration) -> String {
    wait::until("the same digests everywhere", limit, async || {
        let mut all = Vec::new();
        for node in nodes {
            match node.http.get("/api/digest").await {
                Ok(view) => all.push((node.name(), view["now"].clone())),
                Err(error) => return Err(format!("{}: {error}", node.name())),
            }
        }
        match all.as_slice() {
            [(_, first), rest @ ..] if rest.iter().all(|(_, other)| other == first) => {
                Ok(text(&first["content"]))
            }
            _ => Err(format!("{all:#?}")),
        }
    })
    .await
}

/// Starts four nodes, so that every role is there: the first leads, the next two vote and follow,
/// the last is a learner.
///
/// # Panics
/// When they do not become so in time, with the last status.
pub async fn every_role(names: [&str; 4]) -> [Node; 4] {
    let [first, second, third, learner] = names;
    let [first, second, third] = three_voters([first, second, third]).await;
    let learner = Node::join(learner, &first, &["--learner"]).await;
    wait::until("a learner that has everything", LIMIT, async || {
        let status = learner.status().await;
        let members = status["members"].as_array().into_iter().flatten();
        let mut own = members.filter(|member| member["name"] == learner.name());
        let own = own.next().map(|own| (own["role"] == "learner", own["state"] == "up"));
        if own == Some((true, true)) { Ok(()) } else { Err(format!("{status:#}")) }
    })
    .await;
    agree(&[&first, &second, &third, &learner], LIMIT).await;
    [first, second, third, learner]
}

/// Starts three nodes that become three voters; the first one leads.
///
/// # Panics
/// When they do not become so in time, with the last status.
pub async fn three_voters(names: [&str; 3]) -> [Node; 3] {
    let [first, second, third] = names;
    let first = Node::found(first).await;
    let second = Node::join(second, &first, &["--voter"]).await;
    let third = Node::join(third, &first, &["--voter"]).await;
    for node in [&first, &second, &third] {
        wait::until("three voters, led by the first", LIMIT, async || {
            let status = node.status().await;
            let members = status["members"].as_array().into_iter().flatten();
            let voters = members.filter(|member| member["role"] == "voter").count();
            if voters == 3 && status["leader"] == first.name() {
                Ok(())
            } else {
                Err(format!("{status:#}"))
            }
        })
        .await;
    }
    [first, second, third]
}
