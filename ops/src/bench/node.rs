//! A node of the benchmark: a `Cluster` in a process of its own, told what to do by lines of JSON.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use nexus_raft::{Cluster, Config, Folder, InviteCode, MemberRole, Role, Start, Timing, inspect};
use nexus_rt::{Jobs, SystemClock};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Stdout};

use super::load;
use super::order::{Answer, NodeStart, Order};
use super::usage::usage;

/// How long a node may take to be ready, and how long its jobs may take to end.
const LIMIT: Duration = Duration::from_secs(30);
/// For how long an invite of the benchmark is good.
const INVITE_TTL: Duration = Duration::from_secs(600);

/// Runs a node of the benchmark until its standard input ends; the argument is what
/// [`super::run`] gave to the process.
///
/// # Errors
/// When the node cannot start, or cannot answer.
pub async fn node_main(argument: &str) -> anyhow::Result<()> {
    let start: NodeStart = serde_json::from_str(argument).context("bench node: its argument")?;
    let metrics = PrometheusBuilder::new().install_recorder().context("bench node: metrics")?;
    let jobs = Jobs::new();
    let cluster = open(&start, &jobs).await?;
    anyhow::ensure!(cluster.ready(LIMIT).await, "not ready: {:?}", cluster.local_status());
    let mut out = tokio::io::stdout();
    tell(&mut out, &Answer::Ready { address: cluster.address().to_string() }).await?;
    let mut orders = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = orders.next_line().await? {
        let order: Order = serde_json::from_str(&line).context("bench node: an order")?;
        let stops = matches!(order, Order::Stop);
        if stops {
            cluster.shutdown().await;
        }
        let answer = obey(&cluster, &jobs, &metrics, order).await;
        let answer = answer.unwrap_or_else(|error| Answer::Failed { text: format!("{error:#}") });
        tell(&mut out, &answer).await?;
        if stops {
            break;
        }
    }
    let _late = jobs.shutdown(LIMIT).await;
    Ok(())
}

async fn open(start: &NodeStart, jobs: &Jobs) -> anyhow::Result<Cluster> {
    let config = Config {
        data: start.data.clone(),
        name: start.name.clone(),
        host: start.name.clone(),
        bind: SocketAddr::from(([127, 0, 0, 1], 0)),
        advertise: Vec::new(),
        timing: Some(Timing::Wired),
        software: "bench".to_owned(),
        clock: Arc::new(SystemClock),
        jobs: jobs.clone(),
    };
    std::fs::create_dir_all(&config.data)?;
    let start = match (&start.join, inspect(&config.data)?) {
        (_, Folder::Member { .. }) => Start::Resume,
        (None, _) => Start::Found,
        (Some((code, seed)), _) => {
            let seed: SocketAddr = seed.parse().context("seed")?;
            Start::Join { code: InviteCode::parse(code)?, seeds: vec![seed] }
        }
    };
    Ok(Cluster::open(config, start).await?)
}

async fn tell(out: &mut Stdout, answer: &Answer) -> anyhow::Result<()> {
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    out.write_all(&line).await?;
    Ok(out.flush().await?)
}

async fn obey(
    cluster: &Cluster,
    jobs: &Jobs,
    metrics: &PrometheusHandle,
    order: Order,
) -> anyhow::Result<Answer> {
    Ok(match order {
        Order::Invite => {
            let invitation = cluster.invite(Role::Voter, INVITE_TTL).await?;
            Answer::Invited { code: invitation.code.encode() }
        }
        Order::Look => {
            let status = cluster.local_status();
            let voter = |role: MemberRole| role == MemberRole::Voter;
            let voters = status.members.iter().filter(|member| voter(member.role)).count();
            let (node, leader, applied) = (status.node, status.leader, status.applied);
            Answer::Seen { node, leader, voters, applied }
        }
        Order::Usage => Answer::Used(usage(metrics)?),
        Order::Load(order) => Answer::Loaded(load::run(cluster, jobs, order).await),
        Order::Stop => Answer::Stopped,
    })
}
