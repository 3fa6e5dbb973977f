//! The language of scripts: which family a command is of, and those of the first families.

use goldenscript::ArgumentConsumer;
use nexus_domain::command::{
    Change, ChatCommand, Client, ClusterCommand, Command, ConversationCommand, DueKind, Role,
    Status, SystemCommand, Timing,
};
use nexus_domain::{MemoryStore, due};

use super::{Result, found, key, meetings, position, projects, text, work};

/// Reads a command of the state machine; `None` when the name is none.
pub(super) fn command(
    state: &MemoryStore,
    name: &str,
    args: &mut ArgumentConsumer<'_>,
) -> Result<Option<Command>> {
    if let Some(command) = system(state, name, args)? {
        return Ok(Some(Command::System(command)));
    }
    if let Some(command) = cluster_command(name, args)? {
        return Ok(Some(command));
    }
    if let Some(command) = conversation(name, args)? {
        return Ok(Some(Command::Conversation(command)));
    }
    if let Some(command) = projects::command(name, args)? {
        return Ok(Some(command));
    }
    if let Some(command) = work::command(name, args)? {
        return Ok(Some(command));
    }
    if let Some(command) = meetings::command(state, name, args)? {
        return Ok(Some(Command::Meeting(command)));
    }
    // Last, for it looks for `in=` before it knows the word.
    Ok(chat(state, name, args)?.map(Command::Chat))
}

/// Returns the kind of timer that a word names.
fn due_kind(word: Option<&str>) -> DueKind {
    match word {
        Some("invite") => DueKind::Invite,
        Some("removal") => DueKind::Removal,
        Some("upload") => DueKind::Upload,
        Some("sweep") => DueKind::Sweep,
        Some("reminder") => DueKind::Reminder,
        Some("task") => DueKind::Task,
        Some("unread") => DueKind::Unread,
        Some("mail") => DueKind::Mail,
        Some("watch") => DueKind::Watch,
        Some("turns") => DueKind::Turns,
        Some("chat") => DueKind::Chat,
        Some("closed") => DueKind::Closed,
        _ => DueKind::Requests,
    }
}

fn system(
    state: &MemoryStore,
    name: &str,
    args: &mut ArgumentConsumer<'_>,
) -> Result<Option<SystemCommand>> {
    Ok(Some(match name {
        "started" => SystemCommand::Started {
            boot: position(args, "boot")?,
            nonce: position(args, "nonce")?,
            supports: key(args, "supports")?.unwrap_or(1),
            software: text(args.take_key("software").unwrap_or("0.1.0")),
        },
        "clock-step" => SystemCommand::ClockStep { at: position(args, "time")? },
        "upgrade" => SystemCommand::Upgrade { to: position(args, "version")? },
        // Without arguments it fires what is first.
        "fire" => match args.next_pos() {
            Some(due) => SystemCommand::Fire {
                due: due.parse()?,
                kind: due_kind(args.next_pos()),
                id: position(args, "id")?,
                generation: position(args, "generation")?,
            },
            None => {
                let first = due::first(state)?.ok_or("nothing is due")?;
                let (due, kind, id, generation) =
                    (first.due, first.kind, first.id, first.generation);
                SystemCommand::Fire { due, kind, id, generation }
            }
        },
        _ => return Ok(None),
    }))
}

fn cluster_command(name: &str, args: &mut ArgumentConsumer<'_>) -> Result<Option<Command>> {
    Ok(Some(Command::Cluster(match name {
        "found" => {
            let cluster = text(args.next_pos().unwrap_or("c1"));
            let name = text(args.take_key("name").unwrap_or("alpha"));
            return Ok(Some(found(&cluster, &name)));
        }
        "invite" => ClusterCommand::Invite {
            id: text(args.next_pos().unwrap_or_default()),
            secret_hash: vec![7; key(args, "hash")?.unwrap_or(32)],
            role: match args.take_key("role") {
                Some("voter") => Role::Voter,
                Some("learner") => Role::Learner,
                _ => Role::Auto,
            },
            ttl: key(args, "ttl")?.unwrap_or(60_000),
        },
        "withdraw" => ClusterCommand::Withdraw { id: position(args, "id")? },
        "burn" => ClusterCommand::Burn { id: position(args, "id")? },
        "admit" => ClusterCommand::Admit {
            invite: position(args, "invite")?,
            public_key: text(args.take_key("key").unwrap_or("key")).into_bytes(),
            name: text(args.take_key("name").unwrap_or("beta")),
            host: text(args.take_key("host").unwrap_or("machine")),
        },
        "describe" => ClusterCommand::Describe {
            name: text(args.take_key("name").unwrap_or_default()),
            host: text(args.take_key("host").unwrap_or("machine")),
            addresses: {
                let mut addresses = Vec::new();
                while let Some(address) = args.next_pos() {
                    addresses.push(text(address));
                }
                addresses
            },
        },
        "voters" => ClusterCommand::Voters {
            voters: {
                let mut voters = Vec::new();
                while let Some(node) = args.next_pos() {
                    voters.push(node.parse()?);
                }
                voters
            },
        },
        "remove" => ClusterCommand::Remove { node: position(args, "node")? },
        "timing" => ClusterCommand::SetTiming {
            timing: match args.next_pos() {
                Some("wifi") => Timing::Wifi,
                Some("relaxed") => Timing::Relaxed,
                _ => Timing::Wired,
            },
        },
        _ => return Ok(None),
    })))
}

pub(super) fn status(word: &str) -> Status {
    match word {
        "idle" => Status::Idle,
        "listening" => Status::Listening,
        "offline" => Status::Offline,
        _ => Status::Working,
    }
}

fn conversation(
    name: &str,
    args: &mut ArgumentConsumer<'_>,
) -> Result<Option<ConversationCommand>> {
    Ok(Some(match name {
        "register" => ConversationCommand::Register {
            client: match args.next_pos() {
                Some("claude") => Client::Claude,
                Some("codex") => Client::Codex,
                _ => Client::Instance,
            },
            cwd: text(args.take_key("cwd").unwrap_or_default()),
            incarnation: key(args, "inc")?.unwrap_or(1),
        },
        // `id=status` or `id=status/title`, as many as wanted.
        "transition" => {
            let mut changes = Vec::new();
            let fill: usize = key(args, "fill")?.unwrap_or(0);
            while let Some(word) = args.next_pos() {
                let (id, rest) = word.split_once(',').unwrap_or((word, "working"));
                let (word, title) = rest.split_once(',').unwrap_or((rest, ""));
                let title = text(title);
                changes.push(Change { id: id.into(), status: status(word), title });
            }
            let one = Change { id: "claude:x".into(), status: Status::Idle, title: String::new() };
            changes.extend(vec![one; fill]);
            ConversationCommand::Transition { changes }
        }
        "profile" => ConversationCommand::SetProfile {
            name: args.take_key("name").map(text),
            note: args.take_key("note").map(text),
            title: args.take_key("title").map(text),
        },
        _ => return Ok(None),
    }))
}

fn chat(
    state: &MemoryStore,
    name: &str,
    args: &mut ArgumentConsumer<'_>,
) -> Result<Option<ChatCommand>> {
    let room = meetings::room(state, args)?;
    Ok(Some(match name {
        "send" => ChatCommand::Send {
            room,
            text: text(args.next_pos().unwrap_or_default()),
            category: meetings::category(args.take_key("category")),
        },
        "take" => ChatCommand::Take { room, limit: key(args, "limit")?.unwrap_or(10) },
        _ => return Ok(None),
    }))
}
