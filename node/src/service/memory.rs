//! What the node remembers of its callers between calls; a restart forgets it without harm.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Callers that are remembered; beyond, those that were quiet longest are forgotten.
const CALLERS_MAX: usize = 4_096;
/// Processes of one caller that are remembered.
const PROCESSES_MAX: usize = 16;

/// The memory.
#[derive(Debug, Default)]
pub(crate) struct Memory(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    turn: u64,
    callers: BTreeMap<String, Caller>,
}

#[derive(Debug, Default)]
struct Caller {
    /// When it was heard of last, in turns of this memory.
    turn: u64,
    /// The index of its newest acknowledged write.
    acknowledged: u64,
    /// Its processes that have registered, oldest first.
    processes: VecDeque<u64>,
}

impl Memory {
    /// Notes that a write of the caller was acknowledged.
    pub(crate) fn acknowledged(&self, id: &str, index: u64) {
        self.with(id, |caller| caller.acknowledged = caller.acknowledged.max(index));
    }

    /// Returns the index of the caller's newest acknowledged write, if there was one.
    pub(crate) fn last(&self, id: &str) -> Option<u64> {
        let inner = self.lock();
        inner.callers.get(id).map(|caller| caller.acknowledged).filter(|index| *index > 0)
    }

    /// Notes that a process of the caller registered.
    pub(crate) fn speaks(&self, id: &str, process: u64) {
        self.with(id, |caller| {
            if caller.processes.contains(&process) {
                return;
            }
            if caller.processes.len() >= PROCESSES_MAX {
                caller.processes.pop_front();
            }
            caller.processes.push_back(process);
        });
    }

    /// Returns whether that process of the caller registered before.
    pub(crate) fn spoke(&self, id: &str, process: u64) -> bool {
        self.lock().callers.get(id).is_some_and(|caller| caller.processes.contains(&process))
    }

    fn with(&self, id: &str, change: impl FnOnce(&mut Caller)) {
        let mut inner = self.lock();
        inner.turn = inner.turn.saturating_add(1);
        let turn = inner.turn;
        if !inner.callers.contains_key(id) && inner.callers.len() >= CALLERS_MAX {
            let quiet = inner.callers.iter().min_by_key(|(_, caller)| caller.turn);
            if let Some(quiet) = quiet.map(|(id, _)| id.clone()) {
                inner.callers.remove(&quiet);
            }
        }
        let caller = inner.callers.entry(id.to_owned()).or_default();
        caller.turn = turn;
        change(caller);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A poisoned lock still holds whole rows: no code panics between two of their halves.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_write_counts_and_processes_are_kept_apart() {
        let memory = Memory::default();
        assert_eq!((memory.last("a"), memory.spoke("a", 1)), (None, false));
        memory.acknowledged("a", 9);
        memory.acknowledged("a", 5);
        memory.speaks("a", 1);
        assert_eq!(memory.last("a"), Some(9));
        assert!(memory.spoke("a", 1) && !memory.spoke("a", 2) && !memory.spoke("b", 1));
    }

    #[test]
    fn the_quietest_are_forgotten_first() {
        let memory = Memory::default();
        for number in 0..CALLERS_MAX {
            memory.acknowledged(&number.to_string(), 1);
        }
        memory.acknowledged("0", 2);
        memory.acknowledged("new", 1);
        assert_eq!(memory.last("1"), None);
        assert_eq!((memory.last("0"), memory.last("new")), (Some(2), Some(1)));
        for process in 0..20 {
            memory.speaks("0", process);
        }
        assert!(!memory.spoke("0", 0) && memory.spoke("0", 19));
    }
}
