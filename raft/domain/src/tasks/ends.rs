//! How tasks end by themselves, and the rows that follow a task's row.

use alloc::string::ToString;
use alloc::vec::Vec;

use super::commands::{later, set_status};
use super::{Task, number, task};
use crate::chat;
use crate::clock;
use crate::command::DueKind;
use crate::command::tasks::TaskStatus;
use crate::context::Stop;
use crate::due::{self, Due};
use crate::event::Event;
use crate::limits;
use crate::reply::Reply;
use crate::store::{Fault, Store};
use crate::tables;

/// Returns the timer that a task must have: the end of its time to live, or of its being kept.
pub(crate) fn timer(task: &Task) -> Option<Due> {
    let due = match (task.finished_tick, task.ttl) {
        (Some(finished), _) => finished.saturating_add(limits::TASK_KEPT_TICKS),
        (None, Some(ttl)) => task.opened_tick.saturating_add(ttl),
        (None, None) => return None,
    };
    Some(Due { due, kind: DueKind::Task, id: task.id.to_string(), generation: 1 })
}

/// Writes a task with the rows that follow it; `before` is what stands there now.
pub(super) fn save(
    state: &mut impl Store,
    before: Option<&Task>,
    after: &Task,
    told: &mut Vec<Event>,
) -> Result<(), Fault> {
    if before.map(|task| task.status) != Some(after.status) {
        if let Some(before) = before {
            tables::TASKS_BY_STATUS.delete(state, (number(before.status), after.id))?;
        }
        tables::TASKS_BY_STATUS.put(state, (number(after.status), after.id), &())?;
    }
    let (old, new) = (before.and_then(Task::open_target), after.open_target());
    if old != new {
        if let Some(old) = old {
            tables::TASK_TARGETS.delete(state, (old, after.id))?;
        }
        if let Some(new) = new {
            tables::TASK_TARGETS.put(state, (new, after.id), &())?;
        }
    }
    let (old, new) = (before.and_then(timer), timer(after));
    if old != new {
        if let Some(old) = old {
            due::disarm(state, &old)?;
        }
        if let Some(new) = new {
            due::arm(state, &new, told)?;
        }
    }
    tables::TASKS.put(state, after.id, after)?;
    told.push(Event::Task { id: after.id });
    Ok(())
}

/// A task's timer: what is open fails, what is finished goes.
pub(crate) fn ends(
    state: &mut impl Store,
    due: &Due,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    let Ok(id) = due.id.parse() else {
        return Err(due.misnamed("a task").into());
    };
    let Some(before) = task(state, id)? else { return Ok(Reply::fired(0)) };
    if before.finished_tick.is_some() {
        forget(state, &before, told)?;
        return Ok(Reply::fired(1));
    }
    let now = clock::clock(state)?;
    let mut after = before.clone();
    set_status(&mut after, TaskStatus::Failed, now);
    after.error_message = Some("TTL expired".into());
    after.updated_at = later(&before, now);
    after.updated_by = chat::CLUSTER.into();
    after.updated_by_name.clear();
    save(state, Some(&before), &after, told)?;
    Ok(Reply::fired(1))
}

/// Removes a finished task, whose timer has fired.
fn forget(state: &mut impl Store, task: &Task, told: &mut Vec<Event>) -> Result<(), Fault> {
    tables::TASKS.delete(state, task.id)?;
    tables::TASKS_BY_STATUS.delete(state, (number(task.status), task.id))?;
    let mut totals = tables::TASK_TOTALS.get(state, ())?.unwrap_or_default();
    totals.count = totals.count.saturating_sub(1);
    tables::TASK_TOTALS.put(state, (), &totals)?;
    told.push(Event::Task { id: task.id });
    Ok(())
}
