//! A store that fails, and rows that are damaged: a fault, never "not found" and never a panic.

use std::cell::Cell;

use nexus_domain::command::Room;
use nexus_domain::command::tasks::TaskStatus;
use nexus_domain::meetings::{self, Phase};
use nexus_domain::reply::IdRange;
use nexus_domain::store::Rows;
use nexus_domain::testing::{self, Sequence};
use nexus_domain::{
    Direction, Fault, KeyRange, MemoryStore, Overlay, Read, Store, apply, bodies, chat, cluster,
    conversations, digest, documents, due, events, invariants, mail, notices, projects, tasks,
};

/// A store that works for a number of operations and fails from then on.
struct Failing<'a> {
    store: Overlay<&'a MemoryStore>,
    left: Cell<u64>,
}

impl Failing<'_> {
    fn operation(&self, key: &[u8]) -> Result<(), Fault> {
        let left = self.left.get().checked_sub(1);
        self.left.set(left.unwrap_or_default());
        left.map(|_| ()).ok_or_else(|| Fault::at(key, "the disk is gone"))
    }
}

impl Read for Failing<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        self.operation(key)?;
        self.store.get(key)
    }

    fn scan(&self, range: KeyRange, direction: Direction) -> Rows<'_> {
        let rows = self.store.scan(range, direction);
        Box::new(rows.map(|row| {
            self.operation(b"scan")?;
            row
        }))
    }
}

impl Store for Failing<'_> {
    fn put(&mut self, key: &[u8], value: Vec<u8>) -> Result<(), Fault> {
        self.operation(key)?;
        self.store.put(key, value)
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), Fault> {
        self.operation(key)?;
        self.store.delete(key)
    }
}

#[test]
fn a_store_that_fails_anywhere_is_a_fault() {
    let mut store = MemoryStore::default();
    let mut faults = 0;
    for entry in Sequence::new(11).take(300) {
        let mut events = Vec::new();
        let expected = apply(&mut Overlay::new(&store), &entry, &mut events).unwrap();
        for left in 0.. {
            let mut failing = Failing { store: Overlay::new(&store), left: Cell::new(left) };
            match apply(&mut failing, &entry, &mut Vec::new()) {
                Err(_) => faults += 1,
                Ok(outcome) => {
                    assert_eq!(outcome, expected, "{entry:?} with a failing store");
                    break;
                }
            }
        }
        testing::apply_batch(&mut store, std::slice::from_ref(&entry)).unwrap();
    }
    assert!(faults > 3_000, "only {faults} operations failed");
}

#[test]
fn damaged_rows_are_faults_or_harmless() {
    let mut store = MemoryStore::default();
    let entries = testing::entries(5, 500);
    let (log, rest) = entries.split_at(450);
    for batch in testing::batches(log, 1) {
        testing::apply_batch(&mut store, batch).unwrap();
    }
    let rows: Vec<_> = store.rows().map(|(key, value)| (key.clone(), value.clone())).collect();
    let mut faults = 0;
    for (key, value) in rows {
        for damaged in [vec![], vec![1], vec![2, 0], vec![1, 0xff], value[..value.len() - 1].into()]
        {
            let mut overlay = Overlay::new(&store);
            overlay.put(&key, damaged).unwrap();
            let asked = ask(&overlay);
            let applied = rest.iter().try_for_each(|entry| {
                apply(&mut overlay, entry, &mut Vec::new()).map(|_outcome| ())
            });
            faults += u32::from(asked.is_err() || applied.is_err());
        }
    }
    assert!(faults > 500, "only {faults} damages were noticed");
}

/// Asks everything that can be asked.
fn ask(state: &impl Read) -> Result<(), Fault> {
    let room = Room::Global;
    invariants::check(state)?;
    cluster::info(state)?;
    cluster::members(state)?;
    cluster::invites(state)?;
    cluster::voters(state)?;
    conversations::list(state, 1_000)?;
    chat::latest(state, &room, 500)?;
    chat::unread(state, &room, "claude:1")?;
    events::list(state, None, 500)?;
    for view in meetings::list(state, None, None, 200)? {
        let room = view.meeting.room();
        chat::unread(state, &room, "claude:1")?;
        chat::latest(state, &room, 500)?;
        for number in 1..4 {
            meetings::approvals(state, &view.meeting.id, number)?;
        }
    }
    meetings::list(state, Some(Phase::Closed), None, 200)?;
    meetings::default_meeting(state)?;
    for number in 0..6 {
        meetings::news(state, &format!("claude:{number}"))?;
    }
    conversations::peers(state, Some(0), 1_000)?;
    tasks::list(state, None, None, 500)?;
    tasks::list(state, Some(TaskStatus::Running), None, 500)?;
    for id in ["claude:1", "codex:1"] {
        mail::waiting(state, id, 5)?;
        mail::load(state, id, IdRange { after: 0, upto: u64::MAX }, 50)?;
        mail::sent(state, id, None, 200)?;
        notices::pending(state, id, 10)?;
    }
    due::first(state)?;
    projects::search(state, "web", 200)?;
    for found in projects::topology(state)?.projects {
        projects::project(state, &found.id)?;
        projects::internal_docs(state, &found.id)?;
        projects::surroundings(state, &found.id)?;
        for asset in projects::assets(state, &found.id)?.unwrap_or_default() {
            bodies::read(state, asset.body, 0, u64::MAX)?;
        }
    }
    for document in documents::list(state, None, 1_000)? {
        documents::content(state, document.body)?;
    }
    if let Some(strategy) = documents::strategy(state)? {
        documents::content(state, strategy.body)?;
    }
    bodies::uploads(state)?;
    bodies::storage(state)?;
    digest::history(state)?;
    digest::read(state).map(|_digests| ())
}
