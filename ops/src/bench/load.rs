//! Clients in a closed loop at a node: each is a conversation that writes to the global chat.

use std::sync::Arc;
use std::time::Duration;

use nexus_domain::command::{Category, ChatCommand, Client, ConversationCommand, Room};
use nexus_domain::{Actor, Command};
use nexus_raft::{Cluster, Request};
use nexus_rt::Jobs;
use tokio::sync::{Barrier, mpsc};
use tokio::time::Instant;

use super::latency::Latency;
use super::order::{Load, Loaded};
use super::usage::micros;

/// What one client did.
#[derive(Debug, Default)]
struct Done {
    micros: Vec<u64>,
    sent: u64,
    failed: u64,
    failure: Option<String>,
}

/// Runs the clients and returns what they did together.
pub(crate) async fn run(cluster: &Cluster, jobs: &Jobs, load: Load) -> Loaded {
    let (results, mut incoming) = mpsc::unbounded_channel();
    let barrier = Arc::new(Barrier::new(load.clients));
    for number in 0..load.clients {
        let client = BenchClient {
            cluster: cluster.clone(),
            name: format!("bench-{}-{number}", cluster.node()),
            load,
            barrier: barrier.clone(),
        };
        let results = results.clone();
        jobs.spawn("bench client", async move {
            // The other side waits for all clients.
            drop(results.send(client.run().await));
        });
    }
    drop(results);
    let begun = Instant::now();
    let mut loaded = Loaded::default();
    let mut latency = Latency::new();
    while let Some(done) = incoming.recv().await {
        loaded.done = loaded.done.saturating_add(u64::try_from(done.micros.len()).unwrap_or(0));
        loaded.sent = loaded.sent.saturating_add(done.sent);
        loaded.failed = loaded.failed.saturating_add(done.failed);
        loaded.failure = done.failure.or(loaded.failure);
        done.micros.iter().for_each(|micros| latency.add(*micros, 1));
    }
    let whole = micros(begun.elapsed());
    loaded.counted_micros = load.run_millis.saturating_mul(1000).min(whole);
    loaded.latencies = latency.counts();
    loaded
}

struct BenchClient {
    cluster: Cluster,
    name: String,
    load: Load,
    barrier: Arc<Barrier>,
}

impl BenchClient {
    async fn run(&self) -> Done {
        let mut done = Done::default();
        let register = ConversationCommand::Register {
            client: Client::Instance,
            cwd: "/tmp".to_owned(),
            incarnation: 1,
        };
        if let Err(text) = self.propose(Command::Conversation(register)).await {
            done.failure = Some(text);
        }
        self.barrier.wait().await;
        let counted_from = Instant::now() + Duration::from_millis(self.load.warm_millis);
        let end = counted_from + Duration::from_millis(self.load.run_millis);
        let clients = u64::try_from(self.load.clients).unwrap_or(u64::MAX);
        let share = self.load.messages.div_ceil(clients.max(1));
        let text = "m".repeat(self.load.bytes);
        while done.sent < share {
            let begun = Instant::now();
            if begun >= end {
                break;
            }
            let send = ChatCommand::Send {
                room: Room::Global,
                text: text.clone(),
                category: Category::None,
            };
            let result = self.propose(Command::Chat(send)).await;
            let now = Instant::now();
            match result {
                Ok(()) => {
                    done.sent = done.sent.saturating_add(1);
                    if now >= counted_from && now < end {
                        done.micros.push(micros(now - begun));
                    }
                }
                Err(text) => {
                    done.failed = done.failed.saturating_add(1);
                    done.failure = Some(text);
                }
            }
        }
        done
    }

    async fn propose(&self, command: Command) -> Result<(), String> {
        let actor = Actor::Conversation(self.name.clone());
        let proposed = self.cluster.propose(Request { actor, id: None, command }).await;
        proposed.map(drop).map_err(|error| error.to_string())
    }
}
