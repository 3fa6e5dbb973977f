//! The meetings of a seed's log.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::Sequence;
use crate::command::meetings::{Approver, MeetingCommand, Mode, Opinion, Since, Told};
use crate::command::{Category, ChatCommand, Command, Room};
use crate::store::Direction;
use crate::{chat, meetings, tables};

impl Sequence {
    /// Makes a command of a conversation about a meeting.
    pub(super) fn meeting(&mut self) -> Command {
        let meeting = self.some_meeting();
        let command = match self.random.below(100) {
            0..=7 => MeetingCommand::Start { topic: self.topic() },
            8..=11 => MeetingCommand::End { meeting, summary: "minutes ".repeat(self.length(4)) },
            12..=17 => MeetingCommand::Archive { meeting },
            18..=23 => MeetingCommand::Reopen { meeting },
            24..=38 => self.join(meeting),
            39..=42 => MeetingCommand::Leave { meeting },
            43..=47 => MeetingCommand::Post { text: "post".into(), category: Category::Decision },
            48..=55 => {
                let text = "draft ".repeat(self.length(4));
                let reminder_minutes = u32::try_from(self.random.below(3)).unwrap_or_default();
                MeetingCommand::Draft { meeting, text, reminder_minutes }
            }
            56..=94 => self.stance(meeting),
            95..=97 => {
                let (text, category) = ("to the meeting".into(), Category::Proposal);
                let room = Room::Meeting(meeting);
                return Command::Chat(ChatCommand::Send { room, text, category });
            }
            _ => {
                return Command::Chat(ChatCommand::Take { room: Room::Meeting(meeting), limit: 5 });
            }
        };
        Command::Meeting(command)
    }

    /// Makes a node's word of what it told and whom it woke.
    pub(super) fn told(&mut self) -> Command {
        let mut told = Vec::new();
        for _ in 0..self.random.below(5) {
            let (_, id) = self.speaker();
            let news = meetings::news(&self.state, &id).unwrap_or_default();
            told.extend(news.into_iter().take(20).map(|news| news.told));
        }
        for mark in &mut told {
            mark.woke = self.random.chance(50);
        }
        if self.random.chance(20) {
            let (_, conversation) = self.speaker();
            let most = u64::MAX;
            let (messages, stances, reminder, ended) = (most, most, most, most);
            let meeting = self.some_meeting();
            let woke = true;
            told.push(Told { meeting, conversation, messages, stances, reminder, ended, woke });
        }
        told.truncate(crate::limits::TOLD_MAX);
        Command::Meeting(MeetingCommand::Told { told })
    }

    /// Makes what brings a draft nearer to agreement: an endorsement that is missing, or the end of
    /// an objection.
    pub(super) fn agreement(&mut self) -> Option<(String, Command)> {
        let meeting = self.some_meeting();
        let proposal = meetings::meeting(&self.state, &meeting).ok()??.draft_number();
        let now = meetings::approvals(&self.state, &meeting, proposal).ok()??;
        let (id, opinion) = match (now.objections.first(), now.waiting.first()) {
            (Some(said), _) => (said.id.clone(), Opinion::Withdraw),
            (None, Some(id)) => (id.clone(), Opinion::Endorse),
            (None, None) => return None,
        };
        let note = String::new();
        let stance = MeetingCommand::Stance { meeting, proposal, opinion, note };
        Some((id, Command::Meeting(stance)))
    }

    fn topic(&mut self) -> String {
        let topics = ["Release plan", "\u{8ba8}\u{8bba}", "", "two\nlines", "x"];
        self.random.one(&topics).copied().unwrap_or_default().to_string()
    }

    /// Mostly one of the last few meetings, sometimes the default one, seldom one that is not.
    pub(super) fn some_meeting(&mut self) -> String {
        if self.random.chance(15) {
            return String::new();
        }
        if self.random.chance(3) {
            return "20260101000000-nothing-0000".into();
        }
        let table = &tables::MEETINGS_STARTED;
        let rows = table.rows(&self.state, table.all(), Direction::Reverse);
        let ids: Vec<String> = rows.take(3).filter_map(|row| Some(row.ok()?.1)).collect();
        self.random.one(&ids).cloned().unwrap_or_default()
    }

    fn join(&mut self, meeting: String) -> MeetingCommand {
        let modes = [Mode::Active, Mode::Async];
        let mode = self.random.one(&modes).copied().unwrap_or(Mode::Active);
        let required = self.random.chance(40);
        let approver = if required { Approver::Required } else { Approver::Optional };
        let since = match self.random.below(5) {
            0..=2 => Since::Unsaid,
            3 => Since::Latest,
            _ => Since::After(self.random.below(12)),
        };
        MeetingCommand::Join { meeting, mode, approver, since }
    }

    /// Mostly on the current draft, and mostly for it.
    fn stance(&mut self, meeting: String) -> MeetingCommand {
        let row = meetings::meeting(&self.state, &meeting).ok().flatten();
        let draft = row.map_or(0, |row| row.draft_number());
        let proposal = if self.random.chance(85) {
            draft
        } else {
            let room = Room::Meeting(meeting.clone());
            let last = chat::last_id(&self.state, &room).unwrap_or_default();
            self.random.below(last.saturating_add(2))
        };
        let opinion = match self.random.below(10) {
            0 => Opinion::Object,
            1 => Opinion::Withdraw,
            _ => Opinion::Endorse,
        };
        let note = "because ".repeat(self.length(3));
        MeetingCommand::Stance { meeting, proposal, opinion, note }
    }
}
