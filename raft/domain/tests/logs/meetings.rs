//! A log with every command of meetings, two of them, from entry 600 on behind the first families'.

use nexus_domain::command::meetings::{Approver, Mode, Opinion, Since, Told};
use nexus_domain::command::{Category, ChatCommand, Command, DueKind, Room, SystemCommand};
use nexus_domain::{Entry, MeetingCommand};

use super::{Said, base};

/// How many commands there are.
pub(crate) const COMMANDS: usize = 10;

/// Returns a number for each command; a new one must be added here, and to [`log`].
pub(crate) fn number(command: &MeetingCommand) -> usize {
    let number = match command {
        MeetingCommand::Start { .. } => 0,
        MeetingCommand::End { .. } => 1,
        MeetingCommand::Archive { .. } => 2,
        MeetingCommand::Reopen { .. } => 3,
        MeetingCommand::Join { .. } => 4,
        MeetingCommand::Leave { .. } => 5,
        MeetingCommand::Post { .. } => 6,
        MeetingCommand::Draft { .. } => 7,
        MeetingCommand::Stance { .. } => 8,
        MeetingCommand::Told { .. } => 9,
    };
    600 + number
}

/// The meeting that entry 600 starts.
const PLAN: &str = "20270115080000-release-plan-00go";
/// The meeting that entry 601 starts.
const TALK: &str = "20270115080000-6K6o6K66-00gp";

fn join(meeting: &str, mode: Mode, approver: Approver, since: Since) -> Command {
    Command::Meeting(MeetingCommand::Join { meeting: meeting.into(), mode, approver, since })
}

fn draft(meeting: &str, text: &str, reminder_minutes: u32) -> Command {
    let (meeting, text) = (meeting.into(), text.into());
    Command::Meeting(MeetingCommand::Draft { meeting, text, reminder_minutes })
}

fn stance(meeting: &str, proposal: u64, opinion: Opinion, note: &str) -> Command {
    let (meeting, note) = (meeting.into(), note.into());
    Command::Meeting(MeetingCommand::Stance { meeting, proposal, opinion, note })
}

fn told(meeting: &str, woke: bool) -> Told {
    Told {
        meeting: meeting.into(),
        conversation: "codex:2".into(),
        messages: 1,
        stances: 300,
        reminder: 2,
        ended: 70_000,
        woke,
    }
}

/// Returns the log; the first families' records stay as they are.
pub(crate) fn log() -> Vec<Entry> {
    base::followed_by(600, said(), 33)
}

fn said() -> Vec<Said> {
    let start = |topic: &str| Command::Meeting(MeetingCommand::Start { topic: topic.into() });
    let send = Command::Chat(ChatCommand::Send {
        room: Room::Meeting(PLAN.into()),
        text: "welcome".into(),
        category: Category::None,
    });
    let take = Command::Chat(ChatCommand::Take { room: Room::Meeting(PLAN.into()), limit: 10 });
    let remind = Command::System(SystemCommand::Fire {
        due: 66_050,
        kind: DueKind::Reminder,
        id: PLAN.into(),
        generation: 2,
    });
    let end = MeetingCommand::End { meeting: TALK.into(), summary: "we talked".into() };
    let post = MeetingCommand::Post { text: "here?".into(), category: Category::Decision };
    let told = MeetingCommand::Told { told: vec![told(PLAN, true), told(TALK, false)] };
    let archive = MeetingCommand::Archive { meeting: PLAN.into() };
    let reopen = MeetingCommand::Reopen { meeting: TALK.into() };
    let leave = MeetingCommand::Leave { meeting: TALK.into() };
    vec![
        ("claude:1", start("Release plan")),
        ("codex:2", start("\u{8ba8}\u{8bba}")),
        ("codex:2", join(PLAN, Mode::Active, Approver::Required, Since::Latest)),
        ("mcp-3", join(PLAN, Mode::Async, Approver::Optional, Since::After(0))),
        ("claude:1", send),
        ("claude:1", draft(PLAN, "ship it", 1)),
        ("codex:2", stance(PLAN, 2, Opinion::Object, "not on Friday")),
        ("mcp-3", stance(PLAN, 2, Opinion::Withdraw, "")),
        ("", Command::Meeting(told)),
        ("codex:2", Command::Meeting(post)),
        ("", remind),
        ("claude:1", draft(PLAN, "ship it on Monday", 0)),
        ("codex:2", stance(PLAN, 4, Opinion::Endorse, "if the tests pass")),
        ("claude:1", stance(PLAN, 4, Opinion::Endorse, "")),
        ("codex:2", take),
        ("mcp-3", Command::Meeting(archive)),
        ("mcp-3", Command::Meeting(end)),
        ("claude:1", Command::Meeting(reopen)),
        ("claude:1", join(TALK, Mode::Active, Approver::Required, Since::Unsaid)),
        ("codex:2", draft("", "talk more", 10)),
        ("codex:2", Command::Meeting(leave)),
    ]
}
