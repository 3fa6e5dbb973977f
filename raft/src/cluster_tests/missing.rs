//! What a node says of the others when no leader is there.

use nexus_domain::NodeId;
use tokio::time::Instant;

use super::wait_for;
use super::world::{Node, World};
use crate::propose::ProposeError;
use crate::reach::{REFUSAL_LASTS, Way};
use crate::rpc::message::Call;
use crate::status::{MemberState, Status};
use crate::store::lock;
use crate::transport::CallError;

fn up(status: &Status) -> Vec<NodeId> {
    let up = status.members.iter().filter(|member| member.state == MemberState::Up);
    up.map(|member| member.id).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_quorum_all_that_is_said_names_who_is_missing() {
    let (world, two, three) = World::of_three().await;
    world.one.register("mcp-one").await.unwrap();
    assert_eq!(up(&three.core.status().await).len(), 3);
    for (one, other) in [(&world.one, &two), (&world.one, &three), (&two, &three)] {
        world.cut(one, other);
    }
    // The leader has taken it into its log: it may yet be done.
    let unknown = world.one.post("mcp-one", "into the void").await.unwrap_err();
    assert!(matches!(&unknown, ProposeError::Unknown { .. }), "{unknown:?}");
    let text = unknown.to_string();
    assert!(text.contains("no leader is reachable") && text.contains("two, three"), "{text}");

    let look = || three.core.local_status();
    let status = wait_for("others down", look, |status| up(status) == [three.id()]).await;
    assert_eq!((status.quorum, status.tolerance), (2, 0));
    let status = three.core.status().await;
    assert_eq!((status.stale, status.refused.clone()), (true, None), "{status:?}");
    assert_eq!(up(&status), [three.id()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_becomes_leader_while_it_looks_for_one_does_not_call_itself() {
    let (world, two, three) = World::of_three().await;
    let old = world.one.id();
    world.cut(&world.one, &two);
    world.cut(&world.one, &three);
    let looks = async |node: &Node| {
        let mut ways = Vec::new();
        let leads_now = || [&two, &three].iter().any(|node| node.core.leads());
        let deadline = Instant::now() + super::LIMIT;
        while !leads_now() {
            assert!(Instant::now() < deadline, "no new leader; ways: {ways:?}");
            node.core.reach.lose(old);
            ways.push(node.core.way(None).await);
        }
        ways
    };
    let (of_two, of_three) = futures::future::join(looks(&two), looks(&three)).await;
    for (node, ways) in [(&two, of_two), (&three, of_three)] {
        assert!(!ways.contains(&Some(Way::There(node.id()))), "node {}: {ways:?}", node.id());
    }
    assert_eq!((two.core.refused(), three.core.refused()), (None, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_is_of_another_member_and_is_forgotten_when_it_is_not_renewed() {
    let World { one, net: _net } = World::found().await;
    let itself = one.core.ask(one.id(), &Call::Ping, super::LIMIT).await;
    assert!(matches!(itself, Err(CallError::Unreachable { .. })), "{itself:?}");
    assert_eq!(one.core.refused(), None);

    let before = |age| Instant::now().checked_sub(age).unwrap();
    let said = "removed".to_owned();
    *lock(&one.core.refused) = Some((said.clone(), before(REFUSAL_LASTS / 2)));
    assert_eq!(one.core.refused(), Some(said.clone()));
    *lock(&one.core.refused) = Some((said, before(REFUSAL_LASTS)));
    assert_eq!(one.core.refused(), None);
    assert!(!one.core.who_is_missing().contains("refuses"));
}

#[test]
fn a_full_disk_names_the_request() {
    let text = |request: &str| ProposeError::DiskFull { request: request.to_owned() }.to_string();
    assert!(text("mine-7").ends_with("request id mine-7, nothing is done twice"));
    // After the restart nobody takes it any more.
    assert!(text("n1.2.3").contains("look whether the call (request id n1.2.3) was done"));
}
