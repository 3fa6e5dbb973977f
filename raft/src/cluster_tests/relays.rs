//! A member that does not reach the leader goes through one that does (traps.md 19).

use std::time::Duration;

use nexus_domain::{Actor, Answered, Proposal, RequestId, SUPPORTED, codec};
use tokio::time::Instant;

use super::world::{Node, World, number};
use super::{LIMIT, wait_for};
use crate::Role;
use crate::propose::ProposeError;
use crate::rpc::message::{Answer, Ask, Call, SignedProposal};

/// What relays cost at most before an answer: nothing of it may be near a failover.
fn bound(node: &Node) -> Duration {
    node.core.profile.failover
}

async fn asked(from: &Node, to: &Node, call: Call) -> Answer {
    from.core.ask(to.id(), &call, LIMIT).await.unwrap()
}

fn text_of(answer: &Answer) -> &str {
    let Answer::NotRelayed { text, .. } = answer else { panic!("answered {answer:?}") };
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn a_voter_cut_off_from_the_leader_works_through_another_member() {
    let (world, two, three) = World::of_three().await;
    three.register("mcp-three").await.unwrap();
    let before = world.one.core.local_status();
    assert_eq!(before.leader, Some(world.one.id()));
    world.settles(&three).await;
    world.cut(&world.one, &three);

    // Nothing has been written since: what the leader says it has here too.
    let begun = Instant::now();
    assert_eq!(three.last_message().await.stale, None);
    assert!(begun.elapsed() < bound(&three), "a read took {:?}", begun.elapsed());
    let status = three.core.status().await;
    assert_eq!((status.stale, status.leader), (false, Some(world.one.id())), "{status:?}");

    let begun = Instant::now();
    let posted = three.post("mcp-three", "through two").await.unwrap();
    assert!(begun.elapsed() < bound(&three), "a write took {:?}", begun.elapsed());
    assert_eq!(number(&posted), 1);
    assert_eq!(three.core.reach.lost(), Some(world.one.id()));
    // It is the origin's, and was written once.
    let entries = world.one.posts("through two").await;
    assert_eq!(entries.iter().map(|it| it.stamp.node).collect::<Vec<_>>(), [three.id()]);
    // The log comes from the leader alone, so it is not here; a read says so, and says it soon.
    assert!(!posted.applied_here);
    let begun = Instant::now();
    let read = three.last_message().await;
    assert!(read.stale.is_some() && read.applied < posted.index, "{read:?}");
    assert!(begun.elapsed() < bound(&three), "a stale read took {:?}", begun.elapsed());

    // A voter that does not hear the leader asks for votes, and gets none from who does.
    let after = world.one.core.local_status();
    assert_eq!((after.leader, after.term), (before.leader, before.term));

    // The link is there again: the direct way is taken, and no other would work.
    world.net.heal();
    wait_for("the direct way", || three.core.reach.lost(), Option::is_none).await;
    world.cut(&two, &three);
    let posted = three.post("mcp-three", "directly").await.unwrap();
    assert_eq!((number(&posted), posted.applied_here), (2, true));
    assert_eq!(three.last_message().await.stale, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_learner_behind_a_wall_misses_nothing() {
    let world = World::found().await;
    let _two = world.join("two", Role::Learner).await;
    let three = world.join("three", Role::Learner).await;
    three.register("mcp-three").await.unwrap();
    // The leader still reaches the learner, so that the log comes; calls to the leader do not pass.
    world.net.wall(three.id(), world.one.id());
    for count in 1..=3 {
        let posted = three.post("mcp-three", &format!("message {count}")).await.unwrap();
        assert_eq!((number(&posted), posted.applied_here), (count, true));
        let read = three.last_message().await;
        assert_eq!((read.value, read.stale), (count, None));
    }
    assert_eq!(three.core.reach.lost(), Some(world.one.id()));
    assert!(!three.core.status().await.stale);
    for count in 1..=3 {
        let entries = world.one.posts(&format!("message {count}")).await;
        assert!(entries.iter().all(|entry| entry.stamp.node == three.id()), "{entries:?}");
        let first = entries.first().map(|entry| entry.proposal.request.clone());
        assert!(entries.iter().all(|entry| Some(&entry.proposal.request) == first.as_ref()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_a_relay_lost_is_asked_for_again_with_the_same_id() {
    let (world, two, three) = World::of_three().await;
    three.register("mcp-three").await.unwrap();
    world.settles(&three).await;
    world.cut(&world.one, &three);
    // Known before, so that the write below goes through the relay from the first try on.
    assert_eq!(three.last_message().await.stale, None);
    assert_eq!(three.core.reach.lost(), Some(world.one.id()));

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
        wait_for("a lost relay", || three.core.reach.failure(), Option::is_some).await;
        world.net.heal();
        world.cut(&world.one, &three);
        world.one.core.progress.stalled.send_replace(false);
    };
    let (posted, ()) = futures::future::join(writing, breaking).await;
    let posted = posted.unwrap();
    assert_eq!(number(&posted), 1);
    let entries = world.one.posts("once").await;
    assert!(entries.len() > 1, "asked for once only: {entries:?}");
    for entry in &entries {
        assert_eq!(entry.proposal.request, posted.request);
        assert_eq!(entry.stamp.node, three.id());
    }
    assert_eq!(world.one.last_message().await.value, 1, "done twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_without_a_leader_says_so() {
    let world = World::found().await;
    let two = world.join("two", Role::Learner).await;
    two.register("mcp-two").await.unwrap();
    // It never hears the leader.
    let admitted = world.admit("four", Role::Learner).await;
    world.net.partition(&[admitted.member.node], &[world.one.id()]);
    let four = world.start(admitted).await;
    assert_eq!(four.core.leader(), None);
    let answer = asked(&two, &four, Call::Relay(Ask::ReadIndex)).await;
    assert!(text_of(&answer).contains("knows no leader"), "{answer:?}");

    // It finds the leader all the same, through the other one.
    four.register("mcp-four").await.unwrap();
    let home = world.one.core.state.view(|view| {
        Ok(nexus_domain::conversations::conversation(view, "mcp-four")?.map(|it| it.home))
    });
    assert_eq!(home.unwrap(), Some(four.id()));

    // Nobody relays: nothing was written, and the reason is said.
    world.cut(&world.one, &two);
    assert!(two.last_message().await.stale.is_some());
    assert_eq!(two.core.reach.lost(), Some(world.one.id()));
    let refused = four.post("mcp-four", "lost").await.unwrap_err();
    let ProposeError::NoQuorum { missing, .. } = &refused else { panic!("{refused:?}") };
    let relay = format!("asked to relay: node {}", two.id());
    assert!(missing.contains(&relay), "{missing}");
    assert!(world.one.posts("lost").await.is_empty());

    // A relay never asks another one.
    let answer = asked(&four, &two, Call::Relay(Ask::ReadIndex)).await;
    assert!(text_of(&answer).contains("node 1"), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_takes_only_so_much_at_once() {
    let (_world, two, three) = World::of_three().await;
    let all = u32::try_from(two.core.reach.places.available_permits()).unwrap();
    let taken = two.core.reach.places.acquire_many(all).await.unwrap();
    let answer = asked(&three, &two, Call::Relay(Ask::ReadIndex)).await;
    assert!(text_of(&answer).contains("too much"), "{answer:?}");
    drop(taken);
    let answer = asked(&three, &two, Call::Relay(Ask::ReadIndex)).await;
    assert!(matches!(answer, Answer::ReadIndex { .. }), "{answer:?}");
}

/// A post as a node would propose it.
fn proposal(node: &Node, who: &str, text: &str, id: &str) -> bytes::Bytes {
    let command = super::world::posting(text);
    let proposal = Proposal {
        version: command.needs(),
        request: RequestId::Client(id.to_owned()),
        actor: Actor::Conversation(who.to_owned()),
        answered: Answered { boot: node.core.book.myself().boot, below: 1 },
        not_after: u64::MAX,
        command,
    };
    assert!(proposal.version <= SUPPORTED);
    codec::encode_proposal(&proposal).into()
}

/// Signs with a node's key that a proposal is `origin`'s.
fn sign(signer: &Node, origin: &Node, challenge: &[u8], proposal: &bytes::Bytes) -> SignedProposal {
    let statement = signer.core.statement(origin.id(), challenge, proposal);
    let signature = signer.core.key.sign_relayed(&statement).unwrap();
    SignedProposal { proposal: proposal.clone(), challenge: challenge.to_vec(), signature }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_cannot_speak_for_another_node() {
    let (world, two, three) = World::of_three().await;
    two.register("mcp-two").await.unwrap();
    let relayed = |proposal| Call::Relayed { origin: two.id(), proposal };
    let forged = proposal(&two, "mcp-two", "forged", "forged");

    // Without the leader's challenge nothing is looked at, however well it is signed.
    let signed = sign(&two, &two, &[], &forged);
    let answer = asked(&three, &world.one, relayed(signed)).await;
    let Answer::Challenge(challenge) = answer else { panic!("answered {answer:?}") };

    let by_its_own_key = sign(&three, &two, &challenge, &forged);
    let genuine = sign(&two, &two, &challenge, &proposal(&two, "mcp-two", "genuine", "genuine"));
    let other_words = SignedProposal { proposal: forged.clone(), ..genuine.clone() };
    let unsigned = SignedProposal { signature: Vec::new(), ..genuine.clone() };
    let other_origin = sign(&two, &three, &challenge, &forged);
    for lie in [by_its_own_key, other_words, unsigned, other_origin] {
        let answer = asked(&three, &world.one, relayed(lie)).await;
        assert!(text_of(&answer).contains("is not signed by node"), "{answer:?}");
    }
    // A node that is no member has no key that could be looked up.
    let stranger = Call::Relayed { origin: 999, proposal: genuine.clone() };
    let answer = asked(&three, &world.one, stranger).await;
    assert!(text_of(&answer).contains("no member"), "{answer:?}");
    assert!(world.one.posts("forged").await.is_empty());

    // What is genuine has one effect, however often it is brought.
    let mut numbers = Vec::new();
    for _ in 0..2 {
        let answer = asked(&three, &world.one, relayed(genuine.clone())).await;
        let Answer::Proposed { outcome, .. } = answer else { panic!("answered {answer:?}") };
        numbers.push(format!("{:?}", Result::from(outcome)));
    }
    assert_eq!(numbers[0], numbers[1]);
    assert_eq!(world.one.last_message().await.value, 1);
    let entries = world.one.posts("genuine").await;
    assert!(entries.iter().all(|entry| entry.stamp.node == two.id()), "{entries:?}");

    // Who does not lead takes nothing that is passed on, and passes it on to nobody.
    let answer = asked(&three, &two, relayed(genuine)).await;
    let Answer::NotLeader { leader, maybe_written: false } = answer else {
        panic!("answered {answer:?}")
    };
    assert_eq!(leader, world.one.id());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_joins_through_a_member_that_does_not_reach_the_leader() {
    let world = World::found().await;
    let _two = world.join("two", Role::Learner).await;
    let three = world.join("three", Role::Learner).await;
    three.register("mcp-three").await.unwrap();
    world.net.wall(three.id(), world.one.id());
    let key = crate::identity::NodeKey::generate().unwrap();
    let request = world.invited("four", Role::Learner, &key).await;
    let answer = three.core.join_machine(request).await;
    assert!(matches!(answer, crate::rpc::message::JoinAnswer::Welcome { .. }), "{answer:?}");
}
