//! Logging of failures that repeat: the first time loudly, again quietly.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use super::dial::DialError;
use crate::transport::{Lane, NodeId, Refusal};

/// Sources remembered; beyond that all are forgotten, which costs only repeated lines.
const SOURCES_MAX: usize = 256;

/// What was logged last, for each node and source.
#[derive(Debug, Default)]
pub(super) struct Notice {
    dials: Mutex<BTreeMap<(NodeId, Lane), String>>,
    sources: Mutex<BTreeMap<IpAddr, String>>,
}

impl Notice {
    /// Logs a failed dial.
    pub(super) fn failed_dial(&self, node: NodeId, lane: Lane, error: &DialError) {
        let (text, refused) = match error {
            DialError::Refused(refusal) => (refusal.to_string(), true),
            DialError::Failed(text) => (text.clone(), false),
        };
        let mut dials = self.dials.lock().unwrap_or_else(PoisonError::into_inner);
        let known = dials.insert((node, lane), text.clone()).is_some_and(|last| last == text);
        drop(dials);
        match (known, refused) {
            (true, _) => tracing::debug!(node, %lane, "node still cannot be reached: {text}"),
            (false, true) => tracing::warn!(node, %lane, "connection refused: {text}"),
            (false, false) => tracing::info!(node, %lane, "node cannot be reached: {text}"),
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
        let known = sources.insert(from, text.clone()).is_some_and(|last| last == text);
        drop(sources);
        if known {
            tracing::debug!(%from, node, "connection refused again: {text}");
        } else {
            tracing::warn!(%from, node, "connection from a peer refused: {text}");
        }
    }
}
