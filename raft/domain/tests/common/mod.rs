//! Generators of anything at all: commands and entries that no honest program would make.

mod meetings;
mod projects;
mod work;

use nexus_domain::command::{
    Category, Change, ChatCommand, Client, ClusterCommand, Command, ConversationCommand, DueKind,
    Role, Room, Status, SystemCommand, Timing,
};
use nexus_domain::{Actor, Answered, Entry, Proposal, RequestId, Stamp};
use proptest::collection::vec;
use proptest::prelude::*;

/// Returns texts: ids that exist, empty ones, zero bytes, long ones.
///
/// Parts and families are boxed: side by side in one type they would overflow a test's stack in an
/// unoptimised build.
pub(crate) fn text() -> BoxedStrategy<String> {
    prop_oneof![
        3 => "(claude:[0-3]|codex:[0-3]|mcp-[0-3]|code[0-3]|node-[0-3]|[0-9]{1,3})",
        2 => any::<String>(),
        1 => Just(String::new()),
        1 => "\\PC{0,400}",
        1 => Just("\0".repeat(300)),
        1 => Just("x".repeat(40_000)),
    ]
    .boxed()
}

/// Returns numbers: small ones, and those at the ends.
pub(crate) fn number() -> BoxedStrategy<u64> {
    prop_oneof![0..5u64, any::<u64>(), Just(u64::MAX), Just(u64::MAX - 1)].boxed()
}

pub(crate) fn bytes() -> BoxedStrategy<Vec<u8>> {
    prop_oneof![vec(any::<u8>(), 0..80), Just(vec![7; 32]), Just(vec![0; 9_000])].boxed()
}

fn system() -> BoxedStrategy<SystemCommand> {
    let kind = prop_oneof![
        Just(DueKind::Invite),
        Just(DueKind::Requests),
        Just(DueKind::Upload),
        Just(DueKind::Sweep),
        Just(DueKind::Reminder),
        Just(DueKind::Meeting),
        Just(DueKind::MeetingRest),
        Just(DueKind::Task),
        Just(DueKind::Unread),
        Just(DueKind::Mail),
        Just(DueKind::Watch),
        Just(DueKind::Turns),
        Just(DueKind::Chat),
        Just(DueKind::Closed),
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
    .boxed()
}

fn cluster() -> BoxedStrategy<ClusterCommand> {
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
        timing.prop_map(|timing| ClusterCommand::SetTiming { timing }),
    ]
    .boxed()
}

fn conversation() -> BoxedStrategy<ConversationCommand> {
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
        work::presence(),
    ]
    .boxed()
}

fn chat() -> BoxedStrategy<ChatCommand> {
    let category = prop_oneof![Just(Category::None), Just(Category::MeetingStart)];
    let room = || prop_oneof![Just(Room::Global), text().prop_map(Room::Meeting)];
    prop_oneof![
        (room(), text(), category).prop_map(|(room, text, category)| ChatCommand::Send {
            room,
            text,
            category
        }),
        (room(), any::<u32>()).prop_map(|(room, limit)| ChatCommand::Take { room, limit }),
        number().prop_map(|count| ChatCommand::Prune { count }),
        Just(ChatCommand::Clear),
    ]
    .boxed()
}

/// Returns any command.
pub(crate) fn command() -> BoxedStrategy<Command> {
    prop_oneof![
        system().prop_map(Command::System),
        cluster().prop_map(Command::Cluster),
        conversation().prop_map(Command::Conversation),
        chat().prop_map(Command::Chat),
        projects::project().prop_map(Command::Project),
        projects::document().prop_map(Command::Document),
        meetings::meeting().prop_map(Command::Meeting),
        work::task().prop_map(Command::Task),
        work::mail().prop_map(Command::Mail),
    ]
    .boxed()
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
