//! Direct messages: sent, read, answered; and what became of those that one sent.
//!
//! An id is a number of the log, written so that ids sort as texts. Reading moves the reader's
//! place, so it is a write, but only when there is something to read; what was handed out counts as
//! seen only when the same process is heard of again (traps.md 6).

use std::time::Duration;

use nexus_contract::mail::{
    Letter, ReadInput, ReadOutput, Receipt, Recipient, ReplyInput, SendInput, Sender, SentOutput,
};
use nexus_contract::{ApiError, ErrorCode, ReadMarks};
use nexus_domain::command::mail::MailCommand;
use nexus_domain::conversations::{Conversation, conversation};
use nexus_domain::mail;
use nexus_domain::{Command, Fault, Reply, conversations};
use nexus_raft::{Committed, View};

use super::caller::Who;
use super::conversations::{Machines, identified};
use super::receipts::from_state;
use super::{Answer, Call, Service, errors, time};

/// What an id begins with, so that nobody takes it for a number of the chat.
const ID_BEGINS: &str = "dm-";
/// How many digits an id has at least, so that ids sort as texts: more messages than anybody sends.
const ID_DIGITS: usize = 12;
/// How long the messages that were just taken are waited for on a node that is behind.
const BODIES_LIMIT: Duration = Duration::from_secs(5);
/// Conversations of a name that are offline and named to somebody who wrote to it.
const NAMESAKES_MAX: usize = 5;

/// `send`.
pub(super) async fn send(service: &Service, about: &Call<'_>, input: SendInput) -> Answer {
    identified(about)?;
    let SendInput { to, text, notify_when_idle, expects_reply, wake } = input;
    let command = MailCommand::Send { to: to.clone(), text, expects_reply, wake, notify_when_idle };
    match service.propose(about, Command::Mail(command)).await {
        Ok(committed) => sent(service, about, &committed).await,
        Err(error) if error.code == ErrorCode::NotFound => Err(nobody(service, &to).await?),
        Err(error) => Err(error),
    }
}

/// `reply`: to the sender of a message that was sent to the caller.
pub(super) async fn reply(service: &Service, about: &Call<'_>, input: ReplyInput) -> Answer {
    identified(about)?;
    let ReplyInput { message_id, text, expects_reply, wake } = input;
    let unknown = || errors::not_found("messageId", &to_you(&message_id), READ);
    let message = number_of(&message_id).ok_or_else(unknown)?;
    let command = MailCommand::Reply { message, text, expects_reply, wake };
    let committed = service.propose(about, Command::Mail(command)).await;
    let committed = committed.map_err(|error| {
        // The log tells two of them apart: the message, and its sender.
        if error.code == ErrorCode::NotFound && error.message.contains("the sender of") {
            let text = format!(
                "messageId: the sender of {message_id} is gone for good; peers shows who is there"
            );
            ApiError::new(ErrorCode::NotFound, text)
        } else {
            errors::missing(error, "messageId", &to_you(&message_id), READ)
        }
    })?;
    sent(service, about, &committed).await
}

/// What to do about the id of a message that does not exist.
const READ: &str = "read gives the ids of those that were sent to you";

fn to_you(id: &str) -> String {
    format!("message {id} to this conversation")
}

/// `read`.
pub(super) async fn read(service: &Service, about: &Call<'_>, input: &ReadInput) -> Answer {
    let who = identified(about)?;
    match service.make_known(about, who).await {
        Ok(()) => {}
        Err(error) if error.code == ErrorCode::NoQuorum => {
            return unmoved(service, about, who, input).await;
        }
        Err(error) => return Err(error),
    }
    // What was handed out and not yet confirmed may be asked for again under the same request id,
    // so the log must be asked too.
    let look =
        |view: &View<'_>| Ok(mail::is_open(view, &who.id)? || mail::unread(view, &who.id)? > 0);
    let fresh = service.read(look).await?;
    if fresh.stale.is_some() {
        return unmoved(service, about, who, input).await;
    }
    if !fresh.value {
        let nothing = ReadOutput { messages: Vec::new(), remaining: 0 };
        return ReadMarks::default().stamp(&nothing);
    }
    let take = Command::Mail(MailCommand::Take { limit: input.count });
    let committed = match service.propose(about, take).await {
        Ok(committed) => committed,
        Err(error) if error.code == ErrorCode::NoQuorum => {
            return unmoved(service, about, who, input).await;
        }
        Err(error) => return Err(error),
    };
    let Reply::Taken { again, fresh, .. } = committed.reply else {
        return Err(errors::odd_reply(about.tool));
    };
    let is_here =
        committed.applied_here || service.cluster.wait_applied(committed.index, BODIES_LIMIT).await;
    if !is_here {
        return Err(behind(about.request_id));
    }
    let offer = mail::Offer { again, fresh };
    let output = service.cluster.look(|view| letters(view, &who.id, offer));
    ReadMarks::default().stamp(&output.map_err(|error| errors::read(&error))?)
}

/// The messages are taken, and this node does not have them yet.
fn behind(request_id: Option<&str>) -> ApiError {
    let text = match request_id {
        Some(_) => {
            "the messages are taken, and this node is too far behind to show them now: call again \
             with the same request id, and they come"
        }
        None => {
            "the messages are taken, and this node is too far behind to show them now; they come \
             again when another process of this conversation reads; give a requestId, and the \
             same call shows them"
        }
    };
    errors::done_and_not_shown(text, request_id)
}

/// Shows what is unread as far as this node knows, without moving the reader's place.
async fn unmoved(service: &Service, about: &Call<'_>, who: &Who, input: &ReadInput) -> Answer {
    let fresh = service
        .read(|view| {
            let offer = mail::next(view, &who.id, input.count)?;
            let mut output = letters(view, &who.id, offer)?;
            // Those that are shown stay unread.
            output.remaining = mail::unread(view, &who.id)?;
            Ok(output)
        })
        .await?;
    let mut marks = service.marks(about, &fresh);
    marks.cursor_moved = Some(false);
    marks.stamp(&fresh.value)
}

/// Loads the messages of an offer, and counts those behind them.
fn letters(view: &View<'_>, reader: &str, offer: mail::Offer) -> Result<ReadOutput, Fault> {
    let now = conversation(view, reader)?.map_or(0, |row| row.incarnation);
    let mut messages = Vec::new();
    for (range, again) in [(offer.again, true), (offer.fresh, false)] {
        if range.after < range.upto {
            let found = mail::load(view, reader, range, usize::MAX)?;
            messages.extend(found.into_iter().map(|message| letter(message, now, again)));
        }
    }
    Ok(ReadOutput { messages, remaining: mail::unread(view, reader)? })
}

fn letter(message: mail::Message, now: u64, again: bool) -> Letter {
    let mail::Message { envelope, text, .. } = message;
    Letter {
        message_id: id(envelope.id),
        from: Sender { id: envelope.from, name: envelope.from_name },
        reply_to: envelope.reply_to.map(id),
        text,
        created_at: time::text(envelope.at),
        expects_reply: envelope.expects_reply,
        again,
        // 0: no process had spoken for the reader yet, or it does not say which one it is.
        earlier: envelope.incarnation != 0 && envelope.incarnation != now,
    }
}

/// Answers a `send` or `reply` that the log has taken.
async fn sent(service: &Service, about: &Call<'_>, committed: &Committed) -> Answer {
    let Reply::Sent { id: message, to } = &committed.reply else {
        return Err(errors::odd_reply(about.tool));
    };
    let sender = about.who()?;
    let look = |view: &View<'_>| {
        let reader = conversation(view, to)?;
        Ok((reader, mail::receipt(view, &sender.id, *message)?, Machines::of(view)?))
    };
    let looked = service.after(about, committed, look).await?;
    let (reader, receipt, machines) = looked.value;
    let reader = reader.ok_or_else(|| {
        let text = format!(
            "message {} to {to} is sent, do not send it again; this node is too far behind to show \
             how its reader is",
            id(*message)
        );
        errors::done_and_not_shown(&text, about.request_id)
    })?;
    let state = match receipt {
        Some(receipt) => from_state(receipt.state),
        // Of what was read long before only a thousand are kept in an inbox.
        None if looked.has_it => Receipt::Seen,
        None => Receipt::Accepted,
    };
    let to = recipient(&reader, &machines);
    looked.marks.stamp(&SentOutput { message_id: id(*message), to, state })
}

fn recipient(row: &Conversation, machines: &Machines) -> Recipient {
    Recipient { id: row.id.clone(), name: row.name.clone(), status: machines.status(row) }
}

/// Says that an address reaches nobody, and who may have been meant.
async fn nobody(service: &Service, to: &str) -> Result<ApiError, ApiError> {
    // No name has a colon, and every conversation's id has one.
    if to.contains(':') {
        let remedy = "peers shows those there are, with includeOffline those too that left lately";
        return Ok(errors::not_found("to", &format!("conversation {to}"), remedy));
    }
    let fresh = service.read(|view| namesakes(view, to)).await?;
    let remedy = if fresh.value.is_empty() {
        "peers shows who is there".to_owned()
    } else {
        let ids = fresh.value.join(", ");
        format!("one that is offline is reached by its id: {ids}")
    };
    let text = format!("to: no conversation that is not offline is called {to}; {remedy}");
    Ok(ApiError::new(ErrorCode::NotFound, text))
}

/// Returns the ids of conversations that had a name until they went offline, the last one first.
fn namesakes(view: &View<'_>, name: &str) -> Result<Vec<String>, Fault> {
    let known = conversations::peers(view, Some(0), usize::MAX)?;
    let named = known.into_iter().filter(|row| row.name == name);
    Ok(named.map(|row| row.id).take(NAMESAKES_MAX).collect())
}

/// Writes the id of a message.
pub(super) fn id(number: u64) -> String {
    format!("{ID_BEGINS}{number:0ID_DIGITS$}")
}

/// Reads the id of a message: as it was shown, or it names none.
pub(super) fn number_of(given: &str) -> Option<u64> {
    let number = given.strip_prefix(ID_BEGINS)?.parse().ok()?;
    (id(number) == given).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(incarnation: u64) -> mail::Message {
        mail::Message {
            number: 3,
            envelope: mail::Envelope {
                id: 12,
                from: "codex:a".into(),
                from_name: "codex@app".into(),
                reply_to: Some(7),
                at: 1_000,
                tick: 5,
                away: 0,
                expects_reply: true,
                wake: false,
                bytes: 2,
                node: 1,
                incarnation,
                answered_by: None,
            },
            text: "ü".into(),
        }
    }

    #[test]
    fn a_letter_shows_all_that_its_reader_may_know() {
        let shown = serde_json::to_value(letter(message(4), 4, false)).unwrap();
        let expected = serde_json::json!({
            "messageId": "dm-000000000012", "from": {"id": "codex:a", "name": "codex@app"},
            "replyTo": "dm-000000000007", "text": "ü", "createdAt": "1970-01-01T00:00:01.000Z",
            "expectsReply": true,
        });
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_letter_to_a_process_that_is_gone_is_history() {
        for (then, now, earlier) in
            [(4, 4, false), (4, 5, true), (4, 0, true), (0, 5, false), (0, 0, false)]
        {
            assert_eq!(letter(message(then), now, false).earlier, earlier, "{then} to {now}");
        }
        assert!(letter(message(4), 4, true).again);
    }

    #[test]
    fn ids_sort_as_texts_and_only_a_shown_one_names_a_message() {
        assert!(id(9) < id(10) && id(99_999) < id(100_000));
        for right in [1, 12, 999_999_999_999, 1_000_000_000_000, u64::MAX] {
            assert_eq!(number_of(&id(right)), Some(right));
        }
        let long = format!("dm-0{}", u64::MAX);
        for wrong in ["", "12", "dm-", "dm-12", "dm-+00000000012", "..", "a#b", &long] {
            assert_eq!(number_of(wrong), None, "{wrong}");
        }
    }
}
