//! Anything at all about tasks, direct messages and presence.

use nexus_domain::command::mail::MailCommand;
use nexus_domain::command::presence::{NodeChange, NodeState, Report};
use nexus_domain::command::tasks::{Expected, GivenStatus, Metadata, TaskChange, TaskCommand};
use nexus_domain::command::{ConversationCommand, Status};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::{number, text};

fn given() -> BoxedStrategy<GivenStatus> {
    prop_oneof![
        Just(GivenStatus::None),
        Just(GivenStatus::Pending),
        Just(GivenStatus::Running),
        Just(GivenStatus::Completed),
        Just(GivenStatus::Cancelled),
    ]
    .boxed()
}

fn metadata() -> BoxedStrategy<Option<Metadata>> {
    option::of((text(), text()).prop_map(|(json, target)| Metadata { json, target })).boxed()
}

fn expected() -> BoxedStrategy<Expected> {
    (given(), option::of(number()))
        .prop_map(|(status, updated_at)| Expected { status, updated_at })
        .boxed()
}

pub(super) fn task() -> BoxedStrategy<TaskCommand> {
    let change = (given(), option::of(any::<u32>()), option::of(text()), option::of(text()));
    prop_oneof![
        (option::of(text()), metadata(), option::of(number())).prop_map(
            |(source_meeting, metadata, ttl)| TaskCommand::Create { source_meeting, metadata, ttl }
        ),
        (number(), expected(), change, metadata()).prop_map(
            |(task, expected, (status, progress, result_uri, error_message), metadata)| {
                let change = TaskChange { status, progress, result_uri, error_message, metadata };
                TaskCommand::Update { task, expected, change }
            }
        ),
        (number(), expected()).prop_map(|(task, expected)| TaskCommand::Cancel { task, expected }),
    ]
    .boxed()
}

pub(super) fn mail() -> BoxedStrategy<MailCommand> {
    let flags = || (any::<bool>(), any::<bool>(), any::<bool>());
    prop_oneof![
        (text(), text(), flags()).prop_map(
            |(to, text, (expects_reply, wake, notify_when_idle))| {
                MailCommand::Send { to, text, expects_reply, wake, notify_when_idle }
            }
        ),
        (number(), text(), flags()).prop_map(|(message, text, (expects_reply, wake, _))| {
            MailCommand::Reply { message, text, expects_reply, wake }
        }),
        any::<u32>().prop_map(|limit| MailCommand::Take { limit }),
    ]
    .boxed()
}

pub(super) fn presence() -> BoxedStrategy<ConversationCommand> {
    let status = prop_oneof![Just(Status::Working), Just(Status::Listening), Just(Status::Offline)];
    let marks = (number(), number(), number(), number());
    let report = (text(), status, text(), any::<bool>(), marks).prop_map(
        |(id, status, title, ended, (silent_since, announced, noticed, arrived))| Report {
            id,
            status,
            title,
            ended,
            silent_since,
            announced,
            noticed,
            arrived,
        },
    );
    let state = prop_oneof![Just(NodeState::Up), Just(NodeState::Asleep), Just(NodeState::Down)];
    let change = (number(), state).prop_map(|(node, state)| NodeChange { node, state });
    prop_oneof![
        vec(report, 0..130).prop_map(|reports| ConversationCommand::Report { reports }),
        any::<bool>().prop_map(|on| ConversationCommand::Listen { on }),
        vec(change, 0..140).prop_map(|changes| ConversationCommand::Nodes { changes }),
    ]
    .boxed()
}
