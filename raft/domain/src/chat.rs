//! Chat rooms: messages with numbers, and a cursor for each reader (traps.md 6).
//!
//! Reading unread messages is a command, because it moves a cursor. A cursor has two positions:
//! `taken` is what was handed out, `seen` what surely arrived, because the same process called
//! again afterwards. When another process goes on with the conversation, what lies between is
//! handed out once more. Bodies are never part of a reply: they are loaded by range from a view.
//!
//! Every meeting is a room of its own; what beside the message a post changes there, and who may
//! post, is [`crate::meetings`]' affair.
//!
//! Messages that were pruned are gone at once for every reader, and their rows in bounded steps;
//! numbers go on from where they were, so every cursor stays right.

mod commands;
mod maintenance;

use alloc::string::String;
use alloc::vec::Vec;

use minicbor::{Decode, Encode};

pub(crate) use crate::chat::commands::{Post, place, run, send, start, start_at};
pub(crate) use crate::chat::maintenance::sweep;
use crate::command::{Category, Room};
use crate::entry::NodeId;
use crate::reply::IdRange;
use crate::store::{Direction, Fault, KeyRange, Read, Store};
use crate::{codec, conversations, limits, meetings, tables};

/// Who the cluster itself is: its messages in meetings are from this one, its changes of tasks by
/// it. Nobody else can have this id or name.
pub const CLUSTER: &str = "n2n-nexus";

/// A message.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Message {
    /// Its number in the room, from 1.
    #[n(0)]
    pub id: u64,
    /// The conversation's or instance's id.
    #[n(1)]
    pub from: String,
    /// The name that the conversation had; `None` for an instance.
    #[n(2)]
    pub sender_name: Option<String>,
    /// What it says.
    #[n(3)]
    pub text: String,
    /// Its category.
    #[n(4)]
    pub category: Category,
    /// When it came, milliseconds since 1970.
    #[n(5)]
    pub at: u64,
    /// The node through which it came.
    #[n(6)]
    pub node: NodeId,
    /// Whose doing a message of the cluster itself tells: to them it is no news.
    #[n(7)]
    pub about: Option<String>,
}

/// The part of a message that a scan looks at, read without copying.
#[derive(Debug, Decode)]
struct Head<'b> {
    /// The sender.
    #[b(1)]
    from: &'b str,
    /// The name of a conversation.
    #[b(2)]
    sender_name: Option<&'b str>,
    /// The text.
    #[b(3)]
    text: &'b str,
    /// Whose doing a message of the cluster itself tells.
    #[b(7)]
    about: Option<&'b str>,
}

impl Head<'_> {
    /// Returns whether a reader has this from somebody else.
    fn is_news_to(&self, reader: &str) -> bool {
        self.from != reader && self.about != Some(reader)
    }
}

/// A room's counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub(crate) struct RoomState {
    /// The newest message's number.
    #[n(0)]
    pub(crate) last: u64,
    /// Up to where messages were pruned: nobody sees them any more.
    #[n(1)]
    pub(crate) pruned: Option<u64>,
    /// Up to where their rows are gone.
    #[n(2)]
    pub(crate) swept: Option<u64>,
}

/// Where a reader stands in a room: `seen` <= `taken` <= `offered`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Cursor {
    /// Up to where messages were handed out to the present process.
    #[n(0)]
    pub taken: u64,
    /// Up to where they surely arrived.
    #[n(1)]
    pub seen: u64,
    /// The process that they were handed to.
    #[n(2)]
    pub incarnation: u64,
    /// Up to where they were handed out to any process: below it, everything comes `again`.
    #[n(3)]
    pub offered: u64,
}

/// Returns how a room is named in keys; kinds are for ever.
pub(crate) fn room_key(room: &Room) -> (u8, &str) {
    match room {
        Room::Global => (0, ""),
        Room::Meeting(id) => (1, id),
    }
}

/// Returns whether there is such a room: a meeting that was kept long enough is gone at once, and
/// its messages follow.
fn exists(state: &impl Read, room: &Room) -> Result<bool, Fault> {
    match room {
        Room::Global => Ok(true),
        Room::Meeting(id) => meetings::is_kept(state, id),
    }
}

/// Returns the newest message's number, 0 when there is none.
///
/// # Errors
/// A fault when the state cannot be read.
pub fn last_id(state: &impl Read, room: &Room) -> Result<u64, Fault> {
    Ok(room_state(state, room)?.last)
}

/// Returns how many messages a room has, without those that were pruned.
///
/// # Errors
/// A fault when the state cannot be read.
pub fn count(state: &impl Read, room: &Room) -> Result<u64, Fault> {
    let room = room_state(state, room)?;
    Ok(room.last.saturating_sub(room.pruned.unwrap_or_default()))
}

/// Forgets where a conversation that is removed stood in the global chat.
pub(crate) fn forget_reader(state: &mut impl Store, reader: &str) -> Result<(), Fault> {
    tables::CURSORS.delete(state, (room_key(&Room::Global), reader))
}

fn room_state(state: &impl Read, room: &Room) -> Result<RoomState, Fault> {
    Ok(tables::ROOMS.get(state, room_key(room))?.unwrap_or_default())
}

/// Returns up to which number messages were pruned.
fn pruned(state: &impl Read, room: &Room) -> Result<u64, Fault> {
    Ok(room_state(state, room)?.pruned.unwrap_or_default())
}

/// Returns where a reader stands; `None` when it never read there.
///
/// # Errors
/// A fault when the state cannot be read.
pub fn cursor(state: &impl Read, room: &Room, reader: &str) -> Result<Option<Cursor>, Fault> {
    tables::CURSORS.get(state, (room_key(room), reader))
}

/// Loads the messages of a range, oldest first, without those from `skip_from` or about its own
/// doing: what a `Take` replied is loaded with the reader itself as `skip_from`.
///
/// At most `limit` and 500 messages, out of at most 4,096 rows, and no more than fit 1 MiB of their
/// texts (the first always): what a `Take` replied fits.
///
/// # Errors
/// A fault when the state cannot be read.
pub fn load(
    state: &impl Read,
    room: &Room,
    range: IdRange,
    skip_from: &str,
    limit: usize,
) -> Result<Vec<Message>, Fault> {
    let mut found = Answer::up_to(limit);
    if !exists(state, room)? {
        return Ok(found.messages);
    }
    let range = ids(room, range.after.max(pruned(state, room)?), Some(range.upto));
    for row in state.scan(range, Direction::Forward).take(limits::TAKE_SCAN_ROWS_MAX) {
        let (key, value) = row?;
        let head: Head<'_> = codec::decode_value(&key, &value)?;
        if !head.is_news_to(skip_from) {
            continue;
        }
        if !found.has_room_for(head.text) {
            break;
        }
        found.messages.push(codec::decode_value(&key, &value)?);
    }
    Ok(found.messages)
}

/// Returns the newest messages, oldest first: at most `count` and 500, and no more than fit 1 MiB
/// of their texts (the newest always).
///
/// # Errors
/// A fault when the state cannot be read.
pub fn latest(state: &impl Read, room: &Room, count: usize) -> Result<Vec<Message>, Fault> {
    let mut found = read(state, room, (0, Direction::Reverse), count)?;
    found.reverse();
    Ok(found)
}

/// Returns the first messages above a number, oldest first: at most `count` and 500, and no more
/// than fit 1 MiB of their texts (the first always).
///
/// # Errors
/// A fault when the state cannot be read.
pub fn after(state: &impl Read, room: &Room, id: u64, count: usize) -> Result<Vec<Message>, Fault> {
    read(state, room, (id, Direction::Forward), count)
}

/// Reads the messages above a number in one of the two orders, as far as one answer holds them.
fn read(
    state: &impl Read,
    room: &Room,
    (after, direction): (u64, Direction),
    count: usize,
) -> Result<Vec<Message>, Fault> {
    let mut found = Answer::up_to(count);
    if !exists(state, room)? {
        return Ok(found.messages);
    }
    let range = ids(room, after.max(pruned(state, room)?), None);
    for row in tables::MESSAGES.rows(state, range, direction) {
        let (_, message) = row?;
        if !found.has_room_for(&message.text) {
            break;
        }
        found.messages.push(message);
    }
    Ok(found.messages)
}

/// Messages that one answer holds.
struct Answer {
    messages: Vec<Message>,
    count_max: usize,
    bytes: usize,
}

impl Answer {
    fn up_to(count: usize) -> Self {
        let count_max = count.min(usize::try_from(limits::READ_MESSAGES_MAX).unwrap_or(usize::MAX));
        Self { messages: Vec::new(), count_max, bytes: 0 }
    }

    /// Counts a text in, if one more fits.
    fn has_room_for(&mut self, text: &str) -> bool {
        self.bytes = self.bytes.saturating_add(text.len());
        let is_long = !self.messages.is_empty() && self.bytes > limits::TAKE_TEXT_BYTES_MAX;
        self.messages.len() < self.count_max && !is_long
    }
}

/// Returns whether a `Take` of this reader would tell it something: messages of others, messages to
/// offer again, or that it never read the global chat.
///
/// It looks at 4,096 rows at most; when all of them are the reader's own it says yes, and the
/// `Take` moves the cursor behind them. An unknown reader must register first, so it gets a yes as
/// well.
///
/// # Errors
/// A fault when the state cannot be read.
pub fn unread(state: &impl Read, room: &Room, reader: &str) -> Result<bool, Fault> {
    if !exists(state, room)? {
        return Ok(false);
    }
    let cursor = match (cursor(state, room, reader)?, room) {
        (Some(cursor), _) => cursor,
        (None, Room::Global) => return Ok(true),
        (None, Room::Meeting(_)) => Cursor::default(),
    };
    let Some(reading) = conversations::conversation(state, reader)? else { return Ok(true) };
    let start = start(&cursor, reading.incarnation).max(pruned(state, room)?);
    let mut looked: usize = 0;
    for row in state.scan(ids(room, start, None), Direction::Forward) {
        let (key, value) = row?;
        let head: Head<'_> = codec::decode_value(&key, &value)?;
        looked = looked.saturating_add(1);
        if head.is_news_to(reader) || looked >= limits::TAKE_SCAN_ROWS_MAX {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns up to which message a reader has read: what another process took and perhaps never
/// showed is not.
pub(crate) fn read_up_to(state: &impl Read, room: &Room, reader: &str) -> Result<u64, Fault> {
    let Some(cursor) = cursor(state, room, reader)? else { return Ok(0) };
    let reading = conversations::conversation(state, reader)?;
    Ok(reading.map_or(cursor.taken, |reading| start(&cursor, reading.incarnation)))
}

/// What others said in a room above a number, in a few words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gist {
    /// How many messages of others there are, as far as was looked.
    pub count: u64,
    /// Whether there are messages that were not looked at.
    pub more: bool,
    /// The first one's number; 0: there is none.
    pub first: u64,
    /// The last one's number; when there are more, the newest message's.
    pub last: u64,
    /// The first few who sent them: id, and name when it is a conversation's.
    pub senders: Vec<(String, Option<String>)>,
    /// Up to which message this tells of all.
    pub upto: u64,
}

/// Returns what is news to a reader above a number: it looks at 4,096 messages for the first one,
/// and at 512 messages or 1 MiB of text in all once it has found one.
pub(crate) fn news(
    state: &impl Read,
    room: &Room,
    after: u64,
    reader: &str,
) -> Result<Gist, Fault> {
    let after = after.max(pruned(state, room)?);
    let mut gist = Gist { upto: after, ..Gist::default() };
    let (mut rows, mut bytes) = (0usize, 0usize);
    for row in state.scan(ids(room, after, None), Direction::Forward) {
        let full = rows >= limits::NEWS_ROWS_MAX || bytes > limits::TAKE_TEXT_BYTES_MAX;
        if rows >= limits::TAKE_SCAN_ROWS_MAX || (full && gist.count > 0) {
            gist.more = true;
            break;
        }
        let (key, value) = row?;
        let head: Head<'_> = codec::decode_value(&key, &value)?;
        let (_, id) = tables::MESSAGES.parse(&key)?;
        gist.upto = id;
        rows = rows.saturating_add(1);
        bytes = bytes.saturating_add(head.text.len());
        if !head.is_news_to(reader) {
            continue;
        }
        gist.count = gist.count.saturating_add(1);
        if gist.first == 0 {
            gist.first = id;
        }
        gist.last = id;
        let known = gist.senders.iter().any(|(sender, _)| sender == head.from);
        if !known && gist.senders.len() < limits::NEWS_SENDERS_MAX {
            gist.senders.push((head.from.into(), head.sender_name.map(String::from)));
        }
    }
    if gist.more && gist.count > 0 {
        // What was not looked at is told of as well.
        gist.last = last_id(state, room)?;
        gist.upto = gist.last;
    }
    Ok(gist)
}

/// Returns a message.
pub(crate) fn message(state: &impl Read, room: &Room, id: u64) -> Result<Option<Message>, Fault> {
    if id <= pruned(state, room)? {
        return Ok(None);
    }
    tables::MESSAGES.get(state, (room_key(room), id))
}

/// Returns the keys of the messages above `after`, up to and including `upto`.
fn ids(room: &Room, after: u64, upto: Option<u64>) -> KeyRange {
    let room = room_key(room);
    let Some(first) = after.checked_add(1) else {
        return KeyRange { start: Vec::new(), end: Some(Vec::new()) };
    };
    let behind = upto.and_then(|upto| upto.checked_add(1));
    let end = match behind {
        Some(behind) => Some(tables::MESSAGES.key((room, behind))),
        None => tables::MESSAGES.beginning::<tables::RoomKey>(room).end,
    };
    KeyRange { start: tables::MESSAGES.key((room, first)), end }
}
