//! The measuring side of a node's process.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "an answer that was not asked for fails in one way, whichever it is"
)]

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::order::{Answer, NodeStart, Order};

/// How long a node may take to answer, beside what an order itself takes.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// How nodes are started.
#[derive(Clone, Debug)]
pub struct Program {
    /// The program to run.
    pub path: PathBuf,
    /// What stands before the node's own argument: the hidden verb.
    pub arguments: Vec<String>,
}

/// A running node.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    /// Its QUIC address.
    pub(crate) address: String,
}

impl Process {
    /// Starts a node and waits until it is ready; it is killed when this is dropped.
    ///
    /// # Errors
    /// When it does not become ready.
    pub(crate) async fn start(
        program: &Program,
        data: &Path,
        name: &str,
        join: Option<(String, String)>,
    ) -> anyhow::Result<Self> {
        let start = NodeStart { data: data.to_owned(), name: name.to_owned(), join };
        let mut child = Command::new(&program.path)
            .args(&program.arguments)
            .arg(serde_json::to_string(&start)?)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("{}: cannot be started", program.path.display()))?;
        let (Some(orders), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            bail!("node {name}: has no pipes");
        };
        let answers = BufReader::new(answers).lines();
        let mut process = Self { child, orders, answers, address: String::new() };
        match process.answer(Duration::ZERO).await.with_context(|| format!("node {name}"))? {
            Answer::Ready { address } => process.address = address,
            other => bail!("node {name}: said {other:?} instead of being ready"),
        }
        Ok(process)
    }

    /// Returns its process id, while it runs.
    pub(crate) fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Gives an order and waits for the answer; `busy` is how long the order itself takes.
    ///
    /// # Errors
    /// When the node says that it failed, says nothing in time, or has ended.
    pub(crate) async fn ask(&mut self, order: &Order, busy: Duration) -> anyhow::Result<Answer> {
        let mut line = serde_json::to_vec(order)?;
        line.push(b'\n');
        self.orders.write_all(&line).await.context("node: takes no order")?;
        match self.answer(busy).await? {
            Answer::Failed { text } => bail!("node: {text}"),
            answer => Ok(answer),
        }
    }

    async fn answer(&mut self, busy: Duration) -> anyhow::Result<Answer> {
        let limit = ANSWER_LIMIT.saturating_add(busy);
        let line = tokio::time::timeout(limit, self.answers.next_line()).await;
        let line =
            line.with_context(|| format!("node: no answer within {} s", limit.as_secs()))??;
        let line = line.context("node: has ended; its standard error says why")?;
        Ok(serde_json::from_str(&line)?)
    }

    /// Ends it at once.
    ///
    /// # Errors
    /// When it cannot be ended.
    pub(crate) async fn kill(&mut self) -> anyhow::Result<()> {
        Ok(self.child.kill().await?)
    }

    /// Stops it in good order.
    ///
    /// # Errors
    /// When it does not stop.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        self.ask(&Order::Stop, Duration::ZERO).await?;
        drop(self.orders);
        let ended = tokio::time::timeout(ANSWER_LIMIT, self.child.wait()).await;
        ended.context("node: does not end")??;
        Ok(())
    }
}
