//! Tasks on running nodes: made, claimed by one of many, changed, called off, ended by time.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "all of this file is a test")]

use std::time::Duration;

use nexus_tests::call::{Failed, Speaker};
use nexus_tests::process::{LIMIT, Node, every_role, text, three_voters};
use nexus_tests::wait;
use serde_json::{Value, json};

fn codex(name: &str) -> Speaker {
    Speaker::Codex(name.to_owned())
}

fn instance(name: &str) -> Speaker {
    Speaker::Instance(name.to_owned())
}

async fn call(node: &Node, by: &Speaker, tool: &str, args: Value) -> Value {
    let answer = node.http().call_as(by, tool, args.clone(), None).await;
    answer.unwrap_or_else(|failed| panic!("{tool} {args} on {}: {failed}", node.name()))
}

/// Makes a call that must be refused; returns the code and the text.
async fn refused(node: &Node, by: &Speaker, tool: &str, args: Value) -> (String, String) {
    match node.http().call_as(by, tool, args.clone(), None).await {
        Err(Failed::Refused { body, .. }) => (text(&body["code"]), text(&body["error"])),
        other => panic!("{tool} {args} on {}: {other:?}", node.name()),
    }
}

fn ids(list: &Value) -> Vec<String> {
    list["tasks"].as_array().unwrap().iter().map(|task| text(&task["id"])).collect()
}

/// Without times, which differ from task to task.
fn timeless(task: &Value) -> Value {
    let mut task = task.clone();
    for field in ["id", "created_at", "updated_at", "created_by", "updated_by"] {
        task.as_object_mut().unwrap().remove(field);
    }
    task
}

#[tokio::test(flavor = "multi_thread")]
async fn every_tool_of_tasks_works_from_every_role() {
    let nodes = every_role(["one", "two", "three", "four"]).await;
    let mut lives = Vec::new();
    for node in &nodes {
        lives.push(life(node, &nodes).await);
    }
    let first = &lives[0];
    assert!(lives.iter().all(|life| life == first), "{lives:#?}");
    let lists: Vec<Value> = {
        let mut lists = Vec::new();
        for node in &nodes {
            lists.push(call(node, &instance("reader"), "list_tasks", json!({})).await);
        }
        lists
    };
    assert!(lists.iter().all(|list| *list == lists[0]), "{lists:#?}");
    assert_eq!(lists[0]["count"], 8, "{}", lists[0]);
}

/// Takes two tasks through all that may happen to them, on one node; returns what was seen.
async fn life(node: &Node, all: &[Node]) -> Vec<Value> {
    let by = instance(&format!("worker-{}", node.name()));
    let metadata = json!({"goal": "ü", "deep": [1, {"a": null}]});
    let args = json!({"metadata": metadata, "ttl": 86_400_000});
    let made = call(node, &by, "create_task", args).await;
    let id = text(&made["task_id"]);
    assert_eq!(made["status"], "pending");
    assert_eq!(made["message"], format!("Task {id} is made and pending."));
    let task = &made["task"];
    assert_eq!((&task["id"], &task["progress"]), (&json!(id), &json!(0.0)));
    assert_eq!((&task["created_by"], &task["updated_by"]), (&json!(by.id()), &json!(by.id())));
    assert_eq!((&task["updated_by_name"], &task["ttl"]), (&Value::Null, &json!(86_400_000)));
    assert_eq!((&task["metadata"], &task["created_at"]), (&metadata, &task["updated_at"]));
    let mut seen = vec![timeless(task)];

    let claim = json!({
        "taskId": id, "status": "running", "expected_status": "pending",
        "expected_updated_at": task["updated_at"],
    });
    let claimed = call(node, &by, "update_task", claim.clone()).await;
    assert_eq!((&claimed["status"], &claimed["metadata"]), (&json!("running"), &metadata));
    assert!(text(&claimed["updated_at"]) > text(&task["updated_at"]), "{claimed}");
    let (code, said) = refused(node, &by, "update_task", claim).await;
    let state = format!("task {id}: is running, set by {}, updated_at ", by.id());
    let expected = format!("{state}{}; look at it again", text(&claimed["updated_at"]));
    assert!(code == "conflict" && said.starts_with(&expected), "{said}, and not {expected}");

    let done = json!({
        "taskId": id, "status": "completed", "progress": 1, "result_uri": "http://x/ü",
        "error_message": "", "metadata": {"only": "this"}, "expected_status": "running",
    });
    let done = call(node, &by, "update_task", done).await;
    assert_eq!((&done["progress"], &done["metadata"]), (&json!(1.0), &json!({"only": "this"})));
    seen.extend([timeless(&claimed), timeless(&done)]);
    for other in all {
        let there = call(other, &Speaker::Nobody, "get_task", json!({"taskId": id})).await;
        assert_eq!(there, done, "on {}", other.name());
    }
    let (code, said) = refused(node, &by, "cancel_task", json!({"taskId": id})).await;
    assert!(code == "conflict" && said.contains("is completed"), "{said}");
    // Any status is taken: a finished task can be taken up again.
    let again = json!({"taskId": id, "status": "pending"});
    seen.push(timeless(&call(node, &by, "update_task", again).await));

    let other = text(&call(node, &by, "create_task", json!({})).await["task_id"]);
    let cancel = json!({"taskId": other, "expected_status": "pending"});
    seen.push(timeless(&call(node, &by, "cancel_task", cancel).await));
    assert_eq!(seen.last().unwrap()["status"], "cancelled");
    seen
}

#[tokio::test(flavor = "multi_thread")]
async fn of_all_that_claim_a_task_one_wins_and_is_named_to_the_others() {
    const ROUNDS: usize = 50;
    let nodes = every_role(["one", "two", "three", "four"]).await;
    let workers = ["a", "b", "c", "d"].map(codex);
    let mut names = Vec::new();
    for (node, worker) in nodes.iter().zip(&workers) {
        let named = json!({"name": format!("worker-{}", node.name())});
        names.push(text(&call(node, worker, "set_profile", named).await["profile"]["name"]));
    }
    let mut won = [0_usize; 4];
    for round in 0..ROUNDS {
        let maker = round % nodes.len();
        let made = call(&nodes[maker], &workers[maker], "create_task", json!({})).await;
        let args = json!({
            "taskId": made["task_id"], "status": "running", "expected_status": "pending",
        });
        let claim =
            |at: usize| nodes[at].http().call_as(&workers[at], "update_task", args.clone(), None);
        let (a, b, c, d) = tokio::join!(claim(0), claim(1), claim(2), claim(3));
        let claims = [a, b, c, d];
        let winners: Vec<usize> = (0..4).filter(|at| claims[*at].is_ok()).collect();
        let [winner] = winners.as_slice() else { panic!("round {round}: {claims:?}") };
        won[*winner] += 1;
        let task = claims[*winner].as_ref().unwrap();
        let (id, name) = (workers[*winner].id(), &names[*winner]);
        assert_eq!((&task["updated_by"], &task["updated_by_name"]), (&json!(id), &json!(name)));
        let told = format!(
            "task {}: is running, set by {name} ({id}), updated_at {}; look at it again before \
             you go on",
            text(&made["task_id"]),
            text(&task["updated_at"])
        );
        for (at, claim) in claims.iter().enumerate().filter(|(at, _)| at != winner) {
            let Err(Failed::Refused { status: 409, body }) = claim else {
                panic!("round {round} on {}: {claim:?}", nodes[at].name());
            };
            assert_eq!((&body["code"], &body["error"]), (&json!("conflict"), &json!(told)));
        }
    }
    eprintln!("{ROUNDS} claims won by {won:?}");
    let args = json!({"status": "running", "limit": 500});
    let list = call(&nodes[3], &instance("reader"), "list_tasks", args).await;
    assert_eq!(list["count"], ROUNDS, "{list}");
}

/// Claims a task until it is known how that ended; returns whether it was won.
async fn claim_to_the_end(node: &Node, by: &Speaker, task: &str, request: &str) -> bool {
    let args = json!({"taskId": task, "status": "running", "expected_status": "pending"});
    wait::until("the end of a claim", LIMIT, async || {
        match node.http().call_as(by, "update_task", args.clone(), Some(request)).await {
            Ok(task) => {
                assert_eq!(task["updated_by"], by.id(), "{task}");
                Ok(true)
            }
            Err(failed) if failed.code() == "conflict" => {
                let told = failed.to_string();
                assert!(!told.contains("another call") && told.contains("is running"), "{told}");
                Ok(false)
            }
            Err(failed) => Err(failed),
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_has_one_winner_while_leaders_die() {
    const ROUNDS: usize = 6;
    let mut nodes = Vec::from(three_voters(["one", "two", "three"]).await);
    let [first, second, third] = ["a", "b", "c"].map(codex);
    let mut won = [0_usize; 3];
    for round in 0..ROUNDS {
        let made = wait::until("a task", LIMIT, async || {
            let id = format!("make-{round}");
            nodes[0].http().call_as(&instance("maker"), "create_task", json!({}), Some(&id)).await
        });
        let task = text(&made.await["task_id"]);
        let leader = wait::until("a leader", LIMIT, async || {
            let status = nodes[0].status().await;
            nodes.iter().position(|node| status["leader"] == node.name()).ok_or(status)
        });
        let leader = leader.await;
        let mut dying = nodes.remove(leader);
        let lost = dying.http().clone();
        let end = async |node: &Node, by: &Speaker| {
            claim_to_the_end(node, by, &task, &format!("r-{round}")).await
        };
        // Whoever claims beside the leader goes on beside another node, under the same id.
        let beside_it = async {
            let args = json!({"taskId": task, "status": "running", "expected_status": "pending"});
            let request = format!("r-{round}");
            lost.call_as(&third, "update_task", args, Some(&request)).await.ok();
            end(&nodes[0], &third).await
        };
        let kill = async {
            // The leader dies at another moment of the claims each time.
            for _ in 0..round * 40 {
                tokio::task::yield_now().await;
            }
            dying.kill();
        };
        let (a, b, c, ()) =
            tokio::join!(end(&nodes[0], &first), end(&nodes[1], &second), beside_it, kill);
        let claims = [a, b, c];
        let winners: Vec<usize> = (0..3).filter(|at| claims[*at]).collect();
        let [winner] = winners.as_slice() else { panic!("round {round}: {claims:?}") };
        won[*winner] += 1;
        let winner = [&first, &second, &third][*winner].id();
        let found = call(&nodes[1], &Speaker::Nobody, "get_task", json!({"taskId": task})).await;
        assert_eq!((&found["updated_by"], &found["status"]), (&json!(winner), &json!("running")));
        dying.start(&[]).await;
        nodes.insert(leader, dying);
    }
    eprintln!("{ROUNDS} claims under a dying leader won by {won:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_go_on_where_they_stopped_and_are_bounded_in_bytes() {
    let node = Node::found("sole").await;
    let by = instance("worker");
    for number in 1..=7 {
        call(&node, &by, "create_task", json!({})).await;
        if number % 2 == 0 {
            let done = json!({"taskId": number.to_string(), "status": "completed"});
            call(&node, &by, "update_task", done).await;
        }
    }
    let list = async |args: Value| call(&node, &Speaker::Nobody, "list_tasks", args).await;
    let all = list(json!({})).await;
    assert_eq!(ids(&all), ["7", "6", "5", "4", "3", "2", "1"]);
    assert_eq!((&all["count"], all.get("more")), (&json!(7), None));
    let first = list(json!({"limit": 3})).await;
    assert_eq!(
        (ids(&first), &first["more"]),
        (vec!["7".into(), "6".into(), "5".into()], &json!(true))
    );
    let next = list(json!({"limit": 3, "before": "5"})).await;
    assert_eq!((ids(&next).join(" "), &next["more"]), ("4 3 2".to_owned(), &json!(true)));
    let last = list(json!({"limit": 3, "before": "2"})).await;
    assert_eq!((ids(&last).join(" "), last.get("more")), ("1".to_owned(), None));
    assert_eq!(ids(&list(json!({"status": "completed"})).await), ["6", "4", "2"]);
    let some = list(json!({"status": "pending", "before": "5", "limit": 1})).await;
    assert_eq!((ids(&some).join(" "), &some["more"]), ("3".to_owned(), &json!(true)));
    assert_eq!(ids(&list(json!({"status": "failed"})).await), [""; 0]);

    // 80 tasks of 15 KiB are more than one answer holds: it says so, and the next one goes on.
    let metadata = json!({"text": "x".repeat(15 * 1024)});
    for _ in 0..80 {
        call(&node, &by, "create_task", json!({"metadata": metadata})).await;
    }
    let (mut seen, mut answers, mut before) = (0, 0, None);
    loop {
        let mut args = json!({"status": "pending", "limit": 500});
        if let Some(before) = before {
            args["before"] = before;
        }
        let page = list(args).await;
        assert!(page.to_string().len() < 1024 * 1024 + 64 * 1024, "{}", page.to_string().len());
        seen += ids(&page).len();
        answers += 1;
        before = ids(&page).last().map(|id| json!(id));
        if page.get("more").is_none() {
            break;
        }
    }
    assert_eq!((seen, answers), (84, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_with_a_time_to_live_fails_by_itself() {
    let node = Node::found("sole").await;
    let by = instance("worker");
    let made = call(&node, &by, "create_task", json!({"ttl": 1})).await;
    let long = call(&node, &by, "create_task", json!({"ttl": 31_622_400_000_u64})).await;
    let get = json!({"taskId": made["task_id"]});
    let failed = wait::until("a task that failed", LIMIT, async || {
        let task = call(&node, &by, "get_task", get.clone()).await;
        if task["status"] == "failed" { Ok(task) } else { Err(task) }
    })
    .await;
    assert_eq!(failed["error_message"], "TTL expired");
    assert_eq!((&failed["updated_by"], &failed["ttl"]), (&json!("n2n-nexus"), &json!(1)));
    let claim = json!({"taskId": made["task_id"], "progress": 1, "expected_status": "running"});
    let (_, said) = refused(&node, &by, "update_task", claim).await;
    assert!(said.contains("is failed, set by n2n-nexus, updated_at "), "{said}");
    let get = json!({"taskId": long["task_id"]});
    assert_eq!(call(&node, &by, "get_task", get).await["status"], "pending");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_target_is_told_and_the_same_call_makes_one_task() {
    let node = Node::found("sole").await;
    let by = instance("worker");
    let args = json!({"metadata": {"target": "issue 7"}});
    let one = node.http().call_as(&by, "create_task", args.clone(), Some("r-1")).await.unwrap();
    let again = node.http().call_as(&by, "create_task", args.clone(), Some("r-1")).await.unwrap();
    assert_eq!(one, again);
    let other = node.http().call_as(&by, "create_task", json!({}), Some("r-1")).await;
    assert_eq!(other.unwrap_err().code(), "conflict");
    let two = call(&node, &by, "create_task", args.clone()).await;
    assert_eq!(
        two["message"],
        "Task 2 is made and pending. Task 1 has the same target and is not finished: look whether \
         it is the same work."
    );
    for id in ["1", "2"] {
        call(&node, &by, "update_task", json!({"taskId": id, "status": "completed"})).await;
    }
    let three = call(&node, &by, "create_task", args).await;
    assert_eq!(three["message"], "Task 3 is made and pending.");

    // A claim that is repeated under its id is the claim that was won, and no second one.
    let claim = json!({"taskId": "3", "status": "running", "expected_status": "pending"});
    let won = node.http().call_as(&by, "update_task", claim.clone(), Some("r-2")).await.unwrap();
    let same = node.http().call_as(&by, "update_task", claim.clone(), Some("r-2")).await.unwrap();
    assert_eq!(won, same);
    assert_eq!(refused(&node, &by, "update_task", claim).await.0, "conflict");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_majority_tasks_are_read_as_they_were_and_not_changed() {
    let [one, mut two, mut three] = three_voters(["one", "two", "three"]).await;
    let by = instance("worker");
    call(&one, &by, "create_task", json!({})).await;
    two.kill();
    three.kill();
    let list = wait::until("a stale list", LIMIT, async || {
        let list = call(&one, &by, "list_tasks", json!({})).await;
        if list.get("stale").is_some() { Ok(list) } else { Err(list) }
    })
    .await;
    assert_eq!((ids(&list).join(" "), &list["stale"]), ("1".to_owned(), &json!(true)));
    assert!(text(&list["asOf"]).starts_with("20"), "{list}");
    let task = call(&one, &by, "get_task", json!({"taskId": "1"})).await;
    assert_eq!((&task["id"], &task["stale"]), (&json!("1"), &json!(true)));
    // What is not known here may be new elsewhere.
    let (code, said) = refused(&one, &by, "get_task", json!({"taskId": "2"})).await;
    assert_eq!(code, "no_quorum");
    assert!(
        said.starts_with("taskId: task 2 is not known on this node, and no majority"),
        "{said}"
    );
    let limit = Duration::from_secs(15);
    let claim = json!({"taskId": "1", "status": "running", "expected_status": "pending"});
    let refusal = tokio::time::timeout(limit, refused(&one, &by, "update_task", claim)).await;
    let (code, said) = refusal.unwrap();
    assert!(["no_quorum", "unknown_outcome"].contains(&code.as_str()), "{code}: {said}");
    assert!(said.contains("two") && said.contains("three"), "{said}");
}
