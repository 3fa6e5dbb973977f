//! One run of a program to its end: `nexus` as a person or a script would type it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

/// How often a running program is looked at.
const LOOK: Duration = Duration::from_millis(5);
/// How long a program may run unless the caller says otherwise.
const LIMIT: Duration = Duration::from_secs(60);

/// Returns the binary under test: `NEXUS_BIN`, else `nexus` beside the tests' own programs.
///
/// # Panics
/// When it is not there, with what builds it.
pub fn binary() -> PathBuf {
    if let Some(given) = std::env::var_os("NEXUS_BIN") {
        return given.into();
    }
    let binary = profile_folder().join("nexus");
    assert!(
        binary.exists(),
        "{} is not there: build it with `cargo build -p nexus-node`, or name it in NEXUS_BIN",
        binary.display()
    );
    binary
}

/// Returns the binary with the conformance suite's fixtures, beside the one under test.
///
/// # Errors
/// When it is not there, with what builds it.
pub fn conformance_binary() -> Result<PathBuf, String> {
    let binary = profile_folder().join("nexus-conformance");
    if binary.exists() {
        return Ok(binary);
    }
    Err(format!(
        "{} is not there: build it with `cargo build --features nexus-node/conformance --bin \
         nexus-conformance`",
        binary.display()
    ))
}

/// Returns a folder for what tests leave behind when they fail; it is not under `/tmp`, where
/// Codex refuses to make its helper programs.
///
/// # Panics
/// When it cannot be made.
pub fn scratch() -> PathBuf {
    let folder = profile_folder().with_file_name("scratch");
    std::fs::create_dir_all(&folder).expect("the scratch folder can be made");
    folder
}

/// Returns where `ops/test --clients` installs what is not ours: what the variable says, else a
/// folder of that name in the cache.
///
/// # Errors
/// When there is no cache.
pub fn installed(variable: &str, name: &str) -> Result<PathBuf, String> {
    let cache = || {
        let base = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
        Some(base.or_else(home)?.join("nexus").join(name))
    };
    let given = std::env::var_os(variable).map(PathBuf::from);
    given.or_else(cache).ok_or_else(|| "there is no home folder".to_owned())
}

/// Returns the build's folder that the running test is in.
fn profile_folder() -> PathBuf {
    let own = std::env::current_exe().expect("a process knows its own program");
    // …/debug/deps/kills-0123456789abcdef, or a unit test beside it.
    own.ancestors().nth(2).expect("tests run from the target folder").to_owned()
}

/// How a program ended.
#[derive(Debug, Clone)]
pub struct Ended {
    /// Its status.
    pub status: ExitStatus,
    /// What it wrote to standard output.
    pub stdout: String,
    /// What it wrote to standard error.
    pub stderr: String,
}

impl fmt::Display for Ended {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{}\n--- standard output\n{}\n--- standard error\n{}",
            self.status, self.stdout, self.stderr
        )
    }
}

impl Ended {
    /// Returns the exit code; −1 after a signal.
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or(-1)
    }

    /// Returns itself when the program succeeded.
    ///
    /// # Panics
    /// When it did not, with all that it said.
    #[must_use]
    pub fn good(self) -> Self {
        assert!(self.status.success(), "{self}");
        self
    }

    /// Returns standard output as JSON.
    ///
    /// # Panics
    /// When it is none.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self}"))
    }
}

/// A program on its way.
#[derive(Debug)]
pub struct Running {
    child: Child,
    folder: tempfile::TempDir,
    what: String,
}

impl Running {
    /// Starts a program with its own files for what it writes and nothing to read.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn start(mut command: Command) -> Self {
        let folder = tempfile::tempdir_in(scratch()).expect("a folder can be made");
        let what = format!("{command:?}");
        let child = command
            .stdin(Stdio::null())
            .stdout(create(&folder.path().join("stdout")))
            .stderr(create(&folder.path().join("stderr")))
            .spawn()
            .unwrap_or_else(|error| panic!("{what} cannot be started: {error}"));
        Self { child, folder, what }
    }

    /// Returns its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns whether it still runs.
    ///
    /// # Panics
    /// When the system does not say.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("a child can be asked").is_none()
    }

    /// Returns what it has written to standard output.
    pub fn stdout(&self) -> String {
        read(&self.folder.path().join("stdout"))
    }

    /// Returns what it has written to standard error.
    pub fn stderr(&self) -> String {
        read(&self.folder.path().join("stderr"))
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When it does not end in time, with all that it said so far.
    pub async fn end(mut self, limit: Duration) -> Ended {
        let since = Instant::now();
        loop {
            let status = self.child.try_wait().expect("a child can be asked");
            if let Some(status) = status {
                return Ended { status, stdout: self.stdout(), stderr: self.stderr() };
            }
            assert!(
                since.elapsed() < limit,
                "{} did not end within {} s\n--- standard output\n{}\n--- standard error\n{}",
                self.what,
                limit.as_secs(),
                self.stdout(),
                self.stderr()
            );
            tokio::time::sleep(LOOK).await;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended long ago; then there is nothing to kill and nothing to wait for.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Runs a program to its end.
///
/// # Panics
/// When it cannot be started or does not end within a minute.
pub async fn run(command: Command) -> Ended {
    Running::start(command).end(LIMIT).await
}

pub(crate) fn create(path: &Path) -> std::fs::File {
    std::fs::File::create(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub(crate) fn read(path: &Path) -> String {
    std::fs::read(path).map_or_else(
        |error| format!("({} cannot be read: {error})", path.display()),
        |bytes| String::from_utf8_lossy(&bytes).into_owned(),
    )
}
