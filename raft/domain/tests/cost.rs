//! What a look or a command costs must not grow with what is kept: lists are bounded by their
//! limits and answered from indexes.

#![expect(clippy::unwrap_used, reason = "a test stops where it fails, helpers included")]

use std::cell::Cell;

use nexus_domain::command::mail::MailCommand;
use nexus_domain::command::tasks::{
    Expected, GivenStatus, Metadata, TaskChange, TaskCommand, TaskStatus,
};
use nexus_domain::command::{Client, ClusterCommand, Command, ConversationCommand};
use nexus_domain::store::Rows;
use nexus_domain::{
    Actor, Answered, Direction, Entry, Fault, KeyRange, MemoryStore, Overlay, Proposal, Read,
    Reply, RequestId, Stamp, apply, conversations, mail, tasks,
};

/// A state that counts the rows that are read.
struct Counting<'a> {
    state: &'a MemoryStore,
    rows: Cell<usize>,
}

impl Counting<'_> {
    fn count(&self) {
        self.rows.set(self.rows.get() + 1);
    }
}

impl Read for Counting<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        self.count();
        self.state.get(key)
    }

    fn scan(&self, range: KeyRange, direction: Direction) -> Rows<'_> {
        Box::new(self.state.scan(range, direction).inspect(|_row| self.count()))
    }
}

/// A cluster of node 1, and what was applied to it.
struct Cluster {
    state: MemoryStore,
    index: u64,
    tick: u64,
}

impl Cluster {
    fn new() -> Self {
        let mut cluster = Self { state: MemoryStore::default(), index: 1, tick: 0 };
        let found = ClusterCommand::Found {
            cluster: "c1".into(),
            authority: vec![1],
            public_key: vec![1],
            name: "alpha".into(),
            host: String::new(),
        };
        cluster.done(None, Command::Cluster(found));
        cluster
    }

    fn entry(&mut self, id: Option<&str>, command: Command) -> Entry {
        self.index += 1;
        self.tick += 1;
        let counter = self.index;
        let actor = id.map_or(Actor::Node, |id| Actor::Conversation(id.into()));
        Entry {
            index: self.index,
            stamp: Stamp { tick: self.tick, at: 1_000_000 + self.tick, node: 1 },
            proposal: Proposal {
                version: 1,
                request: RequestId::Node { node: 1, boot: 0, counter },
                actor,
                answered: Answered { boot: 0, below: counter },
                not_after: u64::MAX,
                command,
            },
        }
    }

    fn done(&mut self, id: Option<&str>, command: Command) -> Reply {
        let entry = self.entry(id, command);
        apply(&mut self.state, &entry, &mut Vec::new()).unwrap().unwrap()
    }

    fn register(&mut self, id: &str) {
        let cwd = format!("/{id}");
        let command = ConversationCommand::Register { client: Client::Claude, cwd, incarnation: 1 };
        self.done(Some(id), Command::Conversation(command));
    }

    fn mail(&mut self, from: &str, to: &str) {
        let (to, text) = (to.into(), "hello".into());
        let send = MailCommand::Send {
            to,
            text,
            expects_reply: false,
            wake: false,
            notify_when_idle: false,
        };
        self.done(Some(from), Command::Mail(send));
    }

    /// Returns how many rows a look reads.
    fn look<T>(&self, query: impl FnOnce(&Counting<'_>) -> Result<T, Fault>) -> usize {
        let counting = Counting { state: &self.state, rows: Cell::new(0) };
        query(&counting).unwrap();
        counting.rows.get()
    }

    /// Returns how many rows a command reads, and how many it changes.
    fn cost(&mut self, id: &str, command: Command) -> (usize, usize) {
        let entry = self.entry(Some(id), command);
        let counting = Counting { state: &self.state, rows: Cell::new(0) };
        let mut overlay = Overlay::new(&counting);
        apply(&mut overlay, &entry, &mut Vec::new()).unwrap().unwrap();
        let changes = overlay.into_changes();
        let cost = (counting.rows.get(), changes.len());
        self.state.absorb(changes);
        cost
    }
}

/// Returns the costs of everything that people do with tasks, in a cluster of so many.
fn tasks_cost(count: u64) -> Vec<(usize, usize)> {
    let mut cluster = Cluster::new();
    cluster.register("claude:a");
    let create = || {
        let metadata = Some(Metadata { json: "{}".into(), target: "t".into() });
        Command::Task(TaskCommand::Create { source_meeting: None, metadata, ttl: Some(60_000) })
    };
    let update = |task, status| {
        let change = TaskChange { status, ..TaskChange::default() };
        Command::Task(TaskCommand::Update { task, expected: Expected::default(), change })
    };
    for task in 1..=count {
        cluster.done(Some("claude:a"), create());
        if task % 2 == 0 {
            cluster.done(Some("claude:a"), update(task, GivenStatus::Running));
        }
    }
    let mut costs = vec![
        (cluster.look(|state| tasks::list(state, None, None, 20)), 0),
        (cluster.look(|state| tasks::list(state, None, Some(100), 20)), 0),
        (cluster.look(|state| tasks::list(state, Some(TaskStatus::Running), None, 20)), 0),
        (cluster.look(|state| tasks::task(state, 7)), 0),
    ];
    for command in [create(), update(10, GivenStatus::Completed), update(11, GivenStatus::Running)]
    {
        costs.push(cluster.cost("claude:a", command));
    }
    costs
}

#[test]
fn tasks_cost_the_same_among_many() {
    let (few, many) = (tasks_cost(100), tasks_cost(10_000));
    assert_eq!(few, many);
    assert!(few.iter().all(|(read, changed)| *read < 60 && *changed < 20), "{few:?}");
}

/// Returns the costs of everything that people do with mail, in an inbox of so many messages.
fn mail_cost(count: u64) -> Vec<(usize, usize)> {
    let mut cluster = Cluster::new();
    cluster.register("claude:a");
    cluster.register("claude:b");
    for _ in 0..count {
        cluster.mail("claude:a", "claude:b");
    }
    let mut costs = vec![
        (cluster.look(|state| mail::unread(state, "claude:b")), 0),
        (cluster.look(|state| mail::receipt(state, "claude:a", 50)), 0),
        (cluster.look(|state| mail::sent(state, "claude:a", None, 20)), 0),
        (cluster.look(|state| mail::sent(state, "claude:a", Some(50), 20)), 0),
    ];
    let send = MailCommand::Send {
        to: "claude@claude-b".into(),
        text: "new".into(),
        expects_reply: true,
        wake: true,
        notify_when_idle: true,
    };
    costs.push(cluster.cost("claude:a", Command::Mail(send)));
    for _ in 0..2 {
        costs.push(cluster.cost("claude:b", Command::Mail(MailCommand::Take { limit: 10 })));
    }
    let (text, message) = ("yes".into(), 5);
    let reply = MailCommand::Reply { message, text, expects_reply: false, wake: false };
    costs.push(cluster.cost("claude:b", Command::Mail(reply)));
    costs
}

#[test]
fn mail_costs_the_same_in_a_full_inbox() {
    let (few, many) = (mail_cost(100), mail_cost(20_000));
    assert_eq!(few, many);
    assert!(few.iter().all(|(read, changed)| *read <= 100 && *changed < 30), "{few:?}");
}

#[test]
fn peers_are_listed_from_an_index() {
    let cost = |count: u64| {
        let mut cluster = Cluster::new();
        for number in 0..count {
            cluster.register(&format!("claude:{number}"));
        }
        assert_eq!(conversations::peers(&cluster.state, None, 20).unwrap().len(), 20);
        cluster.look(|state| conversations::peers(state, None, 20))
    };
    assert_eq!(cost(50), cost(2_000));
}
