//! Command sequences for tests, here and wherever this state is stored.
//!
//! [`entries`] makes a log from a seed: a cluster with a life of its own (boots, invites, members
//! that come and go, conversations that move, chat, timers), retries of everything, and what must
//! be refused. [`batches`] cuts it at random borders, [`apply_batch`] applies one batch in memory
//! as a node does on its database. The same seed gives the same log for as long as this file stays.

mod sequence;

use alloc::vec::Vec;

use crate::entry::Entry;
use crate::limits::DIGEST_STRIDE;
use crate::rejection::Rejection;
use crate::reply::Reply;
use crate::store::{Fault, MemoryStore, Overlay};
pub use crate::testing::sequence::{Random, Sequence};
use crate::{apply, digest};

/// Returns the first entries of a seed's log, with consecutive indexes.
#[must_use]
pub fn entries(seed: u64, count: usize) -> Vec<Entry> {
    Sequence::new(seed).take(count).collect()
}

/// Cuts entries into batches at random borders, and always behind a multiple of 64.
#[must_use]
pub fn batches(entries: &[Entry], seed: u64) -> Vec<&[Entry]> {
    let mut random = Random::new(seed);
    let mut rest = entries;
    let mut batches = Vec::new();
    while !rest.is_empty() {
        let mut length: usize = 0;
        let wanted = random.below(40).saturating_add(1);
        for entry in rest {
            length = length.saturating_add(1);
            let full = u64::try_from(length).is_ok_and(|length| length >= wanted);
            if full || entry.index.checked_rem(DIGEST_STRIDE) == Some(0) {
                break;
            }
        }
        let (batch, behind) = rest.split_at_checked(length).unwrap_or((rest, &[]));
        batches.push(batch);
        rest = behind;
    }
    batches
}

/// Applies a batch, seals it, and writes it to the store; returns the answers.
///
/// # Errors
/// A fault of the state; the store is as it was then.
pub fn apply_batch(
    store: &mut MemoryStore,
    batch: &[Entry],
) -> Result<Vec<Result<Reply, Rejection>>, Fault> {
    let mut overlay = Overlay::new(&*store);
    let mut events = Vec::new();
    let mut outcomes = Vec::with_capacity(batch.len());
    for entry in batch {
        outcomes.push(apply(&mut overlay, entry, &mut events)?);
    }
    if let Some(last) = batch.last() {
        digest::seal(&mut overlay, last.index)?;
    }
    store.absorb(overlay.into_changes());
    Ok(outcomes)
}
