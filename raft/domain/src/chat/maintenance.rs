//! Pruning the global chat (n2n-nexus `host_maintenance`): at once for every reader, in bounded
//! steps for the rows.

use alloc::format;
use alloc::vec::Vec;

use super::{RoomState, ids, room_key, room_state};
use crate::command::{DueKind, Room};
use crate::context::{Context, Stop};
use crate::due::{self, Due};
use crate::event::Event;
use crate::rejection::Rejection;
use crate::reply::Reply;
use crate::store::{Direction, Fault, Store};
use crate::{conversations, events, limits, tables};

/// The only room that is pruned.
const ROOM: Room = Room::Global;

/// How it is named in timers.
const TIMER_ID: &str = "global";

pub(super) fn prune(
    state: &mut impl Store,
    context: &Context<'_>,
    count: u64,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    if count == 0 {
        return Err(Rejection::invalid("count", "must be at least 1").into());
    }
    remove(state, context, ("maintenance.prune", count), told)
}

pub(super) fn clear(
    state: &mut impl Store,
    context: &Context<'_>,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    remove(state, context, ("maintenance.clear", u64::MAX), told)
}

fn remove(
    state: &mut impl Store,
    context: &Context<'_>,
    (action, count): (&str, u64),
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    let before = room_state(state, &ROOM)?;
    let pruned = before.pruned.unwrap_or_default();
    conversations::active(state, context, told)?;
    let upto = pruned.saturating_add(count).min(before.last);
    let removed = upto.saturating_sub(pruned);
    let remaining = before.last.saturating_sub(upto);
    if removed > 0 {
        let after = RoomState { pruned: Some(upto), ..before };
        tables::ROOMS.put(state, room_key(&ROOM), &after)?;
        // While an earlier pruning is being swept, its timer goes on with this one.
        if before.swept.unwrap_or_default() >= pruned {
            let (due, id) = (context.now.tick, TIMER_ID.into());
            due::arm(state, &Due { due, kind: DueKind::Chat, id, generation: 1 }, told)?;
        }
        told.push(Event::Posted { room: ROOM, id: before.last });
    }
    let detail = format!("{removed} removed, {remaining} left");
    events::record(state, context, action, Some("global".into()), Some(detail))?;
    Ok(Reply::Pruned { removed, remaining })
}

/// Deletes rows of pruned messages; what is left is due again at once.
pub(crate) fn sweep(
    state: &mut impl Store,
    due: &Due,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    if due.id != TIMER_ID {
        return Err(due.misnamed("the chat").into());
    }
    let before = room_state(state, &ROOM)?;
    let pruned = before.pruned.unwrap_or_default();
    let range = ids(&ROOM, before.swept.unwrap_or_default(), Some(pruned));
    let keys: Vec<_> = tables::MESSAGES
        .keys(state, range, Direction::Forward)
        .take(limits::CHAT_SWEPT_MAX)
        .collect::<Result<_, Fault>>()?;
    let mut swept = pruned;
    for (_, id) in &keys {
        tables::MESSAGES.delete(state, (room_key(&ROOM), *id))?;
    }
    if keys.len() >= limits::CHAT_SWEPT_MAX
        && let Some((_, last)) = keys.last()
    {
        swept = *last;
    }
    tables::ROOMS.put(state, room_key(&ROOM), &RoomState { swept: Some(swept), ..before })?;
    if swept < pruned {
        due::arm(state, &due.again(), told)?;
    }
    Ok(Reply::fired(keys.len()))
}
