//! The life of a meeting, and which one is meant when none is named.

use nexus_tests::call::Speaker;
use nexus_tests::process::{Node, text};
use serde_json::{Value, json};

use super::{call, codex, events, history, instance, refused, say, shown, start};

#[tokio::test(flavor = "multi_thread")]
async fn a_meeting_is_active_then_closed_then_archived_and_can_be_reopened() {
    let node = Node::found("sole").await;
    let (a, other) = (codex("a"), instance("other"));
    let args = json!({"topic": "Überblick: 計画 2"});
    let started = call(&node, &a, "start_meeting", args).await;
    let id = text(&started["meetingId"]);
    let expected = json!({
        "ok": true, "meetingId": id, "topic": "Überblick: 計画 2", "status": "active",
    });
    assert_eq!(started, expected);
    assert!(id.chars().all(|it| it.is_ascii_alphanumeric() || it == '-'), "{id}");
    let meeting = shown(&node, &id).await;
    assert_eq!((&meeting["status"], &meeting["initiator"]), (&json!("active"), &json!("codex:a")));
    assert_eq!((&meeting["endReason"], &meeting["proposal"]), (&Value::Null, &Value::Null));
    assert!(meeting.get("endTime").is_none() && meeting.get("summary").is_none(), "{meeting}");
    let named = json!({"meetingId": id});
    let is = |code: &str, what: &str| (code.to_owned(), format!("meetingId: meeting {id}: {what}"));
    let active = is("conflict", "is active; end it first (end_meeting)");
    assert_eq!(refused(&node, &other, "archive_meeting", named.clone()).await, active);
    let active = is("conflict", "is active already");
    assert_eq!(refused(&node, &other, "reopen_meeting", named.clone()).await, active);

    // Anybody may end it, put it away and take it up again, not only who started it.
    let end = json!({"meetingId": id, "summary": "we met"});
    let ended = call(&node, &other, "end_meeting", end.clone()).await;
    let expected = json!({"ok": true, "meetingId": id, "status": "closed", "summary": "we met"});
    assert_eq!(ended, expected);
    let meeting = shown(&node, &id).await;
    assert_eq!((&meeting["status"], &meeting["endReason"]), (&json!("closed"), &json!("manual")));
    assert_eq!(meeting["summary"], "we met");
    assert!(text(&meeting["endTime"]) >= text(&meeting["startTime"]), "{meeting}");
    let over = is("conflict", "has ended; reopen it (reopen_meeting) or start another");
    assert_eq!(refused(&node, &a, "end_meeting", end).await, over);
    let put_away = call(&node, &other, "archive_meeting", named.clone()).await;
    assert_eq!(put_away, json!({"ok": true, "meetingId": id, "status": "archived"}));
    let twice = is("conflict", "is archived already");
    assert_eq!(refused(&node, &other, "archive_meeting", named.clone()).await, twice);
    assert_eq!(shown(&node, &id).await["status"], "archived");
    let reopened = call(&node, &other, "reopen_meeting", named.clone()).await;
    assert_eq!(reopened, json!({"ok": true, "meetingId": id, "status": "active"}));
    let meeting = shown(&node, &id).await;
    assert_eq!((&meeting["status"], &meeting["endReason"]), (&json!("active"), &Value::Null));
    assert!(meeting.get("endTime").is_none(), "{meeting}");
    call(&node, &other, "end_meeting", json!({"meetingId": id})).await;
    call(&node, &other, "reopen_meeting", named).await;

    let actions: Vec<String> =
        events(&node, "meeting", &id).await.iter().map(|it| text(&it["action"])).collect();
    let expected = [
        "meeting.reopen",
        "meeting.end",
        "meeting.reopen",
        "meeting.archive",
        "meeting.end",
        "meeting.start",
    ];
    assert_eq!(actions, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ended_is_read_and_not_written() {
    let node = Node::found("sole").await;
    let (a, b) = (codex("a"), instance("b"));
    let id = start(&node, &a, "plan").await;
    say(&node, &a, &id, "kept").await;
    call(&node, &a, "end_meeting", json!({"meetingId": id})).await;
    for (what, tool) in [("has ended", "archive_meeting"), ("is archived", "reopen_meeting")] {
        let text = format!("meetingId: meeting {id}: {what}; reopen it (reopen_meeting) or");
        for (tool, args) in [
            ("send_message", json!({"message": "x", "meetingId": id})),
            ("send_message", json!({"message": "x", "meetingId": id, "draft": true})),
            ("join_meeting", json!({"meetingId": id})),
            ("stance", json!({"meetingId": id, "messageId": 1, "stance": "endorse"})),
        ] {
            let (code, said) = refused(&node, &b, tool, args).await;
            assert!(code == "conflict" && said.starts_with(&text), "{tool}: {said}, not {text}");
        }
        assert_eq!(history(&node, &id).await.len(), 1);
        call(&node, &a, tool, json!({"meetingId": id})).await;
    }
    // Who never read there finds it all, whatever has become of the meeting.
    call(&node, &a, "end_meeting", json!({})).await;
    assert_eq!(super::unread(&node, &b, &id).await, ["kept"]);
    assert_eq!(super::unread(&node, &b, &id).await, [""; 0]);
}

/// Posts without naming a meeting; returns where it went, and the words.
async fn post(node: &Node, by: &Speaker) -> (Option<String>, String) {
    let sent = call(node, by, "send_message", json!({"message": "hello"})).await;
    let meeting = sent.get("meetingId").map(text);
    let to = if meeting.is_some() { "meeting" } else { "global" };
    assert_eq!((&sent["sentTo"], sent.get("currentProposalId")), (&json!(to), None));
    (meeting, text(&sent["message"]))
}

async fn default(node: &Node) -> Option<String> {
    let list = call(node, &Speaker::Nobody, "list_meetings", json!({})).await;
    list["activeMeetingId"].as_str().map(str::to_owned)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_default_meeting_is_the_one_started_or_reopened_last() {
    let node = Node::found("sole").await;
    let a = codex("a");
    let nowhere = "meetingId: no meeting is active; start one (start_meeting) or name one";
    assert_eq!(post(&node, &a).await.1, "Message 1 is posted to the global chat.");
    assert_eq!(default(&node).await, None);
    for (tool, args) in
        [("end_meeting", json!({})), ("send_message", json!({"message": "x", "draft": true}))]
    {
        let told = ("conflict".to_owned(), nowhere.to_owned());
        assert_eq!(refused(&node, &a, tool, args).await, told);
    }
    let one = start(&node, &a, "one").await;
    let two = start(&node, &a, "two").await;
    assert_eq!(default(&node).await.as_deref(), Some(two.as_str()));
    let (meeting, words) = post(&node, &a).await;
    assert_eq!(meeting.as_deref(), Some(two.as_str()));
    let told = format!("Message 1 is posted to meeting {two}, the default while it is active.");
    assert_eq!(words, told);
    // A meeting that is named is meant, whichever is the default.
    let args = json!({"message": "there", "meetingId": one, "category": "UPDATE"});
    let sent = call(&node, &a, "send_message", args).await;
    let words = format!("Message 1 is posted to meeting {one}.");
    assert_eq!((&sent["meetingId"], &sent["message"]), (&json!(one), &json!(words)));
    assert_eq!(history(&node, &one).await[0]["category"], "UPDATE");
    // Ending without a name ends the default one; then the other one is it.
    let ended = call(&node, &a, "end_meeting", json!({"summary": "enough"})).await;
    assert_eq!(ended["meetingId"], json!(two));
    assert_eq!(post(&node, &a).await.0.as_deref(), Some(one.as_str()));
    call(&node, &a, "reopen_meeting", json!({"meetingId": two})).await;
    assert_eq!(post(&node, &a).await.0.as_deref(), Some(two.as_str()));
    assert_eq!(default(&node).await.as_deref(), Some(two.as_str()));
    call(&node, &a, "end_meeting", json!({"meetingId": one})).await;
    assert_eq!(default(&node).await.as_deref(), Some(two.as_str()));
    call(&node, &a, "end_meeting", json!({})).await;
    assert_eq!((post(&node, &a).await.0, default(&node).await), (None, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_call_has_one_effect_and_one_answer() {
    let node = Node::found("sole").await;
    let a = codex("a");
    let again = async |tool: &str, args: Value, request: &str| {
        let one = node.http().call_as(&a, tool, args.clone(), Some(request)).await.unwrap();
        let two = node.http().call_as(&a, tool, args, Some(request)).await.unwrap();
        assert_eq!(one, two, "{tool}");
        one
    };
    let id = text(&again("start_meeting", json!({"topic": "plan"}), "r-1").await["meetingId"]);
    again("send_message", json!({"message": "hello"}), "r-2").await;
    again("send_message", json!({"message": "so be it", "draft": true}), "r-3").await;
    let args = json!({"meetingId": id, "messageId": 2, "stance": "endorse", "note": "well"});
    again("stance", args, "r-4").await;
    again("join_meeting", json!({"meetingId": id, "approver": "optional"}), "r-5").await;
    again("leave_meeting", json!({"meetingId": id}), "r-6").await;
    again("end_meeting", json!({"summary": "done"}), "r-7").await;
    again("archive_meeting", json!({"meetingId": id}), "r-8").await;
    again("reopen_meeting", json!({"meetingId": id}), "r-9").await;
    let list = call(&node, &a, "list_meetings", json!({})).await;
    assert_eq!((&list["count"], &list["meetings"][0]["status"]), (&json!(1), &json!("active")));
    // The message, the draft, and the two changes of the list of those who must agree to it.
    assert_eq!(list["meetings"][0]["messageCount"], 3, "{list}");
}
