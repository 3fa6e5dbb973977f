//! No direct message is lost: what a reader's process had not surely got when it died is offered to
//! the next one, whatever happens in between.

#![expect(clippy::unwrap_used, reason = "a test stops where it fails, helpers included")]

use std::collections::BTreeSet;

use nexus_domain::command::mail::MailCommand;
use nexus_domain::command::{
    ChatCommand, Client, ClusterCommand, Command, ConversationCommand, Room, SystemCommand,
};
use nexus_domain::reply::IdRange;
use nexus_domain::testing::{self, Random};
use nexus_domain::{
    Actor, Answered, Entry, MemoryStore, Proposal, Reply, RequestId, Stamp, due, invariants, mail,
};
use proptest::prelude::*;

const READER: &str = "claude:b";

/// Two conversations, and what the reader's client knows.
struct Desk {
    state: MemoryStore,
    index: u64,
    tick: u64,
    incarnation: u64,
    /// Ids that the present process got, and that will be in its transcript if it goes on.
    fresh: BTreeSet<u64>,
    /// Ids that are in the transcript.
    arrived: BTreeSet<u64>,
    sent: BTreeSet<u64>,
}

impl Desk {
    fn new() -> Self {
        let mut desk = Self {
            state: MemoryStore::default(),
            index: 1,
            tick: 0,
            incarnation: 1,
            fresh: BTreeSet::new(),
            arrived: BTreeSet::new(),
            sent: BTreeSet::new(),
        };
        let found = ClusterCommand::Found {
            cluster: "c1".into(),
            authority: vec![1],
            public_key: vec![1],
            name: "alpha".into(),
            host: String::new(),
        };
        desk.done(None, Command::Cluster(found));
        desk.register("claude:a");
        desk.register(READER);
        desk
    }

    fn done(&mut self, id: Option<&str>, command: Command) -> Reply {
        self.index += 1;
        let counter = self.index;
        let entry = Entry {
            index: self.index,
            stamp: Stamp { tick: self.tick, at: 1_000_000 + self.tick, node: 1 },
            proposal: Proposal {
                version: 1,
                request: RequestId::Node { node: 1, boot: 0, counter },
                actor: id.map_or(Actor::Node, |id| Actor::Conversation(id.into())),
                answered: Answered { boot: 0, below: 0 },
                not_after: u64::MAX,
                command,
            },
        };
        let outcome = testing::apply_batch(&mut self.state, &[entry]).unwrap().pop().unwrap();
        outcome.unwrap()
    }

    fn register(&mut self, id: &str) {
        let incarnation = self.incarnation;
        let cwd = "/x".into();
        let command = ConversationCommand::Register { client: Client::Claude, cwd, incarnation };
        self.done(Some(id), Command::Conversation(command));
    }

    fn send(&mut self) {
        let (to, text) = (READER.into(), "hello".into());
        let send = MailCommand::Send {
            to,
            text,
            expects_reply: true,
            wake: true,
            notify_when_idle: false,
        };
        let Reply::Sent { id, .. } = self.done(Some("claude:a"), Command::Mail(send)) else {
            panic!("not sent");
        };
        self.sent.insert(id);
    }

    /// The reader's process calls something: what it got before is in its transcript.
    fn call(&mut self) {
        self.arrived.append(&mut self.fresh);
        let take = ChatCommand::Take { room: Room::Global, limit: 1 };
        self.done(Some(READER), Command::Chat(take));
    }

    /// The reader's process reads; whether the answer reaches it shows when it calls again.
    fn read(&mut self, limit: u32) -> usize {
        self.arrived.append(&mut self.fresh);
        let take = Command::Mail(MailCommand::Take { limit });
        let Reply::Taken { again, fresh, .. } = self.done(Some(READER), take) else {
            panic!("not taken");
        };
        assert_eq!(again.upto, fresh.after);
        let range = IdRange { after: again.after, upto: fresh.upto };
        let got = mail::load(&self.state, READER, range, usize::MAX).unwrap();
        assert_eq!(u64::try_from(got.len()).unwrap(), range.upto - range.after, "texts are gone");
        for message in &got {
            let is_again = message.number <= again.upto;
            let known = self.arrived.contains(&message.envelope.id);
            assert!(!known || is_again, "{message:?} came a second time as a new one");
        }
        self.fresh.extend(got.iter().map(|message| message.envelope.id));
        got.len()
    }

    /// The reader's process dies, and with it what it had not called after.
    fn die(&mut self) {
        self.fresh.clear();
        self.incarnation += 1;
        self.register(READER);
    }

    fn pass(&mut self, ticks: u64) {
        self.tick += ticks;
        while let Some(first) = due::first(&self.state).unwrap() {
            if first.due > self.tick {
                break;
            }
            let (due, kind, id, generation) = (first.due, first.kind, first.id, first.generation);
            self.done(None, Command::System(SystemCommand::Fire { due, kind, id, generation }));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(40)
    })]

    #[test]
    fn what_did_not_arrive_comes_again(seed: u64) {
        let mut desk = Desk::new();
        let mut random = Random::new(seed);
        for _ in 0..120 {
            match random.below(10) {
                0..=3 => desk.send(),
                4..=5 => drop(desk.read(u32::try_from(random.below(5)).unwrap() + 1)),
                6 => desk.call(),
                7..=8 => desk.die(),
                _ => desk.pass(random.below(8) * 60 * 60 * 1000),
            }
            let found = invariants::check(&desk.state).unwrap();
            prop_assert!(found.is_empty(), "{found:#?}");
        }
        while desk.read(3) > 0 {}
        prop_assert_eq!(&desk.arrived, &desk.sent);
        prop_assert_eq!(mail::unread(&desk.state, READER).unwrap(), 0);
    }
}
