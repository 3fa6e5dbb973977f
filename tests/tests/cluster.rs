//! What every cluster does: starts at once, stops in order, hands over, lets go of members.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "all of this file is a test")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nexus_rt::Jobs;
use nexus_tests::call::{As, Failed, Http};
use nexus_tests::process::{LIMIT, Node, agree, text, three_voters};
use nexus_tests::wait;
use serde_json::{Value, json};
use tokio::time::Instant;

fn writer(request: Option<&str>) -> As<'_> {
    As { instance: "writer", request }
}

async fn say(node: &Node, message: &str) -> u64 {
    let said = node.http().call("send_message", json!({"message": message}), writer(None)).await;
    said.unwrap_or_else(|failed| panic!("{message}: {failed}"))["messageId"].as_u64().unwrap()
}

async fn texts(node: &Node) -> Vec<String> {
    node.http().history().await.unwrap().iter().map(|message| text(&message["text"])).collect()
}

async fn serves(node: &Node) -> Duration {
    let since = Instant::now();
    wait::until("a linearizable read", LIMIT, async || node.http().get("/ready").await).await;
    since.elapsed()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_of_one_serves_at_once_and_again() {
    let mut node = Node::new("sole");
    let first = node.start(&[]).await;
    let served = serves(&node).await;
    let line = node.ready_line().to_owned();
    let words: Vec<&str> = line.split(' ').collect();
    assert!(words[2].starts_with("http=http://127.0.0.1:"), "{line}");
    assert_eq!((words[3], words.len()), ("node=sole", 5), "{line}");
    let cluster = words[4].strip_prefix("cluster=").unwrap().to_owned();
    assert_eq!(say(&node, "before").await, 1);
    let status = node.status().await;
    assert_eq!(status["cluster"], cluster.as_str());
    assert_eq!((&status["leader"], &status["quorum"]), (&json!("sole"), &json!(1)));
    assert_eq!(status["members"][0]["role"], "voter");

    node.kill();
    let again = node.start(&[]).await;
    let served_again = serves(&node).await;
    assert!(node.ready_line().ends_with(&cluster), "{}", node.ready_line());
    assert_eq!(texts(&node).await, ["before"]);
    assert_eq!(say(&node, "after").await, 2);
    eprintln!(
        "first start ready in {} ms (+{} ms to a read), after a kill in {} ms (+{} ms)",
        first.as_millis(),
        served.as_millis(),
        again.as_millis(),
        served_again.as_millis()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_stops_in_order_and_says_so() {
    let mut node = Node::found("sole").await;
    say(&node, "kept").await;
    let address = node.http().url().to_owned();
    let down = node.nexus(&["down"]).await.good();
    assert_eq!(down.stdout.trim(), "the node has stopped");
    assert!(node.stopped().await.success(), "{}", node.log());
    assert!(!node.data().join("endpoint.json").exists());
    assert!(reqwest::get(format!("{address}/health")).await.is_err());
    // Every verb says that no node runs, with its own exit code and what to type.
    for verb in [
        &["status"][..],
        &["down"],
        &["peers"],
        &["invite", "--voter"],
        &["call", "list_events"],
        &["node", "remove", "x"],
    ] {
        let ended = node.nexus(verb).await;
        assert_eq!((ended.code(), ended.stdout.as_str()), (3, ""), "{verb:?}: {ended}");
        assert!(ended.stderr.contains("nexus up"), "{verb:?}: {ended}");
        let mut json: Vec<&str> = verb.to_vec();
        json.push("--json");
        let ended = node.nexus(&json).await;
        assert_eq!((ended.code(), &ended.json()["code"]), (3, &json!("node_unreachable")));
    }
    node.start(&[]).await;
    assert_eq!(texts(&node).await, ["kept"]);
    node.terminate().await;
}

/// Writes one message after the other until told to stop; returns the longest pause between two
/// answers.
async fn write(http: Http, stop: Arc<AtomicBool>, longest: Arc<std::sync::Mutex<Duration>>) {
    let mut last = Instant::now();
    for count in 0_u64.. {
        if stop.load(Ordering::Acquire) {
            return;
        }
        let request = format!("steady-{count}");
        let who = As { instance: "steady", request: Some(&request) };
        let said = http.call("send_message", json!({"message": request}), who).await;
        assert!(said.is_ok(), "{}", said.unwrap_err());
        let mut longest = longest.lock().unwrap();
        *longest = (*longest).max(last.elapsed());
        last = Instant::now();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_is_told_to_stop_hands_over() {
    let [mut one, two, three] = three_voters(["one", "two", "three"]).await;
    let jobs = Jobs::new();
    let stop = Arc::new(AtomicBool::new(false));
    let longest = Arc::new(std::sync::Mutex::new(Duration::ZERO));
    jobs.spawn("writer", write(two.http().clone(), Arc::clone(&stop), Arc::clone(&longest)));
    enough(&two, 20).await;
    let usual = std::mem::take(&mut *longest.lock().unwrap());
    let stopped = one.terminate().await;
    enough(&two, two.http().history().await.unwrap().len() + 20).await;
    stop.store(true, Ordering::Release);
    assert!(jobs.shutdown(LIMIT).await.is_empty());
    let gap = *longest.lock().unwrap();
    eprintln!(
        "hand-over: longest pause between two answers {} ms ({} ms before), stopped in {} ms",
        gap.as_millis(),
        usual.as_millis(),
        stopped.as_millis()
    );
    let status = two.status().await;
    assert!(status["leader"] == "two" || status["leader"] == "three", "{status:#}");
    one.start(&[]).await;
    agree(&[&one, &two, &three], LIMIT).await;
    let all = texts(&one).await;
    let steady: Vec<String> = (0..all.len()).map(|count| format!("steady-{count}")).collect();
    assert_eq!(all, steady);
}

async fn enough(node: &Node, messages: usize) {
    wait::until("enough messages", LIMIT, async || {
        let count = texts(node).await.len();
        if count >= messages { Ok(()) } else { Err(format!("{count} of {messages}")) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_without_an_answer_is_asked_for_again_by_its_id() {
    let [one, two, three] = three_voters(["one", "two", "three"]).await;
    assert_eq!(say(&one, "first").await, 1);
    for given in [None, Some("mine")] {
        two.freeze();
        three.freeze();
        // The leader does not know yet that it is alone, and writes the entry down.
        let args = json!({"message": format!("asked for again, {given:?}")});
        let failed =
            one.http().call("send_message", args.clone(), writer(given)).await.unwrap_err();
        two.thaw();
        three.thaw();
        assert_eq!(failed.code(), "unknown_outcome", "{failed}");
        let Failed::Refused { status, body } = failed else { unreachable!() };
        assert_eq!(status, 504);
        let id = text(&body["requestId"]);
        assert!(given.is_none_or(|given| given == id), "{id}");
        wait::until("a quorum", LIMIT, async || {
            let read = one.http().call("list_events", json!({}), writer(None)).await;
            let read = read.unwrap_or_else(|failed| panic!("{failed}"));
            if read.get("stale").is_none() { Ok(()) } else { Err(read) }
        })
        .await;
        let repeat = async |node: &Node| {
            let said = node.http().call("send_message", args.clone(), writer(Some(&id))).await;
            said.unwrap_or_else(|failed| panic!("{id} on {}: {failed}", node.name()))
        };
        let said = repeat(&one).await;
        if given.is_some() {
            // An id of the caller's own is good on every node, one that a node made there only.
            for node in [&one, &two, &three] {
                assert_eq!(repeat(node).await["messageId"], said["messageId"]);
            }
        } else {
            assert_eq!(repeat(&one).await["messageId"], said["messageId"]);
        }
        let other = json!({"message": "another"});
        let reused = one.http().call("send_message", other, writer(Some(&id))).await.unwrap_err();
        assert_eq!(reused.code(), "conflict", "{reused}");
    }
    let all = texts(&three).await;
    assert_eq!(all.len(), 3, "{all:?}");
    agree(&[&one, &two, &three], LIMIT).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_is_gone_is_removed_and_its_id_never_comes_back() {
    let [one, mut two, three] = three_voters(["one", "two", "three"]).await;
    let id = member(&one.status().await, "two").unwrap()["id"].clone();
    say(&one, "with two").await;
    two.kill();
    let unknown = one.nexus(&["node", "remove", "nobody"]).await;
    assert_eq!(unknown.code(), 1, "{unknown}");
    assert!(unknown.stderr.contains("one, two, three"), "the members are named: {unknown}");
    let removed = one.nexus(&["node", "remove", "two"]).await.good();
    assert!(removed.stdout.contains("two"), "{removed}");
    for node in [&one, &three] {
        wait::until("two members", LIMIT, async || {
            let status = node.status().await;
            let gone = member(&status, "two").is_none();
            if gone { Ok(()) } else { Err(format!("{status:#}")) }
        })
        .await;
    }
    say(&three, "without two").await;
    // The removed machine is told, and serves nobody as if it belonged.
    two.launch(&[]);
    let ended = wait::until("the removed node's end, or word of it", LIMIT, async || {
        let log = two.log();
        if log.contains("removed") || log.contains("not a member") { Ok(log) } else { Err(log) }
    })
    .await;
    assert!(ended.contains("--join") || ended.contains("join"), "what to do is said: {ended}");
    drop(two);
    let two = Node::join("two", &one, &["--voter"]).await;
    let status = wait::until("its return as a new member", LIMIT, async || {
        let status = one.status().await;
        let role = member(&status, "two").map(|member| member["role"].clone());
        if role == Some(json!("voter")) { Ok(status) } else { Err(format!("{status:#}")) }
    })
    .await;
    let new = member(&status, "two").unwrap()["id"].as_u64().unwrap();
    assert!(new > id.as_u64().unwrap(), "{status:#}");
    agree(&[&one, &two, &three], LIMIT).await;
    assert_eq!(texts(&two).await, ["with two", "without two"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_to_a_node_that_hangs_is_repeated_by_the_id_that_the_error_names() {
    let node = Node::found("sole").await;
    serves(&node).await;
    node.freeze();
    let args = r#"{"message": "once"}"#;
    let (write, look) = (["call", "send_message", args], ["call", "list_events"]);
    let write_json = ["call", "send_message", args, "--json"];
    let (wrote, json, looked) =
        tokio::join!(node.nexus(&write), node.nexus(&write_json), node.nexus(&look));
    node.thaw();
    // What only looks leaves nothing in doubt.
    assert_eq!(looked.code(), 3, "{looked}");
    assert!(looked.stderr.contains("nothing was done"), "{looked}");
    assert_eq!((wrote.code(), json.code()), (4, 4), "{wrote}\n{json}");
    let hint = wrote.stderr.lines().find_map(|line| line.strip_prefix("hint: call again with "));
    let hint = hint.and_then(|hint| hint.strip_prefix("--request-id "));
    let id = hint.and_then(|hint| hint.strip_suffix(": it has one effect"));
    let id = id.unwrap_or_else(|| panic!("no id is named: {wrote}"));
    assert!(wrote.stderr.contains("may or may not have been done"), "{wrote}");
    let other = text(&json.json()["requestId"]);
    assert_ne!(id, other);
    let mut numbers = Vec::new();
    for _ in 0..2 {
        for id in [id, &other] {
            let said = node.nexus(&["call", "send_message", args, "--request-id", id]).await;
            numbers.push(said.good().json()["messageId"].as_u64().unwrap());
        }
    }
    assert_eq!((numbers[0], numbers[1]), (numbers[2], numbers[3]), "{numbers:?}");
    assert_eq!(texts(&node).await, ["once", "once"], "two calls, each once");
}

/// Waits until a node says that it is not ready, with this code; returns what it says.
async fn unready(node: &Node, code: &str) -> Value {
    wait::until(&format!("/ready with {code}"), LIMIT, async || {
        match node.http().get("/ready").await {
            Err(Failed::Refused { status: 503, body }) if body["code"] == code => Ok(body),
            other => Err(format!("{other:?}")),
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_a_quorum_is_not_ready_and_says_of_when_it_knows() {
    let [mut one, mut two, mut three] = three_voters(["one", "two", "three"]).await;
    for node in [&one, &two, &three] {
        serves(node).await;
    }
    say(&one, "heard by all").await;
    agree(&[&one, &two, &three], LIMIT).await;
    // A follower that hears no leader knows it by itself: nobody calls a tool here.
    one.kill();
    three.kill();
    let body = unready(&two, "no_quorum").await;
    let error = text(&body["error"]);
    for words in ["of 3 voters 2 must be awake", "one", "three", "nothing can be written"] {
        assert!(error.contains(words), "{words}: {error}");
    }
    assert_eq!((&body["ok"], &body["retryAfter"]), (&json!(false), &json!(1)));
    assert_eq!(two.http().get("/health").await.unwrap()["ready"], false);
    let latest = &["call", "read_messages", r#"{"latest": true}"#][..];
    for verb in [latest, &["status"]] {
        let ended = two.nexus(verb).await.good();
        let words = "answers: this is what this node knew at 20";
        assert!(ended.stderr.contains(words), "{verb:?}: {ended}");
    }
    // After a start it has heard nobody yet.
    two.kill();
    two.start(&[]).await;
    unready(&two, "starting").await;
    for verb in [latest, &["status"]] {
        let ended = two.nexus(verb).await.good();
        let words = "answers: this is the last that this node knows, and its age is not known \
                     since this node's start; its last entry is of 20";
        assert!(ended.stderr.contains(words), "{verb:?}: {ended}");
    }
    let status = two.status().await;
    let words = "not known since this node's start; its last entry is of 20";
    assert!(text(&status["asOf"]).starts_with(words), "{status:#}");
    // A quorum is enough.
    three.start(&[]).await;
    for node in [&two, &three] {
        serves(node).await;
    }
    // A leader that is alone knows it too.
    let status = two.status().await;
    let leader = text(&status["leader"]);
    let (alone, other) = if leader == "two" { (&two, &mut three) } else { (&three, &mut two) };
    other.kill();
    unready(alone, "no_quorum").await;
    other.start(&[]).await;
    for node in [alone, other] {
        serves(node).await;
    }
}

fn member<'a>(status: &'a Value, name: &str) -> Option<&'a Value> {
    status["members"].as_array()?.iter().find(|member| member["name"] == name)
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_return_after_all_died_and_at_other_addresses() {
    let [mut one, mut two, mut three] = three_voters(["one", "two", "three"]).await;
    say(&two, "before").await;
    for node in [&mut one, &mut two, &mut three] {
        node.kill();
    }
    let since = Instant::now();
    for node in [&mut one, &mut two, &mut three] {
        node.start(&[]).await;
    }
    for node in [&one, &two, &three] {
        serves(node).await;
    }
    eprintln!("three nodes serve {} ms after all died", since.elapsed().as_millis());
    assert_eq!(texts(&three).await, ["before"]);
    // A machine that gets another address tells the others itself.
    let mut nodes = [one, two, three];
    for moving in 0..nodes.len() {
        let node = &mut nodes[moving];
        node.kill();
        node.move_away();
        node.start(&[]).await;
        serves(node).await;
        say(node, &format!("{} moved", node.name())).await;
        // Whoever moves next must have heard of this move, or it would look at the old place.
        agree(&nodes.each_ref(), LIMIT).await;
    }
    let [one, ..] = &nodes;
    assert_eq!(texts(one).await, ["before", "one moved", "two moved", "three moved"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn members_that_both_moved_meet_at_a_seed() {
    let mut first = Node::found("first").await;
    let mut second = Node::join("second", &first, &[]).await;
    agree(&[&first, &second], LIMIT).await;
    // Neither is where the other knows it, so only the user's word brings them together.
    second.terminate().await;
    first.terminate().await;
    first.move_away();
    second.move_away();
    first.start(&[]).await;
    let seed = text(&first.status().await["members"][0]["addresses"][0]);
    second.start(&["--seed", &seed]).await;
    agree(&[&first, &second], LIMIT).await;
}
