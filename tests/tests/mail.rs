//! Direct messages between running nodes: sent, read once, answered, and what became of them.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "all of this file is a test")]

use nexus_tests::call::{Failed, Http, Speaker};
use nexus_tests::process::{LIMIT, Node, every_role, text, three_voters};
use nexus_tests::wait;
use serde_json::{Value, json};

fn codex(name: &str) -> Speaker {
    Speaker::Codex(name.to_owned())
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

/// Makes a conversation known on a node, under a name.
async fn settle(node: &Node, by: &Speaker, name: &str) {
    let set = call(node, by, "set_profile", json!({"name": name})).await;
    assert_eq!((&set["profile"]["id"], &set["profile"]["name"]), (&json!(by.id()), &json!(name)));
}

async fn receipts(http: &Http, query: &str) -> Value {
    let answer = http.get(&format!("/api/receipts?{query}")).await;
    answer.unwrap_or_else(|failed| panic!("receipts {query}: {failed}"))
}

/// The state of one message, as its sender sees it on a node.
async fn state(node: &Node, sender: &Speaker, message: &str) -> String {
    let query = format!("of={}&message={message}", sender.id());
    text(&receipts(node.http(), &query).await["receipts"][0]["state"])
}

fn texts(read: &Value) -> Vec<String> {
    read["messages"].as_array().unwrap().iter().map(|one| text(&one["text"])).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_tool_of_mail_works_from_every_role() {
    let nodes = every_role(["one", "two", "three", "four"]).await;
    let mut seen = Vec::new();
    for (at, node) in nodes.iter().enumerate() {
        let other = &nodes[(at + 1) % nodes.len()];
        seen.push(exchange(node, other, &nodes).await);
    }
    assert!(seen.iter().all(|one| *one == seen[0]), "{seen:#?}");
}

/// Two conversations on two nodes write to each other; returns what was seen, without what differs
/// from one pair to the next.
async fn exchange(here: &Node, there: &Node, all: &[Node]) -> Vec<Value> {
    let (asks, answers) =
        (codex(&format!("asks-{}", here.name())), codex(&format!("answers-{}", here.name())));
    let (asker, answerer) = (format!("a.{}", here.name()), format!("b.{}", here.name()));
    settle(here, &asks, &asker).await;
    settle(there, &answers, &answerer).await;
    let own = call(there, &answers, "peers", json!({})).await["self"].clone();
    assert_eq!((&own["unread"], &own["listening"]), (&json!(0), &json!(false)), "{own}");

    let note = json!({"to": answerer, "text": "ü?\ntwo", "notifyWhenIdle": true, "wake": false});
    let sent = call(here, &asks, "send", note).await;
    let question = text(&sent["messageId"]);
    let to = json!({"id": answers.id(), "name": answerer, "status": "idle"});
    assert_eq!((&sent["to"], &sent["state"]), (&to, &json!("accepted")), "{sent}");
    assert!(sent.get("appliedHere").is_none(), "{sent}");
    assert_eq!(state(there, &asks, &question).await, "accepted");
    let own = call(there, &answers, "peers", json!({})).await["self"].clone();
    assert_eq!(own["unread"], 1, "{own}");

    // By id, without wanting an answer.
    let note = json!({"to": answers.id(), "text": "and more", "expectsReply": false});
    call(here, &asks, "send", note).await;
    let mut read = call(there, &answers, "read", json!({"count": 1})).await;
    assert_eq!((texts(&read).join(" "), &read["remaining"]), ("ü?\ntwo".into(), &json!(1)));
    let letter = &read["messages"][0];
    let from = json!({"id": asks.id(), "name": asker});
    assert_eq!((&letter["messageId"], &letter["from"]), (&json!(question), &from));
    assert_eq!((&letter["replyTo"], &letter["expectsReply"]), (&Value::Null, &json!(true)));
    let mut rest = call(there, &answers, "read", json!({})).await;
    assert_eq!((texts(&rest).join(" "), &rest["remaining"]), ("and more".into(), &json!(0)));
    assert_eq!(rest["messages"][0]["expectsReply"], false, "{rest}");
    // The call after it says that the first one arrived.
    assert_eq!(state(here, &asks, &question).await, "seen");
    let nothing = call(there, &answers, "read", json!({"count": 50})).await;
    assert_eq!(nothing, json!({"messages": [], "remaining": 0}));

    let note = json!({"messageId": question, "text": "yes", "expectsReply": false});
    let replied = call(there, &answers, "reply", note).await;
    let to = json!({"id": asks.id(), "name": asker, "status": "idle"});
    assert_eq!((&replied["to"], &replied["state"]), (&to, &json!("accepted")), "{replied}");
    let mut answer = call(here, &asks, "read", json!({})).await;
    assert_eq!(answer["messages"][0]["replyTo"], json!(question), "{answer}");
    for node in all {
        assert_eq!(state(node, &asks, &question).await, "answered", "on {}", node.name());
        let of = receipts(node.http(), &format!("of={}&limit=1", asks.id())).await;
        let all = receipts(node.http(), &format!("of={}", asks.id())).await;
        assert_eq!(of["receipts"][0], all["receipts"][0], "newest first: {all}");
        let one = &all["receipts"][1];
        assert_eq!((&one["messageId"], &one["to"]), (&json!(question), &json!(answers.id())));
        assert_eq!((&one["answeredBy"], &one["unread"]), (&replied["messageId"], &json!(false)));
        let older = format!("of={}&before={}", asks.id(), text(&all["receipts"][0]["messageId"]));
        let older = receipts(node.http(), &older).await;
        assert_eq!(older, json!({"receipts": [one]}), "on {}", node.name());
    }
    for list in [&mut read, &mut rest, &mut answer] {
        for letter in list["messages"].as_array_mut().unwrap() {
            assert!(text(&letter["createdAt"]).ends_with('Z'), "{letter}");
            for field in ["messageId", "from", "replyTo", "createdAt"] {
                letter.as_object_mut().unwrap().remove(field);
            }
        }
    }
    let on = call(there, &answers, "listen", json!({"on": true})).await;
    let own = call(there, &answers, "peers", json!({})).await["self"].clone();
    assert_eq!((&on, &own["listening"]), (&json!({"listening": true}), &json!(true)));
    let off = call(there, &answers, "listen", json!({"on": false})).await;
    assert_eq!(off, json!({"listening": false}));
    vec![read, rest, answer]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_comes_to_one_conversation_once() {
    let nodes = three_voters(["one", "two", "three"]).await;
    let (a, b, c) = (codex("a"), codex("b"), codex("c"));
    for (node, (by, name)) in nodes.iter().zip([(&a, "a"), (&b, "b"), (&c, "c")]) {
        settle(node, by, name).await;
    }
    // Lost answers: the same call again and again, through every node, sends one message.
    let args = json!({"to": "b", "text": "once"});
    let mut ids = Vec::new();
    for turn in 0..9 {
        let sent = nodes[turn % 3].http().call_as(&a, "send", args.clone(), Some("r-1")).await;
        ids.push(text(&sent.unwrap()["messageId"]));
    }
    ids.dedup();
    assert_eq!(ids.len(), 1, "{ids:?}");
    let other = json!({"to": "b", "text": "twice"});
    let other = nodes[0].http().call_as(&a, "send", other, Some("r-1")).await;
    assert_eq!(other.unwrap_err().code(), "conflict");
    // Nobody else gets it, the sender neither.
    for (node, by) in [(&nodes[0], &a), (&nodes[2], &c)] {
        assert_eq!(texts(&call(node, by, "read", json!({})).await), [""; 0]);
    }
    let reads = async || nodes[1].http().call_as(&b, "read", json!({}), Some("r-2")).await.unwrap();
    let first = reads().await;
    assert_eq!(texts(&first), ["once"]);
    // The same call shows the same; another one does not.
    assert_eq!(reads().await, first);
    assert_eq!(texts(&call(&nodes[1], &b, "read", json!({})).await), [""; 0]);
    assert_eq!(state(&nodes[2], &a, &ids[0]).await, "seen");
    // Only its sender may ask what became of it.
    let query = format!("/api/receipts?of={}&message={}", c.id(), ids[0]);
    let none = nodes[0].http().get(&query).await.unwrap_err();
    assert_eq!(none.code(), "not_found", "{none}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_process_lost_comes_again_and_what_was_meant_for_it_is_history() {
    let node = Node::found("sole").await;
    let writer = codex("w");
    let process = |name: &str| Speaker::Process("r".to_owned(), name.to_owned());
    let (old, new) = (process("p-1"), process("p-2"));
    settle(&node, &old, "reader").await;
    let send = async |what: &str| {
        call(&node, &writer, "send", json!({"to": "codex:r", "text": what})).await
    };
    send("seen").await;
    assert_eq!(texts(&call(&node, &old, "read", json!({})).await), ["seen"]);
    let lost = text(&send("lost").await["messageId"]);
    assert_eq!(texts(&call(&node, &old, "read", json!({})).await), ["lost"]);
    assert_eq!(state(&node, &writer, &lost).await, "taken");
    send("not fetched").await;
    // The process is gone, and the conversation is resumed.
    let read = call(&node, &new, "read", json!({})).await;
    assert_eq!(texts(&read), ["lost", "not fetched"]);
    let marks = |read: &Value| -> Vec<(bool, bool)> {
        let letters = read["messages"].as_array().unwrap().iter();
        letters.map(|one| (one.get("again").is_some(), one.get("earlier").is_some())).collect()
    };
    assert_eq!(marks(&read), [(true, true), (false, true)], "{read}");
    send("for the new one").await;
    let read = call(&node, &new, "read", json!({})).await;
    assert_eq!(
        (texts(&read).join(" "), marks(&read)),
        ("for the new one".into(), vec![(false, false)])
    );
    assert_eq!(state(&node, &writer, &lost).await, "seen");
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_and_its_receipts_outlive_the_senders_node() {
    let [one, mut two, three] = three_voters(["one", "two", "three"]).await;
    let (a, b) = (codex("a"), codex("b"));
    settle(&two, &a, "a").await;
    settle(&three, &b, "b").await;
    let sent = call(&two, &a, "send", json!({"to": "b", "text": "from a node that dies"})).await;
    let message = text(&sent["messageId"]);
    two.kill();
    assert_eq!(state(&one, &a, &message).await, "accepted");
    assert_eq!(texts(&call(&three, &b, "read", json!({})).await), ["from a node that dies"]);
    assert_eq!(state(&one, &a, &message).await, "taken");
    let note = json!({"messageId": message, "text": "thanks"});
    call(&three, &b, "reply", note).await;
    two.start(&[]).await;
    wait::until("the reply, where the question came from", LIMIT, async || {
        let read = two.http().call_as(&a, "read", json!({}), Some("r-1")).await;
        match read {
            Ok(read) if texts(&read) == ["thanks"] => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    assert_eq!(state(&two, &a, &message).await, "answered");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_majority_mail_is_shown_and_stays_unread() {
    let [one, mut two, mut three] = three_voters(["one", "two", "three"]).await;
    let (a, b) = (codex("a"), codex("b"));
    settle(&one, &a, "a").await;
    settle(&one, &b, "b").await;
    call(&one, &b, "send", json!({"to": "a", "text": "kept"})).await;
    two.kill();
    three.kill();
    let read = wait::until("stale mail", LIMIT, async || {
        let read = call(&one, &a, "read", json!({})).await;
        if read.get("stale").is_some() { Ok(read) } else { Err(read) }
    })
    .await;
    assert_eq!((texts(&read).join(" "), &read["remaining"]), ("kept".into(), &json!(1)));
    assert_eq!((&read["cursorMoved"], &read["stale"]), (&json!(false), &json!(true)), "{read}");
    let (code, said) = refused(&one, &a, "send", json!({"to": "b", "text": "x"})).await;
    assert!(["no_quorum", "unknown_outcome"].contains(&code.as_str()), "{code}: {said}");
    two.start(&[]).await;
    let read = wait::until("mail with a majority", LIMIT, async || {
        match one.http().call_as(&a, "read", json!({}), Some("r-1")).await {
            Ok(read) if read.get("stale").is_none() => Ok(read),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    assert_eq!((texts(&read).join(" "), &read["remaining"]), ("kept".into(), &json!(0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn receipts_are_asked_for_in_words_that_are_known() {
    let node = Node::found("sole").await;
    let (a, b) = (codex("a"), codex("b"));
    settle(&node, &a, "a").await;
    settle(&node, &b, "b").await;
    for number in 0..3 {
        call(&node, &a, "send", json!({"to": "b", "text": number.to_string()})).await;
    }
    let all = receipts(node.http(), "of=codex:a&limit=200").await;
    assert_eq!(all["receipts"].as_array().unwrap().len(), 3, "{all}");
    assert_eq!(receipts(node.http(), "of=codex:nobody").await, json!({"receipts": []}));
    for (query, status, words) in [
        ("", 400, "of: is empty"),
        ("of=a%20b", 400, "of: has ' ' in it"),
        ("of=codex:a&limit=0", 400, "limit is no number of receipts: give 1 to 200"),
        ("of=codex:a&limit=201", 400, "limit is no number of receipts: give 1 to 200"),
        ("of=codex:a&limit=x", 400, "limit is no number of receipts: give 1 to 200"),
        ("of=codex:a&form=1", 400, "form is not asked for here: give of=SESSION"),
        ("of=codex:a&before=7", 404, "before: message 7 of codex:a does not exist"),
        ("of=codex:b&message=dm-000000000001", 404, "message: message dm-000000000001 of codex:b"),
    ] {
        match node.http().get(&format!("/api/receipts?{query}")).await {
            Err(Failed::Refused { status: given, body }) => {
                assert_eq!(given, status, "{query}: {body}");
                assert!(text(&body["error"]).contains(words), "{query}: {body}");
            }
            other => panic!("{query}: {other:?}"),
        }
    }
}
