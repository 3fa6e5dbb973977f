//! Conversations and instances: who they are, where they are at home, what they do.
//!
//! A conversation is at home on the node through which it registered last; only entries of that
//! node may speak for it (traps.md 15). Its id comes from its client and stays; its name is unique
//! among those that are not offline; its cursors and request ids hang on the id, so they move with
//! it.

mod closed;
mod commands;
pub(crate) mod nodes;
mod presence;
mod reports;
pub(crate) mod turns;

use alloc::string::String;
use alloc::vec::Vec;

use minicbor::{Decode, Encode};

use crate::command::{Client, Status};
pub(crate) use crate::conversations::closed::{close, look_tomorrow};
pub(crate) use crate::conversations::commands::run;
pub use crate::conversations::nodes::{Noted, node_state, nodes};
pub(crate) use crate::conversations::presence::{active, leave};
use crate::entry::NodeId;
use crate::limits;
use crate::rejection::Rejection;
use crate::store::{Direction, Fault, Read};
use crate::tables;

/// A conversation or instance.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Conversation {
    /// Its id, from its client.
    #[n(0)]
    pub id: String,
    /// The program it runs in.
    #[n(1)]
    pub client: Client,
    /// Its name; empty for an instance. While it is offline others may take it.
    #[n(2)]
    pub name: String,
    /// The title that its client shows; empty: unknown.
    #[n(3)]
    pub title: String,
    /// The title that it gave itself.
    #[n(4)]
    pub own_title: Option<String>,
    /// Its note.
    #[n(5)]
    pub note: String,
    /// Its working directory; empty: unknown.
    #[n(6)]
    pub cwd: String,
    /// What it does.
    #[n(7)]
    pub status: Status,
    /// The node that it is at home on.
    #[n(8)]
    pub home: NodeId,
    /// A number of the process that speaks for it.
    #[n(9)]
    pub incarnation: u64,
    /// When it registered first, milliseconds since 1970.
    #[n(10)]
    pub registered_at: u64,
    /// When it was active last, to the minute, milliseconds since 1970.
    #[n(11)]
    pub last_active_at: u64,
    /// The tick of that.
    #[n(12)]
    pub last_active_tick: u64,
    /// Whether the end of its turns waits for messages; nothing: it does not.
    #[n(13)]
    pub listens: Option<bool>,
}

impl Conversation {
    /// Returns the title to show: its own, else its client's.
    #[must_use]
    pub fn shown_title(&self) -> &str {
        self.own_title.as_deref().unwrap_or(&self.title)
    }

    /// Returns the name that it holds among those that are not offline.
    pub(crate) fn held_name(&self) -> Option<&str> {
        let holds = self.status != Status::Offline && !self.name.is_empty();
        holds.then_some(self.name.as_str())
    }
}

/// How many conversations there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Totals {
    /// All, offline ones too.
    #[n(0)]
    pub(crate) count: u64,
}

/// Returns a conversation.
///
/// # Errors
/// A fault when the state cannot be read.
pub fn conversation(state: &impl Read, id: &str) -> Result<Option<Conversation>, Fault> {
    tables::CONVERSATIONS.get(state, id)
}

/// Returns the conversation that holds a name: never an offline one.
///
/// # Errors
/// A fault when the state cannot be read.
pub fn by_name(state: &impl Read, name: &str) -> Result<Option<Conversation>, Fault> {
    match tables::NAMES.get(state, name)? {
        Some(id) => conversation(state, &id),
        None => Ok(None),
    }
}

/// Returns conversations and instances, offline ones too, most recently active first: at most
/// `limit` and 1,000.
///
/// # Errors
/// A fault when the state cannot be read, or an index names nothing.
pub fn list(state: &impl Read, limit: usize) -> Result<Vec<Conversation>, Fault> {
    let keys = tables::ACTIVITY.keys(state, tables::ACTIVITY.all(), Direction::Reverse);
    let mut found = Vec::new();
    for key in keys.take(limit.min(limits::CONVERSATIONS_LIST_MAX)) {
        let (_, id) = key?;
        found.push(tables::CONVERSATIONS.must(state, &id)?);
    }
    Ok(found)
}

/// Returns conversations that are not offline, most recently active first, and with `offline_since`
/// also those that are offline and were active since then (milliseconds since 1970); no instances.
///
/// At most `limit` and 1,000, out of at most 4,096 conversations and instances.
///
/// # Errors
/// A fault when the state cannot be read, or an index names nothing.
pub fn peers(
    state: &impl Read,
    offline_since: Option<u64>,
    limit: usize,
) -> Result<Vec<Conversation>, Fault> {
    let keys = tables::ACTIVITY.keys(state, tables::ACTIVITY.all(), Direction::Reverse);
    let mut found = Vec::new();
    let limit = limit.min(limits::CONVERSATIONS_LIST_MAX);
    for key in keys.take(limits::PEERS_SCAN_MAX) {
        if found.len() >= limit {
            break;
        }
        let (_, id) = key?;
        let row = tables::CONVERSATIONS.must(state, &id)?;
        let recent = offline_since.is_some_and(|since| row.last_active_at >= since);
        if row.client != Client::Instance && (row.status != Status::Offline || recent) {
            found.push(row);
        }
    }
    Ok(found)
}

/// Checks the form of an id, which becomes part of keys: printable, without `/` and spaces.
pub(crate) fn check_id(id: &str) -> Result<(), Rejection> {
    let allowed = |byte: u8| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'.' | b'_' | b':' | b'@' | b'#' | b'+' | b'=' | b'~' | b'-')
    };
    let fits = (1..=limits::ACTOR_ID_BYTES_MAX).contains(&id.len());
    if fits && id.bytes().all(allowed) {
        Ok(())
    } else {
        let rule = "must have 1 to 200 characters of A-Z a-z 0-9 . _ : @ # + = ~ -";
        Err(Rejection::invalid("caller", rule))
    }
}
