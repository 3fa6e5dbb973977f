//! Commands of direct messages: send, reply and take.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::vec::Vec;

use super::ends::sweep;
use super::inbox::save;
use super::{Envelope, Inbox, MailTotals, Offer, Place, Text, numbers};
use crate::chat;
use crate::command::Client;
use crate::command::mail::MailCommand;
use crate::context::{Context, Stop};
use crate::conversations::{self, Conversation, nodes, turns};
use crate::event::Event;
use crate::rejection::Rejection;
use crate::reply::{IdRange, Reply};
use crate::store::{Direction, Fault, Read, Store};
use crate::{limits, tables, texts};

pub(crate) fn run(
    state: &mut impl Store,
    context: &Context<'_>,
    command: &MailCommand,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    if context.speaker()?.client == Client::Instance {
        let what =
            "caller: an instance has no direct messages; they need a conversation with hooks";
        return Err(Rejection::forbidden(what).into());
    }
    match command {
        MailCommand::Send { to, text, expects_reply, wake, notify_when_idle } => {
            let letter = Letter::new(text, *expects_reply, *wake);
            send(state, context, (to, *notify_when_idle), &letter, told)
        }
        MailCommand::Reply { message, text, expects_reply, wake } => {
            let letter = Letter::new(text, *expects_reply, *wake);
            reply(state, context, *message, &letter, told)
        }
        MailCommand::Take { limit } => take(state, context, *limit, told),
    }
}

/// What is to be sent.
struct Letter<'a> {
    text: &'a str,
    expects_reply: bool,
    wake: bool,
    reply_to: Option<u64>,
}

impl<'a> Letter<'a> {
    fn new(text: &'a str, expects_reply: bool, wake: bool) -> Self {
        Self { text, expects_reply, wake, reply_to: None }
    }

    fn bytes(&self) -> u64 {
        u64::try_from(self.text.len()).unwrap_or(u64::MAX)
    }
}

fn send(
    state: &mut impl Store,
    context: &Context<'_>,
    (to, notify_when_idle): (&str, bool),
    letter: &Letter<'_>,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    if !(1..=limits::ACTOR_ID_BYTES_MAX).contains(&to.len()) {
        let rule = "must be a conversation's id or name, of 1 to 200 characters";
        return Err(Rejection::invalid("to", rule).into());
    }
    texts::check_message(letter.text)?;
    let recipient = addressed(state, to)?;
    let sender = &context.speaker()?.id;
    if recipient.id == *sender {
        return Err(Rejection::invalid("to", "must be another conversation, not the own").into());
    }
    if notify_when_idle && let Some(refusal) = turns::full(state, &recipient.id, sender)? {
        return Err(refusal.into());
    }
    let capacity = capacity(state, &recipient, letter)?;
    let speaker = conversations::active(state, context, told)?;
    let id = deliver(state, context, (&speaker, &recipient), letter, capacity, told)?;
    if notify_when_idle {
        turns::watch(state, context, &recipient.id, &speaker.id, told)?;
    }
    Ok(Reply::Sent { id, to: recipient.id })
}

/// Returns who is meant: an id's conversation, offline or not, or the one that holds a name.
fn addressed(state: &impl Read, to: &str) -> Result<Conversation, Stop> {
    // No name has a colon, and every conversation's id has one.
    if to.contains(':') {
        let found = conversations::conversation(state, to)?;
        return found.ok_or_else(|| Rejection::not_found(format!("to: conversation {to}")).into());
    }
    if let Some(holder) = conversations::by_name(state, to)? {
        return Ok(holder);
    }
    if conversations::conversation(state, to)?.is_some() {
        let rule = "must be a conversation: an instance gets no direct messages";
        return Err(Rejection::invalid("to", rule).into());
    }
    let what = format!(
        "to: {to} (a name of none that is not offline; an offline one is reached by its id)"
    );
    Err(Rejection::not_found(what).into())
}

fn reply(
    state: &mut impl Store,
    context: &Context<'_>,
    message: u64,
    letter: &Letter<'_>,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    texts::check_message(letter.text)?;
    let own = &context.speaker()?.id;
    // What is another's and what is not there look alike: nobody learns of others' messages.
    let place = tables::MAIL_IDS.get(state, message)?.filter(|place| place.owner == *own);
    let Some(Place { owner, number }) = place else {
        let what = format!("messageId: message {message} to this conversation");
        return Err(Rejection::not_found(what).into());
    };
    let mut answered = tables::ENVELOPES.must(state, (&owner, number))?;
    let Some(recipient) = conversations::conversation(state, &answered.from)? else {
        let what = format!("messageId: the sender of message {message} ({})", answered.from);
        return Err(Rejection::not_found(what).into());
    };
    let capacity = capacity(state, &recipient, letter)?;
    let speaker = conversations::active(state, context, told)?;
    let letter = Letter { reply_to: Some(message), ..*letter };
    let id = deliver(state, context, (&speaker, &recipient), &letter, capacity, told)?;
    if answered.answered_by.is_none() {
        answered.answered_by = Some(id);
        tables::ENVELOPES.put(state, (&owner, number), &answered)?;
    }
    Ok(Reply::Sent { id, to: recipient.id })
}

/// The recipient's inbox and the counters, as they are, and what must be swept for a message to
/// fit.
struct Capacity {
    before: Option<Inbox>,
    totals: MailTotals,
    sweep_upto: u64,
}

/// Looks whether there is room for a message. In a full inbox texts that were seen make room before
/// their time.
fn capacity(
    state: &impl Read,
    recipient: &Conversation,
    letter: &Letter<'_>,
) -> Result<Capacity, Stop> {
    let totals = tables::MAIL_TOTALS.get(state, ())?.unwrap_or_default();
    let before = tables::INBOXES.get(state, &recipient.id)?;
    let inbox = before.unwrap_or_default();
    if inbox.last == u64::MAX || totals.last == u64::MAX {
        return Err(Rejection::Impossible { what: "the last number of a message".into() }.into());
    }
    let cluster_bytes = totals.bytes.saturating_add(letter.bytes());
    if totals.kept >= limits::MAIL_KEPT_MAX || cluster_bytes > limits::MAIL_BYTES_MAX {
        let what = "mail: the cluster keeps 1,000,000 messages and 1 GiB of text, no more fits; \
                    wait until some are read";
        return Err(Rejection::full(what).into());
    }
    let mut sweep_upto = inbox.swept;
    let mut bytes = inbox.bytes.saturating_add(letter.bytes());
    let is_full = |upto: u64, bytes: u64| {
        bytes > limits::INBOX_BYTES_MAX
            || inbox.last.saturating_sub(upto) >= limits::INBOX_MESSAGES_MAX
    };
    for _ in 0..limits::MAIL_SWEPT_MAX {
        if sweep_upto >= inbox.cursor.seen || !is_full(sweep_upto, bytes) {
            break;
        }
        sweep_upto = sweep_upto.saturating_add(1);
        bytes =
            bytes.saturating_sub(tables::ENVELOPES.must(state, (&recipient.id, sweep_upto))?.bytes);
    }
    if is_full(sweep_upto, bytes) {
        let what = format!(
            "to: the inbox of {} is full (100,000 messages or 64 MiB); wait until it has read some",
            recipient.id
        );
        return Err(Rejection::full(what).into());
    }
    Ok(Capacity { before, totals, sweep_upto })
}

/// Puts a message into an inbox that has room; returns its id.
fn deliver(
    state: &mut impl Store,
    context: &Context<'_>,
    (speaker, recipient): (&Conversation, &Conversation),
    letter: &Letter<'_>,
    capacity: Capacity,
    told: &mut Vec<Event>,
) -> Result<u64, Fault> {
    let tick = context.now.tick;
    let home = nodes::row(state, recipient.home)?;
    let Capacity { before, mut totals, sweep_upto } = capacity;
    let new = || Inbox { away_mark: home.away(tick), ..Inbox::default() };
    let mut inbox = before.unwrap_or_else(new);
    sweep(state, &recipient.id, (&mut inbox, &mut totals), (sweep_upto, tick))?;
    let number = inbox.last.saturating_add(1);
    let id = totals.last.saturating_add(1);
    let envelope = Envelope {
        id,
        from: speaker.id.clone(),
        from_name: speaker.name.clone(),
        reply_to: letter.reply_to,
        at: context.now.at,
        tick,
        away: inbox.away(&home, tick),
        expects_reply: letter.expects_reply,
        wake: letter.wake,
        bytes: letter.bytes(),
        node: context.node,
        incarnation: recipient.incarnation,
        answered_by: None,
    };
    tables::ENVELOPES.put(state, (&recipient.id, number), &envelope)?;
    let text = Text { text: letter.text.to_owned() };
    tables::TEXTS.put(state, (&recipient.id, number), &text)?;
    tables::MAIL_IDS.put(state, id, &Place { owner: recipient.id.clone(), number })?;
    tables::SENT.put(state, (&speaker.id, id), &())?;
    totals.last = id;
    totals.kept = totals.kept.saturating_add(1);
    totals.bytes = totals.bytes.saturating_add(letter.bytes());
    tables::MAIL_TOTALS.put(state, (), &totals)?;
    inbox.last = number;
    inbox.bytes = inbox.bytes.saturating_add(letter.bytes());
    save(state, recipient.into(), (before.as_ref(), inbox), tick, told)?;
    told.push(Event::Inbox { conversation: recipient.id.clone() });
    Ok(id)
}

fn take(
    state: &mut impl Store,
    context: &Context<'_>,
    limit: u32,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    if !(1..=limits::MAIL_READ_MAX).contains(&limit) {
        return Err(Rejection::invalid("limit", "must be 1 to 50").into());
    }
    let reader = conversations::active(state, context, told)?;
    let Some(before) = tables::INBOXES.get(state, &reader.id)? else {
        let nothing = IdRange::default();
        return Ok(Reply::Taken { again: nothing, fresh: nothing, first: false });
    };
    let mut after = before;
    let Offer { again, fresh } = offer(state, (&reader.id, reader.incarnation), &before, limit)?;
    after.cursor.taken = fresh.upto;
    after.cursor.incarnation = reader.incarnation;
    after.cursor.offered = before.cursor.offered.max(fresh.upto);
    if after != before {
        save(state, (&*reader).into(), (Some(&before), after), context.now.tick, told)?;
    }
    Ok(Reply::Taken { again, fresh, first: false })
}

/// Returns what a process of a reader is given next, without moving anything.
pub(super) fn offer(
    state: &impl Read,
    (reader, incarnation): (&str, u64),
    inbox: &Inbox,
    limit: u32,
) -> Result<Offer, Fault> {
    let after = chat::start(&inbox.cursor, incarnation);
    let upto = reach(state, reader, IdRange { after, upto: inbox.last }, limit)?;
    let middle = inbox.cursor.offered.clamp(after, upto);
    Ok(Offer { again: IdRange { after, upto: middle }, fresh: IdRange { after: middle, upto } })
}

/// Returns up to which number a reader gets messages, within the bounds of number and text; the
/// first one always.
fn reach(state: &impl Read, reader: &str, range: IdRange, limit: u32) -> Result<u64, Fault> {
    let (mut upto, mut bytes) = (range.after, 0u64);
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    let rows = numbers(&tables::ENVELOPES, reader, range);
    for row in tables::ENVELOPES.rows(state, rows, Direction::Forward).take(most) {
        let ((_, number), envelope) = row?;
        bytes = bytes.saturating_add(envelope.bytes);
        if upto > range.after && bytes > limits::MAIL_TAKE_BYTES_MAX {
            break;
        }
        upto = number;
    }
    Ok(upto)
}
