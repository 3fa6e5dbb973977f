//! Two digests of the state, kept with every batch, so that nodes can be compared (traps.md 22).
//!
//! A digest is a sum modulo 2^256 over SHA-256 of each row (length of the key, key, value), so a
//! change costs what it changes, and the order of changes leaves no trace. `content` is what the
//! families keep; `books` are clock, versions, request records and the due index. What belongs to
//! the consensus side (table `00`) and the digests themselves are in neither.

use alloc::vec::Vec;

use sha2::{Digest as _, Sha256};

use crate::limits::{DIGEST_MARKS_MAX, DIGEST_STRIDE};
use crate::store::{Direction, Fault, KeyRange, Overlay, Read, Store};
use crate::tables;

/// The format byte of the stored sums.
const FORMAT: u8 = 1;

/// Both digests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digests {
    /// Of the families' rows: a refusal and a repeated request leave it as it is.
    pub content: [u8; 32],
    /// Of clock, versions, request records and due index.
    pub books: [u8; 32],
}

/// The digests at an index of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The index, a multiple of 64.
    pub index: u64,
    /// The digests after the entry at it.
    pub digests: Digests,
}

/// Brings the digests up to date with a batch of changes, once, when the batch is complete.
///
/// `last_index` is that of its last entry; batches never span a multiple of 64, where the digests
/// are kept for comparison.
///
/// # Errors
/// A fault when the state below the batch cannot be read.
pub fn seal<R: Read>(batch: &mut Overlay<R>, last_index: u64) -> Result<(), Fault> {
    let mut sums = load(batch)?;
    for (key, change) in batch.changes() {
        let Some(sum) = sums.of(key) else { continue };
        let before = batch.base().get(key)?;
        if before == *change {
            continue;
        }
        if let Some(value) = before {
            sum.subtract(row(key, &value));
        }
        if let Some(value) = change {
            sum.add(row(key, value));
        }
    }
    let digests = sums.digests();
    batch.put(&[tables::DIGESTS], encode(&digests))?;
    // At index 0 nothing is there to be compared: consensus writes that entry for itself.
    if last_index > 0 && last_index.checked_rem(DIGEST_STRIDE) == Some(0) {
        batch.put(&mark_key(last_index), encode(&digests))?;
        let kept = DIGEST_STRIDE.saturating_mul(DIGEST_MARKS_MAX);
        if let Some(old) = last_index.checked_sub(kept) {
            batch.delete(&mark_key(old))?;
        }
    }
    Ok(())
}

/// Returns the digests as the last batch left them.
///
/// # Errors
/// A fault when the state cannot be read.
pub fn read(state: &impl Read) -> Result<Digests, Fault> {
    Ok(load(state)?.digests())
}

/// Returns the digests that are kept of an index; `None` when it is no multiple of 64, not applied
/// yet, or too long ago.
///
/// # Errors
/// A fault when the state cannot be read.
pub fn kept(state: &impl Read, index: u64) -> Result<Option<Digests>, Fault> {
    let key = mark_key(index);
    state.get(&key)?.map(|value| decode(&key, &value)).transpose()
}

/// Returns the digests at the last 1,024 multiples of 64, oldest first.
///
/// # Errors
/// A fault when the state cannot be read.
pub fn history(state: &impl Read) -> Result<Vec<Mark>, Fault> {
    // A state of before may have a mark at index 0, which says nothing.
    let marks = KeyRange { start: mark_key(1).into(), ..KeyRange::prefix(&[tables::DIGEST_MARKS]) };
    let rows = state.scan(marks, Direction::Forward);
    rows.map(|row| {
        let (key, value) = row?;
        let index = key.get(1..).and_then(|rest| rest.try_into().ok()).map(u64::from_be_bytes);
        let index = index.ok_or_else(|| Fault::at(&key, "the key is damaged"))?;
        Ok(Mark { index, digests: decode(&key, &value)? })
    })
    .collect()
}

/// Returns the digests as a scan of all rows gives them: a difference from [`read`] is a damaged
/// disk.
///
/// # Errors
/// A fault when the state cannot be read.
pub fn recompute(state: &impl Read) -> Result<Digests, Fault> {
    let mut sums = Sums::default();
    for found in state.scan(KeyRange::prefix(&[]), Direction::Forward) {
        let (key, value) = found?;
        if let Some(sum) = sums.of(&key) {
            sum.add(row(&key, &value));
        }
    }
    Ok(sums.digests())
}

/// A number modulo 2^256, least significant limb first.
#[derive(Clone, Copy, Debug, Default)]
struct Sum([u64; 4]);

impl Sum {
    fn from_bytes(bytes: [u8; 32]) -> Self {
        let mut limbs = [0; 4];
        for (limb, chunk) in limbs.iter_mut().zip(bytes.rchunks_exact(8)) {
            *limb = chunk.try_into().map_or(0, u64::from_be_bytes);
        }
        Self(limbs)
    }

    fn to_bytes(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for (limb, chunk) in self.0.iter().zip(bytes.rchunks_exact_mut(8)) {
            chunk.copy_from_slice(&limb.to_be_bytes());
        }
        bytes
    }

    fn add(&mut self, other: Self) {
        let mut carry = false;
        for (limb, more) in self.0.iter_mut().zip(other.0) {
            let (sum, over) = limb.overflowing_add(more);
            let (sum, over_again) = sum.overflowing_add(u64::from(carry));
            *limb = sum;
            carry = over || over_again;
        }
    }

    fn subtract(&mut self, other: Self) {
        let mut borrow = false;
        for (limb, less) in self.0.iter_mut().zip(other.0) {
            let (rest, under) = limb.overflowing_sub(less);
            let (rest, under_again) = rest.overflowing_sub(u64::from(borrow));
            *limb = rest;
            borrow = under || under_again;
        }
    }
}

/// The two sums.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    content: Sum,
    books: Sum,
}

impl Sums {
    /// Returns the sum that a key counts in; `None` for the consensus side and the digests.
    fn of(&mut self, key: &[u8]) -> Option<&mut Sum> {
        match key.first() {
            None | Some(0x00 | &tables::DIGESTS | &tables::DIGEST_MARKS) => None,
            Some(table) if *table >= tables::CONTENT => Some(&mut self.content),
            Some(_) => Some(&mut self.books),
        }
    }

    fn digests(&self) -> Digests {
        Digests { content: self.content.to_bytes(), books: self.books.to_bytes() }
    }
}

/// Hashes a row.
fn row(key: &[u8], value: &[u8]) -> Sum {
    let length = u64::try_from(key.len()).unwrap_or(u64::MAX);
    let mut hash = Sha256::new();
    hash.update(length.to_be_bytes());
    hash.update(key);
    hash.update(value);
    Sum::from_bytes(hash.finalize().into())
}

fn mark_key(index: u64) -> [u8; 9] {
    let mut key = [tables::DIGEST_MARKS; 9];
    if let Some((_, rest)) = key.split_first_mut() {
        rest.copy_from_slice(&index.to_be_bytes());
    }
    key
}

fn load(state: &impl Read) -> Result<Sums, Fault> {
    let key = [tables::DIGESTS];
    let Some(value) = state.get(&key)? else { return Ok(Sums::default()) };
    let digests = decode(&key, &value)?;
    Ok(Sums { content: Sum::from_bytes(digests.content), books: Sum::from_bytes(digests.books) })
}

fn encode(digests: &Digests) -> Vec<u8> {
    let mut out = Vec::with_capacity(65);
    out.push(FORMAT);
    out.extend_from_slice(&digests.content);
    out.extend_from_slice(&digests.books);
    out
}

fn decode(key: &[u8], value: &[u8]) -> Result<Digests, Fault> {
    let parts = value.strip_prefix(&[FORMAT]).and_then(|rest| rest.split_first_chunk::<32>());
    let digests = parts.and_then(|(content, books)| {
        Some(Digests { content: *content, books: books.try_into().ok()? })
    });
    digests.ok_or_else(|| Fault::at(key, "the digests are damaged"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_and_taken_away_leaves_nothing() {
        let mut sum = Sum::default();
        let rows: [(&[u8], &[u8]); 3] = [(b"a", b"1"), (b"b", b""), (b"", b"b")];
        for (key, value) in rows {
            sum.add(row(key, value));
        }
        let mut other = Sum::from_bytes(sum.to_bytes());
        assert_eq!(other.0, sum.0);
        for (key, value) in rows {
            other.subtract(row(key, value));
        }
        assert_eq!(other.0, [0; 4]);
        other.subtract(Sum([1, 0, 0, 0]));
        assert_eq!(other.0, [u64::MAX; 4]);
        other.add(Sum([1, 0, 0, 0]));
        assert_eq!(other.0, [0; 4]);
    }

    #[test]
    fn the_border_between_key_and_value_counts() {
        assert_ne!(row(b"ab", b"c").0, row(b"a", b"bc").0);
    }
}
