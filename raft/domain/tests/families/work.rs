//! What tasks, direct messages and lists of conversations cost among many.

use nexus_domain::command::mail::MailCommand;
use nexus_domain::command::tasks::{
    Expected, GivenStatus, Metadata, TaskChange, TaskCommand, TaskStatus,
};
use nexus_domain::command::{Client, Command};
use nexus_domain::{Fault, conversations, mail, tasks};

use super::cluster::{Cluster, Cost, Counting};

fn look<T>(cluster: &Cluster, ask: impl FnOnce(&Counting<'_>) -> Result<T, Fault>) -> Cost {
    Cost { read: cluster.look(ask), changed: 0 }
}

fn mail(cluster: &mut Cluster, from: &str, to: &str) {
    let (to, text) = (to.into(), "hello".into());
    let send =
        MailCommand::Send { to, text, expects_reply: false, wake: false, notify_when_idle: false };
    cluster.run(from, Command::Mail(send));
}

/// Returns the costs of everything that people do with tasks, in a cluster of so many.
fn tasks_cost(count: u64) -> Vec<Cost> {
    let mut cluster = Cluster::new();
    cluster.register("claude:a", Client::Claude, 1);
    let create = || {
        let metadata = Some(Metadata { json: "{}".into(), target: "t".into() });
        Command::Task(TaskCommand::Create { source_meeting: None, metadata, ttl: Some(60_000) })
    };
    let update = |task, status| {
        let change = TaskChange { status, ..TaskChange::default() };
        Command::Task(TaskCommand::Update { task, expected: Expected::default(), change })
    };
    for task in 1..=count {
        cluster.run("claude:a", create());
        if task % 2 == 0 {
            cluster.run("claude:a", update(task, GivenStatus::Running));
        }
    }
    let mut costs = vec![
        look(&cluster, |state| tasks::list(state, None, None, 20)),
        look(&cluster, |state| tasks::list(state, None, Some(100), 20)),
        look(&cluster, |state| tasks::list(state, Some(TaskStatus::Running), None, 20)),
        look(&cluster, |state| tasks::task(state, 7)),
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
    assert!(few.iter().all(|cost| cost.read < 60 && cost.changed < 20), "{few:?}");
}

/// Returns the costs of everything that people do with mail, in an inbox of so many messages.
fn mail_cost(count: u64) -> Vec<Cost> {
    let mut cluster = Cluster::new();
    cluster.register("claude:a", Client::Claude, 1);
    cluster.register("claude:b", Client::Claude, 1);
    for _ in 0..count {
        mail(&mut cluster, "claude:a", "claude:b");
    }
    let mut costs = vec![
        look(&cluster, |state| mail::unread(state, "claude:b")),
        look(&cluster, |state| mail::receipt(state, "claude:a", 50)),
        look(&cluster, |state| mail::sent(state, "claude:a", None, 20)),
        look(&cluster, |state| mail::sent(state, "claude:a", Some(50), 20)),
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
    assert!(few.iter().all(|cost| cost.read <= 100 && cost.changed < 30), "{few:?}");
}

#[test]
fn peers_are_listed_from_an_index() {
    let cost = |count: u64| {
        let mut cluster = Cluster::new();
        for number in 0..count {
            cluster.register(&format!("claude:{number}"), Client::Claude, 1);
        }
        assert_eq!(conversations::peers(&cluster.store, None, 20).unwrap().len(), 20);
        cluster.look(|state| conversations::peers(state, None, 20))
    };
    assert_eq!(cost(50), cost(2_000));
}
