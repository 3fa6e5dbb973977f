//! Members that do not reach each other go through one that reaches both (traps.md 19).

use std::sync::Arc;
use std::time::Duration;

use openraft::async_runtime::WatchReceiver as _;
use tokio::time::Instant;

use super::world::{Node, World, number};
use super::{LIMIT, wait_for};
use crate::Role;
use crate::identity::NodeKey;
use crate::propose::ProposeError;
use crate::rpc::message::{Call, JoinAnswer};
use crate::rpc::server::Server;

/// Waits until a node calls another one through a relay.
async fn on_detour(from: &Node, to: &Node, by: &Node) {
    let relay = || from.detours.relay_to(to.id());
    wait_for("a detour", relay, |relay| *relay == Some(by.id())).await;
}

/// Waits until a node calls another one directly.
async fn direct(from: &Node, to: &Node) {
    wait_for("the direct way", || from.detours.relay_to(to.id()), Option::is_none).await;
}

/// Waits until a node has had no sign of another one for so long that it asks for one before it
/// sends anything.
async fn misses(node: &Node, other: &Node) {
    let silence = node.core.profile.silence();
    let hears = || node.core.reach.gave_sign(other.id(), silence);
    wait_for("silence", hears, |hears| !hears).await;
}

/// Writes and reads on a node, and holds the results to what it and the leader must have.
async fn works(node: &Node, who: &str, expected: u64) {
    let posted = node.post(who, &format!("message {expected}")).await.unwrap();
    assert_eq!((number(&posted), posted.applied_here), (expected, true), "{posted:?}");
    let read = node.last_message().await;
    assert_eq!((read.value, read.stale), (expected, None));
}

/// Holds the entries of the messages to their origin: one request, however often it was sent.
async fn are_of(origin: &Node, at: &Node, messages: std::ops::RangeInclusive<u64>) {
    for count in messages {
        let entries = at.posts(&format!("message {count}")).await;
        let first = entries.first().map(|entry| entry.proposal.request.clone());
        assert!(first.is_some(), "message {count} is not in the log");
        for entry in &entries {
            assert_eq!(entry.stamp.node, origin.id());
            assert_eq!(Some(&entry.proposal.request), first.as_ref());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_voter_cut_off_from_the_leader_misses_nothing() {
    let (world, two, three) = World::of_three().await;
    world.one.register("mcp-one").await.unwrap();
    three.register("mcp-three").await.unwrap();
    let before = world.one.core.local_status();
    assert_eq!(before.leader, Some(world.one.id()));
    world.settles(&three).await;
    world.cut(&world.one, &three);

    works(&three, "mcp-three", 1).await;
    on_detour(&three, &world.one, &two).await;
    let status = three.core.status().await;
    assert_eq!((status.stale, status.leader), (false, Some(world.one.id())), "{status:?}");
    // What others write comes as well, by the leader's own detour.
    works(&world.one, "mcp-one", 2).await;
    let state = || {
        three
            .core
            .state
            .view(|view| nexus_domain::chat::last_id(view, &nexus_domain::command::Room::Global))
    };
    wait_for("the message of the leader", || state().unwrap(), |last| *last == 2).await;
    on_detour(&world.one, &three, &two).await;
    are_of(&three, &world.one, 1..=1).await;

    // A voter that does not hear the leader asks for votes, and gets none from who does.
    let after = world.one.core.local_status();
    assert_eq!((after.leader, after.term), (before.leader, before.term));

    // The link is there again: the direct way is taken, and no other would work.
    world.net.heal();
    direct(&three, &world.one).await;
    direct(&world.one, &three).await;
    world.cut(&two, &three);
    works(&three, "mcp-three", 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_learner_behind_a_wall_misses_nothing() {
    let world = World::found().await;
    let two = world.join("two", Role::Learner).await;
    let three = world.join("three", Role::Learner).await;
    three.register("mcp-three").await.unwrap();
    // The leader still reaches the learner; calls to the leader do not pass.
    world.net.wall(three.id(), world.one.id());
    for count in 1..=3 {
        works(&three, "mcp-three", count).await;
    }
    on_detour(&three, &world.one, &two).await;
    assert_eq!(world.one.detours.relay_to(three.id()), None);
    are_of(&three, &world.one, 1..=3).await;

    // The other way round: the leader does not reach the learner, which reaches it.
    world.net.heal();
    direct(&three, &world.one).await;
    world.net.wall(world.one.id(), three.id());
    for count in 4..=6 {
        works(&three, "mcp-three", count).await;
    }
    on_detour(&world.one, &three, &two).await;
    assert_eq!(three.detours.relay_to(world.one.id()), None);
    are_of(&three, &world.one, 4..=6).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_never_reached_the_leader_gets_its_snapshot_around() {
    let world = World::found().await;
    let two = world.join("two", Role::Learner).await;
    world.one.register("mcp-one").await.unwrap();
    works(&world.one, "mcp-one", 1).await;
    let admitted = world.admit("four", Role::Learner).await;
    // What four lacks is not in the leader's log any more.
    let upto = world.one.core.applied();
    world.one.core.snapshot().await;
    let snapshot = || world.one.core.snapshots.newest_folder().map(|it| it.manifest().index());
    wait_for("a snapshot", snapshot, |index| *index >= Some(upto)).await;
    world.one.core.raft().trigger().purge_log(upto).await.unwrap();
    let purged = || world.one.core.raft().metrics().borrow_watched().purged.map(|id| id.index);
    wait_for("a purged log", purged, |index| *index >= Some(upto)).await;

    world.net.partition(&[admitted.member.node], &[world.one.id()]);
    let four = world.start(admitted).await;
    four.register("mcp-four").await.unwrap();
    works(&four, "mcp-four", 2).await;
    on_detour(&world.one, &four, &two).await;
    let installed = four.core.snapshots.newest_folder().map(|it| it.manifest().index());
    assert!(installed >= Some(upto), "{installed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_a_relay_lost_is_asked_for_again_with_the_same_id() {
    let (world, two, three) = World::of_three().await;
    three.register("mcp-three").await.unwrap();
    world.settles(&three).await;
    world.cut(&world.one, &three);
    works(&three, "mcp-three", 1).await;
    on_detour(&three, &world.one, &two).await;

    world.one.core.progress.stalled.send_replace(true);
    let writing = three.post("mcp-three", "once");
    let breaking = async {
        // The leader has it in its log and has not answered: then the relay is lost too.
        let deadline = Instant::now() + LIMIT;
        while world.one.posts("once").await.is_empty() {
            assert!(Instant::now() < deadline, "the relay passed nothing on");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        world.cut(&two, &three);
        direct(&three, &world.one).await;
        world.net.heal();
        world.cut(&world.one, &three);
        world.one.core.progress.stalled.send_replace(false);
    };
    let (posted, ()) = futures::future::join(writing, breaking).await;
    let posted = posted.unwrap();
    assert_eq!(number(&posted), 2);
    for entry in world.one.posts("once").await {
        assert_eq!(entry.proposal.request, posted.request);
        assert_eq!(entry.stamp.node, three.id());
    }
    assert_eq!(world.one.last_message().await.value, 2, "done twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_relay_takes_over_and_without_any_nothing_is_written() {
    let (world, two, three) = World::of_three().await;
    let four = world.join("four", Role::Learner).await;
    three.register("mcp-three").await.unwrap();
    world.settles(&four).await;
    world.settles(&three).await;
    world.cut(&world.one, &three);
    world.cut(&four, &three);
    works(&three, "mcp-three", 1).await;
    on_detour(&three, &world.one, &two).await;

    world.net.heal();
    world.cut(&world.one, &three);
    world.cut(&two, &three);
    on_detour(&three, &world.one, &four).await;
    works(&three, "mcp-three", 2).await;

    world.cut(&four, &three);
    direct(&three, &world.one).await;
    misses(&three, &world.one).await;
    let refused = three.post("mcp-three", "lost").await.unwrap_err();
    assert!(matches!(refused, ProposeError::NoQuorum { .. }), "{refused:?}");
    assert!(three.last_message().await.stale.is_some());
    world.net.heal();
    works(&three, "mcp-three", 3).await;
    assert!(world.one.posts("lost").await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_that_comes_back_is_asked_at_once() {
    let (world, two, three) = World::of_three().await;
    three.register("mcp-three").await.unwrap();
    world.settles(&three).await;
    world.cut(&world.one, &three);
    world.cut(&two, &three);
    misses(&three, &world.one).await;
    let refused = three.post("mcp-three", "lost").await.unwrap_err();
    assert!(matches!(refused, ProposeError::NoQuorum { .. }), "{refused:?}");
    // However long nobody was to look again: who comes back may be a way.
    three.detours.put_off(world.one.id());
    world.one.detours.put_off(three.id());
    world.net.heal();
    world.cut(&world.one, &three);
    on_detour(&three, &world.one, &two).await;
    works(&three, "mcp-three", 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_that_the_far_end_does_not_know_yet_serves() {
    let (world, two, three) = World::of_three().await;
    three.register("mcp-three").await.unwrap();
    world.settles(&three).await;
    let before = [&world.one, &two].map(|node| node.id());
    world.net.partition(&before, &[three.id()]);
    // It joins while nobody can tell the lone node.
    let admitted = world.admit("four", Role::Learner).await;
    world.net.partition(&[admitted.member.node], &[three.id()]);
    let four = world.start(admitted).await;
    world.settles(&four).await;
    assert!(!three.core.book.others().contains(&four.id()));
    world.net.heal();
    world.net.partition(&before, &[three.id()]);
    on_detour(&world.one, &three, &four).await;
    works(&three, "mcp-three", 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_cannot_pose_as_another_node() {
    let (world, two, three) = World::of_three().await;
    let four = world.join("four", Role::Learner).await;
    three.register("mcp-three").await.unwrap();
    world.settles(&four).await;
    world.settles(&three).await;
    world.cut(&four, &three);
    let honest = Arc::new(Server { core: two.core.clone() });
    two.transport.serve(two.detours.pose(honest.clone()));
    world.cut(&world.one, &three);
    misses(&three, &world.one).await;
    // What it met on the way around was not the leader.
    let deadline = Instant::now() + LIMIT;
    loop {
        let met = three.core.ask(world.one.id(), &Call::Ping, LIMIT).await.unwrap_err();
        let text = met.to_string();
        let is_posing = text.contains(&format!("node {} answered where node 1 was", two.id()));
        if is_posing {
            break;
        }
        assert!(Instant::now() < deadline, "{text}");
    }
    let refused = three.post("mcp-three", "for one alone").await.unwrap_err();
    assert!(matches!(refused, ProposeError::NoQuorum { .. }), "{refused:?}");
    assert!(world.one.posts("for one alone").await.is_empty());

    // Another relay is taken, although this one goes on offering itself.
    world.net.heal();
    world.cut(&world.one, &three);
    on_detour(&three, &world.one, &four).await;
    works(&three, "mcp-three", 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_carries_only_so_much() {
    let (world, two, three) = World::of_three().await;
    three.register("mcp-three").await.unwrap();
    let full = two.detours.carry_all();
    world.cut(&world.one, &three);
    misses(&three, &world.one).await;
    let refused = three.post("mcp-three", "too much").await.unwrap_err();
    assert!(matches!(refused, ProposeError::NoQuorum { .. }), "{refused:?}");
    assert_eq!(three.detours.relay_to(world.one.id()), None);
    drop(full);
    works(&three, "mcp-three", 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_joins_through_a_member_that_does_not_reach_the_leader() {
    let world = World::found().await;
    let _two = world.join("two", Role::Learner).await;
    let three = world.join("three", Role::Learner).await;
    three.register("mcp-three").await.unwrap();
    world.net.wall(three.id(), world.one.id());
    let key = NodeKey::generate().unwrap();
    let request = world.invited("four", Role::Learner, &key).await;
    let deadline = Instant::now() + LIMIT;
    loop {
        match three.core.join_machine(request.clone()).await {
            JoinAnswer::Welcome { .. } => break,
            // As a joiner does: it is told to try again until there is a way.
            JoinAnswer::Later(text) => assert!(Instant::now() < deadline, "{text}"),
            JoinAnswer::Refused(text) => panic!("{text}"),
        }
    }
}
