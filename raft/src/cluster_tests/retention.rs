//! Snapshots that are put off, short lives, and a member that sleeps for too long (traps.md 18).

use super::*;
use crate::retention::{KEEP_TICKS, SNAPSHOT_LOG_BYTES};

/// Messages of 8 KiB that make a snapshot due.
fn enough() -> usize {
    usize::try_from(SNAPSHOT_LOG_BYTES).unwrap() / (8 << 10) + 1
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_that_was_put_off_is_made_when_it_can_be() {
    let folder = tempfile::tempdir().unwrap();
    let node = Node::found(&folder, Arc::new(SystemClock)).await;
    node.register("mcp-a").await;
    let newest = || node.cluster.storage().snapshot;
    node.post("mcp-a", enough(), 8 << 10).await;
    let first = wait_for("a snapshot", newest, |index| *index > 0).await;
    // Somebody reads it for long: one more may come, and the next must wait.
    let reader = node.cluster.core.snapshots.newest_folder().unwrap();
    node.post("mcp-a", enough(), 8 << 10).await;
    let second = wait_for("another snapshot", newest, |index| *index > first).await;
    node.post("mcp-a", enough(), 8 << 10).await;
    let put_off = || *node.cluster.core.progress.put_off.borrow();
    wait_for("two snapshots put off", put_off, |count| *count >= 2).await;
    assert_eq!(newest(), second);
    // Nothing is written any more; the log behind the second is reason enough.
    drop(reader);
    wait_for("the snapshot that was put off", newest, |index| *index > second).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn short_lives_add_up_to_a_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let mut node = Node::found(&folder, Arc::new(SystemClock)).await;
    node.register("mcp-a").await;
    // Each life writes a quarter of what makes one due.
    for life in 0..3 {
        node.post("mcp-a", enough() / 4, 8 << 10).await;
        assert_eq!(node.cluster.storage().snapshot, 0, "life {life}");
        let config = node.stop().await;
        node = Node::start(config).await.unwrap();
        assert!(node.cluster.ready(LIMIT).await);
    }
    node.post("mcp-a", enough() / 4 + 4, 8 << 10).await;
    let newest = || node.cluster.storage().snapshot;
    let made = wait_for("a snapshot", newest, |index| *index > 0).await;
    // What it covers is not counted again by the next life.
    let config = node.stop().await;
    let node = Node::start(config).await.unwrap();
    assert!(node.cluster.ready(LIMIT).await);
    assert!(node.cluster.core.log.bytes_behind(made) < SNAPSHOT_LOG_BYTES);
    assert!(node.cluster.storage().log_bytes >= SNAPSHOT_LOG_BYTES, "nothing is purged yet");
    assert_eq!(node.cluster.storage().snapshot, made);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_sleeps_for_over_a_week_does_not_hold_the_log() {
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let clock = Arc::new(Turned::default());
    let one = Node::found(&folders[0], clock.clone()).await;
    one.register("mcp-a").await;
    let two = Node::join(&folders[1], "two", &one, Role::Learner).await;
    let applied = one.cluster.local_status().applied;
    assert!(two.cluster.wait_applied(applied, LIMIT).await);
    let asleep = two.stop().await;
    one.post("mcp-a", 1_500, 100).await;
    one.cluster.snapshot().await;
    let newest = || one.cluster.storage().snapshot;
    wait_for("a snapshot", newest, |index| *index > 1_500).await;
    let purged = || one.cluster.storage().purged;
    // A day less than a week: it may still return to what it knows.
    clock.pass(Duration::from_millis(KEEP_TICKS) - Duration::from_secs(24 * 60 * 60));
    one.post("mcp-a", 1, 100).await;
    let aged = one.cluster.core.aged_log(0, newest()).await.unwrap();
    assert_eq!((aged, purged()), (0, 0), "log that is wanted is gone");
    // Nothing is written from here on: the log of an idle cluster gets old, too.
    clock.pass(Duration::from_secs(25 * 60 * 60));
    let gone = wait_for("a purged log", purged, |purged| *purged > 1_000).await;
    assert!(gone <= newest(), "{gone}");
    // It returns, and gets a snapshot.
    let two = Node::start(asleep).await.unwrap();
    let applied = one.cluster.local_status().applied;
    assert!(two.cluster.wait_applied(applied, LIMIT).await, "{:?}", two.cluster.local_status());
    assert!(two.cluster.storage().snapshot >= gone);
}
