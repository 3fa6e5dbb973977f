//! A log with every command of tasks, direct messages, presence and maintenance, behind the first
//! families'.

use nexus_domain::Entry;
use nexus_domain::command::mail::MailCommand;
use nexus_domain::command::presence::{NodeChange, NodeState, Report};
use nexus_domain::command::tasks::{Expected, GivenStatus, Metadata, TaskChange, TaskCommand};
use nexus_domain::command::{
    ChatCommand, Command, ConversationCommand, DueKind, Status, SystemCommand,
};

use super::{Said, base};

/// Returns the log.
pub(crate) fn log() -> Vec<Entry> {
    let behind = [tasks(), mail(), presence()].concat();
    base::followed_by(33, behind, u64::MAX)
}

fn tasks() -> Vec<Said> {
    let about = |target: &str| {
        Some(Metadata { json: r#"{"target":"issue 7"}"#.into(), target: target.into() })
    };
    let create = |metadata, ttl| TaskCommand::Create { source_meeting: None, metadata, ttl };
    let claim = TaskCommand::Update {
        task: 1,
        expected: Expected { status: GivenStatus::Pending, updated_at: None },
        change: TaskChange {
            status: GivenStatus::Running,
            progress: Some(250_000),
            ..TaskChange::default()
        },
    };
    let full = TaskCommand::Update {
        task: 2,
        expected: Expected::default(),
        change: TaskChange {
            status: GivenStatus::Failed,
            progress: None,
            result_uri: Some("https://example.org/log".into()),
            error_message: Some("no löck".into()),
            metadata: about(""),
        },
    };
    let cancel = |task| TaskCommand::Cancel {
        task,
        expected: Expected { status: GivenStatus::None, updated_at: Some(7) },
    };
    let elsewhere = TaskCommand::Create {
        source_meeting: Some("20260101000000-plan-abcd".into()),
        metadata: None,
        ttl: None,
    };
    vec![
        ("claude:1", Command::Task(create(about("issue 7"), Some(3_600_000)))),
        ("mcp-3", Command::Task(create(None, None))),
        ("codex:2", Command::Task(claim.clone())),
        ("claude:1", Command::Task(claim)),
        ("mcp-3", Command::Task(full)),
        ("mcp-3", Command::Task(cancel(1))),
        ("mcp-3", Command::Task(elsewhere)),
    ]
}

fn mail() -> Vec<Said> {
    let send = |to: &str, text: &str, notify_when_idle| {
        Command::Mail(MailCommand::Send {
            to: to.into(),
            text: text.into(),
            expects_reply: true,
            wake: false,
            notify_when_idle,
        })
    };
    let reply = MailCommand::Reply {
        message: 1,
        text: "ja, schön".into(),
        expects_reply: false,
        wake: true,
    };
    vec![
        ("claude:1", send("codex@shop", "ready?", true)),
        ("claude:1", send("codex:2", "and now?", false)),
        ("codex:2", Command::Mail(MailCommand::Take { limit: 1 })),
        ("codex:2", Command::Mail(reply)),
        ("mcp-3", send("codex:2", "x", false)),
        ("codex:2", send("claude:1", "one more", true)),
    ]
}

fn presence() -> Vec<Said> {
    let report = |id: &str, status, announced, noticed, arrived| Report {
        id: id.into(),
        status,
        title: "Aufräumen".into(),
        ended: status == Status::Offline,
        silent_since: 400,
        announced,
        noticed,
        arrived,
    };
    let reports = |reports| Command::Conversation(ConversationCommand::Report { reports });
    let nodes = |node, state| {
        let changes = vec![NodeChange { node, state }];
        Command::Conversation(ConversationCommand::Nodes { changes })
    };
    let fire = |index: u64| {
        let due = index * 10;
        let id = index.to_string();
        let kind = DueKind::Turns;
        Command::System(SystemCommand::Fire { due, kind, id, generation: 1 })
    };
    vec![
        ("codex:2", Command::Conversation(ConversationCommand::Listen { on: true })),
        ("", reports(vec![report("codex:2", Status::Idle, 2, 0, 1)])),
        ("", fire(47)),
        ("", reports(vec![report("claude:1", Status::Offline, 1, 1, 0)])),
        ("", nodes(13, NodeState::Asleep)),
        ("", nodes(1, NodeState::Down)),
        ("claude:1", Command::Chat(ChatCommand::Prune { count: 2 })),
        ("mcp-3", Command::Chat(ChatCommand::Clear)),
    ]
}
