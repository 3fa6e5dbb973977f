//! Notices: facts that the cluster tells a conversation, which hooks show (n2n-nexus §5.6).
//!
//! Not messages: nobody sends them and no tool reads them. Each conversation has a numbered list; a
//! hook shows what lies above the mark of its list and then has the mark raised. After a crash in
//! between, a notice comes twice, never not at all (traps.md 20). The newest hundred are kept.

use alloc::string::String;
use alloc::vec::Vec;

use minicbor::{Decode, Encode};

use crate::command::Status;
use crate::event::Event;
use crate::store::{Direction, Fault, KeyRange, Read, Store};
use crate::{conversations, limits, tables};

/// A notice.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Notice {
    /// Its number in the conversation's list, from 1.
    #[n(0)]
    pub number: u64,
    /// When it was told, milliseconds since 1970.
    #[n(1)]
    pub at: u64,
    /// What it says.
    #[n(2)]
    pub fact: Fact,
    /// Whether it may wake the conversation or hold its turn.
    #[n(3)]
    pub wake: bool,
}

/// What a notice says. Numbers are for ever.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Fact {
    /// Messages lay unread for a day in which their reader's node was awake; they still lie there.
    #[n(0)]
    Unread {
        /// The conversation that they are for.
        #[n(0)]
        to: String,
        /// The first one's id.
        #[n(1)]
        first: u64,
        /// How many.
        #[n(2)]
        count: u64,
    },
    /// Messages were deleted after 30 days, and nobody had read them.
    #[n(1)]
    Deleted {
        /// The conversation that they were for.
        #[n(0)]
        to: String,
        /// The first one's id.
        #[n(1)]
        first: u64,
        /// How many.
        #[n(2)]
        count: u64,
    },
    /// Another conversation's turn ended, as the reader wished to be told.
    #[n(2)]
    Turn {
        /// Which one.
        #[n(0)]
        conversation: String,
        /// What it does now.
        #[n(1)]
        status: Status,
    },
}

/// Which notices of a conversation are kept, and which of them were shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub(crate) struct NoticeWindow {
    /// The newest number.
    #[n(0)]
    pub(crate) last: u64,
    /// The newest number that is gone.
    #[n(1)]
    pub(crate) gone: u64,
    /// The newest number that was shown.
    #[n(2)]
    pub(crate) noticed: u64,
}

/// The notices that wait for a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pending {
    /// The notices, oldest first.
    pub notices: Vec<Notice>,
    /// How many older ones were given up, because more came than are kept.
    pub omitted: u64,
    /// The newest number: what a report says when all were shown.
    pub last: u64,
}

/// Returns the notices that were not shown yet, oldest first: at most `limit` and 100.
///
/// # Errors
/// A fault when the state cannot be read.
pub fn pending(state: &impl Read, conversation: &str, limit: usize) -> Result<Pending, Fault> {
    let Some(window) = tables::NOTICE_WINDOWS.get(state, conversation)? else {
        return Ok(Pending::default());
    };
    let shown = window.noticed.max(window.gone);
    let first = shown.saturating_add(1);
    let range = KeyRange {
        start: tables::NOTICES.key((conversation, first)),
        end: tables::NOTICES.beginning::<String>(conversation).end,
    };
    let rows = tables::NOTICES.rows(state, range, Direction::Forward);
    let rows = rows.take(limit.min(limits::NOTICES_MAX)).map(|row| Ok(row?.1));
    Ok(Pending {
        notices: rows.collect::<Result<_, Fault>>()?,
        omitted: window.gone.saturating_sub(window.noticed),
        last: window.last,
    })
}

/// What is to be told.
pub(crate) struct Telling {
    /// When, milliseconds since 1970.
    pub(crate) at: u64,
    /// What.
    pub(crate) fact: Fact,
    /// Whether it may wake.
    pub(crate) wake: bool,
}

/// Tells a conversation something, if it is still there: changes at most four rows.
pub(crate) fn tell(
    state: &mut impl Store,
    to: &str,
    telling: Telling,
    told: &mut Vec<Event>,
) -> Result<(), Fault> {
    if conversations::conversation(state, to)?.is_none() {
        return Ok(());
    }
    let mut window = tables::NOTICE_WINDOWS.get(state, to)?.unwrap_or_default();
    let Some(number) = window.last.checked_add(1) else { return Ok(()) };
    window.last = number;
    let Telling { at, fact, wake } = telling;
    tables::NOTICES.put(state, (to, number), &Notice { number, at, fact, wake })?;
    for _ in 0..limits::NOTICES_SWEPT_MAX {
        let kept = window.last.saturating_sub(window.gone);
        let many = usize::try_from(kept).map_or(true, |kept| kept > limits::NOTICES_MAX);
        if !many && window.gone >= window.noticed {
            break;
        }
        window.gone = window.gone.saturating_add(1);
        tables::NOTICES.delete(state, (to, window.gone))?;
    }
    tables::NOTICE_WINDOWS.put(state, to, &window)?;
    told.push(Event::Inbox { conversation: to.into() });
    Ok(())
}

/// Notes up to which number notices were shown.
pub(crate) fn noticed(state: &mut impl Store, to: &str, upto: u64) -> Result<(), Fault> {
    let Some(mut window) = tables::NOTICE_WINDOWS.get(state, to)? else { return Ok(()) };
    let shown = upto.min(window.last);
    if shown > window.noticed {
        window.noticed = shown;
        tables::NOTICE_WINDOWS.put(state, to, &window)?;
    }
    Ok(())
}

/// Forgets the notices of a conversation that is removed; returns how many rows went.
pub(crate) fn forget(state: &mut impl Store, conversation: &str) -> Result<usize, Fault> {
    let range = tables::NOTICES.beginning::<String>(conversation);
    let keys: Vec<_> = tables::NOTICES
        .keys(state, range, Direction::Forward)
        .take(limits::NOTICES_MAX.saturating_add(1))
        .collect::<Result<_, _>>()?;
    for (conversation, number) in &keys {
        tables::NOTICES.delete(state, (conversation, *number))?;
    }
    tables::NOTICE_WINDOWS.delete(state, conversation)?;
    Ok(keys.len().saturating_add(1))
}
