//! Tests of whole nodes that reach inside: a state machine that stalls.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use nexus_domain::command::{Category, ChatCommand, Client, ConversationCommand, Room};
use nexus_domain::{Actor, Command};
use nexus_rt::{Jobs, SystemClock};
use tempfile::TempDir;
use tokio::time::Instant;

use crate::{Cluster, Config, MemberRole, Request, Role, Start, Timing};

/// How long anything here may take.
const LIMIT: Duration = Duration::from_secs(30);
/// Writes that arrive while the state machine stands.
const WRITES: usize = 4_000;

/// Opens a node in a folder of its own.
async fn open(folder: &TempDir, name: &str, start: Start) -> Cluster {
    let config = Config {
        data: folder.path().to_owned(),
        name: name.to_owned(),
        host: name.to_owned(),
        bind: SocketAddr::from(([127, 0, 0, 1], 0)),
        advertise: Vec::new(),
        timing: Some(Timing::Wired),
        software: "test".to_owned(),
        clock: Arc::new(SystemClock),
        jobs: Jobs::new(),
    };
    Cluster::open(config, start).await.unwrap()
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
    let one = open(&folders[0], "one", Start::Found).await;
    assert!(one.ready(LIMIT).await);
    let mut others = Vec::new();
    for (folder, name) in folders[1..].iter().zip(["two", "three"]) {
        let code = one.invite(Role::Voter, LIMIT).await.unwrap().code;
        let seeds = vec![one.address()];
        others.push(open(folder, name, Start::Join { code, seeds }).await);
    }
    let deadline = Instant::now() + LIMIT;
    while voters(&one) < 3 {
        assert!(Instant::now() < deadline, "no three voters: {:?}", one.local_status());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let register = ConversationCommand::Register {
        client: Client::Instance,
        cwd: String::new(),
        incarnation: 1,
    };
    one.propose(request(Command::Conversation(register))).await.unwrap();
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
