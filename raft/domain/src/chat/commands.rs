//! Commands of the chat: send and take.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{
    CLUSTER, Cursor, Head, Message, RoomState, cursor, ids, last_id, maintenance, pruned, room_key,
    room_state,
};
use crate::command::{Category, ChatCommand, Client, Room};
use crate::context::{Context, Stop};
use crate::event::Event;
use crate::rejection::Rejection;
use crate::reply::{IdRange, Reply};
use crate::store::{Direction, Fault, Read, Store};
use crate::{codec, conversations, limits, meetings, tables, texts};

pub(crate) fn run(
    state: &mut impl Store,
    context: &Context<'_>,
    command: &ChatCommand,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    match command {
        ChatCommand::Send { room, text, category } => {
            let id = send(state, context, room, (text, *category), told)?;
            Ok(Reply::Posted { id })
        }
        ChatCommand::Take { room, limit } => take(state, context, room, *limit, told),
        ChatCommand::Prune { count } => maintenance::prune(state, context, *count, told),
        ChatCommand::Clear => maintenance::clear(state, context, told),
    }
}

/// Posts what the actor says; returns the message's number.
pub(crate) fn send(
    state: &mut impl Store,
    context: &Context<'_>,
    room: &Room,
    (text, category): (&str, Category),
    told: &mut Vec<Event>,
) -> Result<u64, Stop> {
    texts::check_message(text)?;
    let meeting = match room {
        Room::Global => None,
        Room::Meeting(id) => Some(meetings::open_room(state, id)?),
    };
    next_id(state, room)?;
    let speaker = conversations::active(state, context, told)?;
    let sender_name = (speaker.client != Client::Instance).then(|| speaker.name.clone());
    let post = Post { from: &speaker.id, sender_name, text, category, about: None };
    let id = place(state, context, room, post, told)?;
    if let Some(before) = cursor(state, room, &speaker.id)? {
        let after = after_sending(before, speaker.incarnation, id);
        move_cursor(state, room, &speaker.id, (Some(before), after))?;
    }
    if let Some(meeting) = meeting {
        meetings::spoken(state, context, meeting, &speaker.id, category)?;
    }
    Ok(id)
}

/// What a message will say.
#[derive(Debug)]
pub(crate) struct Post<'a> {
    pub(crate) from: &'a str,
    pub(crate) sender_name: Option<String>,
    pub(crate) text: &'a str,
    pub(crate) category: Category,
    pub(crate) about: Option<String>,
}

impl<'a> Post<'a> {
    /// Makes a message of the cluster itself, about somebody's doing.
    pub(crate) fn by_cluster(text: &'a str, category: Category, about: &str) -> Self {
        Self { from: CLUSTER, sender_name: None, text, category, about: Some(about.into()) }
    }
}

/// Returns the number of a room's next message.
fn next_id(state: &impl Read, room: &Room) -> Result<u64, Stop> {
    let last = last_id(state, room)?;
    let lost = || Rejection::Impossible { what: format!("message {last}, the last one") };
    Ok(last.checked_add(1).ok_or_else(lost)?)
}

/// Writes a message; returns its number.
pub(crate) fn place(
    state: &mut impl Store,
    context: &Context<'_>,
    room: &Room,
    post: Post<'_>,
    told: &mut Vec<Event>,
) -> Result<u64, Stop> {
    let before = room_state(state, room)?;
    let id = next_id(state, room)?;
    let message = Message {
        id,
        from: post.from.into(),
        sender_name: post.sender_name,
        text: post.text.into(),
        category: post.category,
        at: context.now.at,
        node: context.node,
        about: post.about,
    };
    tables::ROOMS.put(state, room_key(room), &RoomState { last: id, ..before })?;
    tables::MESSAGES.put(state, (room_key(room), id), &message)?;
    told.push(Event::Posted { room: room.clone(), id });
    Ok(id)
}

/// Moves the sender's cursor: a call of the same process proves that what it took arrived, and when
/// it had taken everything, its own message is behind it too.
fn after_sending(before: Cursor, incarnation: u64, id: u64) -> Cursor {
    if before.incarnation != incarnation {
        return before;
    }
    let mut after = Cursor { seen: before.taken, ..before };
    if before.taken.checked_add(1) == Some(id) {
        after = Cursor { taken: id, seen: id, offered: before.offered.max(id), ..before };
    }
    after
}

/// Lets a reader go on behind a message, as if it had read up to there; what lies behind that it
/// had before comes `again`.
pub(crate) fn start_at(
    state: &mut impl Store,
    room: &Room,
    (reader, incarnation): (&str, u64),
    id: u64,
) -> Result<(), Fault> {
    let before = cursor(state, room, reader)?;
    let offered = before.map_or(0, |cursor| cursor.offered).max(id);
    let after = Cursor { taken: id, seen: id, incarnation, offered };
    move_cursor(state, room, reader, (before, after))
}

/// Writes where a reader stands now; in a meeting a new place is counted.
fn move_cursor(
    state: &mut impl Store,
    room: &Room,
    reader: &str,
    (before, after): (Option<Cursor>, Cursor),
) -> Result<(), Fault> {
    if before == Some(after) {
        return Ok(());
    }
    if let (None, Room::Meeting(id)) = (before, room) {
        meetings::place_taken(state, id)?;
    }
    tables::CURSORS.put(state, (room_key(room), reader), &after)
}

/// Returns above which number a reader goes on: another process is offered once more what is not
/// known to have arrived.
pub(crate) fn start(cursor: &Cursor, incarnation: u64) -> u64 {
    if cursor.incarnation == incarnation { cursor.taken } else { cursor.seen }
}

fn take(
    state: &mut impl Store,
    context: &Context<'_>,
    room: &Room,
    limit: u32,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    if !(1..=limits::READ_MESSAGES_MAX).contains(&limit) {
        return Err(Rejection::invalid("limit", "must be 1 to 500").into());
    }
    if let Room::Meeting(id) = room {
        let meeting = meetings::present(state, id)?;
        meetings::find_place(state, &meeting, &context.speaker()?.id)?;
    }
    let reader = conversations::active(state, context, told)?;
    let incarnation = reader.incarnation;
    let known = cursor(state, room, &reader.id)?;
    let before = match (known, room) {
        (Some(before), _) => before,
        (None, Room::Global) => {
            let last = last_id(state, room)?;
            start_at(state, room, (&reader.id, incarnation), last)?;
            let nothing = IdRange { after: last, upto: last };
            return Ok(Reply::Taken { again: nothing, fresh: nothing, first: true });
        }
        // A meeting is read from its first message.
        (None, Room::Meeting(_)) => Cursor { incarnation, ..Cursor::default() },
    };
    // What was pruned is behind every reader.
    let from = start(&before, incarnation).max(pruned(state, room)?);
    let upto = reach(state, room, from, &reader.id, limit)?;
    let offered = before.offered.max(upto);
    let after = Cursor { taken: upto, seen: from, incarnation, offered };
    if after != before {
        move_cursor(state, room, &reader.id, (known, after))?;
    }
    let middle = before.offered.clamp(from, upto);
    Ok(Reply::Taken {
        again: IdRange { after: from, upto: middle },
        fresh: IdRange { after: middle, upto },
        first: false,
    })
}

/// Returns up to which number a reader gets messages: `limit` of others and the reader's own
/// between and behind them, within the bounds of rows and text.
fn reach(
    state: &impl Read,
    room: &Room,
    from: u64,
    reader: &str,
    limit: u32,
) -> Result<u64, Fault> {
    let (mut upto, mut count, mut bytes) = (from, 0u32, 0usize);
    let rows = state.scan(ids(room, from, None), Direction::Forward);
    for row in rows.take(limits::TAKE_SCAN_ROWS_MAX) {
        let (key, value) = row?;
        let head: Head<'_> = codec::decode_value(&key, &value)?;
        if head.is_news_to(reader) {
            bytes = bytes.saturating_add(head.text.len());
            if count >= limit || (count > 0 && bytes > limits::TAKE_TEXT_BYTES_MAX) {
                break;
            }
            count = count.saturating_add(1);
        }
        let (_, id) = tables::MESSAGES.parse(&key)?;
        upto = id;
    }
    Ok(upto)
}
