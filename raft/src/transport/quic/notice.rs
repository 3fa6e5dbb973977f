//! Logging of failures that repeat: the first time loudly, again quietly.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use super::dial::DialError;
use crate::transport::{Lane, NodeId, Refusal};

/// Sources remembered; beyond that all are forgotten, which costs only repeated lines.
const SOURCES_MAX: usize = 256;

/// Texts remembered of one node or source: several addresses that fail in turn, each in its way.
const TEXTS_MAX: usize = 8;

/// What was logged, for each node and source.
#[derive(Debug, Default)]
pub(super) struct Notice {
    dials: Mutex<BTreeMap<(NodeId, Lane), BTreeSet<String>>>,
    sources: Mutex<BTreeMap<IpAddr, BTreeSet<String>>>,
}

/// Adds a text to those that were logged and returns whether it is news.
fn is_news(logged: &mut BTreeSet<String>, text: &str) -> bool {
    if logged.contains(text) {
        return false;
    }
    if logged.len() >= TEXTS_MAX {
        logged.clear();
    }
    logged.insert(text.to_owned())
}

impl Notice {
    /// Logs a failed dial.
    pub(super) fn failed_dial(&self, node: NodeId, lane: Lane, error: &DialError) {
        let (text, refused) = match error {
            DialError::Refused(refusal) => (refusal.to_string(), true),
            DialError::Failed(text) => (text.clone(), false),
        };
        let mut dials = self.dials.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = is_news(dials.entry((node, lane)).or_default(), &text);
        drop(dials);
        match (is_news, refused) {
            (false, _) => tracing::debug!(node, %lane, "node still cannot be reached: {text}"),
            (true, true) => tracing::warn!(node, %lane, "connection refused: {text}"),
            (true, false) => tracing::info!(node, %lane, "node cannot be reached: {text}"),
        }
    }

    /// Notes a dial that went well, so that the next failure is news again.
    pub(super) fn dialled(&self, node: NodeId, lane: Lane) {
        self.dials.lock().unwrap_or_else(PoisonError::into_inner).remove(&(node, lane));
    }

    /// Logs that a peer was refused, by us or by itself.
    pub(super) fn refused_peer(&self, from: IpAddr, node: Option<NodeId>, refusal: &Refusal) {
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        if sources.len() >= SOURCES_MAX {
            sources.clear();
        }
        let text = refusal.to_string();
        let is_news = is_news(sources.entry(from).or_default(), &text);
        drop(sources);
        if is_news {
            tracing::warn!(%from, node, "connection from a peer refused: {text}");
        } else {
            tracing::debug!(%from, node, "connection refused again: {text}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_take_turns_are_news_once() {
        let mut logged = BTreeSet::new();
        let news = |text: &str| is_news(&mut logged, text);
        let said: Vec<bool> = ["a", "b", "a", "b", "a"].map(news).to_vec();
        assert_eq!(said, [true, true, false, false, false]);
        for number in 0..TEXTS_MAX {
            is_news(&mut logged, &format!("text {number}"));
        }
        assert!(logged.len() <= TEXTS_MAX);
    }
}
