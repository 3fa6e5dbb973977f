//! Commands of the chat: send and take.

use alloc::format;
use alloc::vec::Vec;

use super::{Cursor, Head, Message, RoomState, cursor, ids, last_id, room_key};
use crate::command::{Category, ChatCommand, Client, Room};
use crate::context::{Context, Stop};
use crate::event::Event;
use crate::rejection::Rejection;
use crate::reply::{IdRange, Reply};
use crate::store::{Direction, Fault, Read, Store};
use crate::{codec, conversations, limits, tables};

pub(crate) fn run(
    state: &mut impl Store,
    context: &Context<'_>,
    command: &ChatCommand,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    match command {
        ChatCommand::Send { room, text, category } => {
            send(state, context, room, (text, *category), told)
        }
        ChatCommand::Take { room, limit } => take(state, context, room, *limit, told),
    }
}

fn send(
    state: &mut impl Store,
    context: &Context<'_>,
    room: &Room,
    (text, category): (&str, Category),
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    // Counting characters of what is surely too long would be work for nothing.
    let short = text.len() <= limits::TEXT_CHARS_MAX.saturating_mul(4);
    if text.is_empty() || !short || text.chars().count() > limits::TEXT_CHARS_MAX {
        return Err(Rejection::invalid("text", "must have 1 to 32,000 characters").into());
    }
    let last = last_id(state, room)?;
    let Some(id) = last.checked_add(1) else {
        return Err(Rejection::Impossible { what: format!("message {last}, the last one") }.into());
    };
    let speaker = conversations::active(state, context, told)?;
    let message = Message {
        id,
        from: speaker.id.clone(),
        sender_name: (speaker.client != Client::Instance).then(|| speaker.name.clone()),
        text: text.into(),
        category,
        at: context.now.at,
        node: context.node,
    };
    tables::ROOMS.put(state, room_key(room), &RoomState { last: id })?;
    tables::MESSAGES.put(state, (room_key(room), id), &message)?;
    if let Some(before) = cursor(state, room, &speaker.id)? {
        let after = after_sending(before, speaker.incarnation, id);
        if after != before {
            tables::CURSORS.put(state, (room_key(room), &speaker.id), &after)?;
        }
    }
    told.push(Event::Posted { room: room.clone(), id });
    Ok(Reply::Posted { id })
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

/// Returns above which number a reader goes on: another process is offered once more what is not
/// known to have arrived.
pub(super) fn start(cursor: &Cursor, incarnation: u64) -> u64 {
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
    let reader = conversations::active(state, context, told)?;
    let incarnation = reader.incarnation;
    let key = (room_key(room), reader.id.as_str());
    let Some(before) = tables::CURSORS.get(state, key)? else {
        let last = last_id(state, room)?;
        let cursor = Cursor { taken: last, seen: last, incarnation, offered: last };
        tables::CURSORS.put(state, key, &cursor)?;
        let nothing = IdRange { after: last, upto: last };
        return Ok(Reply::Taken { again: nothing, fresh: nothing, first: true });
    };
    let from = start(&before, incarnation);
    let upto = reach(state, room, from, &reader.id, limit)?;
    let offered = before.offered.max(upto);
    let after = Cursor { taken: upto, seen: from, incarnation, offered };
    if after != before {
        tables::CURSORS.put(state, key, &after)?;
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
        if head.from != reader {
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
