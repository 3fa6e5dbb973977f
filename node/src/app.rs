//! The node as a whole: what it is made of, in which order it starts, and in which it stops.
//!
//! Start: lock → HTTP port → log and state → discovery → HTTP served → ready line. Stop: new calls
//! are refused → running calls end or time out → goodbye on the LAN → leadership handed over, log
//! closed → jobs end → folder free. Nothing but this file decides an order.

mod entry;
pub(crate) mod lan;
mod node;
mod port;
mod signals;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use nexus_contract::http::EndpointFile;
use nexus_rt::{Clock, Jobs, SystemClock};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::api::socket::{Peer, Sockets};
use crate::api::{self, Guard, Limiter, Shared, Spool};
use crate::cli::out::Out;
use crate::config::folder::Lock;
use crate::config::{Config, FolderError, SettingsError};
use crate::service::Service;
use crate::telemetry;
use entry::EntryError;
use lan::Lan;
pub(crate) use node::Node;
use port::PortError;
pub(crate) use signals::{Signals, at_once};

/// How long running calls may take after a stop was asked for: a write ends within ten seconds.
const CALLS_LIMIT: Duration = Duration::from_secs(11);
/// How long the goodbye on the LAN may take.
const GOODBYE_LIMIT: Duration = Duration::from_secs(1);
/// How long handing over and closing may take.
const CLUSTER_LIMIT: Duration = Duration::from_secs(10);
/// How long the remaining jobs may take.
const JOBS_LIMIT: Duration = Duration::from_secs(5);
/// How often metrics are tidied up.
const UPKEEP: Duration = Duration::from_secs(30);

/// Why the node does not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(transparent)]
    Port(#[from] PortError),
    #[error(transparent)]
    Entry(#[from] EntryError),
    #[error("metrics cannot be set up")]
    Metrics(#[source] metrics_exporter_prometheus::BuildError),
    #[error("local state cannot be read")]
    Read(#[source] nexus_raft::ReadError),
}

impl StartError {
    /// Returns what the user can do, where there is something.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Folder(FolderError::Held { .. }) => Some(
                "one node serves all clients of this machine; see it with `nexus status`, stop it \
                 with `nexus down`, or give another --data DIR"
                    .to_owned(),
            ),
            Self::Port(error) => Some(error.hint()),
            Self::Entry(error) => error.hint(),
            Self::Folder(_) | Self::Settings(_) | Self::Metrics(_) | Self::Read(_) => None,
        }
    }

    /// Returns whether the command line asks for what cannot be.
    pub(crate) fn is_usage(&self) -> bool {
        matches!(self, Self::Entry(EntryError::Nowhere { .. }))
    }
}

/// A node that is whole and does not serve yet.
#[derive(Debug)]
pub(crate) struct App {
    listener: TcpListener,
    http: SocketAddr,
    shared: Arc<Shared>,
    config: Config,
    lock: Lock,
    jobs: Jobs,
    started_at: u64,
}

impl App {
    /// Takes the folder and the ports, opens the log, and joins where the configuration says so.
    ///
    /// When `stop` is cancelled, a join that waits is given up; anything else is short, and ends as
    /// a node that was asked to stop.
    pub(crate) async fn build(
        config: Config,
        out: &mut Out,
        stop: CancellationToken,
    ) -> Result<Self, StartError> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let jobs = Jobs::new();
        let started_at = clock.wall_millis();
        config.folder.make()?;
        let lock = config.folder.lock(started_at)?;
        let token = config.folder.token()?;
        let listener = port::bind(config.http).await?;
        let http = port::address(&listener, config.http)?;
        let metrics = telemetry::start_metrics().map_err(StartError::Metrics)?;
        let discovery = lan::start_discovery(&config, &clock, &jobs);
        let parts = entry::Parts {
            config: &config,
            discovery: &discovery,
            clock: &clock,
            jobs: &jobs,
            stop: &stop,
        };
        let entry::Entered { cluster, lock } = entry::enter(&parts, lock, out).await?;
        let data = config.folder.path();
        let name = node::first_name(&cluster, data).await.map_err(StartError::Read)?;
        let lan = Arc::new(Lan::new(&config, cluster.clone(), discovery));
        let name = lan.rename(name).await;
        let node = Node {
            service: Service::new(cluster.clone(), jobs.clone(), config.stance_reminder_minutes),
            cluster,
            lan,
            metrics,
            name: std::sync::Mutex::new(name),
            ready: std::sync::atomic::AtomicBool::new(false),
            looked: std::sync::Mutex::default(),
            stop,
            stopping: CancellationToken::new(),
        };
        let shared = Shared {
            node: Arc::new(node),
            guard: Guard::new(token, &config.allowed_hosts, config.local_trust),
            limiter: Limiter::new(config.rate_limit, config.rate_burst),
            spool: Spool::new(config.folder.path()),
            set: config.tools,
        };
        Ok(Self { listener, http, shared: Arc::new(shared), config, lock, jobs, started_at })
    }

    /// Serves, and says where in the data folder.
    pub(crate) fn spawn(self) -> Result<Running, StartError> {
        let Self { listener, http, shared, config, mut lock, jobs, started_at } = self;
        let node = Arc::clone(&shared.node);
        let served = serve(&jobs, listener, Arc::clone(&shared));
        jobs.spawn("lan", Arc::clone(&node.lan).follow(jobs.token()));
        jobs.spawn("seeds", lan::check_seeds(config.seeds.clone(), jobs.token()));
        jobs.spawn("name", Arc::clone(&node).follow_name(jobs.token()));
        jobs.spawn("first read", Arc::clone(&node).first_read(jobs.token()));
        jobs.spawn("metrics upkeep", upkeep(Arc::clone(&node), jobs.token()));
        let url = format!("http://{http}");
        config.folder.write_endpoint(&EndpointFile {
            address: url.clone(),
            pid: std::process::id(),
            started_at,
        })?;
        lock.serves_at(&url)?;
        Ok(Running { url, node, config, lock, jobs, served })
    }
}

/// Starts to answer requests; the receiver turns true when the last one is answered.
fn serve(jobs: &Jobs, listener: TcpListener, shared: Arc<Shared>) -> watch::Receiver<bool> {
    let (ended, served) = watch::channel(false);
    let stopping = shared.node.stopping.clone();
    let listener = Sockets(listener);
    let service = api::router(shared).into_make_service_with_connect_info::<Peer>();
    jobs.spawn_core("http", async move {
        let stop = async move { stopping.cancelled().await };
        if let Err(error) = axum::serve(listener, service).with_graceful_shutdown(stop).await {
            tracing::error!(%error, "http broke off");
        }
        ended.send_replace(true);
    });
    served
}

async fn upkeep(node: Arc<Node>, token: CancellationToken) {
    let work = async {
        loop {
            tokio::time::sleep(UPKEEP).await;
            node.metrics.run_upkeep();
        }
    };
    token.run_until_cancelled(work).await;
}

/// Why a node ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ended {
    /// A signal or `nexus down`.
    Asked,
    /// It could not go on; the message says why.
    Fatal(String),
}

/// A node that serves.
#[derive(Debug)]
pub(crate) struct Running {
    url: String,
    node: Arc<Node>,
    config: Config,
    lock: Lock,
    jobs: Jobs,
    served: watch::Receiver<bool>,
}

impl Running {
    /// Returns the one line that scripts wait for.
    pub(crate) fn ready_line(&self) -> String {
        let (name, cluster) = (self.node.name(), self.node.cluster.cluster_id());
        format!("nexus ready http={} node={name} cluster={cluster}", self.url)
    }

    /// Serves until somebody asks for the end, then stops in order.
    pub(crate) async fn wait(self, signals: &mut Signals) -> Ended {
        let mut fatal = self.node.cluster.fatal();
        let ended = tokio::select! {
            () = self.node.stop.cancelled() => Ended::Asked,
            () = signals.next() => Ended::Asked,
            message = async {
                match fatal.wait_for(Option::is_some).await {
                    Ok(message) => message.clone().unwrap_or_default(),
                    Err(_closed) => "log closed unexpectedly".to_owned(),
                }
            } => Ended::Fatal(message),
        };
        if let Ended::Fatal(message) = &ended {
            tracing::error!("the node must stop: {message}");
        }
        tokio::select! {
            () = self.stop() => {}
            () = signals.next() => at_once(),
        }
        ended
    }

    /// Stops in the order that this file's head tells.
    async fn stop(self) {
        let Self { url: _, node, config, lock, jobs, mut served } = self;
        tracing::info!("stopping: calls end, then the log is closed; a second signal ends at once");
        node.stopping.cancel();
        let calls = served.wait_for(|ended| *ended);
        if tokio::time::timeout(CALLS_LIMIT, calls).await.is_err() {
            tracing::warn!("some calls did not end in time and are cut off");
        }
        node.lan.goodbye(GOODBYE_LIMIT).await;
        if tokio::time::timeout(CLUSTER_LIMIT, node.cluster.shutdown()).await.is_err() {
            tracing::warn!("the log was not closed in time; the next start repairs it");
        }
        let left = jobs.shutdown(JOBS_LIMIT).await;
        if !left.is_empty() {
            tracing::warn!(jobs = left.join(", "), "jobs did not end in time");
        }
        config.folder.remove_endpoint();
        drop(lock);
        tracing::info!("stopped");
    }
}
