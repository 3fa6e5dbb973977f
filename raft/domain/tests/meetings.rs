//! What meetings cost: as much among a thousand as among a few, and no entry changes too many rows.

#![expect(clippy::unwrap_used, reason = "a test stops where it fails, helpers included")]

use std::cell::Cell;

use nexus_domain::command::meeting::{Approver, Mode, Opinion, Since, Told};
use nexus_domain::command::{Category, ChatCommand, Client, DueKind, Room};
use nexus_domain::meetings::{self, Phase};
use nexus_domain::store::Rows;
use nexus_domain::{
    Actor, Answered, ClusterCommand, Command, ConversationCommand, Direction, Entry, Fault,
    KeyRange, MeetingCommand, MemoryStore, Overlay, Proposal, Read, Reply, RequestId, Stamp, Store,
    SystemCommand, apply, due, invariants, limits, testing,
};

/// A view that counts the rows that are read.
struct Counting<'a> {
    state: Overlay<&'a MemoryStore>,
    rows: Cell<u64>,
}

impl<'a> Counting<'a> {
    fn new(state: &'a MemoryStore) -> Self {
        Self { state: Overlay::new(state), rows: Cell::new(0) }
    }

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

impl Store for Counting<'_> {
    fn put(&mut self, key: &[u8], value: Vec<u8>) -> Result<(), Fault> {
        self.state.put(key, value)
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), Fault> {
        self.state.delete(key)
    }
}

/// A cluster of one node.
struct Cluster {
    store: MemoryStore,
    index: u64,
    tick: u64,
}

impl Cluster {
    fn new() -> Self {
        let mut cluster = Self { store: MemoryStore::default(), index: 2, tick: 0 };
        let found = ClusterCommand::Found {
            cluster: "c1".into(),
            authority: vec![1; 9],
            public_key: vec![2; 44],
            name: "alpha".into(),
            host: "machine".into(),
        };
        cluster.run("", Command::Cluster(found));
        cluster
    }

    fn entry(&mut self, actor: &str, command: Command) -> Entry {
        self.index += 1;
        let actor = match actor {
            "" => Actor::Node,
            id => Actor::Conversation(id.into()),
        };
        let proposal = Proposal {
            version: 1,
            request: RequestId::Node { node: 1, boot: 1, counter: self.index },
            actor,
            answered: Answered { boot: 0, below: self.index },
            not_after: u64::MAX,
            command,
        };
        let stamp = Stamp { tick: self.tick, at: 1_700_000_000_000 + self.tick, node: 1 };
        Entry { index: self.index, stamp, proposal }
    }

    fn run(&mut self, actor: &str, command: Command) -> Reply {
        let entry = self.entry(actor, command);
        let mut outcomes =
            testing::apply_batch(&mut self.store, std::slice::from_ref(&entry)).unwrap();
        outcomes.pop().unwrap().unwrap_or_else(|refusal| panic!("{entry:?}: {refusal}"))
    }

    /// Applies a command that is refused, with this text.
    fn refused(&mut self, actor: &str, command: Command) -> String {
        let entry = self.entry(actor, command);
        let mut outcomes =
            testing::apply_batch(&mut self.store, std::slice::from_ref(&entry)).unwrap();
        outcomes.pop().unwrap().unwrap_err().to_string()
    }

    /// Applies a command and forgets it; returns how many rows it read and changed.
    fn cost(&mut self, actor: &str, command: Command) -> (u64, usize) {
        let entry = self.entry(actor, command);
        let mut counting = Counting::new(&self.store);
        let outcome = apply(&mut counting, &entry, &mut Vec::new()).unwrap();
        outcome.unwrap_or_else(|refusal| panic!("{entry:?}: {refusal}"));
        (counting.rows.get(), counting.state.changes().len())
    }

    fn register(&mut self, id: &str, client: Client) {
        let (cwd, incarnation) = ("/x".into(), 1);
        let register = ConversationCommand::Register { client, cwd, incarnation };
        self.run(id, Command::Conversation(register));
    }

    fn start(&mut self, id: &str, topic: &str) -> String {
        let start = Command::Meeting(MeetingCommand::Start { topic: topic.into() });
        let Reply::Meeting { id } = self.run(id, start) else { panic!("no meeting") };
        id
    }

    /// Fires what is due first, at its time.
    fn first_due(&mut self) -> Command {
        let due = due::first(&self.store).unwrap().unwrap();
        self.tick = self.tick.max(due.due);
        let (due, kind, id, generation) = (due.due, due.kind, due.id, due.generation);
        Command::System(SystemCommand::Fire { due, kind, id, generation })
    }
}

fn join(meeting: &str) -> Command {
    Command::Meeting(MeetingCommand::Join {
        meeting: meeting.into(),
        mode: Mode::Active,
        approver: Approver::Required,
        since: Since::Unsaid,
    })
}

fn send(meeting: &str) -> Command {
    let (room, text) = (Room::Meeting(meeting.into()), "hello".into());
    Command::Chat(ChatCommand::Send { room, text, category: Category::None })
}

fn draft(meeting: &str) -> Command {
    let (meeting, text) = (meeting.into(), "as we said".into());
    Command::Meeting(MeetingCommand::Draft { meeting, text, reminder_minutes: 10 })
}

fn stance(meeting: &str, proposal: u64, opinion: Opinion) -> Command {
    let (meeting, note) = (meeting.into(), "because".into());
    Command::Meeting(MeetingCommand::Stance { meeting, proposal, opinion, note })
}

fn archive(meeting: &str) -> Command {
    Command::Meeting(MeetingCommand::Archive { meeting: meeting.into() })
}

fn reopen(meeting: &str) -> Command {
    Command::Meeting(MeetingCommand::Reopen { meeting: meeting.into() })
}

fn end(meeting: &str) -> Command {
    Command::Meeting(MeetingCommand::End { meeting: meeting.into(), summary: "done".into() })
}

/// Returns rows read by everything that is asked or said of one meeting among `count` others, of
/// which a third is active, closed and archived each.
fn reads_among(count: usize) -> Vec<(&'static str, u64)> {
    let mut cluster = Cluster::new();
    cluster.register("mcp-1", Client::Instance);
    cluster.register("claude:a", Client::Claude);
    cluster.register("codex:b", Client::Codex);
    for number in 0..count {
        let id = cluster.start("mcp-1", &format!("meeting {number}"));
        for _ in 0..3 {
            cluster.run("mcp-1", send(&id));
        }
        if number % 3 > 0 {
            cluster.run("mcp-1", end(&id));
        }
        if number % 3 > 1 {
            cluster.run("mcp-1", archive(&id));
        }
    }
    let plan = cluster.start("claude:a", "plan");
    cluster.run("codex:b", join(&plan));
    cluster.run("claude:a", send(&plan));
    cluster.run("claude:a", draft(&plan));
    let mut found = Vec::new();
    for phase in [None, Some(Phase::Active), Some(Phase::Closed), Some(Phase::Archived)] {
        let view = Counting::new(&cluster.store);
        assert_eq!(meetings::list(&view, phase, None, 3).unwrap().len(), 3);
        found.push(("list", view.rows.get()));
    }
    let view = Counting::new(&cluster.store);
    assert_eq!(meetings::default_meeting(&view).unwrap().as_ref(), Some(&plan));
    found.push(("default", view.rows.get()));
    let view = Counting::new(&cluster.store);
    assert_eq!(meetings::view(&view, &plan).unwrap().unwrap().members.len(), 2);
    found.push(("view", view.rows.get()));
    let view = Counting::new(&cluster.store);
    assert_eq!(meetings::news(&view, "codex:b").unwrap().len(), 1);
    found.push(("news", view.rows.get()));
    let post = MeetingCommand::Post { text: "here".into(), category: Category::None };
    let start = MeetingCommand::Start { topic: "next".into() };
    for (what, command) in [
        ("post", Command::Meeting(post)),
        ("start", Command::Meeting(start)),
        ("draft", draft(&plan)),
        ("stance", stance(&plan, 2, Opinion::Object)),
        ("join", join(&plan)),
        ("end", end("")),
    ] {
        found.push((what, cluster.cost("codex:b", command).0));
    }
    found
}

#[test]
fn a_thousand_meetings_cost_no_more_than_a_few() {
    assert_eq!(reads_among(1_000), reads_among(12));
}

#[test]
fn the_fullest_meeting_changes_few_rows_at_once() {
    let mut cluster = Cluster::new();
    cluster.register("claude:a", Client::Claude);
    let plan = cluster.start("claude:a", "plan");
    let mut members = vec!["claude:a".to_string()];
    for number in 1..limits::MEETING_MEMBERS_MAX {
        let id = format!("codex:{number}");
        cluster.register(&id, Client::Codex);
        cluster.run(&id, join(&plan));
        members.push(id);
    }
    cluster.run("claude:a", draft(&plan));
    let remind = cluster.first_due();
    let (_, changed) = cluster.cost("", remind.clone());
    assert!((200..=limits::FIRE_ROWS_MAX).contains(&changed), "a reminder changed {changed} rows");
    cluster.run("", remind);
    // Everybody is reminded and told so; the last of all endorsements closes the meeting.
    let mut told = Vec::new();
    for id in &members {
        let news = meetings::news(&cluster.store, id).unwrap();
        assert!(news[0].reminded, "{id}: {news:?}");
        told.push(Told { woke: true, ..news[0].told.clone() });
    }
    told.extend(vec![told[0].clone(); limits::TOLD_MAX - told.len()]);
    let tell = Command::Meeting(MeetingCommand::Told { told });
    let (_, changed) = cluster.cost("", tell.clone());
    assert!((200..=limits::COMMAND_ROWS_MAX).contains(&changed), "telling changed {changed} rows");
    cluster.run("", tell);
    for (number, id) in members.iter().enumerate() {
        let answer = cluster.run(id, stance(&plan, 1, Opinion::Endorse));
        let Reply::Stanced { decision, .. } = answer else { panic!("{answer:?}") };
        let last = number + 1 == members.len();
        assert_eq!(decision > 0, last, "{id} was number {number}");
    }
    let view = meetings::view(&cluster.store, &plan).unwrap().unwrap();
    assert_eq!((view.meeting.phase, view.meeting.wakes), (Phase::Closed, 240));
    for id in &members[..199] {
        let news = meetings::news(&cluster.store, id).unwrap();
        assert!(news[0].ended && news[0].wakes, "{id}: {news:?}");
        let told = news.into_iter().map(|news| news.told).collect();
        cluster.run("", Command::Meeting(MeetingCommand::Told { told }));
    }
    let (_, changed) = cluster.cost("claude:a", reopen(&plan));
    assert!((200..=limits::COMMAND_ROWS_MAX).contains(&changed), "reopening changed {changed}");
    cluster.run("claude:a", archive(&plan));
    let goes = cluster.first_due();
    assert!(cluster.cost("", goes.clone()).1 < 30, "letting go is marked at once");
    cluster.run("", goes);
    assert_eq!(meetings::list(&cluster.store, None, None, 10).unwrap(), []);
    let mut steps = 0;
    while due::first(&cluster.store).unwrap().is_some() {
        let rest = cluster.first_due();
        let (_, changed) = cluster.cost("", rest.clone());
        assert!(changed <= limits::FIRE_ROWS_MAX, "a step changed {changed} rows");
        cluster.run("", rest);
        steps += 1;
        assert_eq!(invariants::check(&cluster.store).unwrap(), Vec::<String>::new());
    }
    assert_eq!(steps, 3);
    for table in 0x40..=0x49u8 {
        let rows = cluster.store.scan(KeyRange::prefix(&[table]), Direction::Forward).count();
        assert_eq!(rows, usize::from(table == 0x44), "table {table:02x} keeps {rows} rows");
    }
}

#[test]
fn a_meeting_with_all_its_messages_still_comes_to_its_end() {
    let mut cluster = Cluster::new();
    for id in ["codex:a", "codex:b"] {
        cluster.register(id, Client::Codex);
    }
    let plan = cluster.start("codex:a", "plan");
    cluster.run("codex:b", join(&plan));
    cluster.run("codex:a", draft(&plan));
    // A hundred thousand messages would take minutes; only their number counts here.
    let (key, _) =
        cluster.store.scan(KeyRange::prefix(&[0x20]), Direction::Forward).next().unwrap().unwrap();
    let count = u32::try_from(limits::MEETING_MESSAGES_MAX).unwrap();
    let value = [&[1, 0x81, 0x1a][..], &count.to_be_bytes()[..]].concat();
    cluster.store.put(&key, value).unwrap();
    let post = MeetingCommand::Post { text: "here".into(), category: Category::None };
    for command in
        [Command::Meeting(post), send(&plan), draft(&plan), stance(&plan, 1, Opinion::Object)]
    {
        let refusal = cluster.refused("codex:b", command);
        assert!(refusal.starts_with(&format!("meeting {plan}: has 100,000 messages")), "{refusal}");
    }
    cluster.run("codex:b", stance(&plan, 1, Opinion::Endorse));
    let last = cluster.run("codex:a", stance(&plan, 1, Opinion::Endorse));
    let decision = limits::MEETING_MESSAGES_MAX + 1;
    assert_eq!(last, Reply::Stanced { draft: 1, counted: true, decision });
}

#[test]
fn the_oldest_archived_meeting_makes_room_for_a_new_one() {
    let mut cluster = Cluster::new();
    cluster.register("mcp-1", Client::Instance);
    let ids: Vec<_> = ["one", "two", "three"].map(|topic| cluster.start("mcp-1", topic)).into();
    // Ten thousand would take minutes; only their number counts here.
    let count = u16::try_from(limits::MEETINGS_MAX).unwrap();
    let value = [&[1, 0x82, 0x19][..], &count.to_be_bytes()[..], &[3][..]].concat();
    cluster.store.put(&[0x44], value).unwrap();
    let start = Command::Meeting(MeetingCommand::Start { topic: "more".into() });
    let refusal = cluster.refused("mcp-1", start.clone());
    assert!(refusal.starts_with("meetings: the cluster keeps 10,000"), "{refusal}");
    for id in [&ids[1], &ids[0]] {
        cluster.run("mcp-1", end(id));
        cluster.run("mcp-1", archive(id));
    }
    for (place, left) in [(0, 3), (1, 3)] {
        cluster.run("mcp-1", start.clone());
        assert_eq!(meetings::meeting(&cluster.store, &ids[place]).unwrap(), None);
        assert_eq!(meetings::list(&cluster.store, None, None, 10).unwrap().len(), left);
    }
    cluster.refused("mcp-1", start);
    assert!(meetings::meeting(&cluster.store, &ids[2]).unwrap().is_some());
}

/// What the sequences of other tests come through: every end that a meeting can have.
#[test]
fn sequences_reach_every_end() {
    let mut reached = [("consensus", 0), ("reminder", 0), ("removal", 0), ("objection", 0)];
    let mut log = testing::Sequence::new(21);
    for _ in 0..8_000 {
        let entry = log.next().unwrap();
        let command = &entry.proposal.command;
        let happened = if let Command::Meeting(MeetingCommand::Stance { opinion, .. }) = command {
            if *opinion == Opinion::Object { 3 } else { 0 }
        } else if let Command::System(SystemCommand::Fire { kind, .. }) = command
            && [DueKind::Reminder, DueKind::MeetingRest].contains(kind)
        {
            if *kind == DueKind::Reminder { 1 } else { 2 }
        } else {
            continue;
        };
        // The answer is kept, so it can be asked for again.
        let mut overlay = Overlay::new(log.state());
        let again = apply(&mut overlay, &entry, &mut Vec::new()).unwrap();
        let done = match &again {
            Ok(Reply::Stanced { decision, .. }) => happened == 3 || *decision > 0,
            Ok(reply) => matches!(reply, Reply::Fired { changed } if *changed > 1),
            Err(_) => false,
        };
        reached[happened].1 += u32::from(done);
    }
    assert!(reached.iter().all(|(_, times)| *times > 0), "{reached:?}");
}
