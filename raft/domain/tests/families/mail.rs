//! No direct message is lost: what a reader's process had not surely got when it died is offered to
//! the next one, whatever happens in between.

use std::collections::BTreeSet;

use nexus_domain::command::mail::MailCommand;
use nexus_domain::command::{ChatCommand, Client, Command, Room};
use nexus_domain::reply::IdRange;
use nexus_domain::testing::Random;
use nexus_domain::{Reply, due, invariants, mail};
use proptest::prelude::*;

use super::cluster::Cluster;

const READER: &str = "claude:b";

/// Two conversations, and what the reader's client knows.
struct Desk {
    cluster: Cluster,
    incarnation: u64,
    /// Ids that the present process got, and that will be in its transcript if it goes on.
    fresh: BTreeSet<u64>,
    /// Ids that are in the transcript.
    arrived: BTreeSet<u64>,
    sent: BTreeSet<u64>,
}

impl Desk {
    fn new() -> Self {
        let mut cluster = Cluster::new();
        for id in ["claude:a", READER] {
            cluster.register(id, Client::Claude, 1);
        }
        let (fresh, arrived, sent) = Default::default();
        Self { cluster, incarnation: 1, fresh, arrived, sent }
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
        let Reply::Sent { id, .. } = self.cluster.run("claude:a", Command::Mail(send)) else {
            panic!("not sent");
        };
        self.sent.insert(id);
    }

    /// The reader's process calls something: what it got before is in its transcript.
    fn call(&mut self) {
        self.arrived.append(&mut self.fresh);
        let take = ChatCommand::Take { room: Room::Global, limit: 1 };
        self.cluster.run(READER, Command::Chat(take));
    }

    /// The reader's process reads; whether the answer reaches it shows when it calls again.
    fn read(&mut self, limit: u32) -> usize {
        self.arrived.append(&mut self.fresh);
        let offer = mail::next(&self.cluster.store, READER, limit).unwrap();
        let take = Command::Mail(MailCommand::Take { limit });
        let Reply::Taken { again, fresh, .. } = self.cluster.run(READER, take) else {
            panic!("not taken");
        };
        assert_eq!(offer, mail::Offer { again, fresh }, "a look and a take differ");
        assert_eq!(again.upto, fresh.after);
        let range = IdRange { after: again.after, upto: fresh.upto };
        let got = mail::load(&self.cluster.store, READER, range, usize::MAX).unwrap();
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
        self.cluster.register(READER, Client::Claude, self.incarnation);
    }

    fn pass(&mut self, ticks: u64) {
        self.cluster.tick += ticks;
        let now = self.cluster.tick;
        while due::first(&self.cluster.store).unwrap().is_some_and(|first| first.due <= now) {
            let fire = self.cluster.first_due().unwrap();
            self.cluster.run("", fire);
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
            let found = invariants::check(&desk.cluster.store).unwrap();
            prop_assert!(found.is_empty(), "{found:#?}");
        }
        while desk.read(3) > 0 {}
        prop_assert_eq!(&desk.arrived, &desk.sent);
        prop_assert_eq!(mail::unread(&desk.cluster.store, READER).unwrap(), 0);
    }
}
