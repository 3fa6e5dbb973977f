//! Clusters of one and three nodes over QUIC on loopback: write, read, join, fail over, restart.
#![expect(clippy::unwrap_used, reason = "all of this file is a test")]

mod support;

use nexus_raft::{MemberRole, Role};
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
