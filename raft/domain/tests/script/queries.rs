//! What a script asks the state.

use std::fmt::Write as _;

use goldenscript::ArgumentConsumer;
use nexus_domain::command::presence::NodeState;
use nexus_domain::reply::IdRange;
use nexus_domain::{
    Direction, KeyRange, MemoryStore, Read, chat, clock, cluster, conversations, digest, due,
    events, system,
};

use super::{Result, key, meetings, position, project_queries, work};

/// Answers a query; `None` when the name is none.
pub(super) fn run(
    state: &MemoryStore,
    name: &str,
    args: &mut ArgumentConsumer<'_>,
) -> Result<Option<String>> {
    let mut out = String::new();
    match name {
        "info" => {
            let info = cluster::info(state)?;
            let shown =
                info.map(|info| (info.cluster, info.timing, info.state_version, info.founded_at));
            writeln!(out, "{shown:?}")?;
        }
        "clock" => writeln!(out, "{:?}", clock::clock(state)?)?,
        "due" => writeln!(out, "{:?}", due::first(state)?)?,
        "members" => {
            for member in cluster::members(state)? {
                let public_key = String::from_utf8_lossy(&member.public_key);
                writeln!(
                    out,
                    "{} {} {:?} key={public_key} supports={} boot={}/{} by={:?} {:?}",
                    member.id,
                    member.name,
                    member.role,
                    member.supports,
                    member.boot,
                    member.nonce,
                    member.invited_by,
                    member.addresses
                )?;
            }
        }
        "who-is-away" => {
            let noted = conversations::nodes(state)?.into_iter();
            let away = noted.filter(|noted| noted.state != NodeState::Up);
            let away: Vec<_> = away.map(|noted| (noted.node, noted.state, noted.since)).collect();
            writeln!(out, "{away:?}")?;
        }
        "supported" => {
            let tick = clock::clock(state)?.tick;
            writeln!(out, "{}", system::supported_by_all(state, tick)?)?;
        }
        "who-votes" => writeln!(out, "{:?}", cluster::voters(state)?)?,
        "invites" => {
            for invite in cluster::invites(state)? {
                writeln!(
                    out,
                    "{} {:?} {:?} until {}/{} by={} burned-by={:?}",
                    invite.id,
                    invite.state,
                    invite.role,
                    invite.expires_tick,
                    invite.expires_at,
                    invite.by,
                    invite.burned_by
                )?;
            }
        }
        _ => return state_query(state, name, args),
    }
    Ok(Some(out))
}

fn state_query(
    state: &MemoryStore,
    name: &str,
    args: &mut ArgumentConsumer<'_>,
) -> Result<Option<String>> {
    let mut out = String::new();
    match name {
        "records" => {
            for (table, word) in [(3u8, "node"), (5, "client"), (4, "floors"), (7, "hours")] {
                let rows = state.scan(KeyRange::prefix(&[table]), Direction::Forward).count();
                write!(out, "{word}={rows} ")?;
            }
            out.push('\n');
        }
        "history" => {
            let indexes: Vec<_> = digest::history(state)?.iter().map(|mark| mark.index).collect();
            writeln!(out, "{indexes:?}")?;
        }
        "events" => {
            let action = args.take_key("action");
            for event in events::list(state, action, key(args, "limit")?.unwrap_or(20))? {
                let (target, detail) = (event.target.as_deref(), event.detail.as_deref());
                let (target, detail) = (target.unwrap_or("-"), detail.unwrap_or("-"));
                let (at, actor, action, node) = (event.at, event.actor, event.action, event.node);
                writeln!(out, "{at} {actor} {action} {target} {detail} node={node}")?;
            }
        }
        "event-count" => {
            let rows = state.scan(KeyRange::prefix(&[0x28]), Direction::Forward).count();
            writeln!(out, "{rows}")?;
        }
        "peers" => {
            for row in conversations::list(state, 100)? {
                writeln!(
                    out,
                    "{} name={:?} title={:?} note={:?} cwd={:?} {:?} home={} inc={} active={}",
                    row.id,
                    row.name,
                    row.shown_title(),
                    row.note,
                    row.cwd,
                    row.status,
                    row.home,
                    row.incarnation,
                    row.last_active_tick
                )?;
            }
        }
        "by-name" => {
            let found = conversations::by_name(state, args.next_pos().unwrap_or_default())?;
            writeln!(out, "{:?}", found.map(|row| row.id))?;
        }
        _ => return chat_query(state, name, args),
    }
    Ok(Some(out))
}

fn chat_query(
    state: &MemoryStore,
    name: &str,
    args: &mut ArgumentConsumer<'_>,
) -> Result<Option<String>> {
    if let Some(answer) = meetings::query(state, name, args)? {
        return Ok(Some(answer));
    }
    let mut out = String::new();
    let words = ["latest", "after", "load", "unread", "cursor", "last-id"];
    if !words.contains(&name) {
        return match project_queries::run(state, name, args)? {
            Some(answer) => Ok(Some(answer)),
            None => work::query(state, name, args),
        };
    }
    let room = meetings::room(state, args)?;
    let found = match name {
        "latest" => chat::latest(state, &room, position(args, "count")?)?,
        "after" => {
            let id = position(args, "id")?;
            chat::after(state, &room, id, position(args, "count")?)?
        }
        "load" => {
            let range = IdRange { after: position(args, "after")?, upto: position(args, "up to")? };
            let skip = args.take_key("skip").unwrap_or_default();
            chat::load(state, &room, range, skip, key(args, "limit")?.unwrap_or(10))?
        }
        "unread" => {
            let reader = args.next_pos().unwrap_or_default();
            writeln!(out, "{}", chat::unread(state, &room, reader)?)?;
            return Ok(Some(out));
        }
        "cursor" => {
            let reader = args.next_pos().unwrap_or_default();
            writeln!(out, "{:?}", chat::cursor(state, &room, reader)?)?;
            return Ok(Some(out));
        }
        "last-id" => {
            writeln!(out, "{}", chat::last_id(state, &room)?)?;
            return Ok(Some(out));
        }
        _ => return Ok(None),
    };
    for message in found {
        let shown = if message.about.is_some() { 200 } else { 20 };
        let text: String = message.text.chars().take(shown).collect();
        write!(
            out,
            "{} {} ({:?}) {:?}: {text} at={} node={}",
            message.id,
            message.from,
            message.sender_name,
            message.category,
            message.at,
            message.node
        )?;
        if let Some(about) = message.about {
            write!(out, " about={about}")?;
        }
        out.push('\n');
    }
    Ok(Some(out))
}
