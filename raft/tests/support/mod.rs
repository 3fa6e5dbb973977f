//! Whole nodes in one process, over real QUIC on loopback.
#![allow(dead_code, reason = "each test file uses its own part of this module")]
#![expect(clippy::unwrap_used, reason = "all of this file is a test")]

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nexus_domain::command::{Category, ChatCommand, Client, ConversationCommand, Room};
use nexus_domain::{Actor, Command, Reply};
use nexus_raft::{
    Cluster, Committed, Config, InviteCode, OpenError, ProposeError, Request, Role, Start, Timing,
};
use nexus_rt::{Jobs, SystemClock};
use tempfile::TempDir;
use tokio::time::Instant;

/// How long anything in these tests may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

/// A node with its folder and its jobs.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) cluster: Cluster,
    pub(crate) config: Config,
    folder: Arc<TempDir>,
}

pub(crate) fn config(data: &Path, name: &str) -> Config {
    Config {
        data: data.to_owned(),
        name: name.to_owned(),
        host: format!("host-of-{name}"),
        bind: SocketAddr::from(([127, 0, 0, 1], 0)),
        advertise: Vec::new(),
        timing: Some(Timing::Wired),
        software: "test".to_owned(),
        clock: Arc::new(SystemClock),
        jobs: Jobs::new(),
    }
}

/// Shows the nodes' logs when a test is run with `NEXUS_LOG` set.
pub(crate) fn show_logs() {
    if let Some(filter) = std::env::var_os("NEXUS_LOG") {
        let filter = filter.to_string_lossy().into_owned();
        let _again = tracing_subscriber::fmt().with_env_filter(filter).try_init();
    }
}

impl Node {
    /// Founds a cluster of one and waits until it can write.
    pub(crate) async fn found(name: &str) -> Self {
        show_logs();
        let folder = Arc::new(tempfile::tempdir().unwrap());
        let config = config(folder.path(), name);
        let cluster = Cluster::open(config.clone(), Start::Found).await.unwrap();
        assert!(cluster.ready(LIMIT).await, "{:?}", cluster.local_status());
        Self { cluster, config, folder }
    }

    /// Joins the cluster of another node.
    pub(crate) async fn join(name: &str, other: &Node, role: Role) -> Self {
        let invitation = other.cluster.invite(role, LIMIT * 10).await.unwrap();
        Self::join_with(name, invitation.code, other).await.unwrap()
    }

    /// Joins with a code.
    pub(crate) async fn join_with(
        name: &str,
        code: InviteCode,
        other: &Node,
    ) -> Result<Self, OpenError> {
        show_logs();
        let folder = Arc::new(tempfile::tempdir().unwrap());
        let config = config(folder.path(), name);
        let seeds = vec![other.cluster.address()];
        let start = Start::Join { code, seeds };
        let cluster = Cluster::open(config.clone(), start).await?;
        Ok(Self { cluster, config, folder })
    }

    /// Stops the node as a crash would, as far as one process can: nothing is handed over.
    pub(crate) async fn crash(self) -> Stopped {
        let Self { cluster, config, folder } = self;
        let _late = config.jobs.shutdown(Duration::from_secs(5)).await;
        drop(cluster);
        Stopped { config, folder }
    }

    /// Stops the node in good order.
    pub(crate) async fn stop(self) -> Stopped {
        self.cluster.shutdown().await;
        self.crash().await
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().to_owned()
    }
}

/// A node's folder.
pub(crate) struct Stopped {
    pub(crate) config: Config,
    folder: Arc<TempDir>,
}

impl Stopped {
    /// Starts it again from its disk.
    pub(crate) async fn start(self) -> Node {
        self.open().await.unwrap()
    }

    /// Starts it again from its disk, or says why that cannot be.
    pub(crate) async fn open(self) -> Result<Node, OpenError> {
        let Self { mut config, folder } = self;
        config.jobs = Jobs::new();
        // In one process the last holders of the old databases may need a moment to let go.
        let deadline = Instant::now() + LIMIT;
        let cluster = loop {
            match Cluster::open(config.clone(), Start::Resume).await {
                Err(error) if error.to_string().contains("lock hold by current process") => {
                    assert!(Instant::now() < deadline, "{error}");
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                other => break other?,
            }
        };
        Ok(Node { cluster, config, folder })
    }
}

/// Registers a conversation at a node.
pub(crate) async fn register(node: &Node, id: &str) -> Result<Committed, ProposeError> {
    let command = ConversationCommand::Register {
        client: Client::Instance,
        cwd: "/tmp".to_owned(),
        incarnation: 1,
    };
    propose(node, id, Command::Conversation(command)).await
}

/// Posts a message and returns its number.
pub(crate) async fn post(node: &Node, id: &str, text: &str) -> Result<u64, ProposeError> {
    let command =
        ChatCommand::Send { room: Room::Global, text: text.to_owned(), category: Category::None };
    match propose(node, id, Command::Chat(command)).await?.reply {
        Reply::Posted { id } => Ok(id),
        other @ (Reply::Done
        | Reply::Admitted { .. }
        | Reply::Registered { .. }
        | Reply::Taken { .. }
        | Reply::Fired { .. }
        | Reply::Named { .. }
        | Reply::Uploading { .. }
        | Reply::Meeting { .. }
        | Reply::PostedIn { .. }
        | Reply::Joined { .. }
        | Reply::Stanced { .. }
        | Reply::Sent { .. }
        | Reply::Task { .. }
        | Reply::Pruned { .. }) => panic!("a post answered {other:?}"),
    }
}

pub(crate) async fn propose(
    node: &Node,
    id: &str,
    command: Command,
) -> Result<Committed, ProposeError> {
    let actor = Actor::Conversation(id.to_owned());
    node.cluster.propose(Request { actor, id: None, command }).await
}

/// Waits for a state, and prints the last one seen when it does not come.
pub(crate) async fn wait_for<T: std::fmt::Debug>(
    what: &str,
    mut look: impl FnMut() -> T,
    good: impl Fn(&T) -> bool,
) -> T {
    let deadline = Instant::now() + LIMIT;
    loop {
        let seen = look();
        if good(&seen) {
            return seen;
        }
        assert!(Instant::now() < deadline, "{what}: not within {LIMIT:?}; last seen: {seen:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
