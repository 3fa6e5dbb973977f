//! Direct messages: each conversation has an inbox of numbered messages, read in their order.
//!
//! Where a message stands is told step by step and never more than is known: it is accepted when it
//! lies in the inbox, announced when a hook showed its first line, taken when it was handed out,
//! seen when the reader was heard of again afterwards, answered when a reply came. The steps are
//! marks of the inbox, so a thousand messages move with one row. A day unread, in which the
//! reader's node was awake, is told to the sender and changes nothing else (traps.md 6, 13).
//!
//! A text is deleted when it was seen and a repeated call cannot ask for it any more, a day later;
//! what is known of the message stays for the sender's questions and the reader's reply, until 30
//! days are over or a thousand newer ones were read. An unread message is deleted after 30 days,
//! and its sender is told.

mod commands;
mod ends;
mod inbox;

use alloc::string::String;
use alloc::vec::Vec;

use minicbor::{Decode, Encode};

use crate::chat;
use crate::conversations;
use crate::entry::NodeId;
use crate::limits;
pub(crate) use crate::mail::commands::run;
pub(crate) use crate::mail::ends::{inbox_ends, unread_ends};
pub(crate) use crate::mail::inbox::{
    Inbox, arrived, forget, is_empty, moved, report, retime, wanted_timer, wanted_wait,
};
use crate::reply::IdRange;
use crate::store::{Direction, Fault, KeyRange, Read};
use crate::tables::{self, Table};

/// What is known of a message beside its text.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Envelope {
    /// The message's id, unique in the cluster and rising.
    #[n(0)]
    pub id: u64,
    /// The conversation that it is from.
    #[n(1)]
    pub from: String,
    /// The name that it had.
    #[n(2)]
    pub from_name: String,
    /// The id of the message that it answers.
    #[n(3)]
    pub reply_to: Option<u64>,
    /// When it came, milliseconds since 1970.
    #[n(4)]
    pub at: u64,
    /// The tick of that.
    #[n(5)]
    pub tick: u64,
    /// For how many ticks the reader's node had not been up then.
    #[n(6)]
    pub away: u64,
    /// Whether the sender wants an answer.
    #[n(7)]
    pub expects_reply: bool,
    /// Whether it may wake the reader or hold its turn.
    #[n(8)]
    pub wake: bool,
    /// Its text's bytes.
    #[n(9)]
    pub bytes: u64,
    /// The node through which it came.
    #[n(10)]
    pub node: NodeId,
    /// The number of the process that spoke for the reader then: for another one it is history.
    #[n(11)]
    pub incarnation: u64,
    /// The id of the first reply to it.
    #[n(12)]
    pub answered_by: Option<u64>,
}

/// A message's text.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Text {
    /// It.
    #[n(0)]
    pub(crate) text: String,
}

/// The part of a text's row that a look at the first line reads, without copying the rest.
#[derive(Debug, Decode)]
struct Line<'b> {
    /// The text.
    #[b(0)]
    text: &'b str,
}

/// Where a message lies.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Place {
    /// Whose inbox.
    #[n(0)]
    pub(crate) owner: String,
    /// Its number there.
    #[n(1)]
    pub(crate) number: u64,
}

/// The counters of all messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub(crate) struct MailTotals {
    /// The newest message's id.
    #[n(0)]
    pub(crate) last: u64,
    /// How many envelopes are kept.
    #[n(1)]
    pub(crate) kept: u64,
    /// How many bytes of text are kept.
    #[n(2)]
    pub(crate) bytes: u64,
}

/// A message with its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its number in the reader's inbox.
    pub number: u64,
    /// What is known of it.
    pub envelope: Envelope,
    /// Its text.
    pub text: String,
}

/// A message by its first line: what a hook may show (n2n-nexus §5.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heading {
    /// Its number in the reader's inbox.
    pub number: u64,
    /// What is known of it.
    pub envelope: Envelope,
    /// The first line of its text, at most 100 characters.
    pub first_line: String,
}

/// What waits in an inbox for the process that speaks now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Messages that were not announced yet, oldest first.
    pub headings: Vec<Heading>,
    /// How many of those there are.
    pub fresh: u64,
    /// How many were announced before and not taken.
    pub announced: u64,
    /// Whether one of the fresh ones may wake.
    pub wake: bool,
    /// The newest number: what a report says when all were shown.
    pub last: u64,
    /// Up to which number messages were taken: what a report of a later hook event says.
    pub taken: u64,
}

/// What a reader is given next, by numbers of its inbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// What an earlier process was given, and nobody knows whether it arrived.
    pub again: IdRange,
    /// What nobody was given; it begins where the other range ends.
    pub fresh: IdRange,
}

/// How far a message has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReceiptState {
    /// It lies in the inbox.
    Accepted,
    /// Its first line was shown to the reader.
    Announced,
    /// It was handed to a process of the reader.
    Taken,
    /// The reader was heard of again afterwards.
    Seen,
    /// The reader answered.
    Answered,
}

/// What a sender may know of its message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The message's id.
    pub id: u64,
    /// The conversation that it is for.
    pub to: String,
    /// When it was sent, milliseconds since 1970.
    pub at: u64,
    /// How far it has come.
    pub state: ReceiptState,
    /// Whether it was unread for a day in which the reader's node was awake.
    pub unread: bool,
    /// The id of the message that it answers.
    pub reply_to: Option<u64>,
    /// The id of the first reply to it.
    pub answered_by: Option<u64>,
}

/// Returns how many messages a conversation has to read, those that are offered once more among
/// them.
///
/// # Errors
/// A fault when the state cannot be read.
pub fn unread(state: &impl Read, reader: &str) -> Result<u64, Fault> {
    let Some((inbox, start)) = open(state, reader)? else { return Ok(0) };
    Ok(inbox.last.saturating_sub(start))
}

/// Returns whether messages were handed out of which it is not known that they arrived: a repeated
/// request may ask for them.
///
/// # Errors
/// A fault when the state cannot be read.
pub fn is_open(state: &impl Read, reader: &str) -> Result<bool, Fault> {
    let inbox = tables::INBOXES.get(state, reader)?.unwrap_or_default();
    Ok(inbox.cursor.seen < inbox.cursor.taken)
}

/// Returns what a `Take` of that limit would give the reader's present process now: for a node that
/// cannot move the reader's place.
///
/// # Errors
/// A fault when the state cannot be read.
pub fn next(state: &impl Read, reader: &str, limit: u32) -> Result<Offer, Fault> {
    let Some(inbox) = tables::INBOXES.get(state, reader)? else { return Ok(Offer::default()) };
    let incarnation = conversations::conversation(state, reader)?.map(|row| row.incarnation);
    let limit = limit.min(limits::MAIL_READ_MAX);
    commands::offer(state, (reader, incarnation.unwrap_or_default()), &inbox, limit)
}

/// Loads the messages of a range, oldest first: at most `limit` and 50. Those whose texts are gone
/// are left out.
///
/// # Errors
/// A fault when the state cannot be read.
pub fn load(
    state: &impl Read,
    reader: &str,
    range: IdRange,
    limit: usize,
) -> Result<Vec<Message>, Fault> {
    let mut found = Vec::new();
    let most = limit.min(usize::try_from(limits::MAIL_READ_MAX).unwrap_or(usize::MAX));
    let range = numbers(&tables::TEXTS, reader, range);
    let rows = tables::TEXTS.rows(state, range, Direction::Forward);
    for row in rows.take(most) {
        let ((_, number), Text { text }) = row?;
        found.push(Message {
            number,
            envelope: tables::ENVELOPES.must(state, (reader, number))?,
            text,
        });
    }
    Ok(found)
}

/// Returns what waits for a conversation, with at most `limit` and 50 headings.
///
/// It looks at 4,096 messages at most for one that may wake; behind them it says that there is one.
///
/// # Errors
/// A fault when the state cannot be read.
pub fn waiting(state: &impl Read, reader: &str, limit: usize) -> Result<Waiting, Fault> {
    let Some((inbox, start)) = open(state, reader)? else { return Ok(Waiting::default()) };
    let after = inbox.announced.max(start);
    let mut waiting = Waiting {
        fresh: inbox.last.saturating_sub(after),
        announced: after.saturating_sub(start),
        last: inbox.last,
        taken: inbox.cursor.taken,
        ..Waiting::default()
    };
    let most = limit.min(usize::try_from(limits::MAIL_READ_MAX).unwrap_or(usize::MAX));
    let range = numbers(&tables::ENVELOPES, reader, IdRange { after, upto: inbox.last });
    for (looked, row) in tables::ENVELOPES.rows(state, range, Direction::Forward).enumerate() {
        let ((_, number), envelope) = row?;
        let far = looked >= limits::TAKE_SCAN_ROWS_MAX;
        waiting.wake = waiting.wake || envelope.wake || far;
        if waiting.headings.len() < most {
            let first_line = first_line(state, reader, number)?;
            waiting.headings.push(Heading { number, envelope, first_line });
        } else if waiting.wake {
            break;
        }
    }
    Ok(waiting)
}

/// Returns what became of a message: only its sender may know.
///
/// # Errors
/// A fault when the state cannot be read, or an index names nothing.
pub fn receipt(state: &impl Read, sender: &str, id: u64) -> Result<Option<Receipt>, Fault> {
    if !tables::SENT.has(state, (sender, id))? {
        return Ok(None);
    }
    let Place { owner, number } = tables::MAIL_IDS.must(state, id)?;
    let envelope = tables::ENVELOPES.must(state, (&owner, number))?;
    let inbox = tables::INBOXES.get(state, &owner)?.unwrap_or_default();
    Ok(Some(Receipt {
        id,
        at: envelope.at,
        state: inbox.receipt_state(number, &envelope),
        unread: number <= inbox.told && number > inbox.cursor.offered,
        reply_to: envelope.reply_to,
        answered_by: envelope.answered_by,
        to: owner,
    }))
}

/// Returns what became of a conversation's own messages, newest first: those before message
/// `before`, when that is given; at most `limit` and 200.
///
/// # Errors
/// A fault when the state cannot be read, or an index names nothing.
pub fn sent(
    state: &impl Read,
    sender: &str,
    before: Option<u64>,
    limit: usize,
) -> Result<Vec<Receipt>, Fault> {
    let mut range = tables::SENT.beginning::<String>(sender);
    if let Some(before) = before {
        range.end = Some(tables::SENT.key((sender, before)));
    }
    let mut found = Vec::new();
    let keys = tables::SENT.keys(state, range, Direction::Reverse);
    for key in keys.take(limit.min(limits::RECEIPTS_LIST_MAX)) {
        let (_, id) = key?;
        found.extend(receipt(state, sender, id)?);
    }
    Ok(found)
}

/// Returns a conversation's inbox, and above which number the process that speaks now goes on.
fn open(state: &impl Read, reader: &str) -> Result<Option<(Inbox, u64)>, Fault> {
    let Some(inbox) = tables::INBOXES.get(state, reader)? else { return Ok(None) };
    let incarnation = conversations::conversation(state, reader)?.map(|row| row.incarnation);
    let start = chat::start(&inbox.cursor, incarnation.unwrap_or_default());
    Ok(Some((inbox, start)))
}

/// Returns the keys of a range of an inbox's messages, in the table of texts or of envelopes.
fn numbers<V>(table: &Table<(String, u64), V>, owner: &str, range: IdRange) -> KeyRange {
    let first = range.after.saturating_add(1);
    let end = match range.upto.checked_add(1) {
        Some(behind) => Some(table.key((owner, behind))),
        None => table.beginning::<String>(owner).end,
    };
    KeyRange { start: table.key((owner, first)), end }
}

/// Returns the first line of a text, cut.
fn first_line(state: &impl Read, owner: &str, number: u64) -> Result<String, Fault> {
    let key = tables::TEXTS.key((owner, number));
    let Some(value) = state.get(&key)? else { return Ok(String::new()) };
    let line: Line<'_> = crate::codec::decode_value(&key, &value)?;
    let first = line.text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    Ok(first.trim().chars().take(limits::FIRST_LINE_CHARS_MAX).collect())
}
