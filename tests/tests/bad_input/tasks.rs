//! What the tools of tasks must refuse.

use nexus_contract::ErrorCode::{Conflict, InvalidArguments, NotFound};
use nexus_tests::process::text;
use serde_json::{Value, json};

use super::table::{Stage, Table};

/// The tools that are held here.
pub(crate) const TOOLS: &[&str] =
    &["create_task", "get_task", "list_tasks", "update_task", "cancel_task"];

/// Ids that name no task.
const UNKNOWN: [&str; 6] = ["99", "0", "07", "..", "a#b", "task_1"];
const MISSING: &[&str] = &["taskId: task ", " does not exist; list_tasks shows those there are"];
/// The state of a task that was claimed.
const IS_RUNNING: &[&str] =
    &["task 1: is running, set by maker, updated_at 20", "look at it again"];
const NO_TIME: &[&str] = &["expected_updated_at: is no time of a task; give its updated_at"];
/// A time at which nothing was changed here.
const THEN: &str = "2026-01-02T03:04:05.678Z";

#[tokio::test(flavor = "multi_thread")]
async fn tasks_are_refused_in_words() {
    let mut stage = Stage::new().await;
    let running = text(&stage.call("create_task", json!({})).await["task_id"]);
    let claim = json!({"taskId": running, "status": "running", "expected_status": "pending"});
    stage.call("update_task", claim.clone()).await;
    let finished = text(&stage.call("create_task", json!({})).await["task_id"]);
    stage.call("update_task", json!({"taskId": finished, "status": "completed"})).await;

    let before = &["before: task ", " does not exist; list_tasks"];
    let own = [
        create(),
        Table::of("get_task").rows("taskId", UNKNOWN, &json!({}), NotFound, MISSING),
        // A number is a place in the list, whether its task is there or not.
        Table::of("list_tasks").rows("before", ["07", "..", "a#b"], &json!({}), NotFound, before),
        update(&running, claim),
        cancel(&running, &finished),
    ];
    stage.hold(TOOLS, own).await;
}

fn create() -> Table {
    let none = &["source_meeting_id: meeting ", "does not exist; list_meetings", "leave it out"];
    Table::of("create_task")
        .rows("source_meeting_id", ["m-1", "..", "a#b"], &json!({}), NotFound, none)
        .row("long metadata", long_metadata(), InvalidArguments, TOO_LONG)
        .row("a long target", long_target(), InvalidArguments, TOO_WIDE)
}

fn update(running: &str, claim: Value) -> Table {
    let with = |fields: &Value| with_id(running, fields);
    let never = json!({"progress": 1, "expected_updated_at": "2026-13-01T00:00:00.000Z"});
    let nothing = &["status, progress, result_uri, error_message, metadata: none is given; give"];
    Table::of("update_task")
        .rows("taskId", UNKNOWN, &json!({"progress": 0.5}), NotFound, MISSING)
        .row("nothing", with(&json!({"expected_status": "running"})), InvalidArguments, nothing)
        .row("a task that another has claimed", claim, Conflict, IS_RUNNING)
        .row(
            "a task that was changed since",
            with(&json!({"progress": 1, "expected_updated_at": THEN})),
            Conflict,
            IS_RUNNING,
        )
        .row("a month that is none", with(&never), InvalidArguments, NO_TIME)
        .row(
            "a long address",
            with(&json!({"result_uri": "ü".repeat(1_025)})),
            InvalidArguments,
            &["result_uri: has 2050 bytes; give at most 2048 bytes"],
        )
        .row(
            "a long error",
            with(&json!({"error_message": "ü".repeat(4_097)})),
            InvalidArguments,
            &["error_message: has 8194 bytes; give at most 8192 bytes"],
        )
        .row("long metadata", with(&long_metadata()), InvalidArguments, TOO_LONG)
        .row("a long target", with(&long_target()), InvalidArguments, TOO_WIDE)
}

fn cancel(running: &str, finished: &str) -> Table {
    let with = |fields: &Value| with_id(running, fields);
    let is_finished = &["task 2: is completed, set by maker, updated_at 20", "look at it again"];
    let never = json!({"expected_updated_at": "2026-02-30T00:00:00.000Z"});
    Table::of("cancel_task")
        .rows("taskId", UNKNOWN, &json!({}), NotFound, MISSING)
        .row("a finished task", json!({"taskId": finished}), Conflict, is_finished)
        .row("another state", with(&json!({"expected_status": "pending"})), Conflict, IS_RUNNING)
        .row("another time", with(&json!({"expected_updated_at": THEN})), Conflict, IS_RUNNING)
        .row("a day that is none", with(&never), InvalidArguments, NO_TIME)
}

const TOO_LONG: &[&str] = &["metadata: has ", "give at most 16384 bytes; keep more in a document"];

fn long_metadata() -> Value {
    json!({"metadata": {"text": "ü".repeat(8 * 1024 + 1)}})
}

const TOO_WIDE: &[&str] = &["metadata.target: has 514 bytes; give at most 512 bytes"];

fn long_target() -> Value {
    json!({"metadata": {"target": "ü".repeat(257)}})
}

fn with_id(task: &str, fields: &Value) -> Value {
    let mut args = fields.clone();
    args["taskId"] = task.into();
    args
}
