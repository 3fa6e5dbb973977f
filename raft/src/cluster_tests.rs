//! Tests of whole nodes that reach inside: what stalls, is put off, gets old, is corrupted or cut
//! off.

mod age;
mod compare;
mod detours;
mod missing;

mod renewal;
mod retention;
mod seek;
mod versions;
mod world;

use std::fmt::Debug;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nexus_domain::command::{Category, ChatCommand, Client, ConversationCommand, Room};
use nexus_domain::{Actor, Command};
use nexus_rt::{Clock, Jobs, SystemClock};
use tempfile::TempDir;
use tokio::time::Instant;

use crate::{Cluster, Config, MemberRole, OpenError, Request, Role, Start, Timing};

/// How long anything here may take.
const LIMIT: Duration = Duration::from_secs(30);
/// Writes that arrive while the state machine stands.
const WRITES: usize = 4_000;

/// The machine's clock, and how far a test has turned it on.
#[derive(Debug, Default)]
struct Turned {
    wall_millis: AtomicU64,
    boot_millis: AtomicU64,
}

impl Turned {
    /// Lets so much time seem to have passed.
    fn pass(&self, by: Duration) {
        let by = u64::try_from(by.as_millis()).unwrap();
        self.wall_millis.fetch_add(by, Ordering::SeqCst);
        self.boot_millis.fetch_add(by, Ordering::SeqCst);
    }
}

impl Clock for Turned {
    fn wall_millis(&self) -> u64 {
        SystemClock.wall_millis() + self.wall_millis.load(Ordering::SeqCst)
    }

    fn boot_millis(&self) -> u64 {
        SystemClock.boot_millis() + self.boot_millis.load(Ordering::SeqCst)
    }
}

fn config(folder: &Path, name: &str, clock: Arc<dyn Clock>) -> Config {
    Config {
        data: folder.to_owned(),
        name: name.to_owned(),
        host: name.to_owned(),
        bind: SocketAddr::from(([127, 0, 0, 1], 0)),
        advertise: Vec::new(),
        timing: Some(Timing::Wired),
        software: "test".to_owned(),
        clock,
        jobs: Jobs::new(),
    }
}

/// A node that can be stopped and started again.
struct Node {
    cluster: Cluster,
    config: Config,
}

impl Node {
    async fn found(folder: &TempDir, clock: Arc<dyn Clock>) -> Self {
        let node = Self::open(config(folder.path(), "one", clock), Start::Found).await.unwrap();
        assert!(node.cluster.ready(LIMIT).await, "{:?}", node.cluster.local_status());
        // What it says of itself comes last: from then on it writes nothing by itself.
        let addresses = || {
            let own = node.cluster.node();
            let row = node.cluster.look(|view| nexus_domain::cluster::member(view, own)).unwrap();
            row.map(|row| row.addresses).unwrap_or_default()
        };
        wait_for("a node that has described itself", addresses, |it| !it.is_empty()).await;
        node
    }

    async fn join(folder: &TempDir, name: &str, other: &Self, role: Role) -> Self {
        let code = other.cluster.invite(role, LIMIT).await.unwrap().code;
        let seeds = vec![other.cluster.address()];
        let config = config(folder.path(), name, other.config.clock.clone());
        Self::open(config, Start::Join { code, seeds }).await.unwrap()
    }

    async fn open(config: Config, start: Start) -> Result<Self, OpenError> {
        let cluster = Cluster::open(config.clone(), start).await?;
        Ok(Self { cluster, config })
    }

    /// Stops the node and returns what it can be started with again.
    async fn stop(self) -> Config {
        let Self { cluster, mut config } = self;
        cluster.shutdown().await;
        let _late = config.jobs.shutdown(Duration::from_secs(5)).await;
        drop(cluster);
        config.jobs = Jobs::new();
        config
    }

    /// Starts a node again from its disk, as soon as the one before has let go of it.
    async fn start(config: Config) -> Result<Self, OpenError> {
        let deadline = Instant::now() + LIMIT;
        loop {
            match Self::open(config.clone(), Start::Resume).await {
                Err(error) if error.to_string().contains("lock hold by current process") => {
                    assert!(Instant::now() < deadline, "{error}");
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                other => return other,
            }
        }
    }

    async fn register(&self, id: &str) {
        let register = ConversationCommand::Register {
            client: Client::Instance,
            cwd: String::new(),
            incarnation: 1,
        };
        let actor = Actor::Conversation(id.to_owned());
        let command = Command::Conversation(register);
        self.cluster.propose(Request { actor, id: None, command }).await.unwrap();
    }

    /// Posts messages of so many characters, all at once.
    async fn post(&self, id: &str, count: usize, length: usize) {
        let posts = (0..count).map(|_| {
            let text = "x".repeat(length);
            let send = ChatCommand::Send { room: Room::Global, text, category: Category::None };
            let actor = Actor::Conversation(id.to_owned());
            self.cluster.propose(Request { actor, id: None, command: Command::Chat(send) })
        });
        for posted in futures::future::join_all(posts).await {
            posted.unwrap();
        }
    }

    fn voters(&self) -> usize {
        voters(&self.cluster)
    }
}

/// Waits for a state, and prints the last one seen when it does not come.
async fn wait_for<T: Debug>(
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

fn request(command: Command) -> Request {
    Request { actor: Actor::Conversation("mcp-a".to_owned()), id: None, command }
}

fn voters(cluster: &Cluster) -> usize {
    let status = cluster.local_status();
    status.members.iter().filter(|member| member.role == MemberRole::Voter).count()
}

/// A stalled apply fills openraft's queue; when that is full the core blocks, heartbeats stop, and
/// the leader is lost. The queue is four times the bound of waiting writes, so it never is
/// (traps.md 21).
#[tokio::test(flavor = "multi_thread")]
async fn a_stalled_state_machine_costs_no_leadership() {
    let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let node = Node::found(&folders[0], Arc::new(SystemClock)).await;
    let _two = Node::join(&folders[1], "two", &node, Role::Voter).await;
    let _three = Node::join(&folders[2], "three", &node, Role::Voter).await;
    wait_for("three voters", || node.voters(), |voters| *voters == 3).await;
    node.register("mcp-a").await;
    let one = &node.cluster;
    let before = one.local_status();
    assert_eq!(before.leader, Some(one.node()));

    one.core.progress.stalled.send_replace(true);
    let writes = (0..WRITES).map(|number| {
        let send = ChatCommand::Send {
            room: Room::Global,
            text: format!("message {number}"),
            category: Category::None,
        };
        let writing = one.propose(request(Command::Chat(send)));
        // One after the other, so that each few become an order of their own to the state machine.
        let turn = Duration::from_micros(250) * u32::try_from(number).unwrap();
        async move {
            tokio::time::sleep(turn).await;
            writing.await
        }
    });
    let release = async {
        // Three election periods of the profile: the last write comes after one.
        let stall = Duration::from_millis(3 * one.core.profile.election_max_millis);
        tokio::time::sleep(stall).await;
        one.core.progress.stalled.send_replace(false);
    };
    let (answers, ()) = futures::future::join(futures::future::join_all(writes), release).await;
    let done = answers.iter().filter(|answer| answer.is_ok()).count();
    assert_eq!(done, WRITES, "{:?}", answers.iter().find(|answer| answer.is_err()));
    let after = one.local_status();
    assert_eq!((after.leader, after.term), (before.leader, before.term));
}
