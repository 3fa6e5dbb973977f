//! From when a stale answer is: from the last heartbeat that a quorum acknowledged, not from the
//! last read (traps.md 19).

use nexus_rt::{Clock as _, SystemClock};

use super::wait_for;
use super::world::{Node, World};

/// How long before a cut a node may have known of the leader's quorum last, in heartbeats: the
/// acknowledged one, the one that tells of it, and the clock's tick between two of them; doubled,
/// because the machine may be busy.
const HEARTBEATS_MAX: u64 = 6;

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_off_node_knows_how_old_its_state_is() {
    let (world, two, three) = World::of_three().await;
    three.register("mcp-three").await.unwrap();
    let nodes = [&world.one, &two, &three];
    // Nothing is read or written from here on: heartbeats alone say that time passes.
    let begun = SystemClock.wall_millis();
    for node in nodes {
        let later = begun + 1_000;
        wait_for("a later time", || node.core.freshness.as_of(), |as_of| *as_of >= Some(later))
            .await;
        assert!(node.core.freshness.as_of() <= Some(SystemClock.wall_millis()));
    }
    // All lose all: the leader too is left without a quorum.
    let cut = SystemClock.wall_millis();
    for (one, other) in [(&world.one, &two), (&two, &three), (&three, &world.one)] {
        world.cut(one, other);
    }
    let cut_off = SystemClock.wall_millis();
    let look = async |node: &Node| {
        let read = node.last_message().await;
        let as_of = read.stale.as_ref().and_then(|stale| stale.as_of);
        let Some(as_of) = as_of else { panic!("node {}: {read:?}", node.id()) };
        let slack = HEARTBEATS_MAX * node.core.profile.heartbeat_millis;
        let within = cut.saturating_sub(slack)..=cut_off;
        assert!(within.contains(&as_of), "node {}: {as_of} is not in {within:?}", node.id());
        let status = node.core.status().await;
        assert!(status.stale && status.as_of.is_some_and(|it| within.contains(&it)), "{status:?}");
    };
    futures::future::join_all(nodes.map(look)).await;
    // Nobody has learnt anything since.
    for node in nodes {
        assert!(node.core.freshness.as_of() <= Some(cut_off));
    }
}
