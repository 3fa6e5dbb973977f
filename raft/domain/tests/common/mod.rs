//! Generators of anything at all: commands and entries that no honest program would make.

mod meetings;
mod projects;

use nexus_domain::command::{
    Category, Change, ChatCommand, Client, ClusterCommand, Command, ConversationCommand, DueKind,
    Role, Room, Status, SystemCommand, Timing,
};
use nexus_domain::{Actor, Answered, Entry, Proposal, RequestId, Stamp};
use proptest::collection::vec;
use proptest::prelude::*;

/// Returns texts: ids that exist, empty ones, zero bytes, long ones.
pub(crate) fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "(claude:[0-3]|codex:[0-3]|mcp-[0-3]|code[0-3]|node-[0-3]|[0-9]{1,3})",
        2 => any::<String>(),
        1 => Just(String::new()),
        1 => "\\PC{0,400}",
        1 => Just("\0".repeat(300)),
        1 => Just("x".repeat(40_000)),
    ]
}

/// Returns numbers: small ones, and those at the ends.
pub(crate) fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..5u64, any::<u64>(), Just(u64::MAX), Just(u64::MAX - 1)]
}

pub(crate) fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![vec(any::<u8>(), 0..80), Just(vec![7; 32]), Just(vec![0; 9_000])]
}

fn system() -> impl Strategy<Value = SystemCommand> {
    let kind = prop_oneof![
        Just(DueKind::Invite),
        Just(DueKind::Requests),
        Just(DueKind::Upload),
        Just(DueKind::Sweep),
        Just(DueKind::Reminder),
        Just(DueKind::Meeting),
        Just(DueKind::MeetingRest),
    ];
    prop_oneof![
        (number(), number(), any::<u32>(), text()).prop_map(|(boot, nonce, supports, software)| {
            SystemCommand::Started { boot, nonce, supports, software }
        }),
        number().prop_map(|at| SystemCommand::ClockStep { at }),
        (0..4u32).prop_map(|to| SystemCommand::Upgrade { to }),
        (number(), kind, text(), number()).prop_map(|(due, kind, id, generation)| {
            SystemCommand::Fire { due, kind, id, generation }
        }),
    ]
}

fn cluster() -> impl Strategy<Value = ClusterCommand> {
    let role = prop_oneof![Just(Role::Auto), Just(Role::Voter), Just(Role::Learner)];
    let timing = prop_oneof![Just(Timing::Wifi), Just(Timing::Wired), Just(Timing::Relaxed)];
    prop_oneof![
        (text(), bytes(), bytes(), text(), text()).prop_map(
            |(cluster, authority, public_key, name, host)| ClusterCommand::Found {
                cluster,
                authority,
                public_key,
                name,
                host
            }
        ),
        (text(), bytes(), role, number()).prop_map(|(id, secret_hash, role, ttl)| {
            ClusterCommand::Invite { id, secret_hash, role, ttl }
        }),
        text().prop_map(|id| ClusterCommand::Withdraw { id }),
        text().prop_map(|id| ClusterCommand::Burn { id }),
        (text(), bytes(), text(), text()).prop_map(|(invite, public_key, name, host)| {
            ClusterCommand::Admit { invite, public_key, name, host }
        }),
        (text(), text(), vec(text(), 0..20)).prop_map(|(name, host, addresses)| {
            ClusterCommand::Describe { name, host, addresses }
        }),
        number().prop_map(|node| ClusterCommand::Remove { node }),
        vec(number(), 0..20).prop_map(|voters| ClusterCommand::Voters { voters }),
        (number(), any::<bool>()).prop_map(|(node, away)| ClusterCommand::Presence { node, away }),
        timing.prop_map(|timing| ClusterCommand::SetTiming { timing }),
    ]
}

fn conversation() -> impl Strategy<Value = ConversationCommand> {
    let client = prop_oneof![Just(Client::Claude), Just(Client::Codex), Just(Client::Instance)];
    let status = prop_oneof![Just(Status::Working), Just(Status::Idle), Just(Status::Offline)];
    let change =
        (text(), status, text()).prop_map(|(id, status, title)| Change { id, status, title });
    let option = || proptest::option::of(text());
    prop_oneof![
        (client, text(), number()).prop_map(|(client, cwd, incarnation)| {
            ConversationCommand::Register { client, cwd, incarnation }
        }),
        vec(change, 0..260).prop_map(|changes| ConversationCommand::Transition { changes }),
        (option(), option(), option()).prop_map(|(name, note, title)| {
            ConversationCommand::SetProfile { name, note, title }
        }),
    ]
}

fn chat() -> impl Strategy<Value = ChatCommand> {
    let category = prop_oneof![Just(Category::None), Just(Category::MeetingStart)];
    let room = || prop_oneof![Just(Room::Global), text().prop_map(Room::Meeting)];
    prop_oneof![
        (room(), text(), category).prop_map(|(room, text, category)| ChatCommand::Send {
            room,
            text,
            category
        }),
        (room(), any::<u32>()).prop_map(|(room, limit)| ChatCommand::Take { room, limit }),
    ]
}

/// Returns any command. Boxed, for all of them side by side would overflow a test's stack.
pub(crate) fn command() -> impl Strategy<Value = Command> {
    prop_oneof![
        system().prop_map(Command::System).boxed(),
        cluster().prop_map(Command::Cluster).boxed(),
        conversation().prop_map(Command::Conversation).boxed(),
        chat().prop_map(Command::Chat).boxed(),
        projects::project().prop_map(Command::Project).boxed(),
        projects::document().prop_map(Command::Document).boxed(),
        meetings::meeting().prop_map(Command::Meeting).boxed(),
    ]
}

/// Returns any proposal.
pub(crate) fn proposal() -> impl Strategy<Value = Proposal> {
    let request = prop_oneof![
        (1..4u64, number(), number())
            .prop_map(|(node, boot, counter)| { RequestId::Node { node, boot, counter } }),
        text().prop_map(RequestId::Client),
    ];
    let actor = prop_oneof![Just(Actor::Node), text().prop_map(Actor::Conversation)];
    let answered = (number(), number()).prop_map(|(boot, below)| Answered { boot, below });
    (0..2u32, request, actor, answered, number(), command()).prop_map(
        |(version, request, actor, answered, not_after, command)| Proposal {
            version,
            request,
            actor,
            answered,
            not_after,
            command,
        },
    )
}

/// Returns any entry.
pub(crate) fn entry() -> impl Strategy<Value = Entry> {
    let stamp = (number(), number(), 0..5u64);
    (number(), stamp, proposal()).prop_map(|(index, (tick, at, node), proposal)| Entry {
        index,
        stamp: Stamp { tick, at, node },
        proposal,
    })
}
