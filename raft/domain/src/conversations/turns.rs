//! Who is told when somebody's turn ends (n2n-nexus §5.7): once, at the next end, within a day.
//!
//! An entry may end many turns, and many may wait for each; so the entry only notes which ones
//! ended, and due entries tell those who wait, a bounded number each.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use minicbor::{Decode, Encode};

use super::Conversation;
use crate::clock::Clock;
use crate::command::{DueKind, Status};
use crate::context::{Context, Stop};
use crate::due::{self, Due};
use crate::event::Event;
use crate::notices::{self, Fact, Telling};
use crate::rejection::Rejection;
use crate::reply::Reply;
use crate::store::{Direction, Fault, Read, Store};
use crate::{limits, tables};

/// Somebody's wish to be told when a conversation's turn ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Watch {
    /// The entry that brought it: what ended before does not count.
    #[n(0)]
    pub(crate) index: u64,
    /// The tick at which it lapses.
    #[n(1)]
    pub(crate) due: u64,
}

/// The turns that one entry ended and that somebody waited for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Ended {
    /// When, milliseconds since 1970.
    #[n(0)]
    pub(crate) at: u64,
    /// Whose; those that were told are taken from the end.
    #[n(1)]
    pub(crate) turns: Vec<Turn>,
}

/// One end of a turn.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Turn {
    /// Whose.
    #[n(0)]
    pub(crate) conversation: String,
    /// What it did then.
    #[n(1)]
    pub(crate) status: Status,
}

/// Returns whether a change of state is the end of a turn: it stops working, begins to listen, or
/// goes.
fn ends_turn(before: Status, after: Status) -> bool {
    match after {
        Status::Working => false,
        Status::Idle => matches!(before, Status::Working | Status::Listening),
        Status::Listening | Status::Offline => before != after,
    }
}

/// Adds the end of a turn to those of the entry, when somebody waits for it.
pub(super) fn note(
    state: &impl Read,
    before: &Conversation,
    after: &Conversation,
    turns: &mut Vec<Turn>,
) -> Result<(), Fault> {
    let ends = ends_turn(before.status, after.status);
    let range = tables::WATCHES.beginning::<String>(&after.id);
    if ends && state.scan(range, Direction::Forward).next().transpose()?.is_some() {
        turns.push(Turn { conversation: after.id.clone(), status: after.status });
    }
    Ok(())
}

/// Keeps the ends of an entry's turns, and has those who wait told at once: two rows.
pub(super) fn keep(
    state: &mut impl Store,
    (index, now): (u64, Clock),
    turns: Vec<Turn>,
    told: &mut Vec<Event>,
) -> Result<(), Fault> {
    if turns.is_empty() {
        return Ok(());
    }
    tables::TURNS.put(state, index, &Ended { at: now.at, turns })?;
    let timer = Due { due: now.tick, kind: DueKind::Turns, id: index.to_string(), generation: 1 };
    due::arm(state, &timer, told)
}

/// Tells those who wait for an entry's turns; what is left is due again at once.
pub(crate) fn tell(
    state: &mut impl Store,
    due: &Due,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    let Ok(index) = due.id.parse() else {
        return Err(due.misnamed("turns").into());
    };
    let Some(mut ended) = tables::TURNS.get(state, index)? else { return Ok(Reply::fired(0)) };
    let mut left = limits::TURNS_TOLD_MAX;
    while let Some(turn) = ended.turns.last() {
        let waiting = waiting(state, &turn.conversation, index, left)?;
        for (subscriber, watch) in &waiting {
            unwatch(state, &turn.conversation, subscriber, watch)?;
            let fact = Fact::Turn { conversation: turn.conversation.clone(), status: turn.status };
            notices::tell(state, subscriber, Telling { at: ended.at, fact, wake: true }, told)?;
        }
        left = left.saturating_sub(waiting.len());
        if left == 0 {
            break;
        }
        ended.turns.pop();
    }
    if ended.turns.is_empty() {
        tables::TURNS.delete(state, index)?;
    } else {
        tables::TURNS.put(state, index, &ended)?;
        due::arm(state, &due.again(), told)?;
    }
    Ok(Reply::fired(limits::TURNS_TOLD_MAX.saturating_sub(left)))
}

/// Returns who waited for a conversation before an entry.
fn waiting(
    state: &impl Read,
    conversation: &str,
    index: u64,
    most: usize,
) -> Result<Vec<(String, Watch)>, Fault> {
    let range = tables::WATCHES.beginning::<String>(conversation);
    let rows = tables::WATCHES.rows(state, range, Direction::Forward);
    let earlier = rows.filter(|row| row.as_ref().map_or(true, |(_, watch)| watch.index < index));
    earlier.take(most).map(|row| row.map(|((_, subscriber), watch)| (subscriber, watch))).collect()
}

/// Returns the timer at which a wish lapses; no conversation's id has a `/`.
pub(crate) fn lapse(conversation: &str, subscriber: &str, watch: &Watch) -> Due {
    let id = format!("{conversation}/{subscriber}");
    Due { due: watch.due, kind: DueKind::Watch, id, generation: watch.index }
}

fn unwatch(
    state: &mut impl Store,
    conversation: &str,
    subscriber: &str,
    watch: &Watch,
) -> Result<(), Fault> {
    due::disarm(state, &lapse(conversation, subscriber, watch))?;
    tables::WATCHES.delete(state, (conversation, subscriber))
}

/// Returns the refusal of a wish when as many wait for a conversation as are kept.
pub(crate) fn full(
    state: &impl Read,
    conversation: &str,
    subscriber: &str,
) -> Result<Option<Rejection>, Fault> {
    if tables::WATCHES.has(state, (conversation, subscriber))? {
        return Ok(None);
    }
    let range = tables::WATCHES.beginning::<String>(conversation);
    let count = tables::WATCHES.count(state, range, limits::WATCHES_MAX)?;
    Ok((count >= limits::WATCHES_MAX).then(|| {
        let what = "notifyWhenIdle: 64 conversations wait for this one already; send without it";
        Rejection::full(what)
    }))
}

/// Notes a wish to be told of a conversation's next end of a turn; a new one takes the place of an
/// older one.
pub(crate) fn watch(
    state: &mut impl Store,
    context: &Context<'_>,
    conversation: &str,
    subscriber: &str,
    told: &mut Vec<Event>,
) -> Result<(), Fault> {
    if let Some(old) = tables::WATCHES.get(state, (conversation, subscriber))? {
        unwatch(state, conversation, subscriber, &old)?;
    }
    let due = context.now.tick.saturating_add(limits::WATCH_TICKS);
    let watch = Watch { index: context.index, due };
    tables::WATCHES.put(state, (conversation, subscriber), &watch)?;
    due::arm(state, &lapse(conversation, subscriber, &watch), told)
}

/// Ends a wish that nothing came of for a day.
pub(crate) fn lapses(state: &mut impl Store, due: &Due) -> Result<Reply, Stop> {
    let Some((conversation, subscriber)) = due.id.split_once('/') else {
        return Err(due.misnamed("a watch").into());
    };
    let stands = tables::WATCHES.get(state, (conversation, subscriber))?;
    let ends = stands.is_some_and(|watch| watch.index == due.generation);
    if ends {
        tables::WATCHES.delete(state, (conversation, subscriber))?;
    }
    Ok(Reply::fired(usize::from(ends)))
}

/// Forgets who waits for a conversation that is removed; returns how many rows went.
pub(crate) fn forget(state: &mut impl Store, conversation: &str) -> Result<usize, Fault> {
    let range = tables::WATCHES.beginning::<String>(conversation);
    let rows: Vec<_> = tables::WATCHES
        .rows(state, range, Direction::Forward)
        .take(limits::WATCHES_MAX)
        .collect::<Result<_, Fault>>()?;
    for ((conversation, subscriber), watch) in &rows {
        unwatch(state, conversation, subscriber, watch)?;
    }
    Ok(rows.len().saturating_mul(2))
}
