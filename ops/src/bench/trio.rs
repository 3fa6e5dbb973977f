//! Three nodes on loopback, one process each, and loads on them.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "an answer that was not asked for fails in one way, whichever it is"
)]

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::latency::Latency;
use super::order::{Answer, Load, Loaded, Order, Usage};
use super::process::{Process, Program};

/// How long three voters may take to come about.
const FORMING_LIMIT: Duration = Duration::from_secs(60);
/// How often that is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Where clients are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// All at the leader.
    Leader,
    /// Spread over the three nodes.
    Spread,
}

/// How much load.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// How many clients, in closed loops.
    pub clients: usize,
    /// Where they are.
    pub place: Place,
    /// Bytes of one message.
    pub bytes: usize,
    /// For how long nothing is counted.
    pub warm: Duration,
    /// For how long it is counted.
    pub run: Duration,
}

/// One round of load.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Round {
    /// Writes that were done, a second.
    pub per_second: f64,
    /// The median, microseconds.
    pub p50_micros: u64,
    /// The 99th percentile, microseconds.
    pub p99_micros: u64,
    /// Writes that failed.
    pub failed: u64,
    /// The last failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Processor microseconds for one write, by node, the leader first.
    pub cpu_micros: Vec<f64>,
    /// Flushes to disk for one write, by node, the leader first.
    pub fsyncs: Vec<f64>,
    /// Microseconds of one flush, by node, the leader first.
    pub fsync_micros: Vec<f64>,
}

/// Three nodes.
#[derive(Debug)]
pub struct Trio {
    nodes: Vec<Process>,
}

impl Trio {
    /// Starts three nodes in new folders below `root`, and waits until all are voters.
    ///
    /// # Errors
    /// When a node does not start, or they do not become three voters in time.
    pub async fn start(program: &Program, root: &Path) -> anyhow::Result<Self> {
        let mut first = Process::start(program, &root.join("one"), "one", None).await?;
        let mut nodes = Vec::new();
        for name in ["two", "three"] {
            let code = match first.ask(&Order::Invite, Duration::ZERO).await? {
                Answer::Invited { code } => code,
                other => bail!("invite: answered {other:?}"),
            };
            let join = Some((code, first.address.clone()));
            nodes.push(Process::start(program, &root.join(name), name, join).await?);
        }
        nodes.insert(0, first);
        let mut trio = Self { nodes };
        trio.formed().await?;
        Ok(trio)
    }

    async fn formed(&mut self) -> anyhow::Result<()> {
        let deadline = Instant::now() + FORMING_LIMIT;
        loop {
            let mut seen = Vec::new();
            for node in &mut self.nodes {
                seen.push(node.ask(&Order::Look, Duration::ZERO).await?);
            }
            let formed =
                |answer: &Answer| matches!(answer, Answer::Seen { voters: 3, leader: Some(_), .. });
            if seen.iter().all(formed) {
                return Ok(());
            }
            anyhow::ensure!(Instant::now() < deadline, "no three voters; last seen: {seen:?}");
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Returns the process ids, in the order of the nodes' starts.
    #[must_use]
    pub fn process_ids(&self) -> Vec<u32> {
        self.nodes.iter().filter_map(Process::id).collect()
    }

    /// Brings the node that leads to the front.
    async fn leader_first(&mut self) -> anyhow::Result<()> {
        for place in 0..self.nodes.len() {
            let node = self.nodes.get_mut(place).context("node")?;
            if let Answer::Seen { node, leader, .. } =
                node.ask(&Order::Look, Duration::ZERO).await?
                && leader == Some(node)
            {
                self.nodes.swap(0, place);
                return Ok(());
            }
        }
        bail!("no node leads")
    }

    async fn usage(&mut self) -> anyhow::Result<Vec<Usage>> {
        let mut all = Vec::new();
        for node in &mut self.nodes {
            match node.ask(&Order::Usage, Duration::ZERO).await? {
                Answer::Used(usage) => all.push(usage),
                other => bail!("usage: answered {other:?}"),
            }
        }
        Ok(all)
    }

    /// Runs one round of load.
    ///
    /// # Errors
    /// When a node fails, or none leads.
    pub async fn load(&mut self, shape: Shape) -> anyhow::Result<Round> {
        self.leader_first().await?;
        let before = self.usage().await?;
        let shares = match shape.place {
            Place::Leader => vec![shape.clients],
            Place::Spread => shares(shape.clients, self.nodes.len()),
        };
        let loads = self.nodes.iter_mut().zip(shares).filter(|(_, clients)| *clients > 0);
        let loads = loads.map(|(node, clients)| load_node(node, clients, shape));
        let loaded = futures::future::try_join_all(loads).await?;
        let after = self.usage().await?;
        let used = after.iter().zip(&before).map(|(after, before)| after.since(*before));
        Ok(round(&loaded, &used.collect::<Vec<_>>()))
    }

    /// Stops the nodes.
    ///
    /// # Errors
    /// When one does not stop.
    pub async fn stop(self) -> anyhow::Result<()> {
        for node in self.nodes.into_iter().rev() {
            node.stop().await?;
        }
        Ok(())
    }
}

/// Divides clients among nodes, the first ones getting what is left over.
fn shares(clients: usize, nodes: usize) -> Vec<usize> {
    (0..nodes).map(|node| (clients + nodes - 1 - node) / nodes.max(1)).collect()
}

async fn load_node(node: &mut Process, clients: usize, shape: Shape) -> anyhow::Result<Loaded> {
    let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let load = Load {
        clients,
        bytes: shape.bytes,
        warm_millis: millis(shape.warm),
        run_millis: millis(shape.run),
        messages: u64::MAX,
    };
    match node.ask(&Order::Load(load), shape.warm + shape.run).await? {
        Answer::Loaded(loaded) => Ok(loaded),
        other => bail!("load: answered {other:?}"),
    }
}

/// Puts the shares of a round together.
#[expect(clippy::cast_precision_loss, reason = "counts of a few seconds, far below 2^53")]
fn round(loaded: &[Loaded], used: &[Usage]) -> Round {
    let mut latency = Latency::new();
    let mut per_second = 0.0;
    let mut sent = 0.0;
    let mut failed = 0_u64;
    for share in loaded {
        share.latencies.iter().for_each(|(micros, count)| latency.add(*micros, *count));
        per_second += share.done as f64 / (share.counted_micros.max(1) as f64 / 1e6);
        sent += share.sent as f64;
        failed = failed.saturating_add(share.failed);
    }
    let sent = sent.max(1.0);
    Round {
        per_second,
        p50_micros: latency.percentile(50.0),
        p99_micros: latency.percentile(99.0),
        failed,
        failure: loaded.iter().find_map(|share| share.failure.clone()),
        cpu_micros: used.iter().map(|used| used.cpu_millis as f64 * 1e3 / sent).collect(),
        fsyncs: used.iter().map(|used| used.fsyncs / sent).collect(),
        fsync_micros: used
            .iter()
            .map(|used| used.fsync_seconds * 1e6 / used.fsyncs.max(1.0))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::shares;

    #[test]
    fn clients_are_shared_out_evenly_and_none_is_lost() {
        assert_eq!(shares(1, 3), [1, 0, 0]);
        assert_eq!(shares(64, 3), [22, 21, 21]);
        assert_eq!(shares(256, 3), [86, 85, 85]);
    }
}
