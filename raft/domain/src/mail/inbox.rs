//! The inbox's row: its marks, its place in the index of what lies unread, and its timer.
//!
//! Numbers from `gone` on are kept: up to `swept` without their texts. A text that was seen goes
//! one to two days later, so that a repeated call still finds it: what is seen by a first moment
//! goes a day after it, then what is seen by that.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use minicbor::{Decode, Encode};

use super::{Envelope, ReceiptState};
use crate::chat::Cursor;
use crate::command::DueKind;
use crate::command::presence::NodeState;
use crate::conversations::{Conversation, nodes};
use crate::due::{self, Due};
use crate::entry::NodeId;
use crate::event::Event;
use crate::store::{Direction, Fault, Read, Store};
use crate::{limits, tables};

/// The marks of an inbox: `gone` <= `swept` <= `sweep_to` <= `seen` <= `taken` <= `offered` <=
/// `last`, and `announced` and `told` between `gone` and `last`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Inbox {
    /// The newest message's number.
    #[n(0)]
    pub(crate) last: u64,
    /// Up to where nothing is left.
    #[n(1)]
    pub(crate) gone: u64,
    /// Up to where the reader was shown first lines.
    #[n(2)]
    pub(crate) announced: u64,
    /// Up to where messages were taken and seen, as in a chat.
    #[n(3)]
    pub(crate) cursor: Cursor,
    /// Up to where senders were told that a message lay unread for a day.
    #[n(4)]
    pub(crate) told: u64,
    /// Up to where texts are gone.
    #[n(5)]
    pub(crate) swept: u64,
    /// Up to where texts go at `sweep_at`; equal to `swept` when none are to go.
    #[n(6)]
    pub(crate) sweep_to: u64,
    /// The tick of that.
    #[n(7)]
    pub(crate) sweep_at: u64,
    /// The bytes of the texts that are kept.
    #[n(8)]
    pub(crate) bytes: u64,
    /// For how many ticks the reader's nodes were not up, until it came to its present one.
    #[n(9)]
    pub(crate) away: u64,
    /// For how many ticks its present node had not been up then.
    #[n(10)]
    pub(crate) away_mark: u64,
    /// Its place in the index of what lies unread.
    #[n(11)]
    pub(crate) waits: Option<Waits>,
    /// The tick of its timer, if one stands: never later than what is due first.
    #[n(12)]
    pub(crate) due: Option<u64>,
}

/// A place in the index of what lies unread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Waits {
    /// The reader's node.
    #[n(0)]
    pub(crate) node: NodeId,
    /// After how many ticks of that node's being up the first message was unread for a day.
    #[n(1)]
    pub(crate) due: u64,
}

impl Inbox {
    /// Returns for how many ticks the reader's nodes were not up since the inbox was made.
    pub(super) fn away(&self, node: &nodes::NodeRow, tick: u64) -> u64 {
        self.away.saturating_add(node.away(tick).saturating_sub(self.away_mark))
    }

    /// Returns the newest number that nobody waits for: taken, or its sender was told.
    fn settled(&self) -> u64 {
        self.told.max(self.cursor.offered)
    }

    /// Returns after how many ticks of its node's being up a message was unread for a day.
    pub(super) fn unread_at(&self, envelope: &Envelope) -> u64 {
        let came = envelope.tick.saturating_add(self.away).saturating_add(limits::UNREAD_TICKS);
        came.saturating_sub(self.away_mark).saturating_sub(envelope.away)
    }

    /// Returns how far a message has come.
    pub(super) fn receipt_state(&self, number: u64, envelope: &Envelope) -> ReceiptState {
        if envelope.answered_by.is_some() {
            ReceiptState::Answered
        } else if number <= self.cursor.seen {
            ReceiptState::Seen
        } else if number <= self.cursor.offered {
            ReceiptState::Taken
        } else if number <= self.announced {
            ReceiptState::Announced
        } else {
            ReceiptState::Accepted
        }
    }

    /// Notes up to where messages surely arrived.
    pub(super) fn see(&mut self, upto: u64, tick: u64) {
        self.cursor.seen = upto;
        if self.sweep_to == self.swept {
            self.plan_sweep(tick);
        }
    }

    /// Has the texts that were seen by now go in a day.
    pub(super) fn plan_sweep(&mut self, tick: u64) {
        self.sweep_to = self.cursor.seen;
        self.sweep_at = tick.saturating_add(limits::READ_TEXT_TICKS);
    }

    /// Notes that nothing is left up to a number.
    pub(super) fn go(&mut self, upto: u64) {
        self.gone = upto;
        self.swept = self.swept.max(upto);
        self.sweep_to = self.sweep_to.max(upto);
        self.cursor.seen = self.cursor.seen.max(upto);
        self.cursor.taken = self.cursor.taken.max(upto);
        self.cursor.offered = self.cursor.offered.max(upto);
        self.announced = self.announced.max(upto);
        self.told = self.told.max(upto);
    }
}

/// Whose inbox.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owner<'a> {
    /// The conversation.
    pub(super) id: &'a str,
    /// Its home.
    pub(super) home: NodeId,
}

impl<'a> From<&'a Conversation> for Owner<'a> {
    fn from(conversation: &'a Conversation) -> Self {
        Self { id: &conversation.id, home: conversation.home }
    }
}

/// Returns where an inbox must stand in the index of what lies unread: at its first message that
/// nobody took and whose sender was not told.
pub(crate) fn wanted_wait(
    state: &impl Read,
    (id, home): (&str, NodeId),
    inbox: &Inbox,
) -> Result<Option<Waits>, Fault> {
    let first = inbox.settled().saturating_add(1);
    if first > inbox.last {
        return Ok(None);
    }
    let envelope = tables::ENVELOPES.must(state, (id, first))?;
    Ok(Some(Waits { node: home, due: inbox.unread_at(&envelope) }))
}

/// Returns the tick at which something of an inbox is due: texts that were seen, or the first
/// message's 30 days.
pub(crate) fn wanted_timer(
    state: &impl Read,
    id: &str,
    inbox: &Inbox,
) -> Result<Option<u64>, Fault> {
    let sweep = (inbox.swept < inbox.sweep_to).then_some(inbox.sweep_at);
    if inbox.gone >= inbox.last {
        return Ok(sweep);
    }
    let first = tables::ENVELOPES.must(state, (id, inbox.gone.saturating_add(1)))?;
    let ends = first.tick.saturating_add(limits::MAIL_KEPT_TICKS);
    Ok(Some(sweep.map_or(ends, |sweep| sweep.min(ends))))
}

/// Returns the timer of an inbox.
fn timer(id: &str, due: u64) -> Due {
    Due { due, kind: DueKind::Mail, id: id.into(), generation: 1 }
}

/// Writes an inbox with the rows that follow it; `before` is what stands there now. A timer that
/// comes too early stays: it finds nothing to do, and is set anew.
pub(super) fn save(
    state: &mut impl Store,
    owner: Owner<'_>,
    (before, mut after): (Option<&Inbox>, Inbox),
    tick: u64,
    told: &mut Vec<Event>,
) -> Result<(), Fault> {
    let waits = wanted_wait(state, (owner.id, owner.home), &after)?;
    let waits_anew = waits != after.waits;
    if waits_anew {
        if let Some(old) = after.waits {
            tables::UNREAD.delete(state, (old.node, old.due, owner.id))?;
        }
        if let Some(new) = waits {
            tables::UNREAD.put(state, (new.node, new.due, owner.id), &())?;
        }
        after.waits = waits;
    }
    if let Some(wanted) = wanted_timer(state, owner.id, &after)?
        && after.due.is_none_or(|due| due > wanted)
    {
        if let Some(old) = after.due {
            due::disarm(state, &timer(owner.id, old))?;
        }
        due::arm(state, &timer(owner.id, wanted), told)?;
        after.due = Some(wanted);
    }
    if before != Some(&after) {
        tables::INBOXES.put(state, owner.id, &after)?;
    }
    match waits {
        Some(new) if waits_anew => retime(state, new.node, tick, told),
        Some(_) | None => Ok(()),
    }
}

/// Sets a node's timer for what lies unread, when it has none that comes in time. While the node is
/// not up it needs none.
pub(crate) fn retime(
    state: &mut impl Store,
    node: NodeId,
    tick: u64,
    told: &mut Vec<Event>,
) -> Result<(), Fault> {
    let mut row = nodes::row(state, node)?;
    if row.state != NodeState::Up {
        return Ok(());
    }
    let range = tables::UNREAD.beginning::<u64>(node);
    let first = tables::UNREAD.keys(state, range, Direction::Forward).next().transpose()?;
    let Some((_, due, _)) = first else { return Ok(()) };
    let wanted = tick.saturating_add(due.saturating_sub(row.awake(tick)));
    if row.due.is_none_or(|due| due > wanted) {
        if let Some(old) = row.due {
            due::disarm(state, &node_timer(node, old))?;
        }
        due::arm(state, &node_timer(node, wanted), told)?;
        row.due = Some(wanted);
        nodes::put(state, node, &row)?;
    }
    Ok(())
}

/// Returns the timer of a node's unread mail.
fn node_timer(node: NodeId, due: u64) -> Due {
    Due { due, kind: DueKind::Unread, id: node.to_string(), generation: 1 }
}

/// Notes that the reader was heard of again: what its present process had taken surely arrived.
pub(crate) fn arrived(
    state: &mut impl Store,
    reader: &Conversation,
    tick: u64,
    told: &mut Vec<Event>,
) -> Result<(), Fault> {
    report(state, reader, (0, u64::MAX), tick, told)
}

/// Notes what hooks reported of an inbox: up to where it was announced, and up to where messages
/// had been taken when a hook event came.
pub(crate) fn report(
    state: &mut impl Store,
    reader: &Conversation,
    (announced, arrived): (u64, u64),
    tick: u64,
    told: &mut Vec<Event>,
) -> Result<(), Fault> {
    let Some(before) = tables::INBOXES.get(state, &reader.id)? else { return Ok(()) };
    let mut after = before;
    after.announced = before.announced.max(announced.min(before.last));
    let seen = arrived.min(before.cursor.taken);
    if before.cursor.incarnation == reader.incarnation && seen > before.cursor.seen {
        after.see(seen, tick);
    }
    if after == before {
        return Ok(());
    }
    save(state, reader.into(), (Some(&before), after), tick, told)
}

/// Takes an inbox along when its reader moves to another node.
pub(crate) fn moved(
    state: &mut impl Store,
    reader: &Conversation,
    from: NodeId,
    tick: u64,
    told: &mut Vec<Event>,
) -> Result<(), Fault> {
    let Some(before) = tables::INBOXES.get(state, &reader.id)? else { return Ok(()) };
    let mut after = before;
    after.away = before.away(&nodes::row(state, from)?, tick);
    after.away_mark = nodes::row(state, reader.home)?.away(tick);
    save(state, reader.into(), (Some(&before), after), tick, told)
}

/// Returns whether nothing is kept of a conversation's messages.
pub(crate) fn is_empty(state: &impl Read, reader: &str) -> Result<bool, Fault> {
    Ok(tables::INBOXES.get(state, reader)?.is_none_or(|inbox| inbox.gone >= inbox.last))
}

/// Forgets the empty inbox of a conversation that is removed.
pub(crate) fn forget(state: &mut impl Store, reader: &str) -> Result<(), Fault> {
    let Some(inbox) = tables::INBOXES.get(state, reader)? else { return Ok(()) };
    if let Some(due) = inbox.due {
        due::disarm(state, &timer(reader, due))?;
    }
    tables::INBOXES.delete(state, reader)
}

/// Groups messages by their senders: the first one's id, and how many.
pub(super) type BySender = alloc::collections::BTreeMap<String, (u64, u64)>;

/// Adds a message to its sender's.
pub(super) fn count(senders: &mut BySender, envelope: &Envelope) {
    let (_, number) = senders.entry(envelope.from.clone()).or_insert((envelope.id, 0));
    *number = number.saturating_add(1);
}
