//! What must hold between tasks, their indexes and their timers.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{count, rows};
use crate::command::DueKind;
use crate::store::{Direction, Fault, Read};
use crate::tasks::{number, timer};
use crate::{due, limits, tables};

pub(super) fn check(state: &impl Read, found: &mut Vec<String>) -> Result<(), Fault> {
    let (mut all, mut targets, mut timers): (u64, u64, u64) = (0, 0, 0);
    let totals = tables::TASK_TOTALS.get(state, ())?.unwrap_or_default();
    for row in rows!(tables::TASKS, state) {
        let (id, task) = row?;
        all = all.saturating_add(1);
        if task.id != id || id > totals.last {
            found.push(format!("task {id}: its row says {}, the last is {}", task.id, totals.last));
        }
        if task.status.is_finished() != task.finished_tick.is_some() {
            found.push(format!("task {id}: {:?} since {:?}", task.status, task.finished_tick));
        }
        if task.progress > limits::PROGRESS_MAX {
            found.push(format!("task {id}: its progress is {}", task.progress));
        }
        if !tables::TASKS_BY_STATUS.has(state, (number(task.status), id))? {
            found.push(format!("task {id}: is not in the index of {:?}", task.status));
        }
        if let Some(target) = task.open_target() {
            targets = targets.saturating_add(1);
            if !tables::TASK_TARGETS.has(state, (target, id))? {
                found.push(format!("task {id}: is not in the index of targets"));
            }
        }
        if let Some(timer) = timer(&task) {
            timers = timers.saturating_add(1);
            if !due::stands(state, &timer)? {
                found.push(format!("task {id}: nothing ends it"));
            }
        }
    }
    let standing = super::timers(state, DueKind::Task)?.len();
    for (what, number, expected) in [
        ("total", totals.count, all),
        ("statuses", count(state, &tables::TASKS_BY_STATUS)?, all),
        ("targets", count(state, &tables::TASK_TARGETS)?, targets),
        ("timers", u64::try_from(standing).unwrap_or(u64::MAX), timers),
    ] {
        if number != expected {
            found.push(format!("tasks: {what} is {number} and should be {expected}"));
        }
    }
    Ok(())
}
