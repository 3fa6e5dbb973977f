//! The ordered key-value space that the state lives in, and overlays on it.
//!
//! `BTreeMap` in tests and simulation, RocksDB in a node. Every method can fail with a [`Fault`]: a
//! store that cannot be read stops the node, it never answers "not found" (traps.md 11).

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Bound;

/// A storage fault: the state cannot be read or written. It stops the node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("state cannot be used: {what} (key {key})")]
pub struct Fault {
    /// What went wrong.
    pub what: String,
    /// The key concerned, in hexadecimal, or a name.
    pub key: String,
}

/// The name of the state version in faults.
const VERSION_KEY: &str = "state version";

impl Fault {
    /// Makes the fault of a program that is too old for the state: the disk is well, and another
    /// program goes on.
    #[must_use]
    pub(crate) fn too_old(what: impl Into<String>) -> Self {
        Self { what: what.into(), key: VERSION_KEY.to_owned() }
    }

    /// Returns whether it is the program that is wrong, and not the disk.
    #[must_use]
    pub fn is_too_old(&self) -> bool {
        self.key == VERSION_KEY
    }

    /// Makes a fault about a key.
    #[must_use]
    pub fn at(key: &[u8], what: impl Into<String>) -> Self {
        let mut hex = String::new();
        for byte in key.iter().take(64) {
            // Formatting into a `String` cannot fail.
            let _written = core::fmt::Write::write_fmt(&mut hex, format_args!("{byte:02x}"));
        }
        Self { what: what.into(), key: hex }
    }
}

/// A range of keys: from `start` (included) to `end` (excluded; `None`: to the last key).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// The first key.
    pub start: Vec<u8>,
    /// The key after the last.
    pub end: Option<Vec<u8>>,
}

impl KeyRange {
    /// Returns the range of all keys that begin with `prefix`.
    #[must_use]
    pub fn prefix(prefix: &[u8]) -> Self {
        Self { start: prefix.to_owned(), end: successor(prefix) }
    }

    /// Returns whether the range holds no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.end.as_ref().is_some_and(|end| *end <= self.start)
    }
}

/// Returns the smallest key above all keys that begin with `prefix`, if there is one.
fn successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut end = prefix.to_owned();
    while let Some(last) = end.pop() {
        if let Some(next) = last.checked_add(1) {
            end.push(next);
            return Some(end);
        }
    }
    None
}

/// The direction of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the smallest key up.
    Forward,
    /// From the largest key down.
    Reverse,
}

/// A key and its value, or why they cannot be read.
pub type Row = Result<(Vec<u8>, Vec<u8>), Fault>;

/// A lazy scan.
pub type Rows<'a> = Box<dyn Iterator<Item = Row> + 'a>;

/// Reading.
pub trait Read {
    /// Returns the value of a key.
    ///
    /// # Errors
    /// A fault when the store cannot be read.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Fault>;

    /// Scans a range lazily.
    fn scan(&self, range: KeyRange, direction: Direction) -> Rows<'_>;
}

/// Reading and writing.
pub trait Store: Read {
    /// Sets a key.
    ///
    /// # Errors
    /// A fault when the store cannot be written.
    fn put(&mut self, key: &[u8], value: Vec<u8>) -> Result<(), Fault>;

    /// Deletes a key; one that is not there is no error.
    ///
    /// # Errors
    /// A fault when the store cannot be written.
    fn delete(&mut self, key: &[u8]) -> Result<(), Fault>;
}

impl<R: Read + ?Sized> Read for &R {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        (**self).get(key)
    }

    fn scan(&self, range: KeyRange, direction: Direction) -> Rows<'_> {
        (**self).scan(range, direction)
    }
}

/// A store in memory, for tests and simulation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryStore {
    rows: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl MemoryStore {
    /// Returns all rows in order.
    pub fn rows(&self) -> impl Iterator<Item = (&Vec<u8>, &Vec<u8>)> {
        self.rows.iter()
    }

    /// Writes the changes of an overlay; `None` deletes.
    pub fn absorb(&mut self, changes: BTreeMap<Vec<u8>, Option<Vec<u8>>>) {
        for (key, change) in changes {
            match change {
                Some(value) => drop(self.rows.insert(key, value)),
                None => drop(self.rows.remove(&key)),
            }
        }
    }
}

impl Read for MemoryStore {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        Ok(self.rows.get(key).cloned())
    }

    fn scan(&self, range: KeyRange, direction: Direction) -> Rows<'_> {
        if range.is_empty() {
            return Box::new(core::iter::empty());
        }
        let rows = self.rows.range::<Vec<u8>, _>(bounds(&range));
        let copy = |(key, value): (&Vec<u8>, &Vec<u8>)| Ok((key.clone(), value.clone()));
        match direction {
            Direction::Forward => Box::new(rows.map(copy)),
            Direction::Reverse => Box::new(rows.rev().map(copy)),
        }
    }
}

impl Store for MemoryStore {
    fn put(&mut self, key: &[u8], value: Vec<u8>) -> Result<(), Fault> {
        self.rows.insert(key.to_owned(), value);
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), Fault> {
        self.rows.remove(key);
        Ok(())
    }
}

fn bounds(range: &KeyRange) -> (Bound<&Vec<u8>>, Bound<&Vec<u8>>) {
    let end = range.end.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
    (Bound::Included(&range.start), end)
}

/// Changes on top of a store that are not written to it yet.
///
/// The state machine stacks two: one for the batch, and one for each entry, which a refusal
/// discards.
#[derive(Debug)]
pub struct Overlay<R> {
    base: R,
    changes: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
}

impl<R: Read> Overlay<R> {
    /// Begins an overlay without changes.
    pub fn new(base: R) -> Self {
        Self { base, changes: BTreeMap::new() }
    }

    /// Continues an overlay with changes that were made before on the same base.
    pub fn with(base: R, changes: BTreeMap<Vec<u8>, Option<Vec<u8>>>) -> Self {
        Self { base, changes }
    }

    /// Returns what lies below.
    pub fn base(&self) -> &R {
        &self.base
    }

    /// Returns the changes in key order; `None` deletes.
    pub fn changes(&self) -> &BTreeMap<Vec<u8>, Option<Vec<u8>>> {
        &self.changes
    }

    /// Ends the overlay and returns its changes.
    pub fn into_changes(self) -> BTreeMap<Vec<u8>, Option<Vec<u8>>> {
        self.changes
    }

    /// Takes over the changes of an overlay that was made on this one.
    pub fn absorb(&mut self, changes: BTreeMap<Vec<u8>, Option<Vec<u8>>>) {
        self.changes.extend(changes);
    }
}

impl<R: Read> Read for Overlay<R> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        match self.changes.get(key) {
            Some(change) => Ok(change.clone()),
            None => self.base.get(key),
        }
    }

    fn scan(&self, range: KeyRange, direction: Direction) -> Rows<'_> {
        if range.is_empty() {
            return Box::new(core::iter::empty());
        }
        let above = self.changes.range::<Vec<u8>, _>(bounds(&range));
        let below = self.base.scan(range.clone(), direction);
        match direction {
            Direction::Forward => Box::new(Merge::new(above, below, direction)),
            Direction::Reverse => Box::new(Merge::new(above.rev(), below, direction)),
        }
    }
}

impl<R: Read> Store for Overlay<R> {
    fn put(&mut self, key: &[u8], value: Vec<u8>) -> Result<(), Fault> {
        self.changes.insert(key.to_owned(), Some(value));
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), Fault> {
        self.changes.insert(key.to_owned(), None);
        Ok(())
    }
}

/// Merges an overlay's changes with the rows below, in either direction.
struct Merge<'a, A: Iterator<Item = (&'a Vec<u8>, &'a Option<Vec<u8>>)>> {
    above: core::iter::Peekable<A>,
    below: core::iter::Peekable<Rows<'a>>,
    direction: Direction,
}

impl<'a, A: Iterator<Item = (&'a Vec<u8>, &'a Option<Vec<u8>>)>> Merge<'a, A> {
    fn new(above: A, below: Rows<'a>, direction: Direction) -> Self {
        Self { above: above.peekable(), below: below.peekable(), direction }
    }

    /// Returns whether the change above comes before, at, or after the row below.
    fn order(&mut self) -> Option<core::cmp::Ordering> {
        let (key, _) = self.above.peek()?;
        match self.below.peek() {
            None => Some(core::cmp::Ordering::Less),
            // A fault below must be seen at once, whatever stands above.
            Some(Err(_)) => Some(core::cmp::Ordering::Greater),
            Some(Ok((below, _))) => Some(match self.direction {
                Direction::Forward => (*key).cmp(below),
                Direction::Reverse => below.cmp(key),
            }),
        }
    }
}

impl<'a, A: Iterator<Item = (&'a Vec<u8>, &'a Option<Vec<u8>>)>> Iterator for Merge<'a, A> {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        loop {
            match self.order() {
                None | Some(core::cmp::Ordering::Greater) => return self.below.next(),
                Some(core::cmp::Ordering::Equal) => drop(self.below.next()),
                Some(core::cmp::Ordering::Less) => {}
            }
            let (key, change) = self.above.next()?;
            if let Some(value) = change {
                return Some(Ok((key.clone(), value.clone())));
            }
        }
    }
}
