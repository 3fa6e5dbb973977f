//! The log of a seed: tasks, direct messages, what hooks report, maintenance.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::Sequence;
use crate::command::mail::MailCommand;
use crate::command::presence::{NodeChange, NodeState, Report};
use crate::command::tasks::{Expected, GivenStatus, Metadata, TaskChange, TaskCommand};
use crate::command::{ChatCommand, Command, ConversationCommand, Status};
use crate::store::Direction;
use crate::{cluster, conversations, due, tables, tasks};

const GIVEN: [GivenStatus; 6] = [
    GivenStatus::None,
    GivenStatus::Pending,
    GivenStatus::Running,
    GivenStatus::Completed,
    GivenStatus::Failed,
    GivenStatus::Cancelled,
];

impl Sequence {
    /// Returns whether something is due now.
    pub(super) fn is_due(&self) -> bool {
        let first = due::first(&self.state).ok().flatten();
        first.is_some_and(|first| first.due <= self.tick)
    }

    /// Returns the place of a node that is still in, mostly.
    pub(super) fn some_member(&mut self) -> usize {
        let mut place = self.some_node();
        for _ in 0..4 {
            let node = self.nodes.get(place).map_or(0, |node| node.id);
            if matches!(cluster::member(&self.state, node), Ok(Some(_))) {
                break;
            }
            place = self.some_node();
        }
        place
    }

    /// Makes a command of this conversation.
    pub(super) fn work(&mut self, id: &str) -> Command {
        match self.random.below(100) {
            0..=59 => Command::Mail(self.mail(id)),
            60..=91 => Command::Task(self.task()),
            92..=95 => {
                let on = self.random.chance(50);
                Command::Conversation(ConversationCommand::Listen { on })
            }
            96..=98 => Command::Chat(ChatCommand::Prune { count: self.random.below(30) }),
            _ => Command::Chat(ChatCommand::Clear),
        }
    }

    fn mail(&mut self, own: &str) -> MailCommand {
        let (expects_reply, wake) = (self.random.chance(50), self.random.chance(50));
        let text = "letter\n".repeat(self.length(30));
        match self.random.below(100) {
            0..=49 => {
                let (_, id) = self.speaker();
                let to = match self.random.below(10) {
                    0 => format!("name{}", self.random.below(5)),
                    1 => format!("claude@project-{}", self.random.below(3)),
                    _ => id,
                };
                let notify_when_idle = self.random.chance(40);
                MailCommand::Send { to, text, expects_reply, wake, notify_when_idle }
            }
            50..=64 => {
                let inbox = tables::INBOXES.get(&self.state, own).ok().flatten();
                let number = inbox.unwrap_or_default().last.saturating_sub(self.random.below(8));
                let letter = tables::ENVELOPES.get(&self.state, (own, number)).ok().flatten();
                let message = letter.map_or_else(|| self.random.below(9), |letter| letter.id);
                MailCommand::Reply { message, text, expects_reply, wake }
            }
            _ => {
                let limit = u32::try_from(self.random.below(8)).unwrap_or_default();
                MailCommand::Take { limit }
            }
        }
    }

    fn task(&mut self) -> TaskCommand {
        let totals = tables::TASK_TOTALS.get(&self.state, ()).ok().flatten();
        let last = totals.unwrap_or_default().last;
        let task = last.saturating_sub(self.random.below(6));
        let expected = self.expected(task);
        match self.random.below(100) {
            0..=29 => {
                let source_meeting = self.random.chance(20).then(|| self.some_meeting());
                let metadata = self.metadata();
                let ttl = self.random.chance(40).then(|| self.random.below(30 * 60 * 60 * 1000));
                TaskCommand::Create { source_meeting, metadata, ttl }
            }
            30..=84 => {
                let status = self.random.one(&GIVEN).copied().unwrap_or_default();
                let progress = self
                    .random
                    .chance(30)
                    .then(|| u32::try_from(self.random.below(1_100_000)).unwrap_or_default());
                let result_uri = self.random.chance(10).then(|| "https://x.example".to_string());
                let error_message = self.random.chance(10).then(|| "went wröng".to_string());
                let metadata = self.metadata();
                let change = TaskChange { status, progress, result_uri, error_message, metadata };
                TaskCommand::Update { task, expected, change }
            }
            _ => TaskCommand::Cancel { task, expected },
        }
    }

    fn expected(&mut self, task: u64) -> Expected {
        let status = match self.random.chance(30) {
            true => self.random.one(&GIVEN).copied().unwrap_or_default(),
            false => GivenStatus::None,
        };
        let row = tasks::task(&self.state, task).ok().flatten();
        let updated_at = row.map(|row| row.updated_at.saturating_sub(self.random.below(2)));
        Expected { status, updated_at: updated_at.filter(|_| self.random.chance(20)) }
    }

    fn metadata(&mut self) -> Option<Metadata> {
        let target = match self.random.below(4) {
            0 => return None,
            1 => String::new(),
            number => format!("issue {number}"),
        };
        let json = format!("{{\"target\":\"{target}\"}}");
        Some(Metadata { json, target })
    }

    /// Makes what hooks of conversations report: mostly of those that are there.
    pub(super) fn report(&mut self) -> Command {
        let statuses = [Status::Working, Status::Idle, Status::Listening, Status::Offline];
        let mut reports = Vec::new();
        for _ in 0..self.random.below(5) {
            let (_, id) = self.speaker();
            let inbox = tables::INBOXES.get(&self.state, &id).ok().flatten().unwrap_or_default();
            let active = conversations::conversation(&self.state, &id).ok().flatten();
            let active = active.map_or(0, |row| row.last_active_tick);
            reports.push(Report {
                id,
                status: self.random.one(&statuses).copied().unwrap_or(Status::Idle),
                title: "title".repeat(self.length(20)),
                ended: self.random.chance(30),
                silent_since: active.saturating_sub(self.random.below(2)),
                announced: self.random.below(inbox.last.saturating_add(3)),
                noticed: self.random.below(6),
                arrived: inbox.cursor.taken.saturating_sub(self.random.below(2)),
            });
        }
        Command::Conversation(ConversationCommand::Report { reports })
    }

    /// Makes what the leader sees of nodes.
    pub(super) fn node_states(&mut self) -> Command {
        let states = [NodeState::Up, NodeState::Up, NodeState::Asleep, NodeState::Down];
        let mut changes = Vec::new();
        for _ in 0..self.random.below(4) {
            let place = self.some_node();
            let node = self.nodes.get(place).map_or(0, |node| node.id);
            let state = self.random.one(&states).copied().unwrap_or_default();
            changes.push(NodeChange { node, state });
        }
        Command::Conversation(ConversationCommand::Nodes { changes })
    }

    /// Makes a firing of anything that stands, due or not.
    pub(super) fn any_timer(&mut self) -> Option<due::Due> {
        let table = &tables::DUE;
        let skip = self.length(20);
        let key = table.keys(&self.state, table.all(), Direction::Forward).nth(skip)?.ok()?;
        let (due, kind, id, generation) = key;
        Some(due::Due { due, kind: due::kind_of(kind)?, id, generation })
    }
}
