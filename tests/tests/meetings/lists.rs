//! Lists and readings: where they go on, how much one answer holds, and what is known without a
//! majority.

use std::time::Duration;

use nexus_tests::call::Speaker;
use nexus_tests::process::{LIMIT, Node, text, three_voters};
use nexus_tests::wait;
use serde_json::{Value, json};

use super::{call, codex, history, ids, instance, join, refused, say, start, unread};

/// Bytes of one answer, and room for what stands around its texts.
const ANSWER: usize = 1024 * 1024 + 128 * 1024;

async fn list(node: &Node, args: Value) -> Value {
    call(node, &Speaker::Nobody, "list_meetings", args).await
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_go_on_where_they_stopped_and_are_bounded_in_bytes() {
    let node = Node::found("sole").await;
    let a = codex("a");
    let mut all = Vec::new();
    for number in 1..=7 {
        all.insert(0, start(&node, &a, &format!("number {number}")).await);
    }
    // Two are closed, one of them is put away, one is taken up again.
    for at in [1, 3, 5] {
        call(&node, &a, "end_meeting", json!({"meetingId": all[at]})).await;
    }
    call(&node, &a, "archive_meeting", json!({"meetingId": all[3]})).await;
    call(&node, &a, "reopen_meeting", json!({"meetingId": all[5]})).await;
    let whole = list(&node, json!({})).await;
    assert_eq!((ids(&whole["meetings"]), whole.get("more")), (all.clone(), None));
    assert_eq!((&whole["count"], &whole["activeMeetingId"]), (&json!(7), &json!(all[5])));
    for (args, expected, more) in [
        (json!({"limit": 3}), &all[..3], true),
        (json!({"limit": 3, "before": all[2]}), &all[3..6], true),
        (json!({"limit": 3, "before": all[5]}), &all[6..], false),
        (json!({"limit": 7}), &all[..], false),
        (json!({"status": "closed"}), &all[1..2], false),
        (json!({"status": "archived"}), &all[3..4], false),
        (json!({"status": "closed", "before": all[1]}), &[], false),
        (json!({"status": "active", "limit": 1, "before": all[4]}), &all[5..6], true),
    ] {
        let page = list(&node, args.clone()).await;
        assert_eq!(ids(&page["meetings"]), expected, "{args}");
        let told = page.get("more").cloned().unwrap_or(json!(false));
        assert_eq!((told, &page["count"]), (json!(more), &json!(expected.len())), "{args}");
    }
    let (code, said) =
        refused(&node, &a, "list_meetings", json!({"before": "20260102030405-no-0001"})).await;
    let right = "before: meeting 20260102030405-no-0001 does not exist; list_meetings shows those \
                 there are";
    assert_eq!((code.as_str(), said.as_str()), ("not_found", right));

    // Summaries of 32 KB each are more than one answer holds: it says so, and the next goes on.
    let summary = "👍".repeat(8_000);
    for number in 0..60 {
        start(&node, &a, &format!("long {number}")).await;
        call(&node, &a, "end_meeting", json!({"summary": summary})).await;
    }
    let (mut seen, mut answers, mut before) = (0, 0, None);
    loop {
        let mut args = json!({"status": "closed", "limit": 200});
        if let Some(before) = before {
            args["before"] = before;
        }
        let page = list(&node, args).await;
        assert!(page.to_string().len() < ANSWER, "{}", page.to_string().len());
        seen += ids(&page["meetings"]).len();
        answers += 1;
        before = ids(&page["meetings"]).last().map(|id| json!(id));
        if page.get("more").is_none() {
            break;
        }
    }
    assert_eq!((seen, answers), (61, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_read_of_a_room_is_bounded_in_bytes() {
    let node = Node::found("sole").await;
    let (a, b) = (codex("a"), instance("b"));
    let id = start(&node, &a, "plan").await;
    let long = "👍".repeat(32_000);
    for _ in 0..20 {
        say(&node, &a, &id, &long).await;
    }
    let read = async |by: &Speaker, args: Value| {
        let mut args = args;
        args["meetingId"] = json!(id);
        args["count"] = json!(500);
        let page = call(&node, by, "read_messages", args).await;
        assert!(page.to_string().len() < ANSWER, "{}", page.to_string().len());
        let all = page["messages"].as_array().unwrap().iter();
        let numbers: Vec<u64> = all.map(|it| it["id"].as_u64().unwrap()).collect();
        (numbers, page["note"].as_str().unwrap_or_default().to_owned())
    };
    let told = |place: &str| format!("One answer holds no more text than this: {place}.");
    let nobody = Speaker::Nobody;
    let latest = read(&nobody, json!({"latest": true})).await;
    assert_eq!(latest, ((13..=20).collect(), told("those before 13 with afterId")));
    let first = read(&nobody, json!({"afterId": 0})).await;
    assert_eq!(first, ((1..=8).collect(), told("go on with afterId 8")));
    let next = read(&nobody, json!({"afterId": 8})).await;
    assert_eq!(next, ((9..=16).collect(), told("go on with afterId 16")));
    let last = read(&nobody, json!({"afterId": 16})).await;
    assert_eq!(last, ((17..=20).collect(), String::new()));
    // Unread ones come in parts by themselves.
    for expected in [1..=8, 9..=16, 17..=20] {
        assert_eq!(read(&b, json!({})).await.0, expected.collect::<Vec<_>>());
    }
    assert_eq!(read(&b, json!({})).await.0, [0; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_majority_a_meeting_is_read_as_it_was_and_not_changed() {
    let [one, mut two, mut three] = three_voters(["one", "two", "three"]).await;
    let (a, b, c) = (codex("a"), codex("b"), codex("c"));
    let id = start(&one, &a, "plan").await;
    join(&one, &b, &id).await;
    say(&one, &a, &id, "first").await;
    assert_eq!(unread(&one, &b, &id).await, ["first"]);
    say(&one, &a, &id, "second").await;
    call(&one, &c, "set_profile", json!({"note": "here"})).await;
    two.kill();
    three.kill();
    let page = wait::until("a stale list", LIMIT, async || {
        let page = list(&one, json!({})).await;
        if page.get("stale").is_some() { Ok(page) } else { Err(page) }
    })
    .await;
    assert_eq!((ids(&page["meetings"]), &page["activeMeetingId"]), (vec![id.clone()], &json!(id)));
    assert!(text(&page["asOf"]).starts_with("20"), "{page}");
    let named = json!({"meetingId": id});
    // A member goes on from its place, anybody else reads from the beginning, and no place moves.
    for _ in 0..2 {
        for (by, expected) in [(&b, &["second"][..]), (&c, &["first", "second"])] {
            let page = call(&one, by, "read_messages", named.clone()).await;
            let marks = (&page["stale"], &page["cursorMoved"], &page["meetingId"]);
            assert_eq!(marks, (&json!(true), &json!(false), &json!(id)), "{page}");
            let all = page["messages"].as_array().unwrap().iter();
            let texts: Vec<String> = all.map(|it| text(&it["text"])).collect();
            assert_eq!(texts, expected, "{page}");
        }
    }
    assert_eq!(history(&one, &id).await.len(), 2);
    // What is not known here may be new elsewhere.
    let unknown = json!({"meetingId": "20260102030405-no-0001"});
    for args in [unknown.clone(), json!({"meetingId": unknown["meetingId"], "latest": true})] {
        let (code, said) = refused(&one, &b, "read_messages", args).await;
        let right = "meetingId: meeting 20260102030405-no-0001 is not known on this node, and no \
                     majority";
        assert!(code == "no_quorum" && said.starts_with(right), "{code}: {said}");
    }
    let (code, said) = refused(&one, &b, "list_meetings", json!({"before": "m-1"})).await;
    assert!(code == "no_quorum" && said.starts_with("before: meeting m-1 is not known"), "{said}");
    let limit = Duration::from_secs(15);
    let end = refused(&one, &a, "end_meeting", named);
    let (code, said) = tokio::time::timeout(limit, end).await.unwrap();
    assert!(["no_quorum", "unknown_outcome"].contains(&code.as_str()), "{code}: {said}");
    assert!(said.contains("two") && said.contains("three"), "{said}");
}
