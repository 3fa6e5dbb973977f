//! A log with every command of the first families.

use nexus_domain::command::{
    Category, Change, ChatCommand, Client, ClusterCommand, Command, ConversationCommand, DueKind,
    Role, Room, Status, SystemCommand, Timing,
};
use nexus_domain::{Actor, Answered, Entry, Proposal, RequestId, Stamp};

use super::Said;

fn system() -> Vec<Command> {
    let started = SystemCommand::Started {
        boot: 1,
        nonce: 0x1234_5678_9abc_def0,
        supports: 1,
        software: "0.1.0".into(),
    };
    let fire =
        SystemCommand::Fire { due: 500, kind: DueKind::Requests, id: "0".into(), generation: 1 };
    [
        started,
        SystemCommand::ClockStep { at: 1_800_000_000_000 },
        SystemCommand::Upgrade { to: 2 },
        fire,
    ]
    .map(Command::System)
    .to_vec()
}

fn cluster() -> Vec<Command> {
    let invite = |id: &str, role| ClusterCommand::Invite {
        id: id.into(),
        secret_hash: vec![0xaa; 32],
        role,
        ttl: 3_600_000,
    };
    let admit = |invite: &str, key: u8| ClusterCommand::Admit {
        invite: invite.into(),
        public_key: vec![key; 44],
        name: "alpha".into(),
        host: "machine-2".into(),
    };
    [
        invite("abcdef", Role::Auto),
        invite("ghijkl", Role::Voter),
        invite("mnopqr", Role::Learner),
        invite("stuvwx", Role::Auto),
        ClusterCommand::Withdraw { id: "mnopqr".into() },
        admit("abcdef", 2),
        admit("ghijkl", 3),
        ClusterCommand::Burn { id: "stuvwx".into() },
        ClusterCommand::Describe {
            name: "beta".into(),
            host: "machine-1".into(),
            addresses: vec!["192.0.2.1:5689".into(), "[2001:db8::1]:5689".into()],
        },
        ClusterCommand::SetTiming { timing: Timing::Wifi },
        ClusterCommand::SetTiming { timing: Timing::Relaxed },
    ]
    .map(Command::Cluster)
    .to_vec()
}

fn register(client: Client) -> Command {
    let cwd = "/home/user/shop".into();
    Command::Conversation(ConversationCommand::Register { client, cwd, incarnation: 77 })
}

fn send(text: &str, category: Category) -> Command {
    Command::Chat(ChatCommand::Send { room: Room::Global, text: text.into(), category })
}

fn take(limit: u32) -> Command {
    Command::Chat(ChatCommand::Take { room: Room::Global, limit })
}

fn conversations() -> Vec<Said> {
    let profile = ConversationCommand::SetProfile {
        name: Some("lead".into()),
        note: None,
        title: Some("Überblick".into()),
    };
    let change =
        |id: &str, status, title: &str| Change { id: id.into(), status, title: title.into() };
    let transition = ConversationCommand::Transition {
        changes: vec![
            change("claude:1", Status::Working, "fixing"),
            change("codex:2", Status::Listening, ""),
            change("mcp-3", Status::Offline, ""),
        ],
    };
    vec![
        ("claude:1", register(Client::Claude)),
        ("codex:2", register(Client::Codex)),
        ("mcp-3", register(Client::Instance)),
        ("claude:1", Command::Conversation(profile)),
        ("codex:2", take(10)),
        ("claude:1", send("hello", Category::None)),
        ("claude:1", send("shall we?", Category::Proposal)),
        ("mcp-3", send("we shall", Category::Decision)),
        ("claude:1", send("done", Category::Update)),
        ("claude:1", send("fine", Category::Chat)),
        ("claude:1", send("begin", Category::MeetingStart)),
        ("codex:2", take(3)),
        ("", Command::Conversation(transition)),
    ]
}

/// Returns who says what, from entry 2 on.
fn said() -> Vec<Said> {
    let found = Command::Cluster(ClusterCommand::Found {
        cluster: "c0ffee".into(),
        authority: vec![0xca; 40],
        public_key: vec![1; 44],
        name: "alpha".into(),
        host: "machine-1".into(),
    });
    let mut all = vec![("", found)];
    all.extend(system().into_iter().map(|command| ("", command)));
    all.extend(cluster().into_iter().map(|command| ("", command)));
    all.extend(conversations());
    all.push(("", Command::Cluster(ClusterCommand::Remove { node: 12 })));
    all.push(("", Command::Cluster(ClusterCommand::Voters { voters: vec![1, 13] })));
    all
}

/// How many entries of this log stand before another one: as many as it had when that was written.
pub(crate) const SHARED: usize = 31;

/// Returns the log.
pub(crate) fn log() -> Vec<Entry> {
    entries((2u64..).zip(said()), u64::MAX)
}

/// Returns the beginning of the log with another one behind it, whose first entry has this index.
/// From `kept` on no more records of requests are forgotten.
pub(crate) fn followed_by(first: u64, behind: Vec<Said>, kept: u64) -> Vec<Entry> {
    entries((2u64..).zip(said()).take(SHARED).chain((first..).zip(behind)), kept)
}

fn entries(said: impl Iterator<Item = (u64, Said)>, kept: u64) -> Vec<Entry> {
    let mut entries = Vec::new();
    for (index, (actor, command)) in said {
        let request = match actor {
            "claude:1" => RequestId::Client(format!("call-{index}")),
            _ => RequestId::Node { node: 1, boot: 1, counter: index },
        };
        let actor = match actor {
            "" => Actor::Node,
            id => Actor::Conversation(id.into()),
        };
        let answered = Answered { boot: 1, below: index.min(kept).saturating_sub(8) };
        let not_after = if index == 9 { 1_000 } else { u64::MAX };
        let proposal = Proposal { version: 1, request, actor, answered, not_after, command };
        let stamp = Stamp { tick: index * 10, at: 1_700_000_000_000 + index * 10, node: 1 };
        entries.push(Entry { index, stamp, proposal });
    }
    entries
}
