//! A program that is too old for its cluster stops with words that name the way on (traps.md 3),
//! and who is away is noted.

use nexus_domain::command::presence::{NodeChange, NodeState};
use nexus_domain::command::{ConversationCommand, SystemCommand};
use nexus_domain::conversations::Noted;

use super::*;
use crate::StoreError;

async fn propose(node: &Node, command: Command) {
    let request = Request { actor: Actor::Node, id: None, command };
    // The one that stops the node is never answered.
    let answer = tokio::time::timeout(LIMIT, node.cluster.propose(request)).await;
    drop(answer.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_too_old_is_told_what_to_upgrade_to() {
    let folder = tempfile::tempdir().unwrap();
    let node = Node::found(&folder, Arc::new(SystemClock)).await;
    // The others know a newer version; this one said so, too, and has gone back since.
    let started = SystemCommand::Started {
        boot: node.cluster.boot(),
        nonce: node.cluster.nonce(),
        supports: nexus_domain::SUPPORTED + 1,
        software: "9.9.9".to_owned(),
    };
    propose(&node, Command::System(started)).await;
    assert_eq!(*node.cluster.fatal().borrow(), None, "the leader upgraded beyond its program");
    let upgrade = SystemCommand::Upgrade { to: nexus_domain::SUPPORTED + 1 };
    propose(&node, Command::System(upgrade)).await;
    let fatal = || node.cluster.fatal().borrow().clone();
    let text = wait_for("its end", fatal, Option::is_some).await.unwrap();
    assert!(text.contains("too old for the cluster: upgrade to 9.9.9"), "{text}");
    assert!(!text.contains("replace"), "the disk is well: {text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_of_a_newer_program_is_not_gone_on_with() {
    let folder = tempfile::tempdir().unwrap();
    let node = Node::found(&folder, Arc::new(SystemClock)).await;
    // The state version, one row: the newer program has raised it.
    let newer = nexus_domain::codec::encode_value(&(nexus_domain::SUPPORTED + 1));
    node.cluster.core.state.current().put([0x02], newer).unwrap();
    let config = node.stop().await;
    let refused = Node::start(config).await.err();
    let Some(OpenError::Store(StoreError::TooNew { path, text })) = refused else {
        panic!("{refused:?}");
    };
    assert!(path.starts_with(folder.path()), "{}", path.display());
    assert!(text.contains("too old for the cluster: upgrade to a newer program"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_is_heard_is_not_noted_as_away() {
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let one = Node::found(&folders[0], Arc::new(SystemClock)).await;
    let two = Node::join(&folders[1], "two", &one, Role::Learner).await;
    let applied = one.cluster.local_status().applied;
    assert!(two.cluster.wait_applied(applied, LIMIT).await);
    let mut hints = one.cluster.hints();
    let nodes = [one.cluster.node(), two.cluster.node()];
    let changes = nodes.map(|node| NodeChange { node, state: NodeState::Down }).to_vec();
    propose(&one, Command::Conversation(ConversationCommand::Nodes { changes })).await;
    // Both are heard, so the leader takes the notes back: of each there are two.
    let mut changes = Vec::new();
    let all_back = async {
        while nodes.iter().any(|id| changes.iter().filter(|seen| *seen == id).count() < 2) {
            if let crate::Hint::Applied { events, .. } = hints.recv().await.unwrap() {
                for event in events.iter() {
                    if let nexus_domain::Event::Members { node } = event {
                        changes.push(*node);
                    }
                }
            }
        }
    };
    let in_time = tokio::time::timeout(LIMIT, all_back).await;
    assert!(in_time.is_ok(), "changes of {changes:?}");
    let states = || one.cluster.look(|view| nexus_domain::conversations::nodes(view)).unwrap();
    let all_up = |noted: &Vec<Noted>| noted.iter().all(|noted| noted.state == NodeState::Up);
    wait_for("all up", states, all_up).await;
}
