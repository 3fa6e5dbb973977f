//! A cluster of one node, made by hand, and what is read and changed in it.

use std::cell::Cell;

use nexus_domain::command::{Client, ClusterCommand, Command, ConversationCommand, SystemCommand};
use nexus_domain::store::Rows;
use nexus_domain::{
    Actor, Answered, Direction, Entry, Fault, KeyRange, MemoryStore, Overlay, Proposal, Read,
    Reply, RequestId, Stamp, apply, codec, due, limits, testing,
};

/// A state that counts the rows that are read.
pub(crate) struct Counting<'a> {
    store: &'a MemoryStore,
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
        self.store.get(key)
    }

    fn scan(&self, range: KeyRange, direction: Direction) -> Rows<'_> {
        Box::new(self.store.scan(range, direction).inspect(|_row| self.count()))
    }
}

/// What a command costs, in rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cost {
    pub(crate) read: usize,
    pub(crate) changed: usize,
}

/// A cluster of node 1, and what was applied to it.
pub(crate) struct Cluster {
    pub(crate) store: MemoryStore,
    index: u64,
    pub(crate) tick: u64,
    /// How many ticks pass before each entry.
    pub(crate) step: u64,
}

impl Cluster {
    pub(crate) fn new() -> Self {
        let mut cluster = Self { store: MemoryStore::default(), index: 1, tick: 0, step: 0 };
        let found = ClusterCommand::Found {
            cluster: "c0ffee".into(),
            authority: vec![1; 9],
            public_key: vec![2; 44],
            name: "alpha".into(),
            host: "machine".into(),
        };
        cluster.run("", Command::Cluster(found));
        cluster
    }

    /// Makes an entry; without an actor it is the node's own.
    fn entry(&mut self, actor: &str, command: Command) -> Entry {
        self.index += 1;
        self.tick += self.step;
        let actor = match actor {
            "" => Actor::Node,
            id => Actor::Conversation(id.into()),
        };
        let proposal = Proposal {
            version: 1,
            request: RequestId::Node { node: 1, boot: 0, counter: self.index },
            actor,
            answered: Answered { boot: 0, below: self.index },
            not_after: u64::MAX,
            command,
        };
        let stamp = Stamp { tick: self.tick, at: 1_700_000_000_000 + self.tick, node: 1 };
        let length = codec::encode_entry(&stamp, &proposal).len();
        assert!(length <= limits::ENTRY_BYTES_MAX, "{length} bytes");
        Entry { index: self.index, stamp, proposal }
    }

    /// Applies a command that is done.
    pub(crate) fn run(&mut self, actor: &str, command: Command) -> Reply {
        let entry = self.entry(actor, command);
        let mut outcomes =
            testing::apply_batch(&mut self.store, std::slice::from_ref(&entry)).unwrap();
        outcomes.pop().unwrap().unwrap_or_else(|refusal| panic!("{entry:?}: {refusal}"))
    }

    /// Applies a command that is refused, with this text.
    pub(crate) fn refused(&mut self, actor: &str, command: Command) -> String {
        let entry = self.entry(actor, command);
        let mut outcomes = testing::apply_batch(&mut self.store, &[entry]).unwrap();
        outcomes.pop().unwrap().unwrap_err().to_string()
    }

    /// Applies a command that is done; returns what it cost without the digests.
    pub(crate) fn cost(&mut self, actor: &str, command: Command) -> Cost {
        let entry = self.entry(actor, command);
        let counting = Counting { store: &self.store, rows: Cell::new(0) };
        let mut overlay = Overlay::new(&counting);
        let outcome = apply(&mut overlay, &entry, &mut Vec::new()).unwrap();
        outcome.unwrap_or_else(|refusal| panic!("{entry:?}: {refusal}"));
        let changed = overlay.into_changes().len();
        let read = counting.rows.get();
        testing::apply_batch(&mut self.store, &[entry]).unwrap();
        Cost { read, changed }
    }

    /// Returns how many rows a query reads.
    pub(crate) fn look<'a, T>(
        &'a self,
        ask: impl FnOnce(&Counting<'a>) -> Result<T, Fault>,
    ) -> usize {
        let counting = Counting { store: &self.store, rows: Cell::new(0) };
        ask(&counting).unwrap();
        counting.rows.get()
    }

    pub(crate) fn register(&mut self, id: &str, client: Client, incarnation: u64) {
        let cwd = format!("/{id}");
        let register = ConversationCommand::Register { client, cwd, incarnation };
        self.run(id, Command::Conversation(register));
    }

    /// Returns what fires what is due first, at its time; `None` when nothing is due.
    pub(crate) fn first_due(&mut self) -> Option<Command> {
        let due::Due { due, kind, id, generation } = due::first(&self.store).unwrap()?;
        self.tick = self.tick.max(due);
        Some(Command::System(SystemCommand::Fire { due, kind, id, generation }))
    }
}
