//! Documents and the strategy on running nodes: short and long texts, from everywhere, whatever
//! happens on the way.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "all of this file is a test")]

use std::time::Duration;

use nexus_rt::Jobs;
use nexus_tests::call::{Failed, Speaker};
use nexus_tests::process::{LIMIT, Node, agree, every_role, text, three_voters};
use nexus_tests::wait;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Bytes of a text that goes in one entry.
const CHUNK: usize = 64 * 1024;
/// Bytes of the longest text.
const LONGEST: usize = 1024 * 1024;

async fn call(node: &Node, by: &Speaker, tool: &str, args: Value) -> Value {
    let answer = node.http().call_as(by, tool, args, None).await;
    answer.unwrap_or_else(|failed| panic!("{tool} on {}: {failed}", node.name()))
}

fn instance(name: &str) -> Speaker {
    Speaker::Instance(name.to_owned())
}

fn document(id: &str, content: &str) -> Value {
    json!({"docId": id, "title": format!("About {id}"), "content": content})
}

async fn content(node: &Node, id: &str) -> String {
    let found = call(node, &Speaker::Nobody, "get_global_doc", json!({"docId": id})).await;
    text(&found["content"])
}

/// Makes a text of so many bytes, in which no two chunks are alike and characters of one to four
/// bytes are cut by the borders of chunks.
fn long_text(bytes: usize) -> String {
    let mut made = String::new();
    let mut number = 0_u32;
    while made.len() + 32 < bytes {
        made.push_str(&format!("{number} ü 討 👍\n"));
        number += 1;
    }
    while made.len() < bytes {
        made.push('x');
    }
    assert_eq!(made.len(), bytes);
    made
}

async fn writes(node: &Node, action: &str) -> usize {
    let args = json!({"action": action, "limit": 500});
    let events = call(node, &Speaker::Nobody, "list_events", args).await;
    events["events"].as_array().unwrap().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_of_every_length_come_back_as_they_were_from_every_role() {
    let nodes = every_role(["one", "two", "three", "four"]).await;
    let lengths = [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, LONGEST - 1, LONGEST];
    for (place, node) in nodes.iter().enumerate() {
        let by = instance(&format!("writer-{}", node.name()));
        for length in lengths {
            let written = long_text(length);
            let id = format!("doc-{length}");
            let answer = call(node, &by, "sync_global_doc", document(&id, &written)).await;
            assert_eq!(answer, json!({"ok": true, "docId": id}));
            let reader = &nodes[(place + 1) % nodes.len()];
            let found = call(reader, &by, "get_global_doc", json!({"docId": id})).await;
            assert!(found["content"] == written.as_str(), "{length} bytes from {}", node.name());
            let title = format!("About {id}");
            assert_eq!((&found["docId"], &found["title"]), (&json!(id), &json!(title)));
            assert_eq!(found["updatedBy"], by.id());
        }
        let strategy = format!("{}\n{}", node.name(), long_text(2 * CHUNK));
        let args = json!({"content": strategy});
        let answer = call(node, &by, "update_global_strategy", args).await;
        assert_eq!(answer, json!({"ok": true}));
        for other in &nodes {
            let found = call(other, &Speaker::Nobody, "get_global_strategy", json!({})).await;
            assert!(found["content"] == strategy.as_str(), "on {}", other.name());
            assert_eq!(found["updatedBy"], by.id());
            assert!(text(&found["lastUpdated"]).ends_with('Z'), "{}", found["lastUpdated"]);
        }
    }
    let mut lists = Vec::new();
    for node in &nodes {
        lists.push(call(node, &Speaker::Nobody, "list_global_docs", json!({})).await);
    }
    assert!(lists.iter().all(|list| *list == lists[0]), "{lists:#?}");
    let listed = lists[0]["docs"].as_array().unwrap().iter().map(|doc| text(&doc["docId"]));
    let newest_first = lengths.iter().rev().map(|length| format!("doc-{length}"));
    assert_eq!(listed.collect::<Vec<_>>(), newest_first.collect::<Vec<_>>());
    assert_eq!(writes(&nodes[3], "doc.sync").await, 4 * lengths.len());
    assert_eq!(writes(&nodes[3], "strategy.update").await, 4);
    agree(&nodes.iter().collect::<Vec<_>>(), LIMIT).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_written_is_no_error_and_an_empty_document_is_one() {
    let node = Node::found("sole").await;
    let by = instance("writer");
    let nothing = call(&node, &Speaker::Nobody, "get_global_strategy", json!({})).await;
    assert_eq!(nothing, json!({"content": ""}));
    let none = call(&node, &Speaker::Nobody, "list_global_docs", json!({})).await;
    assert_eq!(none, json!({"count": 0, "docs": []}));
    call(&node, &by, "sync_global_doc", document("empty", "")).await;
    assert_eq!(content(&node, "empty").await, "");
    call(&node, &by, "update_global_strategy", json!({"content": ""})).await;
    let empty = call(&node, &Speaker::Nobody, "get_global_strategy", json!({})).await;
    assert_eq!((&empty["content"], &empty["updatedBy"]), (&json!(""), &json!("writer")));
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_go_on_where_they_stopped() {
    let node = Node::found("sole").await;
    let by = instance("writer");
    for number in 0..1_002 {
        call(&node, &by, "sync_global_doc", document(&format!("d-{number}"), "x")).await;
    }
    let list = async |args: Value| {
        let page = call(&node, &Speaker::Nobody, "list_global_docs", args).await;
        let docs = page["docs"].as_array().unwrap().iter().map(|doc| text(&doc["docId"]));
        (docs.collect::<Vec<_>>(), page.get("more").is_some())
    };
    let (first, more) = list(json!({})).await;
    assert_eq!((first.len(), first[0].as_str(), more), (1_000, "d-1001", true));
    let (rest, more) = list(json!({"before": first[999]})).await;
    assert_eq!((rest, more), (vec!["d-1".to_owned(), "d-0".to_owned()], false));
    // Who is written again comes first.
    call(&node, &by, "sync_global_doc", document("d-0", "y")).await;
    assert_eq!(list(json!({})).await.0[0], "d-0");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_text_under_one_request_id_is_written_once_from_wherever_it_is_repeated() {
    let nodes = three_voters(["one", "two", "three"]).await;
    let by = instance("writer");
    let written = long_text(5 * CHUNK + 7);
    let ask = async |node: &Node, args: Value| {
        node.http().call_as(&by, "sync_global_doc", args, Some("r-1")).await
    };
    let first = ask(&nodes[0], document("a", &written)).await.unwrap();
    for node in [&nodes[0], &nodes[1], &nodes[2], &nodes[1]] {
        assert_eq!(ask(node, document("a", &written)).await.unwrap(), first);
    }
    assert_eq!(writes(&nodes[0], "doc.sync").await, 1);
    // Another text, another name and a short text are other calls.
    let other = long_text(5 * CHUNK + 8);
    for args in [document("a", &other), document("b", &written), document("a", "short")] {
        let failed = ask(&nodes[2], args).await.unwrap_err();
        assert_eq!(failed.code(), "conflict", "{failed}");
        assert!(failed.to_string().contains("was used for another call"), "{failed}");
    }
    assert!(content(&nodes[1], "a").await == written);
    assert_eq!(writes(&nodes[0], "doc.sync").await, 1);

    // Two at once, as a client that gave up waiting and asks again: one effect, one answer.
    let twice = async || {
        nodes[0].http().call_as(&by, "sync_global_doc", document("c", &written), Some("r-2")).await
    };
    let (one, two) = tokio::join!(twice(), twice());
    assert_eq!(
        (one.unwrap(), two.unwrap()),
        (json!({"ok": true, "docId": "c"}), json!({"ok": true, "docId": "c"}))
    );
    assert_eq!(writes(&nodes[0], "doc.sync").await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_text_goes_on_where_its_node_died() {
    let mut nodes = three_voters(["one", "two", "three"]).await;
    let by = instance("writer");
    let written = long_text(LONGEST);
    let mut cut = 0;
    for round in 0..4 {
        let args = document("a", &format!("{round}{}", &written[1..]));
        let request = format!("r-{round}");
        // The node beside the client dies at some moment of the upload, another one each time.
        let http = nodes[2].http().clone();
        let (speaker, sent, id) = (by.clone(), args.clone(), request.clone());
        let (end, ended) = oneshot::channel();
        let jobs = Jobs::new();
        jobs.spawn("a call to a node that dies", async move {
            let answer = http.call_as(&speaker, "sync_global_doc", sent, Some(&id)).await;
            end.send(answer).unwrap();
        });
        let before = nodes[0].content().await;
        let moved = Instant::now();
        let mut seen = before.clone();
        let mut changes = 0;
        while changes < 1 + 4 * round && moved.elapsed() < Duration::from_secs(5) {
            let now = text(&nodes[0].http().get("/api/digest").await.unwrap()["now"]["content"]);
            if now != seen {
                changes += 1;
                seen = now;
            }
        }
        nodes[2].kill();
        cut += usize::from(ended.await.unwrap().is_err());
        let answer = wait::until("the call, repeated elsewhere", LIMIT, async || {
            let asked =
                nodes[1].http().call_as(&by, "sync_global_doc", args.clone(), Some(&request));
            match asked.await {
                Ok(answer) => Ok(answer),
                Err(failed) if failed.may_pass() => Err(failed),
                Err(failed) => panic!("round {round}: {failed}"),
            }
        })
        .await;
        assert_eq!(answer, json!({"ok": true, "docId": "a"}));
        assert!(content(&nodes[0], "a").await == text(&args["content"]), "round {round}");
        assert_eq!(writes(&nodes[0], "doc.sync").await, round + 1);
        nodes[2].start(&[]).await;
    }
    eprintln!("{cut} of 4 calls lost their node on the way");
    assert!(cut > 0, "no node died while a text was on its way");
    agree(&nodes.iter().collect::<Vec<_>>(), LIMIT).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_majority_a_text_is_read_as_it_was_and_not_written() {
    let [one, mut two, mut three] = three_voters(["one", "two", "three"]).await;
    let by = instance("writer");
    let written = long_text(2 * CHUNK);
    call(&one, &by, "sync_global_doc", document("a", &written)).await;
    two.kill();
    three.kill();
    let read = wait::until("a stale document", LIMIT, async || {
        let read = call(&one, &by, "get_global_doc", json!({"docId": "a"})).await;
        if read.get("stale").is_some() { Ok(read) } else { Err("it is not stale") }
    })
    .await;
    assert!(read["content"] == written.as_str() && text(&read["asOf"]).starts_with("20"));
    let other = long_text(3 * CHUNK);
    let sync = one.http().call_as(&by, "sync_global_doc", document("a", &other), None).await;
    let Err(Failed::Refused { body, .. }) = sync else { panic!("{sync:?}") };
    assert_eq!(body["code"], "no_quorum", "{body}");
    // Nobody gave an id, and the call can be repeated under the one that it was given.
    let id = text(&body["requestId"]);
    assert!(text(&body["error"]).contains(&format!("call again with request id {id}")), "{body}");
    two.start(&[]).await;
    let answer = wait::until("the call, repeated with a majority", LIMIT, async || {
        one.http().call_as(&by, "sync_global_doc", document("a", &other), Some(&id)).await
    })
    .await;
    assert_eq!(answer, json!({"ok": true, "docId": "a"}));
    assert!(content(&two, "a").await == other);
    assert_eq!(writes(&two, "doc.sync").await, 2);
}
