//! Starts that must not succeed: codes, folders, ports and settings that are not right.

use std::net::{TcpListener, UdpSocket};

use nexus_tests::command::Ended;
use nexus_tests::process::{LIMIT, Node, Setup, text};
use nexus_tests::wait;
use serde_json::{Value, json};

use super::{Intact, refused, say};

/// Tries to join with a code; a refusal leaves nothing of the try behind.
async fn joins_not(joiner: &mut Node, code: &str, seed: &str, words: &[&str]) {
    joiner.launch(&["--join", code, "--seed", seed]);
    let ended = joiner.refused().await;
    refused(&ended, 1, words);
    assert!(!joiner.data().join("joining").exists(), "a begun join was left: {ended}");
}

/// As [`joins_not`], with a code that is none: then the command line is wrong.
async fn is_no_code(joiner: &mut Node, code: &str, seed: &str, words: &[&str]) {
    joiner.launch(&["--join", code, "--seed", seed]);
    let ended = joiner.refused().await;
    refused(&ended, 2, words);
    assert!(!joiner.data().join("node.key").exists(), "something was made");
}

async fn invite(node: &Node, more: &[&str]) -> (String, String, String) {
    let made = node.invite(more).await;
    (text(&made["code"]), text(&made["id"]), text(&made["addresses"][0]))
}

#[tokio::test(flavor = "multi_thread")]
async fn codes_that_are_no_good_let_nobody_in() {
    let mut intact = Intact::new().await;
    let other = Node::found("other").await;
    let (foreign, _, _) = invite(&other, &["--voter"]).await;
    let (used, _, seed) = invite(&intact.node, &["--voter"]).await;
    let mut second = Node::new("second");
    second.start(&["--join", &used, "--seed", &seed]).await;
    intact.serves("a good join").await;

    let mut joiner = Node::new("joiner");
    joins_not(&mut joiner, &used, &seed, &["used", "nexus invite"]).await;
    intact.serves("a used code").await;

    let (withdrawn, id, _) = invite(&intact.node, &[]).await;
    let taken_back = intact.node.nexus(&["invite", "withdraw", &id]).await.good();
    assert!(taken_back.stdout.contains(&id), "{taken_back}");
    joins_not(&mut joiner, &withdrawn, &seed, &["withdrawn", "nexus invite"]).await;
    intact.serves("a withdrawn code").await;

    let (expired, id, _) = invite(&intact.node, &["--ttl", "1s"]).await;
    wait::until("the code's end", LIMIT, async || {
        let list = intact.node.nexus(&["invite", "list", "--json"]).await.good().json();
        let open = list["invites"].as_array().unwrap().iter();
        let open = open.filter(|invite| invite["state"] == "open").any(|it| it["id"] == *id);
        if open { Err(list) } else { Ok(()) }
    })
    .await;
    joins_not(&mut joiner, &expired, &seed, &["expired", "nexus invite"]).await;
    intact.serves("an expired code").await;

    let (good, _, _) = invite(&intact.node, &["--voter"]).await;
    let cut = &good[..good.len() - 5];
    let mut blank = Node::new("blank");
    is_no_code(&mut blank, cut, &seed, &["--join", "cut off", "copy it again"]).await;
    is_no_code(&mut blank, &format!("{good}abc"), &seed, &["--join", "too much"]).await;
    is_no_code(&mut blank, "nonsense", &seed, &["--join", "no invite code"]).await;
    let mut wrong = good.clone();
    let last = if wrong.pop() == Some('a') { 'b' } else { 'a' };
    wrong.push(last);
    joins_not(&mut joiner, &wrong, &seed, &["nexus invite"]).await;
    joins_not(
        &mut joiner,
        &foreign,
        &seed,
        &[&seed, "not of the cluster that the invite code names"],
    )
    .await;
    intact.serves("codes that are none").await;

    // After all that the same folder joins with the good one.
    joiner.start(&["--join", &good, "--seed", &seed]).await;
    let status = intact.node.status().await;
    let names: Vec<&Value> =
        status["members"].as_array().unwrap().iter().map(|member| &member["name"]).collect();
    assert_eq!(names, ["intact", "second", "joiner"], "{status:#}");
    intact.serves("a good join").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_that_wrong_secrets_closed_says_so() {
    let mut intact = Intact::new().await;
    let (code, id, seed) = invite(&intact.node, &["--voter"]).await;
    let (other, other_id, _) = invite(&intact.node, &[]).await;
    let taken_back = intact.node.nexus(&["invite", "withdraw", &other_id]).await.good();
    assert!(taken_back.stdout.contains(&other_id), "{taken_back}");
    let mut wrong = code.clone();
    let last = if wrong.pop() == Some('a') { 'b' } else { 'a' };
    wrong.push(last);
    let mut joiner = Node::new("joiner");
    for _ in 0..5 {
        joins_not(&mut joiner, &wrong, &seed, &["its secret is wrong", "nexus invite"]).await;
    }
    joins_not(&mut joiner, &code, &seed, &["burned after too many wrong secrets"]).await;
    joins_not(&mut joiner, &other, &seed, &["was withdrawn"]).await;
    let list = intact.node.nexus(&["invite", "list", "--json"]).await.good().json();
    let state = |id: &str| {
        let all = list["invites"].as_array().unwrap().iter();
        all.filter(|invite| invite["id"] == *id).map(|invite| text(&invite["state"])).collect()
    };
    let (burned, withdrawn): (Vec<String>, Vec<String>) = (state(&id), state(&other_id));
    assert_eq!((burned, withdrawn), (vec!["burned".into()], vec!["withdrawn".into()]), "{list:#}");
    let table = intact.node.nexus(&["invite", "list"]).await.good();
    let line = table.stdout.lines().find(|line| line.contains(&id));
    assert!(line.is_some_and(|line| line.contains("closed: wrong secrets")), "{table}");
    intact.serves("wrong secrets").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_join_says_where_it_looks_and_when_it_cannot() {
    let mut intact = Intact::new().await;
    let (code, _, seed) = invite(&intact.node, &["--voter"]).await;
    // The tests' nodes have --no-mdns: without a seed there is nowhere to look.
    let mut joiner = Node::new("joiner");
    joiner.launch(&["--join", &code]);
    let ended = joiner.refused().await;
    let nowhere = ["--join has nowhere to look", "--no-mdns", "--seed ADDRESS:PORT"];
    refused(&ended, 2, &nowhere);
    // A folder of another cluster is not set aside for nothing.
    let mut other = Node::found("other").await;
    other.terminate().await;
    other.launch(&["--join", &code]);
    refused(&other.refused().await, 2, &nowhere);
    other.start(&[]).await;
    // A seed that leads nowhere is named, with what it is.
    joiner.launch(&["--join", &code, "--seed", "nobody.invalid"]);
    let log = wait::until("words about the seed", LIMIT, async || {
        let log = joiner.log();
        if log.contains("still trying") { Ok(log) } else { Err(log) }
    })
    .await;
    assert!(log.contains("seed nobody.invalid:5689 cannot be resolved"), "{log}");
    joiner.kill();
    joiner.start(&["--join", &code, "--seed", &seed]).await;
    intact.serves("a join after all").await;
    // A member comes back with its code and nowhere to look: it is there already.
    joiner.terminate().await;
    joiner.start(&["--join", &code]).await;
    assert!(joiner.log().contains("the code is ignored"), "{}", joiner.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn seeds_are_looked_at_before_they_are_needed() {
    let setup = Setup {
        settings: json!({"timing": "wired", "seeds": ["nobody.invalid:7"]}),
        ..Setup::default()
    };
    let mut node = Node::with("careful", setup);
    node.start(&["--seed", "nowhere.invalid"]).await;
    assert!(node.log().contains("--seed is given without --join"), "{}", node.log());
    wait::until("both seeds named by their fields", LIMIT, async || {
        let log = node.log();
        let named =
            ["--seed: seed nowhere.invalid", "seeds[0] of the settings: seed nobody.invalid"];
        if named.iter().all(|name| log.contains(name)) { Ok(()) } else { Err(log) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_takes_another_name_or_is_told_why_not() {
    let mut first = Node::found("desk").await;
    let second = Node::join("box", &first, &[]).await;
    let named = async |names: [&str; 2]| {
        wait::until("the members' names", LIMIT, async || {
            let status = second.status().await;
            let members = status["members"].as_array().unwrap().iter();
            let found: Vec<&Value> = members.map(|member| &member["name"]).collect();
            if found == names { Ok(()) } else { Err(status) }
        })
        .await;
    };
    named(["desk", "box"]).await;
    first.terminate().await;
    first.rename("tower");
    first.start(&[]).await;
    assert!(first.ready_line().contains(" node=tower "), "{}", first.ready_line());
    named(["tower", "box"]).await;
    first.terminate().await;
    first.rename("box");
    first.start(&[]).await;
    assert!(first.ready_line().contains(" node=box-2 "), "{}", first.ready_line());
    assert!(first.log().contains("name \"box\" is taken in this cluster"), "{}", first.log());
    named(["box-2", "box"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_of_another_cluster_is_left_as_it_is() {
    let mut intact = Intact::new().await;
    let (code, _, seed) = invite(&intact.node, &["--voter"]).await;
    let mut other = Node::found("other").await;
    say(&other, "of another cluster").await;
    other.terminate().await;
    joins_not(&mut other, &code, &seed, &["another cluster", "--discard"]).await;
    intact.serves("a folder of another cluster").await;
    // It is whole, and goes on alone.
    other.start(&[]).await;
    assert_eq!(other.http().history().await.unwrap().len(), 1);
    other.terminate().await;

    // The user's word sets it aside, and it is kept.
    other.start(&["--join", &code, "--seed", &seed, "--discard"]).await;
    let parent = other.data().parent().unwrap();
    let kept = std::fs::read_dir(parent).unwrap().flatten();
    let kept = kept.filter(|entry| entry.file_name().to_string_lossy().contains("before-join"));
    assert_eq!(kept.count(), 1);
    assert!(other.ready_line().ends_with(&text(&intact.node.status().await["cluster"])));
    intact.serves("a folder set aside").await;

    // Settings that expect a cluster find none.
    let mut lost = Node::with(
        "lost",
        Setup { settings: json!({"clusterId": "elsewhere"}), ..Setup::default() },
    );
    lost.launch(&[]);
    let ended = lost.refused().await;
    refused(&ended, 1, &["is empty", "elsewhere", "--join", "--data", "--new"]);
    assert!(!lost.data().join("log").exists(), "a log was made");
}

/// Returns the names of the folders that lie beside a node's and are called after it.
fn beside(node: &Node) -> Vec<String> {
    let parent = node.data().parent().unwrap().to_owned();
    let name = node.data().file_name().unwrap().to_string_lossy().into_owned();
    let entries = std::fs::read_dir(parent).unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|it| it.starts_with(&format!("{name}."))).collect()
}

/// Begins a join, and tells it to stop when it has said these words; without any while it dials.
/// Returns how it ended.
async fn stopped_join(joiner: &mut Node, code: &str, seed: &str, words: &str) -> Ended {
    joiner.launch(&["--join", code, "--seed", seed]);
    let begun = joiner.data().join("joining");
    wait::until("a join that waits", LIMIT, async || {
        let log = joiner.log();
        let waits = if words.is_empty() { begun.exists() } else { log.contains(words) };
        if waits { Ok(()) } else { Err(log) }
    })
    .await;
    joiner.interrupt();
    let ended = joiner.refused().await;
    refused(&ended, 1, &["told to stop before this machine was let in"]);
    ended
}

#[tokio::test(flavor = "multi_thread")]
async fn a_join_that_is_told_to_stop_leaves_the_folder_as_it_was() {
    let mut intact = Intact::new().await;
    let (code, _, seed) = invite(&intact.node, &["--voter"]).await;
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let nobody = silent.local_addr().unwrap().to_string();
    let mut alone = Node::found("alone").await;
    let cluster = text(&alone.status().await["cluster"]);
    for (nowhere, words) in [(nobody.as_str(), ""), ("nobody.invalid", "still trying")] {
        alone.terminate().await;
        let ended = stopped_join(&mut alone, &code, nowhere, words).await;
        for words in ["folder is put back", "nothing is left of this try"] {
            assert!(ended.stderr.contains(words), "{words}: {ended}");
        }
        assert_eq!(beside(&alone), [""; 0], "{nowhere}");
        alone.start(&[]).await;
        assert_eq!(text(&alone.status().await["cluster"]), cluster);
    }
    let mut fresh = Node::new("fresh");
    let ended = stopped_join(&mut fresh, &code, &nobody, "still trying").await;
    assert!(ended.stderr.contains("nothing is left of this try"), "{ended}");
    for file in ["joining", "node.key"] {
        assert!(!fresh.data().join(file).exists(), "{file} was left");
    }
    fresh.start(&["--join", &code, "--seed", &seed]).await;
    intact.serves("joins that were told to stop").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_join_that_a_member_heard_of_stays_open_when_it_is_told_to_stop() {
    let mut first = Node::found("first").await;
    let second = Node::join("second", &first, &["--learner"]).await;
    let (code, _, _) = invite(&first, &["--learner"]).await;
    let seed = text(&second.invite(&["--learner"]).await["addresses"][0]);
    // Who answers has no leader to ask.
    first.kill();
    let mut alone = Node::found("alone").await;
    alone.terminate().await;
    let ended = stopped_join(&mut alone, &code, &seed, "not joined yet: join: not now").await;
    for words in ["may have let this machine in", "type the same command again"] {
        assert!(ended.stderr.contains(words), "{words}: {ended}");
    }
    assert!(alone.data().join("joining").exists(), "{ended}");
    assert_eq!(beside(&alone).len(), 1, "the former folder is kept: {ended}");
    first.start(&[]).await;
    alone.start(&["--join", &code, "--seed", &seed]).await;
    let status = first.status().await;
    assert_eq!(status["members"].as_array().unwrap().len(), 3, "{status:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_code_takes_no_node_out_of_service() {
    let mut intact = Intact::new().await;
    let (code, id, seed) = invite(&intact.node, &["--voter"]).await;
    let taken_back = intact.node.nexus(&["invite", "withdraw", &id]).await.good();
    assert!(taken_back.stdout.contains(&id), "{taken_back}");
    // A node that is alone: its folder is set aside for the join, and is back after it.
    let mut alone = Node::found("alone").await;
    let cluster = text(&alone.status().await["cluster"]);
    alone.terminate().await;
    let words = ["withdrawn", "folder is put back", "nothing is left of this try"];
    joins_not(&mut alone, &code, &seed, &words).await;
    assert_eq!(beside(&alone), [""; 0]);
    alone.start(&[]).await;
    assert_eq!(text(&alone.status().await["cluster"]), cluster);
    // An empty folder is as empty as before.
    let mut fresh = Node::new("fresh");
    joins_not(&mut fresh, &code, &seed, &["withdrawn", "nothing is left of this try"]).await;
    assert!(!fresh.data().join("node.key").exists(), "the key of the join was left");
    fresh.start(&[]).await;
    // A join that nobody answered stays open, and its refusal names the way back.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let nobody = silent.local_addr().unwrap().to_string();
    let mut open = Node::new("open");
    open.launch(&["--join", &code, "--seed", &nobody]);
    wait::until("words about nobody", LIMIT, async || {
        let log = open.log();
        if log.contains("still trying") { Ok(()) } else { Err(log) }
    })
    .await;
    open.kill();
    open.launch(&[]);
    let back = ["not finished", "--join CODE", "joining and node.key"];
    refused(&open.refused().await, 1, &back);
    for file in ["joining", "node.key"] {
        std::fs::remove_file(open.data().join(file)).unwrap();
    }
    open.start(&[]).await;
    intact.serves("refused codes").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_node_is_removed_only_by_force() {
    let first = Node::found("first").await;
    let second = Node::join("second", &first, &["--voter"]).await;
    let third = Node::join("third", &first, &["--voter"]).await;
    wait::until("three voters", LIMIT, async || {
        let status = third.status().await;
        if status["quorum"] == 2 && status["tolerance"] == 1 { Ok(()) } else { Err(status) }
    })
    .await;
    let kept = second.nexus(&["node", "remove", "first"]).await;
    refused(&kept, 1, &["authority.key", "authority.crt", "--force", "nothing was done"]);
    assert_eq!(second.status().await["members"].as_array().unwrap().len(), 3);
    assert!(!kept.stderr.contains("hint: "), "{kept}");
    // Who votes is written down a moment after it is so.
    wait::until("the removal", LIMIT, async || {
        let removed = second.nexus(&["node", "remove", "first", "--force"]).await;
        if removed.code() == 0 { Ok(()) } else { Err(removed) }
    })
    .await;
    wait::until("an invite after it", LIMIT, async || {
        let made = third.nexus(&["invite"]).await;
        let told = made.stderr.contains("warning: no member is known that can sign");
        if made.code() == 0 && told { Ok(()) } else { Err(made) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_start_on_one_folder_says_who_has_it() {
    let mut intact = Intact::new().await;
    let arguments = ["up", "--http", "127.0.0.1:0", "--cluster", "127.0.0.1:0"];
    let ended = intact.node.nexus(&arguments).await;
    let pid = format!("process id {}", intact.node.pid());
    refused(&ended, 1, &["in use by", &pid, intact.node.http().url(), "nexus down"]);
    intact.check("a second start").await;
    assert!(intact.node.data().join("endpoint.json").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn ports_that_are_taken_are_named() {
    let mut intact = Intact::new().await;
    let mut late = Node::new("late");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let up = |http: &str, cluster: &str| {
        late.command(&["up", "--no-mdns", "--http", http, "--cluster", cluster])
    };
    let ended = nexus_tests::command::run(up(&address, "127.0.0.1:0")).await;
    refused(&ended, 1, &[&address, "--http", "another program", "127.0.0.1:0"]);
    drop(taken);
    let nodes = intact.node.http().url().strip_prefix("http://").unwrap().to_owned();
    let ended = nexus_tests::command::run(up(&nodes, "127.0.0.1:0")).await;
    refused(&ended, 1, &[&nodes, "another nexus node", "nexus status"]);
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ended = nexus_tests::command::run(up("127.0.0.1:0", &address)).await;
    let find = format!("ss -lunp 'sport = :{}'", taken.local_addr().unwrap().port());
    refused(&ended, 1, &[&address, "in use", "hint: find who has it", &find, "--cluster"]);
    // An address of another machine is no busy port.
    let foreign = "hint: 203.0.113.1 belongs to no interface of this machine, which has ";
    for (http, cluster, flag) in [
        ("127.0.0.1:0", "203.0.113.1:5689", "with --cluster ADDRESS:PORT, or [::]:5689"),
        ("203.0.113.1:5688", "127.0.0.1:0", "give 127.0.0.1:5688"),
    ] {
        let ended = nexus_tests::command::run(up(http, cluster)).await;
        refused(&ended, 1, &["203.0.113.1:56", foreign, "127.0.0.1 (lo)", flag]);
        assert!(!ended.stderr.contains("ss -l"), "{ended}");
    }
    let ended = nexus_tests::command::run(up("127.0.0.1", "127.0.0.1:0")).await;
    assert_eq!(ended.code(), 2, "{ended}");
    assert!(ended.stderr.contains("--http"), "{ended}");
    intact.check("taken ports").await;
    // What failed left nothing behind that a good start stumbles over.
    late.start(&[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_that_are_wrong_are_named_key_by_key() {
    for (settings, words) in [
        ("{", &["settings.json", "not JSON"][..]),
        ("[]", &["settings.json", "not a JSON object"]),
        ("{\"htttp\": \"127.0.0.1:0\"}", &["\"htttp\" is not a setting", "did you mean \"http\""]),
        ("{\"http\": 5688}", &["http is 5688", "ADDRESS:PORT"]),
        ("{\"timing\": \"fast\"}", &["timing is \"fast\"", "wired"]),
        ("{\"port\": 5688}", &["\"port\"", "n2n-nexus", "http"]),
        ("{\"rateLimit\": -1}", &["rateLimit is -1", "whole number"]),
        ("{\"seeds\": [\"a:b:c\"]}", &["seeds[0] is \"a:b:c\"", "HOST:PORT"]),
        ("{\"allowedHosts\": [\"*\"]}", &["allowedHosts[0] is \"*\"", "DNS rebinding", "desk.lan"]),
    ] {
        let mut node = Node::new("wrong");
        std::fs::write(node.data().join("settings.json"), settings).unwrap();
        node.launch(&[]);
        let ended = node.refused().await;
        refused(&ended, 1, words);
        assert!(!node.data().join("log").exists(), "{settings}: a log was made");
    }
}
