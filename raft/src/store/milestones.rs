//! How many bytes of entries the log holds behind an index, the same before and after a restart.
//!
//! Each time another [`STEP_BYTES`] of entries are full, the append writes beside them, in its own
//! batch, how many bytes were ever appended up to there: key `k` + index. A start reads these rows
//! and counts only what follows the last one, so no life of a node is too short to be counted.
//!
//! An answer is right to within a step, and says too much rather than too little.

use std::collections::BTreeMap;

use nexus_domain::{Direction, KeyRange};
use rocksdb::{DB, WriteBatch};

use super::log::entry_key;
use super::rocks::{bounded, mode};
use crate::wire::{seal, unseal};

/// Bytes of entries between two rows: what a start counts anew at most. A log of the greatest
/// length has some 2,000 rows.
const STEP_BYTES: u64 = 256 << 10;
/// What stands in front of the index in a key.
const PREFIX: u8 = b'k';

/// The rows, as they stand in the database, and the count up to now.
#[derive(Debug, Default)]
pub(super) struct Milestones {
    /// Index → bytes that were appended up to and including its entry.
    rows: BTreeMap<u64, u64>,
    total: u64,
}

/// What an append adds.
#[derive(Debug)]
pub(super) struct Added {
    rows: Vec<(u64, u64)>,
    total: u64,
}

impl Milestones {
    /// Reads the rows and counts what follows the last one; a log without any is counted whole.
    ///
    /// # Errors
    /// When the database cannot be read, or a row is damaged.
    pub(super) fn read(db: &DB) -> Result<Self, String> {
        let mut found = Self::default();
        let rows = db.iterator_opt(mode(Direction::Forward), bounded(&KeyRange::prefix(&[PREFIX])));
        for row in rows {
            let (key, value) = row.map_err(rocksdb::Error::into_string)?;
            let index = key.get(1..).and_then(|rest| rest.try_into().ok()).map(u64::from_be_bytes);
            let index = index.ok_or("the count of its bytes has a damaged key")?;
            found.rows.insert(index, unseal(&value)?);
        }
        found.recount(db)?;
        Ok(found)
    }

    /// Counts what follows the last row.
    fn recount(&mut self, db: &DB) -> Result<(), String> {
        let last = self.rows.last_key_value().map(|(index, bytes)| (*index, *bytes));
        let (after, total) = last.map_or((0, 0), |(index, bytes)| (index.saturating_add(1), bytes));
        self.total = total;
        let range = KeyRange { start: entry_key(after), ..KeyRange::prefix(b"e") };
        for row in db.iterator_opt(mode(Direction::Forward), bounded(&range)) {
            let (_, value) = row.map_err(rocksdb::Error::into_string)?;
            self.total = self.total.saturating_add(length(&value));
        }
        Ok(())
    }

    /// Puts the rows that become due with entries into the batch that writes these.
    pub(super) fn put(&self, batch: &mut WriteBatch, entries: &[(u64, Vec<u8>)]) -> Added {
        let mut added = Added { rows: Vec::new(), total: self.total };
        for (index, value) in entries {
            let before = added.total;
            added.total = before.saturating_add(length(value));
            if before / STEP_BYTES != added.total / STEP_BYTES {
                batch.put(row_key(*index), seal(&added.total));
                added.rows.push((*index, added.total));
            }
        }
        added
    }

    /// Takes in what an append has written.
    pub(super) fn add(&mut self, added: Added) {
        self.total = added.total;
        self.rows.extend(added.rows);
    }

    /// Deletes the rows from `start` on with the batch that deletes these entries.
    pub(super) fn truncate(&self, batch: &mut WriteBatch, start: u64) {
        for index in self.rows.range(start..).map(|(index, _)| *index) {
            batch.delete(row_key(index));
        }
    }

    /// Forgets what [`Self::truncate`] has deleted, and its entries' bytes.
    ///
    /// # Errors
    /// When the entries that are left behind the last row cannot be read.
    pub(super) fn truncated(&mut self, db: &DB, start: u64) -> Result<(), String> {
        drop(self.rows.split_off(&start));
        self.recount(db)
    }

    /// Deletes the rows that nobody asks for once the entries up to `upto` are gone: all but the
    /// newest of them. When `last` goes too, nothing is left, and a row says so exactly.
    pub(super) fn purge(&self, batch: &mut WriteBatch, upto: u64, last: u64) {
        let newest = self.rows.range(..=upto).next_back().map(|(index, _)| *index);
        if let Some(newest) = newest {
            batch.delete_range(row_key(0), row_key(newest));
        }
        if last <= upto {
            batch.put(row_key(upto), seal(&self.total));
        }
    }

    /// Forgets what [`Self::purge`] has deleted.
    pub(super) fn purged(&mut self, upto: u64, last: u64) {
        let newest = self.rows.range(..=upto).next_back().map(|(index, _)| *index);
        if let Some(newest) = newest {
            self.rows = self.rows.split_off(&newest);
        }
        if last <= upto {
            self.rows.insert(upto, self.total);
        }
    }

    /// Returns the bytes of all that was ever appended and is counted.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Returns the bytes of the entries behind an index.
    pub(super) fn behind(&self, index: u64) -> u64 {
        let before = self.rows.range(..=index).next_back().map_or(0, |(_, bytes)| *bytes);
        self.total.saturating_sub(before)
    }

    /// Returns the last index behind which at least so many bytes lie; 0 when there is none.
    pub(super) fn beyond(&self, bytes: u64) -> u64 {
        let far = |before: u64| self.total.saturating_sub(before) >= bytes;
        let row = self.rows.iter().rev().find(|(_, before)| far(**before));
        row.map_or(0, |(index, _)| *index)
    }
}

fn row_key(index: u64) -> Vec<u8> {
    let mut key = vec![PREFIX];
    key.extend_from_slice(&index.to_be_bytes());
    key
}

fn length(value: &[u8]) -> u64 {
    u64::try_from(value.len()).unwrap_or(u64::MAX)
}
