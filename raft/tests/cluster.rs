//! Clusters of one and three nodes over QUIC on loopback: write, read, join, fail over, restart.

mod support;

use nexus_raft::{MemberRole, ProposeError, Role};
use support::{LIMIT, Node, post, register, wait_for};

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_of_one_writes_reads_and_goes_on_after_a_restart() {
    let node = Node::found("one").await;
    register(&node, "mcp-a").await.unwrap();
    assert_eq!(post(&node, "mcp-a", "first").await.unwrap(), 1);
    let fresh = node
        .cluster
        .read(|view| nexus_domain::chat::last_id(view, &nexus_domain::command::Room::Global))
        .await
        .unwrap();
    assert_eq!((fresh.value, fresh.stale), (1, None));
    let node = node.stop().await.start().await;
    assert!(node.cluster.ready(LIMIT).await);
    assert_eq!(node.cluster.boot(), 2);
    assert_eq!(post(&node, "mcp-a", "second").await.unwrap(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bytes_of_the_log_are_told_before_a_table_is_written() {
    let node = Node::found("one").await;
    register(&node, "mcp-a").await.unwrap();
    let before = node.cluster.storage().log_bytes;
    assert!(before > 0);
    post(&node, "mcp-a", &"x".repeat(10_000)).await.unwrap();
    let after = node.cluster.storage().log_bytes;
    assert!((10_000..11_000).contains(&(after - before)), "{before} and {after}");
    let node = node.stop().await.start().await;
    // Its start adds entries of its own.
    assert!(node.cluster.storage().log_bytes >= after);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_that_does_not_fit_its_log_is_told_as_damage() {
    let node = Node::found("one").await;
    register(&node, "mcp-a").await.unwrap();
    let data = node.data();
    let stopped = node.stop().await;
    // The log is lost, and with it the mark that would have told. Its last holder may still write.
    let removed = || std::fs::remove_dir_all(data.join("log")).map_err(|error| error.to_string());
    wait_for("a lost log", removed, Result::is_ok).await.unwrap();
    std::fs::remove_file(data.join("log.mark")).unwrap();
    let refused = stopped.open().await.err();
    let Some(nexus_raft::OpenError::Store(error @ nexus_raft::StoreError::Damaged { .. })) =
        refused
    else {
        panic!("{refused:?}");
    };
    let text = error.to_string();
    assert!(text.contains("the state is ahead of the log"), "{text}");
    assert!(text.contains("this member must be replaced"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn three_machines_become_three_voters_and_outlive_their_leader() {
    let one = Node::found("one").await;
    let two = Node::join("two", &one, Role::Voter).await;
    let three = Node::join("three", &one, Role::Voter).await;
    let voters = |node: &Node| {
        let status = node.cluster.local_status();
        let voters = status.members.iter().filter(|member| member.role == MemberRole::Voter);
        voters.map(|member| member.id).collect::<Vec<_>>()
    };
    for node in [&one, &two, &three] {
        wait_for("three voters", || voters(node), |voters| voters.len() == 3).await;
    }
    // Any node serves any call, and a caller reads its own write where it wrote.
    register(&two, "mcp-two").await.unwrap();
    register(&three, "mcp-three").await.unwrap();
    assert_eq!(post(&two, "mcp-two", "from two").await.unwrap(), 1);
    assert_eq!(post(&three, "mcp-three", "from three").await.unwrap(), 2);
    let seen = three
        .cluster
        .read(|view| nexus_domain::chat::last_id(view, &nexus_domain::command::Room::Global))
        .await
        .unwrap();
    assert_eq!((seen.value, seen.stale), (2, None));

    // The leader dies without a word; the others go on, and it returns and agrees.
    let dead = one.crash().await;
    assert_eq!(post(&two, "mcp-two", "after the crash").await.unwrap(), 3);
    let one = dead.start().await;
    let applied = two.cluster.local_status().applied;
    assert!(one.cluster.wait_applied(applied, LIMIT).await, "{:?}", one.cluster.local_status());
    assert!(three.cluster.wait_applied(applied, LIMIT).await);
    let content = |node: &Node| node.cluster.digests().unwrap().now.content;
    wait_for(
        "equal digests",
        || [content(&one), content(&two), content(&three)],
        |all| all.iter().all(|digest| digest == &all[0]),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_joins_behind_the_purged_log_gets_a_snapshot() {
    let one = Node::found("one").await;
    register(&one, "mcp-a").await.unwrap();
    for number in 1..=1500_u64 {
        assert_eq!(post(&one, "mcp-a", &format!("message {number}")).await.unwrap(), number);
    }
    one.cluster.snapshot().await;
    // The log is purged up to the snapshot; nobody else needs it.
    let purged = || one.cluster.storage().purged;
    wait_for("a purged log", purged, |purged| *purged > 1400).await;
    let two = Node::join("two", &one, Role::Learner).await;
    let applied = one.cluster.local_status().applied;
    assert!(two.cluster.wait_applied(applied, LIMIT).await, "{:?}", two.cluster.local_status());
    let last = two
        .cluster
        .look(|view| nexus_domain::chat::last_id(view, &nexus_domain::command::Room::Global))
        .unwrap();
    assert_eq!(last, 1500);
    let snapshot = two.cluster.storage().snapshot;
    assert!(snapshot > 1400, "installed snapshot: {snapshot}");
    // It serves like any other node, and restarts from what it was sent.
    register(&two, "mcp-b").await.unwrap();
    let two = two.stop().await.start().await;
    assert_eq!(post(&two, "mcp-b", "from the second").await.unwrap(), 1501);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_quorum_writes_fail_certainly_and_reads_are_stale() {
    let one = Node::found("one").await;
    let two = Node::join("two", &one, Role::Voter).await;
    let three = Node::join("three", &one, Role::Voter).await;
    let voters = || one.cluster.local_status().tolerance;
    wait_for("a tolerance of one", voters, |tolerance| *tolerance == 1).await;
    register(&one, "mcp-a").await.unwrap();
    assert_eq!(post(&one, "mcp-a", "kept").await.unwrap(), 1);
    let (two, three) = (two.crash().await, three.crash().await);
    // Accepted just before the others were missed, a write may be unknown; soon it is a plain no.
    let deadline = tokio::time::Instant::now() + LIMIT;
    loop {
        match post(&one, "mcp-a", "lost").await {
            Err(ProposeError::NoQuorum { missing, .. }) => {
                assert!(missing.contains("two") && missing.contains("three"), "{missing}");
                break;
            }
            Err(ProposeError::Unknown { .. }) => {}
            other => panic!("a write without a quorum: {other:?}"),
        }
        assert!(tokio::time::Instant::now() < deadline, "writes stay unknown");
    }
    let room = nexus_domain::command::Room::Global;
    let read = one.cluster.read(|view| nexus_domain::chat::last_id(view, &room)).await.unwrap();
    assert_eq!(read.value, 1);
    assert!(read.stale.is_some());
    // They come back, and everything goes on.
    let (_two, _three) = (two.start().await, three.start().await);
    let number = post(&one, "mcp-a", "again").await.unwrap();
    assert!(number >= 2, "{number}");
    let read = one.cluster.read(|view| nexus_domain::chat::last_id(view, &room)).await.unwrap();
    assert_eq!((read.value, read.stale), (number, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_admits_one_machine_and_a_removed_machine_is_cut_off() {
    let one = Node::found("one").await;
    let invitation = one.cluster.invite(Role::Learner, LIMIT).await.unwrap();
    let text = invitation.code.encode();
    let code = || nexus_raft::InviteCode::parse(&text).unwrap();
    let two = Node::join_with("two", code(), &one).await.unwrap();
    // Another machine with the same code is refused; nothing of it stays.
    let refused = Node::join_with("thief", code(), &one).await;
    assert!(matches!(refused, Err(nexus_raft::OpenError::Refused(_))), "{:?}", refused.err());
    // A code of another cluster reaches nobody that it would trust.
    let other = Node::found("other").await;
    let foreign = other.cluster.invite(Role::Learner, LIMIT).await.unwrap().code;
    let unreached = Node::join_with("lost", foreign, &one).await;
    let unreached = matches!(unreached, Err(nexus_raft::OpenError::Unreachable(_)));
    assert!(unreached, "a foreign code was taken");

    register(&two, "mcp-two").await.unwrap();
    one.cluster.remove(two.cluster.node()).await.unwrap();
    let refused = post(&two, "mcp-two", "from the grave").await;
    assert!(refused.is_err(), "{refused:?}");
    let room = nexus_domain::command::Room::Global;
    let last = one.cluster.read(|view| nexus_domain::chat::last_id(view, &room)).await.unwrap();
    assert_eq!(last.value, 0, "a removed machine has written");
    let members = || one.cluster.local_status().members.len();
    wait_for("one member", members, |members| *members == 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_machine_hears_that_it_was_removed_and_what_to_do() {
    let one = Node::found("one").await;
    let two = Node::join("two", &one, Role::Learner).await;
    let three = Node::join("three", &one, Role::Learner).await;
    register(&two, "mcp-two").await.unwrap();
    assert_eq!(two.cluster.status().await.refused, None);
    one.cluster.remove(two.cluster.node()).await.unwrap();
    let says = |text: &str| {
        let words = ["removed", "joins again with a new invite and an empty folder"];
        words.iter().all(|words| text.contains(words))
    };
    // No way leads around the removal: the other member relays nothing for it either.
    // (A call on a connection from before the removal may count as unknown.)
    let refused = post(&two, "mcp-two", "from the grave").await.unwrap_err().to_string();
    assert!(says(&refused), "{refused}");
    let refused = post(&two, "mcp-two", "from the grave").await.unwrap_err();
    let ProposeError::NoQuorum { missing, .. } = &refused else { panic!("{refused:?}") };
    assert!(says(missing), "{missing}");
    let status = two.cluster.status().await;
    assert!(status.stale, "{status:?}");
    assert!(status.refused.as_deref().is_some_and(says), "{status:?}");
    // The others hear nothing of the kind.
    for node in [&one, &three] {
        let status = node.cluster.status().await;
        assert_eq!((status.stale, status.refused), (false, None));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ticks_keep_up_with_the_clock_under_load() {
    let node = Node::found("one").await;
    register(&node, "mcp-a").await.unwrap();
    let now = || node.config.clock.boot_millis();
    let tick = || node.cluster.look(|view| nexus_domain::clock::clock(view)).unwrap().tick;
    let (tick_before, before) = (tick(), now());
    // Hundreds of entries, each stamped in the middle of a millisecond: no part of one may be lost.
    for number in 0..400 {
        post(&node, "mcp-a", &format!("message {number}")).await.unwrap();
    }
    let (ticks, passed) = (tick() - tick_before, now() - before);
    // The first stamp may lie before the first look by what an entry takes, not by hundreds of
    // parts.
    assert!(ticks + 50 >= passed, "{passed} ms passed, {ticks} ticks");
    assert!(ticks <= passed + 50, "{passed} ms passed, {ticks} ticks: faster than real time");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_a_node_made_is_never_taken_for_a_new_one() {
    let node = Node::found("one").await;
    register(&node, "mcp-a").await.unwrap();
    let send = nexus_domain::command::ChatCommand::Send {
        room: nexus_domain::command::Room::Global,
        text: "once".to_owned(),
        category: nexus_domain::command::Category::None,
    };
    for id in ["n1.1.4000", "n7.3.2", "n1.99.1"] {
        let request = nexus_raft::Request {
            actor: nexus_domain::Actor::Conversation("mcp-a".to_owned()),
            id: Some(id.to_owned()),
            command: nexus_domain::Command::Chat(send.clone()),
        };
        let refused = node.cluster.propose(request).await;
        assert!(matches!(refused, Err(ProposeError::Rejected(_))), "{id}: {refused:?}");
    }
    assert_eq!(post(&node, "mcp-a", "goes on").await.unwrap(), 1);
}
