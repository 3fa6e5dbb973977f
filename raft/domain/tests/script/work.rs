//! The language of scripts: tasks, direct messages, hooks' reports, maintenance.

use std::fmt::Write as _;

use goldenscript::ArgumentConsumer;
use nexus_domain::command::mail::MailCommand;
use nexus_domain::command::presence::{NodeChange, NodeState, Report};
use nexus_domain::command::tasks::{Expected, GivenStatus, Metadata, TaskChange, TaskCommand};
use nexus_domain::command::{ChatCommand, Command, ConversationCommand, Room};
use nexus_domain::reply::IdRange;
use nexus_domain::{
    Direction, KeyRange, MemoryStore, Read, chat, conversations, mail, notices, tasks,
};

use super::base::status;
use super::{Result, key, position, text};

/// Reads a command; `None` when the name is none of these.
pub(super) fn command(name: &str, args: &mut ArgumentConsumer<'_>) -> Result<Option<Command>> {
    if let Some(command) = task_command(name, args)? {
        return Ok(Some(Command::Task(command)));
    }
    if let Some(command) = mail_command(name, args)? {
        return Ok(Some(Command::Mail(command)));
    }
    if let Some(command) = presence(name, args)? {
        return Ok(Some(Command::Conversation(command)));
    }
    Ok(Some(Command::Chat(match name {
        "prune" => ChatCommand::Prune { count: position(args, "count")? },
        "clear" => ChatCommand::Clear,
        _ => return Ok(None),
    })))
}

fn given(word: Option<&str>) -> GivenStatus {
    match word {
        Some("pending") => GivenStatus::Pending,
        Some("running") => GivenStatus::Running,
        Some("completed") => GivenStatus::Completed,
        Some("failed") => GivenStatus::Failed,
        Some("cancelled") => GivenStatus::Cancelled,
        _ => GivenStatus::None,
    }
}

fn metadata(args: &mut ArgumentConsumer<'_>) -> Option<Metadata> {
    let target = args.take_key("target").map(text);
    let json = args.take_key("metadata").map(text);
    let given = target.is_some() || json.is_some();
    given.then(|| Metadata { json: json.unwrap_or_default(), target: target.unwrap_or_default() })
}

fn task_command(name: &str, args: &mut ArgumentConsumer<'_>) -> Result<Option<TaskCommand>> {
    let expected = |args: &mut ArgumentConsumer<'_>| {
        let status = given(args.take_key("expect"));
        Ok::<_, Box<dyn std::error::Error>>(Expected {
            status,
            updated_at: key(args, "expect-at")?,
        })
    };
    Ok(Some(match name {
        "create-task" => TaskCommand::Create {
            source_meeting: args.take_key("meeting").map(text),
            metadata: metadata(args),
            ttl: key(args, "ttl")?,
        },
        "update-task" => TaskCommand::Update {
            task: position(args, "task")?,
            expected: expected(args)?,
            change: TaskChange {
                status: given(args.take_key("status")),
                progress: key(args, "progress")?,
                result_uri: args.take_key("uri").map(text),
                error_message: args.take_key("error").map(text),
                metadata: metadata(args),
            },
        },
        "cancel-task" => {
            TaskCommand::Cancel { task: position(args, "task")?, expected: expected(args)? }
        }
        _ => return Ok(None),
    }))
}

fn mail_command(name: &str, args: &mut ArgumentConsumer<'_>) -> Result<Option<MailCommand>> {
    Ok(Some(match name {
        "mail" => MailCommand::Send {
            to: text(args.next_pos().unwrap_or_default()),
            text: text(args.next_pos().unwrap_or_default()),
            expects_reply: key(args, "reply")?.unwrap_or(true),
            wake: key(args, "wake")?.unwrap_or(true),
            notify_when_idle: key(args, "notify")?.unwrap_or(false),
        },
        "reply" => MailCommand::Reply {
            message: position(args, "message")?,
            text: text(args.next_pos().unwrap_or_default()),
            expects_reply: key(args, "reply")?.unwrap_or(true),
            wake: key(args, "wake")?.unwrap_or(true),
        },
        "read" => MailCommand::Take { limit: key(args, "limit")?.unwrap_or(10) },
        _ => return Ok(None),
    }))
}

fn presence(name: &str, args: &mut ArgumentConsumer<'_>) -> Result<Option<ConversationCommand>> {
    Ok(Some(match name {
        // `id,status,title`, as many as wanted, and `fill` numbered ones; marks are those of all.
        "report" => {
            let (announced, noticed) = (key(args, "announced")?, key(args, "noticed")?);
            let arrived = key(args, "arrived")?;
            let (ended, silent_since) = (key(args, "ended")?, key(args, "since")?);
            let one = |id: &str, word: &str, title: &str| Report {
                id: id.into(),
                status: status(word),
                title: text(title),
                ended: ended.unwrap_or(false),
                silent_since: silent_since.unwrap_or(0),
                announced: announced.unwrap_or(0),
                noticed: noticed.unwrap_or(0),
                arrived: arrived.unwrap_or(0),
            };
            let fill: usize = key(args, "fill")?.unwrap_or(0);
            let filling = args.take_key("filling").unwrap_or("idle");
            let mut reports = Vec::new();
            while let Some(word) = args.next_pos() {
                let (id, rest) = word.split_once(',').unwrap_or((word, "working"));
                let (word, title) = rest.split_once(',').unwrap_or((rest, ""));
                reports.push(one(id, word, title));
            }
            let filled = |number| one(&format!("claude:s{number}"), filling, "of many");
            reports.extend((0..fill).map(filled));
            ConversationCommand::Report { reports }
        }
        "listen" => ConversationCommand::Listen { on: args.next_pos() == Some("on") },
        "nodes" => {
            let mut changes = Vec::new();
            let fill: u64 = key(args, "fill")?.unwrap_or(0);
            while let Some(word) = args.next_pos() {
                let (node, word) = word.split_once(',').unwrap_or((word, "up"));
                let state = match word {
                    "asleep" => NodeState::Asleep,
                    "down" => NodeState::Down,
                    _ => NodeState::Up,
                };
                changes.push(NodeChange { node: node.parse()?, state });
            }
            changes.extend((0..fill).map(|node| NodeChange { node, state: NodeState::Up }));
            ConversationCommand::Nodes { changes }
        }
        _ => return Ok(None),
    }))
}

/// Answers a query; `None` when the name is none of these.
pub(super) fn query(
    state: &MemoryStore,
    name: &str,
    args: &mut ArgumentConsumer<'_>,
) -> Result<Option<String>> {
    let mut out = String::new();
    match name {
        "tasks" => {
            let status = given(args.take_key("status")).status();
            let (before, limit) = (key(args, "before")?, key(args, "limit")?.unwrap_or(50));
            let page = tasks::list(state, status, before, limit)?;
            if key(args, "count")?.unwrap_or(false) {
                writeln!(out, "{} tasks, more={}", page.tasks.len(), page.more)?;
                return Ok(Some(out));
            }
            for task in page.tasks {
                let metadata = task.metadata.as_deref().unwrap_or("-").chars().take(20);
                let metadata: String = metadata.collect();
                let (by, name) = (task.updated_by, task.updated_by_name);
                writeln!(
                    out,
                    "{} {:?} {}/1000000 {metadata} at={} by={by} ({name})",
                    task.id, task.status, task.progress, task.updated_at
                )?;
            }
            if page.more {
                out.push_str("and more\n");
            }
        }
        "task" => {
            let shown = tasks::task(state, position(args, "task")?)?;
            writeln!(out, "{shown:#?}")?;
        }
        "letters" => {
            let reader = args.next_pos().unwrap_or_default();
            let range = IdRange { after: position(args, "after")?, upto: position(args, "up to")? };
            for message in mail::load(state, reader, range, key(args, "limit")?.unwrap_or(50))? {
                let (number, text) = (message.number, &message.text);
                let text: String = text.chars().take(20).collect();
                let letter = message.envelope;
                writeln!(
                    out,
                    "{number} id={} {} ({}) re={:?} reply={} wake={} inc={} at={} node={}: {text}",
                    letter.id,
                    letter.from,
                    letter.from_name,
                    letter.reply_to,
                    letter.expects_reply,
                    letter.wake,
                    letter.incarnation,
                    letter.at,
                    letter.node
                )?;
            }
        }
        "receipt" => {
            let sender = args.next_pos().unwrap_or_default();
            writeln!(out, "{:?}", mail::receipt(state, sender, position(args, "message")?)?)?;
        }
        "sent" => {
            let sender = args.next_pos().unwrap_or_default();
            let (before, limit) = (key(args, "before")?, key(args, "limit")?.unwrap_or(20));
            for receipt in mail::sent(state, sender, before, limit)? {
                let (id, to, state) = (receipt.id, receipt.to, receipt.state);
                writeln!(out, "{id} to {to} {state:?} unread={}", receipt.unread)?;
            }
        }
        _ => return conversation_query(state, name, args),
    }
    Ok(Some(out))
}

fn conversation_query(
    state: &MemoryStore,
    name: &str,
    args: &mut ArgumentConsumer<'_>,
) -> Result<Option<String>> {
    let mut out = String::new();
    match name {
        "inbox" => {
            let reader = args.next_pos().unwrap_or_default();
            let waiting = mail::waiting(state, reader, key(args, "limit")?.unwrap_or(5))?;
            let (unread, open) = (mail::unread(state, reader)?, mail::is_open(state, reader)?);
            writeln!(
                out,
                "unread={unread} open={open} fresh={} announced={} wake={} last={} taken={}",
                waiting.fresh, waiting.announced, waiting.wake, waiting.last, waiting.taken
            )?;
            for heading in waiting.headings {
                writeln!(
                    out,
                    "  {} from {}: {}",
                    heading.number, heading.envelope.from, heading.first_line
                )?;
            }
        }
        "notices" => {
            let reader = args.next_pos().unwrap_or_default();
            let pending = notices::pending(state, reader, key(args, "limit")?.unwrap_or(10))?;
            writeln!(out, "last={} omitted={}", pending.last, pending.omitted)?;
            for notice in pending.notices {
                writeln!(
                    out,
                    "  {} at={} wake={} {:?}",
                    notice.number, notice.at, notice.wake, notice.fact
                )?;
            }
        }
        "present" => {
            let since = key(args, "offline-since")?;
            let limit = key(args, "limit")?.unwrap_or(100);
            for row in conversations::peers(state, since, limit)? {
                let listens = row.listens.unwrap_or(false);
                writeln!(
                    out,
                    "{} {:?} {:?} {:?} listens={listens} active={}",
                    row.id,
                    row.name,
                    row.shown_title(),
                    row.status,
                    row.last_active_tick
                )?;
            }
        }
        "node-state" => {
            let node = position(args, "node")?;
            writeln!(out, "{:?}", conversations::node_state(state, node)?)?;
        }
        "chat-count" => writeln!(out, "{}", chat::count(state, &Room::Global)?)?,
        // How many rows a table has, by its number.
        "rows" => {
            while let Some(word) = args.next_pos() {
                let table = u8::from_str_radix(word, 16)?;
                let rows = state.scan(KeyRange::prefix(&[table]), Direction::Forward).count();
                write!(out, "{word}={rows} ")?;
            }
            out.push('\n');
        }
        _ => return Ok(None),
    }
    Ok(Some(out))
}
