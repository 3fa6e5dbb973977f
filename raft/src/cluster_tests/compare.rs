//! A state that was changed behind the node's back, and who notices (traps.md 22).

use nexus_domain::{Direction, KeyRange, Read as _};

use super::*;
use crate::Difference;

/// The table of how many conversations there are, one row: wrong, it does no harm until the next
/// one comes.
const TOTALS: &[u8] = &[0x1b];

/// Puts back what the totals were before the newest conversation came.
fn corrupt(node: &Node, before: &[u8]) {
    let generation = node.cluster.core.state.current();
    let now = generation.get(TOTALS).unwrap().unwrap();
    assert_ne!(now, before);
    generation.put(TOTALS, before).unwrap();
}

fn totals(node: &Node) -> Vec<u8> {
    let generation = node.cluster.core.state.current();
    let mut rows = generation.scan(KeyRange::prefix(TOTALS), Direction::Forward);
    rows.next().unwrap().unwrap().1
}

/// Writes past the next index at which digests are kept.
async fn write_on(node: &Node) {
    node.register("mcp-late").await;
    node.post("mcp-a", 80, 10).await;
}

fn fatal(node: &Node) -> Option<String> {
    node.cluster.fatal().borrow().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_odd_one_of_three_is_named_and_stops() {
    let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let one = Node::found(&folders[0], Arc::new(SystemClock)).await;
    let two = Node::join(&folders[1], "two", &one, Role::Voter).await;
    let three = Node::join(&folders[2], "three", &one, Role::Voter).await;
    wait_for("three voters", || one.voters(), |voters| *voters == 3).await;
    one.register("mcp-a").await;
    let before = totals(&one);
    one.register("mcp-b").await;
    let applied = one.cluster.local_status().applied;
    for node in [&two, &three] {
        assert!(node.cluster.wait_applied(applied, LIMIT).await);
    }
    let differs = || one.cluster.local_status().differs;
    assert_eq!(differs(), None);
    corrupt(&three, &before);
    write_on(&one).await;
    let found = wait_for("a difference", differs, Option::is_some).await.unwrap();
    let odd = three.cluster.node();
    assert_eq!((found.majority, found.members.as_slice()), (true, [odd].as_slice()));
    assert!(found.index > applied && found.index.is_multiple_of(64), "{found:?}");
    let text = wait_for("its end", || fatal(&three), Option::is_some).await.unwrap();
    assert!(text.contains("replace this member") && text.contains("(content)"), "{text}");
    assert!(text.contains(&format!("entry {}", found.index)), "{text}");
    assert_eq!((fatal(&one), fatal(&two)), (None, None));
    // Any node tells, since it asks the leader; and it is told after the odd one has stopped.
    three.stop().await;
    assert_eq!(two.cluster.status().await.differs, Some(found));
    one.post("mcp-a", 80, 10).await;
    // Removed, it is not named any more.
    one.cluster.remove(odd).await.unwrap();
    wait_for("no difference", differs, Option::is_none).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_is_the_odd_one_stops_itself() {
    let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let one = Node::found(&folders[0], Arc::new(SystemClock)).await;
    let two = Node::join(&folders[1], "two", &one, Role::Voter).await;
    let three = Node::join(&folders[2], "three", &one, Role::Voter).await;
    wait_for("three voters", || one.voters(), |voters| *voters == 3).await;
    one.register("mcp-a").await;
    let before = totals(&one);
    one.register("mcp-b").await;
    corrupt(&one, &before);
    write_on(&one).await;
    let text = wait_for("its end", || fatal(&one), Option::is_some).await.unwrap();
    assert!(text.contains("replace this member"), "{text}");
    assert_eq!((fatal(&two), fatal(&three)), (None, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_majority_both_are_named_and_nobody_stops() {
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let one = Node::found(&folders[0], Arc::new(SystemClock)).await;
    let two = Node::join(&folders[1], "two", &one, Role::Learner).await;
    one.register("mcp-a").await;
    let before = totals(&one);
    one.register("mcp-b").await;
    let applied = one.cluster.local_status().applied;
    assert!(two.cluster.wait_applied(applied, LIMIT).await);
    corrupt(&two, &before);
    write_on(&one).await;
    let differs = || one.cluster.local_status().differs;
    let found = wait_for("a difference", differs, Option::is_some).await.unwrap();
    let members = vec![one.cluster.node(), two.cluster.node()];
    assert_eq!(found, Difference { index: found.index, majority: false, members });
    // At the next index it is compared again, and the same is found.
    one.post("mcp-a", 80, 10).await;
    let later = |seen: &Option<Difference>| {
        seen.as_ref().is_some_and(|seen| seen.index > found.index && !seen.majority)
    };
    wait_for("a difference further on", differs, later).await;
    assert_eq!((fatal(&one), fatal(&two)), (None, None));
    assert_eq!(two.cluster.status().await.differs, differs());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_meets_no_difference_stops_nobody() {
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let one = Node::found(&folders[0], Arc::new(SystemClock)).await;
    let two = Node::join(&folders[1], "two", &one, Role::Learner).await;
    one.register("mcp-a").await;
    one.post("mcp-a", 80, 10).await;
    let applied = one.cluster.local_status().applied;
    assert!(two.cluster.wait_applied(applied, LIMIT).await);
    let index = applied - applied % 64;
    let kept = |node: &Node, index| {
        node.cluster.look(|view| nexus_domain::digest::kept(view, index)).unwrap()
    };
    let same = kept(&one, index).unwrap();
    assert_eq!(kept(&two, index), Some(same));
    let other = nexus_domain::digest::Digests { content: [9; 32], books: [9; 32] };
    let (one_id, core) = (one.cluster.node(), &two.cluster.core);
    for (from, index, claim) in [
        (one_id, index, same),
        // Nothing is kept of that index.
        (one_id, index + 1, other),
        // Not the leader's word.
        (two.cluster.node(), index, other),
    ] {
        core.answer_digest(from, index, Some(claim.into())).await;
        assert_eq!(fatal(&two), None, "{from} {index}");
    }
    core.answer_digest(one_id, index, Some(other.into())).await;
    assert!(fatal(&two).is_some_and(|text| text.contains("replace this member")));
}
