//! Tasks: what people and conversations give each other to do. The cluster runs none of them.
//!
//! Of all that claim one task at once exactly one wins: who gives what it takes the task for
//! (`expected_status`, `expected_updated_at`) is told who was first when it is another one now.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::limits;
use crate::marks::is_false;
use crate::schema::{KnownId, brief, silent};
use crate::text;
use crate::tool::{Hints, Tool, ToolSpec};
use crate::validate::Violation;

/// The tools of this family.
pub(crate) const TOOLS: &[fn() -> ToolSpec] = &[
    ToolSpec::of::<CreateTask>,
    ToolSpec::of::<GetTask>,
    ToolSpec::of::<ListTasks>,
    ToolSpec::of::<UpdateTask>,
    ToolSpec::of::<CancelTask>,
];

/// How a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TaskStatus {
    /// Nobody works on it.
    Pending,
    /// Somebody does.
    Running,
    /// It is done.
    Completed,
    /// It did not succeed, or its time ran out.
    Failed,
    /// It was called off.
    Cancelled,
}

/// How far a task is, 0 to 1: in millionths here, so that nobody has to round.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Progress {
    millionths: u32,
}

impl Progress {
    /// Makes it of millionths; more than all is all.
    pub fn from_millionths(millionths: u32) -> Self {
        Self { millionths: millionths.min(1_000_000) }
    }

    /// Returns the millionths.
    pub fn millionths(self) -> u32 {
        self.millionths
    }
}

impl TryFrom<f64> for Progress {
    type Error = &'static str;

    fn try_from(part: f64) -> Result<Self, &'static str> {
        if !(0.0..=1.0).contains(&part) {
            return Err("progress is a number from 0 to 1");
        }
        let rounded = (part * 1e6).round();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is a whole number from 0 to 1,000,000"
        )]
        Ok(Self { millionths: rounded as u32 })
    }
}

impl From<Progress> for f64 {
    fn from(progress: Progress) -> f64 {
        f64::from(progress.millionths) / 1e6
    }
}

/// A task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Task {
    /// Its id.
    pub id: String,
    /// How it stands.
    pub status: TaskStatus,
    /// How far it is, 0 to 1.
    #[schemars(with = "f64")]
    pub progress: Progress,
    /// The meeting that it came out of.
    pub source_meeting_id: Option<String>,
    /// What it is about.
    pub metadata: Option<Map<String, Value>>,
    /// Where its result is.
    pub result_uri: Option<String>,
    /// What went wrong.
    pub error_message: Option<String>,
    /// When it was made (RFC 3339, UTC, milliseconds).
    pub created_at: String,
    /// Who made it: a session id or instance id.
    pub created_by: String,
    /// When it was changed last; no two states of one task have the same.
    pub updated_at: String,
    /// Who changed it last.
    pub updated_by: String,
    /// The name that who changed it had; null for an instance.
    pub updated_by_name: Option<String>,
    /// After how many milliseconds it fails when it is not finished.
    pub ttl: Option<u64>,
}

/// Arguments of `create_task`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CreateTaskInput {
    /// The meeting that it came out of.
    #[schemars(transform = silent, with = "Option<KnownId>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_meeting_id: Option<String>,
    /// Anything; its target is compared with other tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    /// Milliseconds until it fails.
    #[schemars(range(min = 1, max = limits::TASK_TTL_MILLIS_MAX), transform = brief)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl: Option<u64>,
}

/// Result of `create_task`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CreateTaskOutput {
    /// The new task's id.
    pub task_id: String,
    /// Pending.
    pub status: TaskStatus,
    /// What was done, and another unfinished task with the same target.
    pub message: String,
    /// The task.
    pub task: Task,
}

/// The tool `create_task`.
#[derive(Debug)]
pub struct CreateTask;

impl Tool for CreateTask {
    const NAME: &'static str = "create_task";
    const TITLE: &'static str = "Create Task";
    const DESCRIPTION: &'static str = "Makes a pending task that anybody may take.";
    const HINTS: Hints = Hints::ADDS;
    const PUBLISHES_OUTPUT: bool = false;
    type Input = CreateTaskInput;
    type Output = CreateTaskOutput;

    fn check(input: &CreateTaskInput) -> Result<(), Violation> {
        check_metadata(input.metadata.as_ref())
    }
}

/// Arguments of `get_task`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GetTaskInput {
    /// Which task.
    #[schemars(transform = silent, with = "KnownId")]
    pub task_id: String,
}

/// The tool `get_task`.
#[derive(Debug)]
pub struct GetTask;

impl Tool for GetTask {
    const NAME: &'static str = "get_task";
    const TITLE: &'static str = "Get Task";
    const DESCRIPTION: &'static str = "Returns a task, with who changed it last.";
    const HINTS: Hints = Hints::READ_ONLY;
    const PUBLISHES_OUTPUT: bool = true;
    type Input = GetTaskInput;
    type Output = Task;
}

/// Arguments of `list_tasks`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListTasksInput {
    /// Only those.
    #[schemars(transform = silent)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<TaskStatus>,
    /// How many at most.
    #[serde(default = "limit_default")]
    #[schemars(transform = silent, range(min = 1, max = limits::TASKS_MAX))]
    pub limit: u32,
    /// Older than this one.
    #[schemars(with = "Option<KnownId>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
}

impl Default for ListTasksInput {
    fn default() -> Self {
        Self { status: None, limit: limit_default(), before: None }
    }
}

fn limit_default() -> u32 {
    limits::TASKS_DEFAULT
}

/// Result of `list_tasks`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListTasksOutput {
    /// How many are listed.
    pub count: u32,
    /// The tasks, newest first.
    pub tasks: Vec<Task>,
    /// True when there are older ones: `before` the last one's id.
    #[serde(default, skip_serializing_if = "is_false")]
    pub more: bool,
}

/// The tool `list_tasks`.
#[derive(Debug)]
pub struct ListTasks;

impl Tool for ListTasks {
    const NAME: &'static str = "list_tasks";
    const TITLE: &'static str = "List Tasks";
    const DESCRIPTION: &'static str = "Lists tasks, newest first.";
    const HINTS: Hints = Hints::READ_ONLY;
    const PUBLISHES_OUTPUT: bool = true;
    type Input = ListTasksInput;
    type Output = ListTasksOutput;
}

/// Arguments of `update_task`: at least one field to change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UpdateTaskInput {
    /// Which task.
    #[serde(rename = "taskId")]
    #[schemars(transform = silent, with = "KnownId")]
    pub task_id: String,
    /// The new status.
    #[schemars(transform = silent)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<TaskStatus>,
    /// How far it is.
    #[schemars(transform = silent, with = "Option<f64>", range(min = 0, max = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// Where the result is.
    #[schemars(transform = silent, length(max = limits::TASK_URI_BYTES_MAX), transform = brief)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_uri: Option<String>,
    /// What went wrong.
    #[schemars(transform = silent, length(max = limits::TASK_ERROR_BYTES_MAX), transform = brief)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// Replaces all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    /// Refuse if it is another; pending to claim a task.
    #[schemars(transform = brief)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_status: Option<TaskStatus>,
    /// Likewise.
    #[schemars(transform = silent, length(min = 1, max = limits::ID_CHARS_MAX), transform = brief)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_updated_at: Option<String>,
}

/// The tool `update_task`.
#[derive(Debug)]
pub struct UpdateTask;

impl Tool for UpdateTask {
    const NAME: &'static str = "update_task";
    const TITLE: &'static str = "Update Task";
    const DESCRIPTION: &'static str =
        "Changes the given fields of a task; of several that claim it, one wins.";
    const HINTS: Hints = Hints::ADDS_ONCE;
    const PUBLISHES_OUTPUT: bool = false;
    type Input = UpdateTaskInput;
    type Output = Task;

    fn check(input: &UpdateTaskInput) -> Result<(), Violation> {
        let UpdateTaskInput { status, progress, result_uri, error_message, metadata, .. } = input;
        let texts = result_uri.is_some() || error_message.is_some();
        if status.is_none() && progress.is_none() && metadata.is_none() && !texts {
            let fields = "status, progress, result_uri, error_message, metadata";
            return Err(Violation::new(fields, "none is given; give at least one of them"));
        }
        for (field, given, bytes_max) in [
            ("result_uri", result_uri, limits::TASK_URI_BYTES_MAX),
            ("error_message", error_message, limits::TASK_ERROR_BYTES_MAX),
        ] {
            given.as_deref().map_or(Ok(()), |given| text::bytes(field, given, bytes_max))?;
        }
        check_metadata(metadata.as_ref())?;
        check_time(input.expected_updated_at.as_deref())
    }
}

/// Arguments of `cancel_task`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CancelTaskInput {
    /// Which task.
    #[serde(rename = "taskId")]
    #[schemars(transform = silent, with = "KnownId")]
    pub task_id: String,
    /// Refuse if it is another.
    #[schemars(transform = brief)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_status: Option<TaskStatus>,
    /// Likewise.
    #[schemars(transform = silent, length(min = 1, max = limits::ID_CHARS_MAX), transform = brief)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_updated_at: Option<String>,
}

/// The tool `cancel_task`.
#[derive(Debug)]
pub struct CancelTask;

impl Tool for CancelTask {
    const NAME: &'static str = "cancel_task";
    const TITLE: &'static str = "Cancel Task";
    const DESCRIPTION: &'static str = "Calls off a pending or running task.";
    const HINTS: Hints = Hints::REPLACES;
    const PUBLISHES_OUTPUT: bool = false;
    type Input = CancelTaskInput;
    type Output = Task;

    fn check(input: &CancelTaskInput) -> Result<(), Violation> {
        check_time(input.expected_updated_at.as_deref())
    }
}

fn check_metadata(metadata: Option<&Map<String, Value>>) -> Result<(), Violation> {
    let Some(metadata) = metadata else { return Ok(()) };
    if let Some(Value::String(target)) = metadata.get("target") {
        text::bytes("metadata.target", target, limits::TASK_TARGET_BYTES_MAX)?;
    }
    let json = Value::Object(metadata.clone()).to_string();
    text::bytes("metadata", &json, limits::TASK_METADATA_BYTES_MAX).map_err(|violation| {
        let what = format!("{}; keep more in a document and name it here", violation.what);
        Violation::new(violation.field, what)
    })
}

/// Checks a time that stands for a state of a task: it has the one form that a task shows.
fn check_time(given: Option<&str>) -> Result<(), Violation> {
    const FORM: &str = "0000-00-00T00:00:00.000Z";
    let fits = |time: &str| {
        time.len() == FORM.len()
            && time.bytes().zip(FORM.bytes()).all(|(byte, form)| match form {
                b'0' => byte.is_ascii_digit(),
                _ => byte == form,
            })
    };
    if given.is_none_or(fits) {
        return Ok(());
    }
    Err(no_time_of_a_task())
}

/// Makes the refusal of a time at which no task was changed, since there is no such time.
pub fn no_time_of_a_task() -> Violation {
    let what = "is no time of a task; give its updated_at as it was shown, such as \
                2026-01-02T03:04:05.678Z";
    Violation::new("expected_updated_at", what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_a_number_and_never_rounded_twice() {
        for (number, millionths, shown) in [
            ("0", 0, "0.0"),
            ("0.0", 0, "0.0"),
            ("1", 1_000_000, "1.0"),
            ("0.5", 500_000, "0.5"),
            ("0.3333333", 333_333, "0.333333"),
            ("0.0000004", 0, "0.0"),
        ] {
            let progress: Progress = serde_json::from_str(number).unwrap();
            assert_eq!(progress.millionths(), millionths, "{number}");
            assert_eq!(serde_json::to_string(&progress).unwrap(), shown);
        }
        for millionths in 0..=1_000_000 {
            let progress = Progress::from_millionths(millionths);
            assert_eq!(Progress::try_from(f64::from(progress)), Ok(progress));
        }
        assert_eq!(Progress::from_millionths(u32::MAX).millionths(), 1_000_000);
        for bad in ["-0.1", "1.000001", "1e300", "\"x\""] {
            assert!(serde_json::from_str::<Progress>(bad).is_err(), "{bad}");
        }
        assert!(Progress::try_from(f64::NAN).is_err());
    }
}
