//! Anything at all about meetings.

use nexus_domain::MeetingCommand;
use nexus_domain::command::Category;
use nexus_domain::command::meetings::{Approver, Mode, Opinion, Since, Told};
use proptest::collection::vec;
use proptest::prelude::*;

use super::{number, text};

/// Returns any command of meetings.
pub(crate) fn meeting() -> BoxedStrategy<MeetingCommand> {
    let mode = prop_oneof![Just(Mode::Active), Just(Mode::Async)];
    let approver = prop_oneof![Just(Approver::Required), Just(Approver::Optional)];
    let since =
        prop_oneof![Just(Since::Unsaid), Just(Since::Latest), number().prop_map(Since::After)];
    let opinions = [Opinion::Endorse, Opinion::Object, Opinion::Withdraw];
    let marks = (number(), number(), number(), number(), any::<bool>());
    let told = (text(), text(), marks).prop_map(|(meeting, conversation, marks)| {
        let (messages, stances, reminder, ended, woke) = marks;
        Told { meeting, conversation, messages, stances, reminder, ended, woke }
    });
    let some = prop_oneof![
        text().prop_map(|topic| MeetingCommand::Start { topic }),
        (text(), text()).prop_map(|(meeting, summary)| MeetingCommand::End { meeting, summary }),
        text().prop_map(|meeting| MeetingCommand::Archive { meeting }),
        text().prop_map(|meeting| MeetingCommand::Reopen { meeting }),
        text().prop_map(|meeting| MeetingCommand::Leave { meeting }),
        (text(), mode, approver, since).prop_map(|(meeting, mode, approver, since)| {
            MeetingCommand::Join { meeting, mode, approver, since }
        }),
        text().prop_map(|text| MeetingCommand::Post { text, category: Category::MeetingStart }),
        (text(), text(), any::<u32>()).prop_map(|(meeting, text, reminder_minutes)| {
            MeetingCommand::Draft { meeting, text, reminder_minutes }
        }),
        (text(), number(), proptest::sample::select(opinions.to_vec()), text()).prop_map(
            |(meeting, proposal, opinion, note)| MeetingCommand::Stance {
                meeting,
                proposal,
                opinion,
                note
            }
        ),
        vec(told, 0..250).prop_map(|told| MeetingCommand::Told { told }),
    ];
    some.boxed()
}
