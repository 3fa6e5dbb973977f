//! Three members of etcd on loopback, and the same load on them through its own gRPC client.

use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail};
use etcd_client::Client;
use hdrhistogram::Histogram;
use nexus_rt::Jobs;
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::Round;

/// How long three members may take to elect a leader.
const FORMING_LIMIT: Duration = Duration::from_secs(60);
/// Clients that share one connection: a choice, other shares were not tried.
const CLIENTS_PER_CONNECTION: usize = 32;
/// Bytes of one value, as of a message of nexus.
const VALUE_BYTES: usize = 256;
/// For how long nothing is counted.
const WARM: Duration = Duration::from_secs(1);
/// Milliseconds of one tick of the kernel's accounting: 100 a second on Linux, everywhere.
const TICK_MILLIS: u64 = 10;
/// Microseconds that no write takes.
const MICROS_MAX: u64 = 60_000_000;
/// Bytes of etcd's database before it refuses writes; its default of 2 GiB suffices for minutes
/// only.
const QUOTA: &str = "8589934592";

/// Three members.
#[derive(Debug)]
pub(crate) struct Etcd {
    members: Vec<Member>,
    jobs: Jobs,
}

#[derive(Debug)]
struct Member {
    child: Child,
    url: String,
}

impl Etcd {
    /// Starts three members with new folders below `root`, and waits for a leader.
    ///
    /// # Errors
    /// When they do not start.
    pub(crate) async fn start(program: &Path, root: &Path) -> anyhow::Result<Self> {
        let mut ports = free_ports(6)?.into_iter();
        let mut url = || ports.next().map(|port| format!("http://127.0.0.1:{port}"));
        let mut places = Vec::new();
        for name in ["one", "two", "three"] {
            let (client, peer) = url().zip(url()).context("ports")?;
            places.push((name, client, peer));
        }
        let peers: Vec<String> =
            places.iter().map(|(name, _, peer)| format!("{name}={peer}")).collect();
        let mut members = Vec::new();
        for (name, client, peer) in places {
            let data = root.join(name);
            let child = Command::new(program)
                .arg("--data-dir")
                .arg(&data)
                .args(["--name", name, "--initial-cluster", &peers.join(",")])
                .args(["--initial-cluster-token", "bench", "--quota-backend-bytes", QUOTA])
                .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
                .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
                .args(["--logger", "zap", "--log-level", "error"])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .kill_on_drop(true)
                .spawn()
                .with_context(|| {
                    format!("{}: cannot be started; install etcd-server", program.display())
                })?;
            members.push(Member { child, url: client });
        }
        let mut etcd = Self { members, jobs: Jobs::new() };
        let formed = tokio::time::timeout(FORMING_LIMIT, etcd.leader_first()).await;
        formed.context("etcd: no leader in time")??;
        Ok(etcd)
    }

    /// Waits until one member leads, and brings it to the front.
    async fn leader_first(&mut self) -> anyhow::Result<()> {
        loop {
            for place in 0..self.members.len() {
                let member = self.members.get(place).context("member")?;
                let Ok(mut client) = Client::connect([&member.url], None).await else { continue };
                let Ok(status) = client.status().await else { continue };
                let own = status.header().map(etcd_client::ResponseHeader::member_id);
                if own == Some(status.leader()) {
                    self.members.swap(0, place);
                    return Ok(());
                }
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Runs one round of load.
    ///
    /// # Errors
    /// When no member leads or a connection cannot be made.
    #[expect(clippy::cast_precision_loss, reason = "counts of a few seconds, far below 2^53")]
    pub(crate) async fn load(
        &mut self,
        clients: usize,
        spread: bool,
        seconds: u64,
    ) -> anyhow::Result<Round> {
        self.leader_first().await?;
        let connections = self.connect(clients, spread).await?;
        let cpu_before = self.cpu_millis()?;
        let (results, mut incoming) = mpsc::unbounded_channel();
        let run = Duration::from_secs(seconds);
        let from = Instant::now() + WARM;
        let end = from + run;
        for (number, client) in connections.iter().cycle().take(clients).enumerate() {
            let (client, results) = (client.clone(), results.clone());
            self.jobs.spawn("etcd client", async move {
                // The other side waits for all clients.
                drop(results.send(write(client, number, from, end).await));
            });
        }
        drop(results);
        let mut latency = Histogram::<u64>::new_with_bounds(1, MICROS_MAX, 2)?;
        let (mut sent, mut round) = (0_u64, Round::default());
        while let Some(written) = incoming.recv().await {
            written.micros.iter().for_each(|micros| latency.saturating_record(*micros));
            sent += written.sent;
            round.failed += written.failed;
            round.failure = written.failure.or(round.failure);
        }
        round.per_second = latency.len() as f64 / run.as_secs_f64();
        round.p50_micros = latency.value_at_percentile(50.0);
        round.p99_micros = latency.value_at_percentile(99.0);
        let cpu = self.cpu_millis()?.into_iter().zip(cpu_before);
        let sent = sent.max(1) as f64;
        round.cpu_micros =
            cpu.map(|(after, before)| after.saturating_sub(before) as f64 * 1e3 / sent).collect();
        Ok(round)
    }

    /// Makes the connections of a load, in the order in which clients take them.
    async fn connect(&self, count: usize, spread: bool) -> anyhow::Result<Vec<Client>> {
        let members = if spread { self.members.len() } else { 1 };
        let mut clients = Vec::new();
        for _ in 0..count.div_ceil(CLIENTS_PER_CONNECTION * members) {
            for member in self.members.iter().take(members) {
                clients.push(Client::connect([&member.url], None).await?);
            }
        }
        Ok(clients)
    }

    fn cpu_millis(&self) -> anyhow::Result<Vec<u64>> {
        let ids = self.members.iter().filter_map(|member| member.child.id());
        ids.map(cpu_millis).collect()
    }

    /// Stops the members.
    ///
    /// # Errors
    /// When one cannot be ended.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        for member in &mut self.members {
            member.child.kill().await?;
        }
        Ok(())
    }
}

#[derive(Debug, Default)]
struct Written {
    micros: Vec<u64>,
    sent: u64,
    failed: u64,
    failure: Option<String>,
}

/// One client in a closed loop; each has keys of its own, as each conversation has its messages.
async fn write(mut client: Client, number: usize, from: Instant, end: Instant) -> Written {
    let value = "m".repeat(VALUE_BYTES);
    let mut written = Written::default();
    loop {
        let begun = Instant::now();
        if begun >= end {
            return written;
        }
        let key = format!("bench/{number}/{}", written.sent);
        match client.put(key, value.clone(), None).await {
            Ok(_) => {
                written.sent += 1;
                let now = Instant::now();
                if now >= from && now < end {
                    let micros = u64::try_from((now - begun).as_micros());
                    written.micros.push(micros.unwrap_or(u64::MAX));
                }
            }
            Err(error) => {
                written.failed += 1;
                written.failure = Some(error.to_string());
            }
        }
    }
}

/// Returns ports that are free now; etcd must be told its ports before it starts.
fn free_ports(count: usize) -> anyhow::Result<Vec<u16>> {
    let listeners = (0..count).map(|_| TcpListener::bind("127.0.0.1:0"));
    let listeners = listeners.collect::<Result<Vec<_>, _>>()?;
    let ports = listeners.iter().map(|listener| listener.local_addr().map(|it| it.port()));
    let ports = ports.collect::<Result<Vec<_>, _>>()?;
    if ports.len() < count {
        bail!("too few free ports");
    }
    Ok(ports)
}

/// Returns the processor time of a process.
fn cpu_millis(process: u32) -> anyhow::Result<u64> {
    let path = format!("/proc/{process}/stat");
    let text = std::fs::read_to_string(&path).with_context(|| path.clone())?;
    // The name stands in parentheses and may hold blanks; user and system time follow.
    let (_, rest) = text.rsplit_once(')').with_context(|| path.clone())?;
    let ticks = rest.split_whitespace().skip(11).take(2);
    let ticks = ticks.map(str::parse::<u64>).sum::<Result<u64, _>>();
    Ok(ticks.with_context(|| path)?.saturating_mul(TICK_MILLIS))
}
