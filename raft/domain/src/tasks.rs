//! Tasks: what people and conversations give each other to do. The cluster runs none of them.
//!
//! A task's number is the next one of a counter. Whoever changes it may say what it must be, and is
//! told what it is, and who made it so, when somebody else was first: of all that claim one task
//! exactly one wins. A task with a time to live fails when that has run out; a finished one goes
//! after a week.

mod commands;
mod ends;

use alloc::string::String;
use alloc::vec::Vec;

use minicbor::{Decode, Encode};

use crate::command::tasks::TaskStatus;
use crate::limits;
use crate::store::{Direction, Fault, KeyRange, Read};
use crate::tables;
pub(crate) use crate::tasks::commands::run;
pub(crate) use crate::tasks::ends::{ends, timer};

/// A task.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Task {
    /// Its number, from 1.
    #[n(0)]
    pub id: u64,
    /// How it stands.
    #[n(1)]
    pub status: TaskStatus,
    /// How far it is, in millionths.
    #[n(2)]
    pub progress: u32,
    /// The meeting that it came out of.
    #[n(3)]
    pub source_meeting: Option<String>,
    /// What it is about, a JSON object as it was given.
    #[n(4)]
    pub metadata: Option<String>,
    /// What in it is compared with other tasks; empty: nothing.
    #[n(5)]
    pub target: String,
    /// Where its result is.
    #[n(6)]
    pub result_uri: Option<String>,
    /// What went wrong.
    #[n(7)]
    pub error_message: Option<String>,
    /// When it was made, milliseconds since 1970.
    #[n(8)]
    pub created_at: u64,
    /// By whom: a conversation's or instance's id.
    #[n(9)]
    pub created_by: String,
    /// When it was changed last, milliseconds since 1970. It rises with every change, so it tells
    /// one state of a task from the next.
    #[n(10)]
    pub updated_at: u64,
    /// By whom.
    #[n(11)]
    pub updated_by: String,
    /// The name that they had; empty for an instance.
    #[n(12)]
    pub updated_by_name: String,
    /// After how many ticks (milliseconds) it fails when it is not finished.
    #[n(13)]
    pub ttl: Option<u64>,
    /// The tick at which it was made, or taken up again after it was finished: its time to live
    /// counts from there.
    #[n(14)]
    pub opened_tick: u64,
    /// The tick at which it was finished.
    #[n(15)]
    pub finished_tick: Option<u64>,
}

impl Task {
    /// Returns the target under which it is compared with others: only while it is not finished.
    pub(crate) fn open_target(&self) -> Option<&str> {
        let compared = !self.status.is_finished() && !self.target.is_empty();
        compared.then_some(self.target.as_str())
    }

    /// Returns the bytes of its texts.
    fn text_bytes(&self) -> usize {
        let texts = [&self.metadata, &self.result_uri, &self.error_message];
        texts.into_iter().flatten().map(String::len).fold(0, usize::saturating_add)
    }
}

/// The counter of tasks, and how many there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub(crate) struct TaskTotals {
    /// The newest task's number.
    #[n(0)]
    pub(crate) last: u64,
    /// How many are kept.
    #[n(1)]
    pub(crate) count: u64,
}

/// A part of the list of tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The tasks, newest first.
    pub tasks: Vec<Task>,
    /// Whether there are older ones; the next page is the one before the last task's number.
    pub more: bool,
}

/// Returns a task.
///
/// # Errors
/// A fault when the state cannot be read.
pub fn task(state: &impl Read, id: u64) -> Result<Option<Task>, Fault> {
    tables::TASKS.get(state, id)
}

/// Returns tasks, newest first: all, or those of a status; those older than task `before`, when
/// that is given.
///
/// At most `limit` and 500, and no more than fit 1 MiB of their texts (the first always).
///
/// # Errors
/// A fault when the state cannot be read, or an index names nothing.
pub fn list(
    state: &impl Read,
    status: Option<TaskStatus>,
    before: Option<u64>,
    limit: usize,
) -> Result<Page, Fault> {
    let mut page = Page::default();
    let mut bytes: usize = 0;
    let limit = limit.min(limits::TASKS_LIST_MAX);
    for task in newest(state, status, before) {
        let task = task?;
        bytes = bytes.saturating_add(task.text_bytes());
        let long = !page.tasks.is_empty() && bytes > limits::TASKS_LIST_BYTES_MAX;
        if long || page.tasks.len() >= limit {
            page.more = true;
            break;
        }
        page.tasks.push(task);
    }
    Ok(page)
}

/// Returns a task that is not finished and has this target, another one than `but`; the newest.
pub(crate) fn with_target(state: &impl Read, target: &str, but: u64) -> Result<Option<u64>, Fault> {
    let range = tables::TASK_TARGETS.beginning::<String>(target);
    let mut found = None;
    for key in tables::TASK_TARGETS.keys(state, range, Direction::Reverse) {
        let (_, id) = key?;
        if id != but {
            found = Some(id);
            break;
        }
    }
    Ok(found)
}

fn newest<'a, R: Read>(
    state: &'a R,
    status: Option<TaskStatus>,
    before: Option<u64>,
) -> impl Iterator<Item = Result<Task, Fault>> + 'a {
    let (all, of_status) = match status {
        None => (Some(until(tables::TASKS.all(), before.map(|id| tables::TASKS.key(id)))), None),
        Some(status) => {
            let table = &tables::TASKS_BY_STATUS;
            let end = before.map(|id| table.key((number(status), id)));
            (None, Some(until(table.beginning::<u8>(number(status)), end)))
        }
    };
    let all = all.map(|range| tables::TASKS.rows(state, range, Direction::Reverse));
    let of_status =
        of_status.map(|range| tables::TASKS_BY_STATUS.keys(state, range, Direction::Reverse));
    let all = all.into_iter().flatten().map(|row| Ok(row?.1));
    let of_status = of_status.into_iter().flatten().map(|key| {
        let (_, id) = key?;
        tables::TASKS.must(state, id)
    });
    all.chain(of_status)
}

/// Ends a range at a key, when one is given.
fn until(mut range: KeyRange, end: Option<Vec<u8>>) -> KeyRange {
    if end.is_some() {
        range.end = end;
    }
    range
}

/// Returns a status' number in the index; numbers are for ever.
pub(crate) fn number(status: TaskStatus) -> u8 {
    match status {
        TaskStatus::Pending => 0,
        TaskStatus::Running => 1,
        TaskStatus::Completed => 2,
        TaskStatus::Failed => 3,
        TaskStatus::Cancelled => 4,
    }
}
