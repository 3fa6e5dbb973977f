use std::process::Command;

use super::*;

/// No test here should wait long; past this it has failed.
const LIMIT: Duration = Duration::from_secs(10);

#[tokio::test]
async fn shutdown_cancels_and_waits_for_all() {
    let jobs = Jobs::new();
    for _ in 0..3 {
        let token = jobs.token();
        jobs.spawn("waiter", async move { token.cancelled().await });
    }
    assert_eq!(jobs.shutdown(LIMIT).await, Vec::<&str>::new());
    assert!(jobs.token().is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn shutdown_names_the_jobs_that_stay() {
    let jobs = Jobs::new();
    let token = jobs.token();
    jobs.spawn("polite", async move { token.cancelled().await });
    for _ in 0..2 {
        jobs.spawn("deaf", std::future::pending());
    }
    jobs.spawn("also deaf", std::future::pending());
    assert_eq!(jobs.shutdown(LIMIT).await, ["also deaf", "deaf", "deaf"]);
}

#[tokio::test]
async fn a_panic_ends_only_its_own_job() {
    let jobs = Jobs::new();
    let (send, receive) = tokio::sync::oneshot::channel();
    jobs.spawn("breaks", async { panic!("on purpose") });
    jobs.spawn("goes on", async move { send.send(7).expect("the test still waits") });
    assert_eq!(tokio::time::timeout(LIMIT, receive).await.expect("in time"), Ok(7));
    assert_eq!(jobs.shutdown(LIMIT).await, Vec::<&str>::new());
}

#[tokio::test]
async fn blocking_gives_its_result_and_tells_of_a_panic() {
    let jobs = Jobs::new();
    assert_eq!(jobs.blocking("adds", || 1 + 1).await.expect("no panic"), 2);
    let error = jobs.blocking("breaks", || panic!("on purpose")).await.expect_err("it panics");
    assert_eq!(error.to_string(), "job breaks panicked: on purpose");
}

#[tokio::test]
async fn shutdown_waits_for_blocking_work_whose_caller_left() {
    let jobs = Jobs::new();
    let (go, gate) = std::sync::mpsc::channel::<()>();
    drop(jobs.blocking("slow", move || gate.recv().ok()));
    assert_eq!(jobs.shutdown(Duration::from_millis(1)).await, ["slow"]);
    go.send(()).expect("the work waits for it");
    assert_eq!(jobs.shutdown(LIMIT).await, Vec::<&str>::new());
}

#[test]
fn a_panic_in_a_core_job_stops_the_process() {
    let me = std::env::current_exe().expect("a test has a path");
    let output = Command::new(me)
        .args(["--exact", "jobs::tests::core_job_that_panics", "--ignored", "--nocapture"])
        .output()
        .expect("the test binary runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "the process lived on: {said}");
    assert!(said.contains("nexus stops: core job heart panicked: on purpose"), "{said}");
}

#[tokio::test]
#[ignore = "ends the process: run by a_panic_in_a_core_job_stops_the_process"]
async fn core_job_that_panics() {
    let jobs = Jobs::new();
    jobs.spawn_core("heart", async { panic!("on purpose") });
    jobs.shutdown(LIMIT).await;
}
