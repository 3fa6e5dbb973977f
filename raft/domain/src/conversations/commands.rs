//! Commands of conversations: register, transition, profile.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::presence::{come_back, first_name, free_name, save, touch};
use super::{Conversation, conversation, nodes, reports, turns};
use crate::command::{Change, Client, ConversationCommand, Status};
use crate::context::{Context, Stop};
use crate::entry::Actor;
use crate::event::Event;
use crate::rejection::Rejection;
use crate::reply::Reply;
use crate::store::Store;
use crate::{chat, cluster, events, limits, mail, names, tables, texts};

pub(crate) fn run(
    state: &mut impl Store,
    context: &Context<'_>,
    command: &ConversationCommand,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    match command {
        ConversationCommand::Register { client, cwd, incarnation } => {
            let arrival = Arrival { client: *client, cwd, incarnation: *incarnation };
            register(state, context, &arrival, told)
        }
        ConversationCommand::Transition { changes } => transition(state, context, changes, told),
        ConversationCommand::SetProfile { name, note, title } => {
            let wanted =
                Profile { name: name.as_deref(), note: note.as_deref(), title: title.as_deref() };
            set_profile(state, context, &wanted, told)
        }
        ConversationCommand::Report { reports } => reports::report(state, context, reports, told),
        ConversationCommand::Listen { on } => reports::listen(state, context, *on, told),
        ConversationCommand::Nodes { changes } => nodes::note(state, context, changes, told),
    }
}

/// What a client says at its registration.
struct Arrival<'a> {
    client: Client,
    cwd: &'a str,
    incarnation: u64,
}

/// Checks that an id is one of its client's: nobody takes a form that another client's ids have.
fn check_client(id: &str, client: Client) -> Result<(), Rejection> {
    let (fits, rule) = match client {
        Client::Claude => (has_prefix(id, "claude:"), "must begin with claude:"),
        Client::Codex => (has_prefix(id, "codex:"), "must begin with codex:"),
        // What the cluster itself says in meetings is from this one.
        Client::Instance if id == chat::CLUSTER => (false, "n2n-nexus is the cluster's own id"),
        Client::Instance => (!id.contains(':'), "must have no : when it is an instance"),
    };
    if fits { Ok(()) } else { Err(Rejection::invalid("caller", rule)) }
}

fn has_prefix(id: &str, prefix: &str) -> bool {
    id.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty())
}

fn register(
    state: &mut impl Store,
    context: &Context<'_>,
    arrival: &Arrival<'_>,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    let Actor::Conversation(id) = context.actor else {
        return Err(Rejection::forbidden("caller: must be a conversation").into());
    };
    check_client(id, arrival.client)?;
    if arrival.cwd.len() > limits::CWD_BYTES_MAX || arrival.cwd.contains('\0') {
        let rule = "must have at most 4,096 bytes, none of them zero";
        return Err(Rejection::invalid("cwd", rule).into());
    }
    let (after, from) = match context.speaker {
        Some(before) => (known(state, context, before, arrival)?, before.home),
        None => (new(state, context, id, arrival)?, context.node),
    };
    save(state, context.speaker, &after)?;
    if from != after.home {
        mail::moved(state, &after, from, context.now.tick, told)?;
        let (old, new) = (cluster::shown(state, from)?, cluster::shown(state, after.home)?);
        let detail = format!("{old} to {new}");
        events::record(state, context, "conversation.move", Some(id.clone()), Some(detail))?;
    }
    if context.speaker.is_none_or(|before| is_news(before, &after)) {
        told.push(Event::Conversation { id: id.clone() });
    }
    Ok(Reply::Registered { name: after.name, from })
}

/// Returns whether others see a difference.
fn is_news(before: &Conversation, after: &Conversation) -> bool {
    (before.home, before.status, before.incarnation, &before.name, &before.cwd)
        != (after.home, after.status, after.incarnation, &after.name, &after.cwd)
}

/// Makes a conversation that was never seen.
fn new(
    state: &mut impl Store,
    context: &Context<'_>,
    id: &str,
    arrival: &Arrival<'_>,
) -> Result<Conversation, Stop> {
    let mut totals = tables::TOTALS.get(state, ())?.unwrap_or_default();
    if totals.count >= limits::CONVERSATIONS_MAX {
        let what = "conversations: the cluster keeps 100,000, no new one fits; those that are \
                    silent for 30 days go by themselves";
        return Err(Rejection::full(what).into());
    }
    totals.count = totals.count.saturating_add(1);
    let name = match first_name(arrival.client, arrival.cwd) {
        name if name.is_empty() => name,
        name => free_name(state, &name)?,
    };
    tables::TOTALS.put(state, (), &totals)?;
    Ok(Conversation {
        id: id.to_owned(),
        client: arrival.client,
        name,
        title: String::new(),
        own_title: None,
        note: String::new(),
        cwd: arrival.cwd.to_owned(),
        status: Status::Idle,
        home: context.node,
        incarnation: arrival.incarnation,
        registered_at: context.now.at,
        last_active_at: context.now.at,
        last_active_tick: context.now.tick,
        listens: None,
    })
}

/// Brings a known one up to date: home, process, directory, and back from offline.
fn known(
    state: &impl Store,
    context: &Context<'_>,
    before: &Conversation,
    arrival: &Arrival<'_>,
) -> Result<Conversation, Stop> {
    let mut after = before.clone();
    after.home = context.node;
    after.incarnation = arrival.incarnation;
    if !arrival.cwd.is_empty() {
        arrival.cwd.clone_into(&mut after.cwd);
    }
    if before.status == Status::Offline {
        come_back(state, &mut after, Status::Idle)?;
    }
    touch(&mut after, context.now);
    Ok(after)
}

fn transition(
    state: &mut impl Store,
    context: &Context<'_>,
    changes: &[Change],
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    if changes.len() > limits::TRANSITION_CHANGES_MAX {
        return Err(Rejection::invalid("changes", "must be at most 240").into());
    }
    let mut turns = Vec::new();
    for change in changes {
        // One that moved away meanwhile does not hold up the others.
        let Some(before) = conversation(state, &change.id)? else { continue };
        if before.home != context.node {
            continue;
        }
        let mut after = before.clone();
        if change.status == Status::Offline {
            after.status = Status::Offline;
        } else {
            if before.status == Status::Offline {
                come_back(state, &mut after, change.status)?;
            }
            after.status = change.status;
            touch(&mut after, context.now);
        }
        if !change.title.is_empty() {
            after.title = change.title.chars().take(limits::TITLE_CHARS_MAX).collect();
        }
        save(state, Some(&before), &after)?;
        turns::note(state, &before, &after, &mut turns)?;
        if (before.status, &before.name, &before.title) != (after.status, &after.name, &after.title)
        {
            told.push(Event::Conversation { id: after.id });
        }
    }
    turns::keep(state, (context.index, context.now), turns, told)?;
    Ok(Reply::Done)
}

/// The given fields of a profile.
struct Profile<'a> {
    name: Option<&'a str>,
    note: Option<&'a str>,
    title: Option<&'a str>,
}

impl Profile<'_> {
    fn check(&self) -> Result<(), Rejection> {
        if self.name.is_none() && self.note.is_none() && self.title.is_none() {
            let rule = "must give at least one of name, note and title";
            return Err(Rejection::invalid("profile", rule));
        }
        if let Some(name) = self.name {
            names::check("name", name, limits::NAME_CHARS_MAX)?;
            if name == chat::CLUSTER {
                return Err(Rejection::invalid("name", "n2n-nexus is the cluster's own"));
            }
        }
        let long = |text: Option<&str>, chars_max: usize| {
            text.is_some_and(|text| !texts::has_at_most(text, chars_max))
        };
        if long(self.note, limits::NOTE_CHARS_MAX) {
            return Err(Rejection::invalid("note", "must have at most 200 characters"));
        }
        if long(self.title, limits::TITLE_CHARS_MAX) {
            return Err(Rejection::invalid("title", "must have at most 80 characters"));
        }
        Ok(())
    }
}

fn set_profile(
    state: &mut impl Store,
    context: &Context<'_>,
    wanted: &Profile<'_>,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    let before = context.speaker()?;
    if before.client == Client::Instance {
        let what = "caller: an instance has no profile; it needs a conversation with hooks";
        return Err(Rejection::forbidden(what).into());
    }
    wanted.check()?;
    let mut after = before.clone();
    if let Some(name) = wanted.name {
        let holder = tables::NAMES.get(state, name)?;
        if holder.is_some_and(|holder| holder != before.id) {
            let what = format!("name: {name} is taken by a conversation that is not offline");
            return Err(Rejection::conflict(what).into());
        }
        name.clone_into(&mut after.name);
    }
    if let Some(note) = wanted.note {
        note.clone_into(&mut after.note);
    }
    if let Some(title) = wanted.title {
        after.own_title = (!title.is_empty()).then(|| title.to_owned());
    }
    if after.status == Status::Offline {
        come_back(state, &mut after, Status::Working)?;
    }
    touch(&mut after, context.now);
    mail::arrived(state, before, context.now.tick, told)?;
    if after != *before {
        save(state, Some(before), &after)?;
        told.push(Event::Conversation { id: after.id });
    }
    Ok(Reply::Named { name: after.name })
}
