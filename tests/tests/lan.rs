//! Three machines on one LAN with multicast find each other by code alone, cables are pulled, and
//! two machines lose each other while the third reaches both.
//!
//! Skipped, with a line that says why, where network namespaces cannot be made.
#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::indexing_slicing,
    reason = "all of this file is a test"
)]

use std::time::Duration;

use nexus_tests::network::Network;
use nexus_tests::process::{LIMIT, Node, Setup, text};
use nexus_tests::wait;
use serde_json::{Value, json};
use tokio::time::Instant;

/// What a stale read may take: the failover bound of `wired` and a second, and a busy machine.
const STALE: Duration = Duration::from_secs(10);

/// Hosts with a node each, which are told nothing but what a user would tell them.
struct Lan {
    // Before the network, so that no node outlives its namespace.
    nodes: Vec<Node>,
    network: Network,
}

impl Lan {
    fn new() -> Result<Self, String> {
        let mut network = Network::new('l')?;
        let mut nodes = Vec::new();
        for number in 1..=3 {
            let setup = Setup {
                namespace: Some(network.host(number)?),
                arguments: Vec::new(),
                ..Setup::default()
            };
            nodes.push(Node::with(&format!("desk-{number}"), setup));
        }
        Ok(Self { nodes, network })
    }

    fn number(&self, name: &str) -> u8 {
        let place = self.nodes.iter().position(|node| node.name() == name).unwrap();
        u8::try_from(place + 1).unwrap()
    }
}

/// What nodes must agree on: who leads in which term, and who is there as what.
fn agreed(status: &Value) -> Value {
    let members = status["members"].as_array().unwrap().iter();
    let members: Vec<Value> = members
        .map(|member| json!([member["id"], member["name"], member["role"], member["state"]]))
        .collect();
    json!([status["cluster"], status["leader"], status["term"], members, status.get("stale")])
}

async fn all_agree(nodes: &[Node]) -> Value {
    wait::until("three voters on which all agree", LIMIT, async || {
        let mut all = Vec::new();
        for node in nodes {
            all.push(node.status().await);
        }
        let voters = all[0]["members"].as_array().unwrap().iter();
        let voters = voters.filter(|member| member["role"] == "voter" && member["state"] == "up");
        let same = all.iter().all(|status| agreed(status) == agreed(&all[0]));
        if voters.count() == 3 && same && all[0]["leader"].is_string() {
            Ok(all[0].clone())
        } else {
            Err(format!("{:#}", Value::from(all)))
        }
    })
    .await
}

async fn say(node: &Node, message: &str) -> u64 {
    let args = json!({"message": message}).to_string();
    let said = node.nexus(&["call", "send_message", &args]).await.good().json();
    said["messageId"].as_u64().unwrap()
}

async fn newest(node: &Node) -> Value {
    let args = r#"{"latest": true, "count": 10}"#;
    node.nexus(&["call", "read_messages", args]).await.good().json()
}

fn texts(read: &Value) -> Vec<String> {
    read["messages"].as_array().unwrap().iter().map(|message| text(&message["text"])).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn machines_join_by_code_alone_and_a_cable_is_pulled() {
    let mut lan = match Lan::new() {
        Ok(lan) => lan,
        Err(why) => {
            eprintln!("skipped: three machines on a LAN, which needs root and ip: {why}");
            return;
        }
    };
    lan.nodes[0].start(&[]).await;
    let since = Instant::now();
    for joiner in 1..3 {
        let invite = lan.nodes[0].invite(&["--voter"]).await;
        let code = text(&invite["code"]);
        lan.nodes[joiner].start(&["--join", &code]).await;
    }
    let status = all_agree(&lan.nodes).await;
    eprintln!("three voters by code alone in {:.1} s", since.elapsed().as_secs_f32());
    assert_eq!(status["tolerance"], 1, "{status:#}");
    for (number, node) in (1..).zip(&lan.nodes) {
        assert_eq!(say(node, &format!("from {}", node.name())).await, number);
    }
    for node in &lan.nodes {
        let read = newest(node).await;
        assert_eq!(texts(&read), ["from desk-1", "from desk-2", "from desk-3"], "{read:#}");
    }

    let leader = text(&status["leader"]);
    pull_the_cable(&mut lan, &leader, "the leader's").await;
    let status = all_agree(&lan.nodes).await;
    let members = status["members"].as_array().unwrap().iter();
    let follower =
        members.map(|member| text(&member["name"])).find(|name| status["leader"] != **name);
    pull_the_cable(&mut lan, &follower.unwrap(), "a follower's").await;
    part_a_follower_from_the_leader(&lan).await;
}

/// Lets the leader and a follower not hear each other: both work on, through the third.
async fn part_a_follower_from_the_leader(lan: &Lan) {
    let status = all_agree(&lan.nodes).await;
    let leader = text(&status["leader"]);
    let leads = |node: &&Node| node.name() == leader;
    let (leading, followers): (Vec<&Node>, Vec<&Node>) = lan.nodes.iter().partition(leads);
    let (leading, parted) = (leading[0], followers[0]);
    let [one, other] = [leading, parted].map(|node| lan.number(node.name()));
    lan.network.part(one, other);

    let since = Instant::now();
    for count in 1..=3 {
        say(parted, &format!("around {count}")).await;
        let read = newest(parted).await;
        let last = texts(&read).pop();
        assert_eq!((read.get("stale"), last), (None, Some(format!("around {count}"))), "{read:#}");
    }
    let gap = since.elapsed();
    // Its log goes on without a word of its own, and it is no nuisance: nobody else leads.
    let message = say(leading, "to all").await;
    wait::until("what the leader said", LIMIT, async || {
        let read = newest(parted).await;
        let has_it = read.get("stale").is_none() && texts(&read).last() == Some(&"to all".into());
        if has_it { Ok(()) } else { Err(format!("message {message}: {read:#}")) }
    })
    .await;
    let after = all_agree(&lan.nodes).await;
    assert_eq!((&after["leader"], &after["term"]), (&status["leader"], &status["term"]));

    lan.network.rejoin(one, other);
    say(parted, "directly").await;
    all_agree(&lan.nodes).await;
    eprintln!("leader and follower parted: three writes and reads in {} ms", gap.as_millis());
}

/// Cuts one host off: it reads what it knows and says so, the others go on; then all is as before.
async fn pull_the_cable(lan: &mut Lan, cut_off: &str, whose: &str) {
    let number = lan.number(cut_off);
    let (minority, majority): (Vec<&Node>, Vec<&Node>) =
        lan.nodes.iter().partition(|node| node.name() == cut_off);
    let (lone, other) = (minority[0], majority[0]);
    let before = texts(&newest(lone).await);
    lan.network.cut(number);
    let since = Instant::now();
    let message = format!("without {cut_off}");
    say(other, &message).await;
    let gap = since.elapsed();
    assert_eq!(texts(&newest(other).await).last(), Some(&message));

    // The old leader believes for a moment that it leads: only what it says after that is judged.
    let stale = wait::until("a stale read of the lone node", LIMIT, async || {
        let read = newest(lone).await;
        if read["stale"] == true { Ok(read) } else { Err(format!("{read:#}")) }
    })
    .await;
    assert_eq!(texts(&stale), before, "{stale:#}");
    assert!(stale["asOf"].is_string(), "{stale:#}");
    let asked = Instant::now();
    assert_eq!(newest(lone).await["stale"], true);
    assert!(asked.elapsed() < STALE, "a stale read took {:?}", asked.elapsed());
    let status = lone.nexus(&["status", "--json"]).await.good().json();
    assert_eq!(status["stale"], true, "{status:#}");
    let args = r#"{"message": "nobody hears this"}"#;
    let refused = lone.nexus(&["call", "send_message", args, "--json"]).await;
    assert_eq!((refused.code(), text(&refused.json()["code"]).as_str()), (4, "no_quorum"));
    let error = text(&refused.json()["error"]);
    for node in &majority {
        assert!(error.contains(node.name()), "who is missing is not named: {error}");
    }

    lan.network.mend(number);
    let since = Instant::now();
    wait::until("the lone node's return", LIMIT, async || {
        let read = newest(lone).await;
        let is_back = read.get("stale").is_none() && texts(&read).last() == Some(&message);
        if is_back { Ok(()) } else { Err(format!("{read:#}")) }
    })
    .await;
    let back = since.elapsed();
    say(lone, &format!("{cut_off} is back")).await;
    all_agree(&lan.nodes).await;
    wait::until("the same digests everywhere", LIMIT, async || {
        let mut all = Vec::new();
        for node in &lan.nodes {
            all.push(node.digest().await["now"].clone());
        }
        let same = all.iter().all(|digest| *digest == all[0]);
        if same { Ok(()) } else { Err(format!("{:#}", Value::from(all))) }
    })
    .await;
    let all = texts(&newest(lone).await);
    assert!(!all.contains(&"nobody hears this".to_owned()), "{all:?}");
    eprintln!(
        "{whose} cable: the others write again after {} ms, the lone node is back after {} ms",
        gap.as_millis(),
        back.as_millis()
    );
}
