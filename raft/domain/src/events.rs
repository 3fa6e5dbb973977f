//! The list of events that people read: who did what to what (n2n-nexus `list_events`).
//!
//! Not to be mixed up with [`crate::event`], which only wakes waiters. Events here are state: the
//! newest 10,000 of the last 90 days.

use alloc::string::String;
use alloc::vec::Vec;

use minicbor::{Decode, Encode};

use crate::context::Context;
use crate::entry::{Actor, NodeId};
use crate::store::{Direction, Fault, Read, Store};
use crate::{cluster, limits, tables};

/// One event.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct EventRow {
    /// When, milliseconds since 1970.
    #[n(0)]
    pub at: u64,
    /// At which tick.
    #[n(1)]
    pub tick: u64,
    /// Who: a conversation's or instance's id, or a node's name.
    #[n(2)]
    pub actor: String,
    /// What, such as `node.join`.
    #[n(3)]
    pub action: String,
    /// To what.
    #[n(4)]
    pub target: Option<String>,
    /// More, for people.
    #[n(5)]
    pub detail: Option<String>,
    /// Through which node.
    #[n(6)]
    pub node: NodeId,
}

/// Which event numbers are kept: above `before`, up to and including `last`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Window {
    /// The newest number that is gone.
    #[n(0)]
    pub(crate) before: u64,
    /// The newest number.
    #[n(1)]
    pub(crate) last: u64,
}

/// Returns events, newest first: all, or those of an action (`node.join`) or a family (`node`).
///
/// At most `limit` and 500; it looks at all that are kept.
///
/// # Errors
/// A fault when the state cannot be read.
pub fn list(state: &impl Read, action: Option<&str>, limit: usize) -> Result<Vec<EventRow>, Fault> {
    let rows = tables::EVENTS.rows(state, tables::EVENTS.all(), Direction::Reverse);
    let mut found = Vec::new();
    let limit = limit.min(limits::EVENTS_LIST_MAX);
    for row in rows {
        if found.len() >= limit {
            break;
        }
        let (_, event) = row?;
        if action.is_none_or(|action| belongs(&event.action, action)) {
            found.push(event);
        }
    }
    Ok(found)
}

/// Returns whether an action is the wanted one or of the wanted family.
fn belongs(action: &str, wanted: &str) -> bool {
    match action.strip_prefix(wanted) {
        Some(rest) => rest.is_empty() || rest.starts_with('.') || wanted.ends_with('.'),
        None => false,
    }
}

/// Writes an event, and lets up to two old ones go.
pub(crate) fn record(
    state: &mut impl Store,
    context: &Context<'_>,
    action: &str,
    target: Option<String>,
    detail: Option<String>,
) -> Result<(), Fault> {
    let actor = match context.actor {
        Actor::Node => cluster::shown(state, context.node)?,
        Actor::Conversation(id) => id.clone(),
    };
    let event = EventRow {
        at: context.now.at,
        tick: context.now.tick,
        actor,
        action: action.into(),
        target: target.map(cut),
        detail: detail.map(cut),
        node: context.node,
    };
    let mut window = tables::EVENT_WINDOW.get(state, ())?.unwrap_or_default();
    window.last = window.last.saturating_add(1);
    tables::EVENTS.put(state, window.last, &event)?;
    prune(state, context.now.tick, &mut window)?;
    tables::EVENT_WINDOW.put(state, (), &window)
}

fn prune(state: &mut impl Store, tick: u64, window: &mut Window) -> Result<(), Fault> {
    for _ in 0..limits::EVENTS_PRUNED_MAX {
        let kept = window.last.saturating_sub(window.before);
        let oldest = window.before.saturating_add(1);
        // The newest always stays: it was written by this very entry.
        let goes = kept > 1
            && (kept > limits::EVENTS_MAX
                || tables::EVENTS
                    .get(state, oldest)?
                    .is_none_or(|event| tick.saturating_sub(event.tick) > limits::EVENT_TICKS));
        if !goes {
            break;
        }
        tables::EVENTS.delete(state, oldest)?;
        window.before = oldest;
    }
    Ok(())
}

fn cut(text: String) -> String {
    if text.len() <= limits::EVENT_TEXT_CHARS_MAX {
        return text;
    }
    text.chars().take(limits::EVENT_TEXT_CHARS_MAX).collect()
}
