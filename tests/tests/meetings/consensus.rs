//! Three members on three nodes come to an agreement, and whoever leads dies at each step of it.

use std::time::Duration;

use nexus_rt::Backoff;
use nexus_tests::call::{Http, Speaker};
use nexus_tests::process::{LIMIT, Node, Setup, agree, text, three_voters};
use nexus_tests::wait;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{codex, draft, history, join, of, say, shown, stance, start, unread};

/// The steps of an agreement, as the issue has them: who does it, and what.
const STEPS: [(usize, &str); 9] = [
    (0, "start"),
    (1, "join"),
    (2, "join"),
    (0, "draft"),
    (1, "object"),
    (2, "new draft"),
    (1, "endorse"),
    (0, "endorse"),
    (2, "endorse"),
];

/// Calls under one request id, where its own node is or where another one is, until it is answered.
async fn patiently(
    nodes: &[Http],
    own: usize,
    by: &Speaker,
    (tool, args): (&str, &Value),
    request: &str,
) -> Value {
    let since = Instant::now();
    let mut backoff = Backoff::new(Duration::from_millis(5), Duration::from_millis(200));
    for at in own.. {
        let node = &nodes[at % nodes.len()];
        match node.call_as(by, tool, args.clone(), Some(request)).await {
            Ok(result) => return result,
            Err(failed) => {
                let again = failed.may_pass() || failed.code() == "not_here";
                assert!(again && since.elapsed() < LIMIT, "{tool} {args}: {failed}");
            }
        }
        tokio::time::sleep(backoff.next()).await;
    }
    unreachable!("it is called until it is answered")
}

/// Returns the place of the node that leads, in the words of the node at `asked`.
async fn leader(nodes: &[Node], asked: usize) -> usize {
    wait::until("a leader", LIMIT, async || {
        let status = nodes[asked].status().await;
        let place = nodes.iter().position(|node| status["leader"] == node.name());
        place.filter(|_| status.get("stale").is_none()).ok_or_else(|| format!("{status:#}"))
    })
    .await
}

/// Three conversations, each at home on a node of its own, and the meeting that they hold.
struct Talk {
    speakers: [Speaker; 3],
    topic: String,
    meeting: String,
    draft: u64,
}

impl Talk {
    fn call(&self, step: &str) -> (&'static str, Value) {
        let meeting = &self.meeting;
        match step {
            "start" => ("start_meeting", json!({"topic": self.topic})),
            "join" => ("join_meeting", json!({"meetingId": meeting})),
            "draft" | "new draft" => {
                let words = format!("{}: {step}", self.topic);
                let args = json!({"message": words, "meetingId": meeting, "draft": true});
                ("send_message", args)
            }
            opinion => {
                let mut args =
                    json!({"meetingId": meeting, "messageId": self.draft, "stance": opinion});
                if opinion == "object" {
                    args["note"] = "not like this".into();
                }
                ("stance", args)
            }
        }
    }

    /// Notes what the next steps need.
    fn note(&mut self, step: &str, result: &Value) {
        match step {
            "start" => self.meeting = text(&result["meetingId"]),
            "draft" | "new draft" => self.draft = result["currentProposalId"].as_u64().unwrap(),
            _ => {}
        }
    }
}

/// Holds one meeting; with `killed`, the leader of that moment is killed while that step is made.
async fn hold(nodes: &mut [Node; 3], killed: Option<usize>) -> String {
    let topic = format!("killed at {killed:?}");
    // Conversations of their own for each meeting: a home moves when its node is away.
    let speakers = ["a", "b", "c"].map(|name| {
        codex(&format!("{name}-{}", killed.map_or_else(|| "none".to_owned(), |at| at.to_string())))
    });
    let mut talk = Talk { speakers, topic, meeting: String::new(), draft: 0 };
    let mut results = Vec::new();
    for (at, (who, step)) in STEPS.into_iter().enumerate() {
        let request = format!("{}-{at}", talk.topic);
        let https: Vec<Http> = nodes.iter().map(|node| node.http().clone()).collect();
        let (tool, args) = talk.call(step);
        let making = patiently(&https, who, &talk.speakers[who], (tool, &args), &request);
        let result = if killed == Some(at) {
            let victim = leader(nodes, 0).await;
            let (result, ()) = tokio::join!(making, async { nodes[victim].kill() });
            // The same call, asked for once more elsewhere: one effect, and the same answer.
            let by = &talk.speakers[who];
            let again = patiently(&https, victim + 1, by, (tool, &args), &request).await;
            assert_eq!(again, result, "{step} when the leader died");
            nodes[victim].start(&[]).await;
            result
        } else {
            making.await
        };
        talk.note(step, &result);
        results.push(result);
    }
    let [.., last] = results.as_slice() else { panic!("{results:?}") };
    assert_eq!((&last["decided"], &last["decisionId"]), (&json!(true), &json!(4)), "{results:#?}");
    let decided = results.iter().filter(|result| result["decided"] == true).count();
    assert_eq!(decided, 1, "{results:#?}");
    record(nodes, &talk).await;
    talk.meeting
}

/// Holds what every node shows of a meeting that came to its decision against how it must be.
async fn record(nodes: &[Node; 3], talk: &Talk) {
    let Talk { speakers: [a, b, c], topic, meeting, .. } = talk;
    // What members do hangs on their machines, and one that was killed is back in a moment.
    let shown = wait::until("the same meeting everywhere", LIMIT, async || {
        let mut all = Vec::new();
        for node in nodes {
            all.push(shown(node, meeting).await);
        }
        let is_same = all.iter().all(|one| *one == all[0]);
        if is_same { Ok(all.remove(0)) } else { Err(format!("{all:#?}")) }
    })
    .await;
    let everybody = of(&[a, b, c]);
    let proposal = json!({
        "messageId": 3, "author": c.id(), "approversVersion": 1, "required": everybody,
        "endorsed": everybody, "waiting": [], "objections": [],
    });
    assert_eq!(shown["proposal"], proposal);
    let state = (&shown["status"], &shown["endReason"], &shown["initiator"]);
    assert_eq!(state, (&json!("closed"), &json!("consensus"), &json!(a.id())), "{shown}");
    assert_eq!((&shown["messageCount"], &shown["decisionCount"]), (&json!(4), &json!(1)));
    assert_eq!(shown["participants"], of(&[a, c]));
    assert_eq!(json!(super::ids(&shown["members"])), everybody);
    let said = history(&nodes[0], meeting).await;
    for node in &nodes[1..] {
        assert_eq!(history(node, meeting).await, said, "on {}", node.name());
    }
    let rows: Vec<_> = said
        .iter()
        .map(|one| (one["id"].clone(), text(&one["from"]), text(&one["category"])))
        .collect();
    let cluster = || "n2n-nexus".to_owned();
    let expected = [
        (json!(1), a.id(), "PROPOSAL".to_owned()),
        (json!(2), cluster(), "UPDATE".to_owned()),
        (json!(3), c.id(), "PROPOSAL".to_owned()),
        (json!(4), cluster(), "DECISION".to_owned()),
    ];
    assert_eq!(rows, expected);
    assert!(text(&said[1]["text"]).ends_with("objects to #1: not like this"), "{}", said[1]);
    assert_eq!(said[3]["text"], json!(format!("{topic}: new draft")));
}

#[tokio::test(flavor = "multi_thread")]
async fn three_members_on_three_nodes_agree_whoever_dies() {
    let mut nodes = three_voters(["one", "two", "three"]).await;
    let mut meetings = vec![hold(&mut nodes, None).await];
    for (at, step) in STEPS.iter().enumerate() {
        let since = Instant::now();
        meetings.insert(0, hold(&mut nodes, Some(at)).await);
        eprintln!("the leader died at {step:?}: {:.1} s", since.elapsed().as_secs_f32());
    }
    agree(&[&nodes[0], &nodes[1], &nodes[2]], LIMIT).await;
    // Whatever was sent again: as many meetings as were held.
    for node in &nodes {
        let list = super::call(node, &Speaker::Nobody, "list_meetings", json!({})).await;
        assert_eq!(super::ids(&list["meetings"]), meetings, "on {}", node.name());
        assert_eq!(list["activeMeetingId"], Value::Null);
    }
}

/// Returns what the members do, as a node shows it.
async fn statuses(node: &Node, meeting: &str) -> Vec<String> {
    let shown = shown(node, meeting).await;
    shown["members"].as_array().unwrap().iter().map(|member| text(&member["status"])).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_away_stays_required_and_whoever_moves_reads_on() {
    let mut nodes = three_voters(["one", "two", "three"]).await;
    let (a, b, c) = (codex("a"), codex("b"), codex("c"));
    let meeting = start(&nodes[0], &a, "plan").await;
    join(&nodes[1], &b, &meeting).await;
    join(&nodes[2], &c, &meeting).await;
    let number = draft(&nodes[0], &a, &meeting, "one").await;
    for (at, by) in [(0, &a), (1, &b)] {
        stance(&nodes[at], by, &meeting, number, "endorse").await;
    }
    // The machine is away, and with it the conversation; nobody decides without it.
    nodes[2].kill();
    for node in &nodes[..2] {
        wait::until("a member that is away", LIMIT, async || {
            let all = statuses(node, &meeting).await;
            let is_so = all[2] == "offline" && all[..2].iter().all(|other| other != "offline");
            if is_so { Ok(()) } else { Err(format!("{all:?}")) }
        })
        .await;
        let proposal = shown(node, &meeting).await["proposal"].clone();
        assert_eq!((&proposal["required"], &proposal["waiting"]), (&of(&[&a, &b, &c]), &of(&[&c])));
    }
    // What it has not read waits for it on every node, and is read once, wherever it turns to.
    assert_eq!(unread(&nodes[1], &c, &meeting).await, ["one"]);
    say(&nodes[0], &a, &meeting, "where are you?").await;
    assert_eq!(unread(&nodes[0], &c, &meeting).await, ["where are you?"]);
    assert_eq!(unread(&nodes[1], &c, &meeting).await, [""; 0]);
    nodes[2].start(&[]).await;
    assert_eq!(unread(&nodes[2], &c, &meeting).await, [""; 0]);
    let last = stance(&nodes[2], &c, &meeting, number, "endorse").await;
    assert_eq!((&last["decided"], &last["decisionId"]), (&json!(true), &json!(3)), "{last}");
    for node in &nodes {
        wait::until("everybody is back", LIMIT, async || {
            let all = statuses(node, &meeting).await;
            if all.iter().all(|one| one != "offline") { Ok(()) } else { Err(format!("{all:?}")) }
        })
        .await;
    }
}

/// A draft that nobody speaks about: after the minutes that the settings say, its approvers are
/// reminded. No tool shows that, so it is seen by what the nodes hold, beside a node that reminds
/// nobody and holds what it held. Who leads is another one than when the draft was published.
#[tokio::test(flavor = "multi_thread")]
async fn approvers_are_reminded_when_a_meeting_is_quiet() {
    let node = |name: &str, minutes: u32| {
        let settings = json!({"timing": "wired", "rateLimit": 0, "stanceReminderMinutes": minutes});
        Node::with(name, Setup { settings, ..Setup::default() })
    };
    let (mut one, mut never) = (node("one", 1), node("never", 0));
    one.start(&[]).await;
    never.start(&[]).await;
    let two = Node::join("two", &one, &["--voter"]).await;
    let three = Node::join("three", &one, &["--voter"]).await;
    let mut nodes = [one, two, three];
    wait::until("three voters", LIMIT, async || {
        let status = nodes[1].status().await;
        let members = status["members"].as_array().into_iter().flatten();
        let voters = members.filter(|member| member["role"] == "voter").count();
        if voters == 3 { Ok(()) } else { Err(format!("{status:#}")) }
    })
    .await;
    let (a, b) = (codex("a"), codex("b"));
    let there = start(&never, &a, "quiet").await;
    join(&never, &b, &there).await;
    draft(&never, &a, &there, "what do you say?").await;
    let silent = never.content().await;
    let meeting = start(&nodes[0], &a, "quiet").await;
    join(&nodes[1], &b, &meeting).await;
    draft(&nodes[0], &a, &meeting, "what do you say?").await;
    let since = Instant::now();
    let first = leader(&nodes, 0).await;
    nodes[first].kill();
    let second = leader(&nodes, (first + 1) % 3).await;
    assert_ne!(first, second);
    nodes[first].start(&[]).await;
    // What a node says of itself after a start changes what all hold too, long before the minute.
    let almost = Duration::from_secs(55);
    let mut content = String::new();
    let took = wait::until("a reminder", 2 * LIMIT, async || {
        let (now, passed) = (nodes[2].content().await, since.elapsed());
        let has_changed = !content.is_empty() && now != content;
        content.clone_from(&now);
        if has_changed && passed > almost { Ok(passed) } else { Err(format!("{now}, {passed:?}")) }
    })
    .await;
    eprintln!("reminded after {:.1} s", took.as_secs_f32());
    assert_eq!(agree(&[&nodes[0], &nodes[1], &nodes[2]], LIMIT).await, content);
    assert_eq!(never.content().await, silent, "somebody was reminded against the settings");
    // Nothing that a tool shows has changed by it.
    let shown = shown(&nodes[1], &meeting).await;
    assert_eq!((&shown["status"], &shown["messageCount"]), (&json!("active"), &json!(1)));
    assert_eq!(shown["proposal"]["waiting"], of(&[&a, &b]));
}
