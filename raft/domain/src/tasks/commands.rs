//! Commands of tasks: create, update and cancel.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::ends::save;
use super::{Task, task, with_target};
use crate::clock::Clock;
use crate::command::Client;
use crate::command::tasks::{Expected, Metadata, TaskChange, TaskCommand, TaskStatus};
use crate::context::{Context, Stop};
use crate::conversations::{self, Conversation};
use crate::event::Event;
use crate::rejection::Rejection;
use crate::reply::Reply;
use crate::store::{Fault, Read, Store};
use crate::{limits, meetings, tables};

pub(crate) fn run(
    state: &mut impl Store,
    context: &Context<'_>,
    command: &TaskCommand,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    match command {
        TaskCommand::Create { source_meeting, metadata, ttl } => {
            let wanted = Wanted {
                source_meeting: source_meeting.as_deref(),
                metadata: metadata.as_ref(),
                ttl: *ttl,
            };
            create(state, context, &wanted, told)
        }
        TaskCommand::Update { task, expected, change } => {
            update(state, context, (*task, expected), change, told)
        }
        TaskCommand::Cancel { task, expected } => cancel(state, context, (*task, expected), told),
    }
}

/// What a new task shall be.
struct Wanted<'a> {
    source_meeting: Option<&'a str>,
    metadata: Option<&'a Metadata>,
    ttl: Option<u64>,
}

fn check_metadata(metadata: &Metadata) -> Result<(), Rejection> {
    if metadata.json.len() > limits::TASK_METADATA_BYTES_MAX {
        let rule = "must have at most 16,384 bytes; keep more in a document and name it here";
        return Err(Rejection::invalid("metadata", rule));
    }
    if metadata.target.len() > limits::TASK_TARGET_BYTES_MAX {
        return Err(Rejection::invalid("metadata.target", "must have at most 512 bytes"));
    }
    Ok(())
}

/// Checks that the meeting that a task came out of is there; the task outlives it.
fn check_meeting(state: &impl Read, meeting: Option<&str>) -> Result<(), Stop> {
    match meeting {
        Some(id) if !meetings::is_kept(state, id)? => {
            Err(Rejection::not_found(format!("source_meeting_id: meeting {id}")).into())
        }
        Some(_) | None => Ok(()),
    }
}

fn create(
    state: &mut impl Store,
    context: &Context<'_>,
    wanted: &Wanted<'_>,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    wanted.metadata.map_or(Ok(()), check_metadata)?;
    if let Some(ttl) = wanted.ttl
        && !(1..=limits::TASK_TTL_TICKS_MAX).contains(&ttl)
    {
        return Err(Rejection::invalid("ttl", "must be from one millisecond to 366 days").into());
    }
    check_meeting(state, wanted.source_meeting)?;
    let mut totals = tables::TASK_TOTALS.get(state, ())?.unwrap_or_default();
    if totals.count >= limits::TASKS_MAX {
        let what = "tasks: the cluster keeps 100,000; finished ones go after 7 days, so finish or \
                    cancel what is done with";
        return Err(Rejection::full(what).into());
    }
    let Some(id) = totals.last.checked_add(1) else {
        return Err(Rejection::Impossible { what: "the last number of a task".into() }.into());
    };
    let speaker = conversations::active(state, context, told)?;
    totals.last = id;
    totals.count = totals.count.saturating_add(1);
    tables::TASK_TOTALS.put(state, (), &totals)?;
    let task = Task {
        id,
        status: TaskStatus::Pending,
        progress: 0,
        source_meeting: wanted.source_meeting.map(ToOwned::to_owned),
        metadata: wanted.metadata.map(|metadata| metadata.json.clone()),
        target: wanted.metadata.map_or_else(String::new, |metadata| metadata.target.clone()),
        result_uri: None,
        error_message: None,
        created_at: context.now.at,
        created_by: speaker.id.clone(),
        updated_at: context.now.at,
        updated_by: speaker.id.clone(),
        updated_by_name: shown_name(&speaker),
        ttl: wanted.ttl,
        opened_tick: context.now.tick,
        finished_tick: None,
    };
    save(state, None, &task, told)?;
    Ok(answer(state, &task)?)
}

fn check_change(change: &TaskChange) -> Result<(), Rejection> {
    let nothing = TaskChange::default();
    if *change == nothing {
        let rule = "must give at least one of status, progress, result_uri, error_message and \
                    metadata";
        return Err(Rejection::invalid("update", rule));
    }
    if change.progress.is_some_and(|progress| progress > limits::PROGRESS_MAX) {
        return Err(Rejection::invalid("progress", "must be from 0 to 1"));
    }
    let long = |text: &Option<String>, bytes_max: usize| {
        text.as_ref().is_some_and(|text| text.len() > bytes_max)
    };
    if long(&change.result_uri, limits::TASK_URI_BYTES_MAX) {
        return Err(Rejection::invalid("result_uri", "must have at most 2,048 bytes"));
    }
    if long(&change.error_message, limits::TASK_ERROR_BYTES_MAX) {
        return Err(Rejection::invalid("error_message", "must have at most 8,192 bytes"));
    }
    change.metadata.as_ref().map_or(Ok(()), check_metadata)
}

fn update(
    state: &mut impl Store,
    context: &Context<'_>,
    (id, expected): (u64, &Expected),
    change: &TaskChange,
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    check_change(change)?;
    let before = as_expected(state, id, expected)?;
    let speaker = conversations::active(state, context, told)?;
    let mut after = before.clone();
    if let Some(status) = change.status.status() {
        set_status(&mut after, status, context.now);
    }
    if let Some(progress) = change.progress {
        after.progress = progress;
    }
    if let Some(uri) = &change.result_uri {
        after.result_uri = Some(uri.clone());
    }
    if let Some(message) = &change.error_message {
        after.error_message = Some(message.clone());
    }
    if let Some(metadata) = &change.metadata {
        after.metadata = Some(metadata.json.clone());
        after.target.clone_from(&metadata.target);
    }
    sign(&mut after, &speaker, context.now);
    save(state, Some(&before), &after, told)?;
    Ok(answer(state, &after)?)
}

fn cancel(
    state: &mut impl Store,
    context: &Context<'_>,
    (id, expected): (u64, &Expected),
    told: &mut Vec<Event>,
) -> Result<Reply, Stop> {
    let before = as_expected(state, id, expected)?;
    if before.status.is_finished() {
        return Err(changed(&before).into());
    }
    let speaker = conversations::active(state, context, told)?;
    let mut after = before.clone();
    set_status(&mut after, TaskStatus::Cancelled, context.now);
    sign(&mut after, &speaker, context.now);
    save(state, Some(&before), &after, told)?;
    Ok(answer(state, &after)?)
}

/// Returns a task when it is what the caller takes it for.
fn as_expected(state: &impl Read, id: u64, expected: &Expected) -> Result<Task, Stop> {
    let Some(task) = task(state, id)? else {
        return Err(Rejection::not_found(format!("task {id}")).into());
    };
    let status = expected.status.status().is_none_or(|status| status == task.status);
    let same = expected.updated_at.is_none_or(|at| at == task.updated_at);
    if status && same { Ok(task) } else { Err(changed(&task).into()) }
}

/// Makes the refusal that says how a task stands, and who made it so.
fn changed(task: &Task) -> Rejection {
    Rejection::TaskChanged {
        task: task.id,
        status: task.status,
        updated_at: task.updated_at,
        by: task.updated_by.clone(),
        by_name: task.updated_by_name.clone(),
    }
}

/// Sets a status: when a task is finished is kept as long as it stays so; taken up again, it has
/// its time to live anew.
pub(super) fn set_status(task: &mut Task, status: TaskStatus, now: Clock) {
    match (task.status.is_finished(), status.is_finished()) {
        (false, true) => task.finished_tick = Some(now.tick),
        (true, false) => {
            task.finished_tick = None;
            task.opened_tick = now.tick;
        }
        (false, false) | (true, true) => {}
    }
    task.status = status;
}

/// Notes who changed a task, and when.
fn sign(task: &mut Task, speaker: &Conversation, now: Clock) {
    task.updated_by.clone_from(&speaker.id);
    task.updated_by_name = shown_name(speaker);
    task.updated_at = later(task, now);
}

/// Returns when a task is changed: never the time of the change before, or one could be taken for
/// the other.
pub(super) fn later(task: &Task, now: Clock) -> u64 {
    now.at.max(task.updated_at.saturating_add(1))
}

fn shown_name(speaker: &Conversation) -> String {
    if speaker.client == Client::Instance { String::new() } else { speaker.name.clone() }
}

fn answer(state: &impl Read, task: &Task) -> Result<Reply, Fault> {
    let same_target = match task.open_target() {
        Some(target) => with_target(state, target, task.id)?,
        None => None,
    };
    Ok(Reply::Task { id: task.id, status: task.status, updated_at: task.updated_at, same_target })
}
