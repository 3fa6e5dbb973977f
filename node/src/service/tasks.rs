//! Tasks: made, looked at, claimed, changed and called off.
//!
//! A change answers with the whole task. The log's own answer is short (traps.md 7), so the rest is
//! read from a state that has the change; where none comes in time, what the call itself says is
//! put on the task as this node knows it, and the answer says how old the rest is.

use nexus_contract::tasks::{
    CancelTaskInput, CreateTaskInput, CreateTaskOutput, GetTaskInput, ListTasksInput,
    ListTasksOutput, Progress, Task, TaskStatus, UpdateTaskInput, no_time_of_a_task,
};
use nexus_contract::{ApiError, ReadMarks};
use nexus_domain::command::tasks::{self as command, Expected, Metadata, TaskChange, TaskCommand};
use nexus_domain::conversations::conversation;
use nexus_domain::{Command, Reply, tasks};
use nexus_raft::Committed;
use serde_json::{Map, Value};

use super::{Answer, Call, Service, errors, time};

/// What to do about the id of a task that does not exist.
const REMEDY: &str = "list_tasks shows those there are";

/// `create_task`.
pub(super) async fn create_task(
    service: &Service,
    about: &Call<'_>,
    input: CreateTaskInput,
) -> Answer {
    let meeting = input.source_meeting_id;
    let metadata = input.metadata.map(into_metadata);
    let command = TaskCommand::Create {
        source_meeting: meeting.clone(),
        metadata: metadata.clone(),
        ttl: input.ttl,
    };
    let changed = propose(service, about, command).await.map_err(|error| {
        let what = format!("meeting {}", meeting.as_deref().unwrap_or_default());
        let remedy = "list_meetings shows those there are; or leave it out";
        errors::missing(error, "source_meeting_id", &what, remedy)
    })?;
    let put = |_unknown, by: &Signature| {
        Some(tasks::Task {
            id: changed.id,
            status: command::TaskStatus::Pending,
            progress: 0,
            source_meeting: meeting,
            target: String::new(),
            metadata: metadata.map(|metadata| metadata.json),
            result_uri: None,
            error_message: None,
            created_at: changed.updated_at,
            created_by: by.id.clone(),
            updated_at: changed.updated_at,
            updated_by: by.id.clone(),
            updated_by_name: by.name.clone(),
            ttl: input.ttl,
            opened_tick: 0,
            finished_tick: None,
        })
    };
    let (task, marks) = after(service, about, &changed, put).await?;
    let mut message = format!("Task {} is made and pending.", changed.id);
    if let Some(other) = changed.same_target {
        message = format!(
            "{message} Task {other} has the same target and is not finished: look whether it is \
             the same work."
        );
    }
    marks.stamp(&CreateTaskOutput {
        task_id: changed.id.to_string(),
        status: from_status(changed.status),
        message,
        task,
    })
}

/// `get_task`: a read.
pub(super) async fn get_task(service: &Service, about: &Call<'_>, input: &GetTaskInput) -> Answer {
    let id = number("taskId", &input.task_id)?;
    let fresh = service.read(|view| tasks::task(view, id)).await?;
    let row = fresh.value.as_ref().ok_or_else(|| {
        let what = format!("task {}", input.task_id);
        errors::absent(fresh.stale.is_some(), "taskId", &what, REMEDY)
    })?;
    service.marks(about, &fresh).stamp(&shown(row)?)
}

/// `list_tasks`: a read.
pub(super) async fn list_tasks(
    service: &Service,
    about: &Call<'_>,
    input: &ListTasksInput,
) -> Answer {
    // The task itself may be gone meanwhile: its number is a place in the list all the same.
    let before = input.before.as_deref().map(|id| number("before", id)).transpose()?;
    let status = input.status.map(into_status);
    let limit = usize::try_from(input.limit).unwrap_or(usize::MAX);
    let fresh = service.read(|view| tasks::list(view, status, before, limit)).await?;
    let list = fresh.value.tasks.iter().map(shown).collect::<Result<Vec<_>, _>>()?;
    let count = u32::try_from(list.len()).unwrap_or(u32::MAX);
    let more = fresh.value.more;
    service.marks(about, &fresh).stamp(&ListTasksOutput { count, tasks: list, more })
}

/// `update_task`: of all that expect the same state, one is first.
pub(super) async fn update_task(
    service: &Service,
    about: &Call<'_>,
    input: UpdateTaskInput,
) -> Answer {
    let task = number("taskId", &input.task_id)?;
    let given = (input.expected_status, input.expected_updated_at.as_deref());
    let expected = expected(about, given)?;
    let change = TaskChange {
        status: input.status.map(into_status).into(),
        progress: input.progress.map(Progress::millionths),
        result_uri: input.result_uri,
        error_message: input.error_message,
        metadata: input.metadata.map(into_metadata),
    };
    let command = TaskCommand::Update { task, expected, change: change.clone() };
    alter(service, about, (&input.task_id, command), &change).await
}

/// `cancel_task`: of a task that is not finished.
pub(super) async fn cancel_task(
    service: &Service,
    about: &Call<'_>,
    input: &CancelTaskInput,
) -> Answer {
    let task = number("taskId", &input.task_id)?;
    let given = (input.expected_status, input.expected_updated_at.as_deref());
    let expected = expected(about, given)?;
    let command = TaskCommand::Cancel { task, expected };
    alter(service, about, (&input.task_id, command), &TaskChange::default()).await
}

/// Changes a task that is there; its status is what the log says.
async fn alter(
    service: &Service,
    about: &Call<'_>,
    (id, command): (&str, TaskCommand),
    change: &TaskChange,
) -> Answer {
    let changed = propose(service, about, command)
        .await
        .map_err(|error| errors::missing(error, "taskId", &format!("task {id}"), REMEDY))?;
    let put = |known: Option<tasks::Task>, by: &Signature| Some(put(known?, &changed, change, by));
    let (task, marks) = after(service, about, &changed, put).await?;
    marks.stamp(&task)
}

/// A change as the log answered it.
struct Changed {
    id: u64,
    status: command::TaskStatus,
    updated_at: u64,
    same_target: Option<u64>,
    committed: Committed,
}

/// Who signs a change.
struct Signature {
    id: String,
    /// Its name; empty for an instance.
    name: String,
}

async fn propose(
    service: &Service,
    about: &Call<'_>,
    command: TaskCommand,
) -> Result<Changed, ApiError> {
    let committed = service.propose(about, Command::Task(command)).await?;
    let Reply::Task { id, status, updated_at, same_target } = committed.reply else {
        return Err(errors::odd_reply(about.tool));
    };
    Ok(Changed { id, status, updated_at, same_target, committed })
}

/// Returns the task with a change in it. Where this node does not have the change in time, `put`
/// makes it of what the node knows and the call says.
async fn after(
    service: &Service,
    about: &Call<'_>,
    changed: &Changed,
    put: impl FnOnce(Option<tasks::Task>, &Signature) -> Option<tasks::Task>,
) -> Result<(Task, ReadMarks), ApiError> {
    let half_known = || {
        let Changed { id, status, updated_at, .. } = changed;
        let (status, at) = (status.word(), time::text(*updated_at));
        let text = format!(
            "task {id} is changed by this call: it is {status}, updated_at {at}; this node is too \
             far behind to show the rest of it: call again with the same request id, or ask \
             get_task later"
        );
        errors::done_and_not_shown(&text, about.request_id)
    };
    let look = |view: &nexus_raft::View<'_>| tasks::task(view, changed.id);
    let looked = service.after(about, &changed.committed, look).await?;
    if looked.has_it {
        return Ok((shown(&looked.value.ok_or_else(half_known)?)?, looked.marks));
    }
    let who = about.who()?;
    let name = service.cluster.look(|view| conversation(view, &who.id));
    let name = name.map_err(|error| errors::read(&error))?.map(|known| known.name);
    let by = Signature { id: who.id.clone(), name: name.unwrap_or_default() };
    let row = put(looked.value, &by).ok_or_else(half_known)?;
    Ok((shown(&row)?, looked.marks))
}

/// Puts a change on a task as it was known before.
fn put(
    mut known: tasks::Task,
    changed: &Changed,
    change: &TaskChange,
    by: &Signature,
) -> tasks::Task {
    known.status = changed.status;
    known.updated_at = changed.updated_at;
    known.updated_by.clone_from(&by.id);
    known.updated_by_name.clone_from(&by.name);
    known.progress = change.progress.unwrap_or(known.progress);
    let TaskChange { result_uri, error_message, metadata, .. } = change.clone();
    known.result_uri = result_uri.or(known.result_uri);
    known.error_message = error_message.or(known.error_message);
    known.metadata = metadata.map(|metadata| metadata.json).or(known.metadata);
    known
}

/// Shows a task.
fn shown(row: &tasks::Task) -> Result<Task, ApiError> {
    let metadata = row.metadata.as_deref().map(from_metadata).transpose().map_err(|error| {
        ApiError::internal(format!("metadata of task {} is no JSON object: {error}", row.id))
    })?;
    let name = Some(&row.updated_by_name).filter(|name| !name.is_empty());
    Ok(Task {
        id: row.id.to_string(),
        status: from_status(row.status),
        progress: Progress::from_millionths(row.progress),
        source_meeting_id: row.source_meeting.clone(),
        metadata,
        result_uri: row.result_uri.clone(),
        error_message: row.error_message.clone(),
        created_at: time::text(row.created_at),
        created_by: row.created_by.clone(),
        updated_at: time::text(row.updated_at),
        updated_by: row.updated_by.clone(),
        updated_by_name: name.cloned(),
        ttl: row.ttl,
    })
}

/// Reads the id of a task: a number as it was shown, or it names none.
fn number(field: &str, id: &str) -> Result<u64, ApiError> {
    let number = id.parse().ok().filter(|number: &u64| number.to_string() == id);
    number.ok_or_else(|| unknown(field, id))
}

fn unknown(field: &str, id: &str) -> ApiError {
    errors::not_found(field, &format!("task {id}"), REMEDY)
}

fn expected(
    about: &Call<'_>,
    (status, updated_at): (Option<TaskStatus>, Option<&str>),
) -> Result<Expected, ApiError> {
    let updated_at = updated_at.map(|given| {
        let no_time = || ApiError::invalid_arguments(about.tool, no_time_of_a_task());
        time::millis(given).ok_or_else(no_time)
    });
    Ok(Expected { status: status.map(into_status).into(), updated_at: updated_at.transpose()? })
}

fn into_metadata(given: Map<String, Value>) -> Metadata {
    let target = given.get("target").and_then(Value::as_str).unwrap_or_default().to_owned();
    Metadata { json: Value::Object(given).to_string(), target }
}

fn from_metadata(json: &str) -> serde_json::Result<Map<String, Value>> {
    serde_json::from_str(json)
}

fn into_status(status: TaskStatus) -> command::TaskStatus {
    match status {
        TaskStatus::Pending => command::TaskStatus::Pending,
        TaskStatus::Running => command::TaskStatus::Running,
        TaskStatus::Completed => command::TaskStatus::Completed,
        TaskStatus::Failed => command::TaskStatus::Failed,
        TaskStatus::Cancelled => command::TaskStatus::Cancelled,
    }
}

fn from_status(status: command::TaskStatus) -> TaskStatus {
    match status {
        command::TaskStatus::Pending => TaskStatus::Pending,
        command::TaskStatus::Running => TaskStatus::Running,
        command::TaskStatus::Completed => TaskStatus::Completed,
        command::TaskStatus::Failed => TaskStatus::Failed,
        command::TaskStatus::Cancelled => TaskStatus::Cancelled,
    }
}

#[cfg(test)]
mod tests {
    use nexus_contract::ErrorCode;
    use nexus_domain::RequestId;
    use serde_json::json;

    use super::*;

    fn known() -> tasks::Task {
        tasks::Task {
            id: 7,
            status: command::TaskStatus::Pending,
            progress: 250_000,
            source_meeting: Some("m".into()),
            metadata: Some("{\"target\":\"issue 7\"}".into()),
            target: "issue 7".into(),
            result_uri: None,
            error_message: Some("before".into()),
            created_at: 1_000,
            created_by: "codex:a".into(),
            updated_at: 2_000,
            updated_by: "codex:a".into(),
            updated_by_name: "codex@app".into(),
            ttl: Some(60_000),
            opened_tick: 5,
            finished_tick: None,
        }
    }

    #[test]
    fn a_task_shows_all_that_is_kept_of_it() {
        let shown = serde_json::to_value(shown(&known()).unwrap()).unwrap();
        let expected = json!({
            "id": "7", "status": "pending", "progress": 0.25, "source_meeting_id": "m",
            "metadata": {"target": "issue 7"}, "result_uri": null, "error_message": "before",
            "created_at": "1970-01-01T00:00:01.000Z", "created_by": "codex:a",
            "updated_at": "1970-01-01T00:00:02.000Z", "updated_by": "codex:a",
            "updated_by_name": "codex@app", "ttl": 60_000,
        });
        assert_eq!(shown, expected);
        let broken = tasks::Task { metadata: Some("[]".into()), ..known() };
        assert_eq!(super::shown(&broken).unwrap_err().code, ErrorCode::Internal);
    }

    #[test]
    fn a_change_that_is_not_here_yet_is_put_on_what_is_known() {
        let request = RequestId::Client("r".into());
        let committed = Committed { reply: Reply::Done, index: 9, applied_here: false, request };
        let status = command::TaskStatus::Running;
        let changed = Changed { id: 7, status, updated_at: 3_000, same_target: None, committed };
        let by = Signature { id: "mcp-1".into(), name: String::new() };
        let claimed = put(known(), &changed, &TaskChange::default(), &by);
        let signed = tasks::Task {
            status,
            updated_at: 3_000,
            updated_by: "mcp-1".into(),
            updated_by_name: String::new(),
            ..known()
        };
        assert_eq!(claimed, signed);
        let change = TaskChange {
            progress: Some(1_000_000),
            result_uri: Some("http://x".into()),
            error_message: Some("after".into()),
            metadata: Some(into_metadata(Map::new())),
            ..TaskChange::default()
        };
        let expected = tasks::Task {
            progress: 1_000_000,
            result_uri: Some("http://x".into()),
            error_message: Some("after".into()),
            metadata: Some("{}".into()),
            ..signed
        };
        assert_eq!(put(known(), &changed, &change, &by), expected);
    }

    #[test]
    fn only_a_number_as_it_is_shown_is_the_id_of_a_task() {
        assert_eq!(number("taskId", "7").unwrap(), 7);
        for wrong in ["", "07", "+7", "-7", "7.0", "0x7", "a", "..", "18446744073709551616"] {
            let error = number("before", wrong).unwrap_err();
            assert_eq!(error.code, ErrorCode::NotFound);
            let text = format!("before: task {wrong} does not exist; list_tasks shows those");
            assert!(error.message.starts_with(&text), "{}", error.message);
        }
    }

    #[test]
    fn metadata_comes_back_as_it_was_given_with_its_target_beside() {
        for (given, target) in [
            (json!({}), ""),
            (json!({"target": "issue 7", "deep": [null, {"ü": 1.5}]}), "issue 7"),
            (json!({"target": 7}), ""),
            (json!({"target": {"target": "x"}}), ""),
        ] {
            let given = given.as_object().unwrap().clone();
            let metadata = into_metadata(given.clone());
            assert_eq!(metadata.target, target);
            assert_eq!(from_metadata(&metadata.json).unwrap(), given);
        }
    }
}
