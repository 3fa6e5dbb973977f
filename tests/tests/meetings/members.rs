//! Who takes part in a meeting, how, and from where on it reads.

use nexus_tests::process::{Node, text};
use serde_json::{Value, json};

use super::{call, codex, events, ids, instance, join, of, refused, say, shown, start, unread};

#[tokio::test(flavor = "multi_thread")]
async fn members_joined_and_participants_spoke() {
    let node = Node::found("sole").await;
    let (a, b, guest, tool) = (codex("a"), codex("b"), codex("guest"), instance("tool"));
    let profile = json!({"name": "anna", "title": "the plan"});
    call(&node, &a, "set_profile", profile).await;
    let id = start(&node, &a, "plan").await;
    join(&node, &b, &id).await;
    call(&node, &tool, "join_meeting", json!({"meetingId": id, "mode": "async"})).await;
    for by in [&guest, &tool] {
        say(&node, by, &id, "hello").await;
    }
    let meeting = shown(&node, &id).await;
    // Who started it is its initiator, and takes part as who joins does.
    assert_eq!((&meeting["initiator"], meeting["wakes"].as_u64()), (&json!("codex:a"), Some(0)));
    assert_eq!(json!(ids(&meeting["members"])), of(&[&a, &b, &tool]));
    assert_eq!(meeting["participants"], of(&[&guest, &tool]));
    assert_eq!((&meeting["messageCount"], &meeting["decisionCount"]), (&json!(2), &json!(0)));
    let [one, two, three] = meeting["members"].as_array().unwrap().as_slice() else {
        panic!("{meeting}");
    };
    let expected = json!({
        "id": "codex:a", "name": "anna", "title": "the plan", "mode": "active",
        "approver": "required", "status": one["status"], "joinedAt": meeting["startTime"],
        "wakes": 0, "lastWokenAt": null,
    });
    assert_eq!(one, &expected);
    assert!(["idle", "working"].contains(&text(&one["status"]).as_str()), "{one}");
    assert!(!text(&two["name"]).is_empty() && two["approver"] == "required", "{two}");
    // An instance is none that could be told something, or has a name to be called by.
    let expected = json!({
        "id": "tool", "name": null, "title": null, "mode": "async", "approver": "optional",
        "status": null, "joinedAt": three["joinedAt"], "wakes": 0, "lastWokenAt": null,
    });
    assert_eq!(three, &expected);
    // Everywhere a conversation is called as it is called now.
    call(&node, &guest, "set_profile", json!({"name": "gast"})).await;
    let said = super::history(&node, &id).await;
    assert_eq!((&said[0]["senderName"], &said[1]["senderName"]), (&json!("gast"), &Value::Null));
    assert_eq!((&said[0]["from"], &said[1]["from"]), (&json!("codex:guest"), &json!("tool")));
}

#[tokio::test(flavor = "multi_thread")]
async fn joining_says_how_news_reach_whom() {
    let node = Node::found("sole").await;
    let (a, b, tool) = (codex("a"), codex("b"), instance("tool"));
    let id = start(&node, &a, "plan").await;
    for (by, args, [mode, approver, identity, delivery]) in [
        (&b, json!({}), ["active", "required", "session", "wake"]),
        (&b, json!({"mode": "async"}), ["async", "optional", "session", "next-hook"]),
        (
            &b,
            json!({"mode": "async", "approver": "required"}),
            ["async", "required", "session", "next-hook"],
        ),
        (&b, json!({"approver": "optional"}), ["active", "optional", "session", "wake"]),
        (&tool, json!({}), ["active", "required", "instance", "unavailable"]),
        (&tool, json!({"mode": "async"}), ["async", "optional", "instance", "unavailable"]),
    ] {
        let mut args = args;
        args["meetingId"] = json!(id);
        let joined = call(&node, by, "join_meeting", args.clone()).await;
        let expected = json!({
            "ok": true, "meetingId": id, "mode": mode, "approver": approver,
            "identity": identity, "delivery": delivery,
        });
        assert_eq!(joined, expected, "{args}");
        let members = shown(&node, &id).await["members"].clone();
        let mut own = members.as_array().unwrap().iter().filter(|one| one["id"] == by.id());
        let own = own.next().unwrap();
        assert_eq!((&own["mode"], &own["approver"]), (&json!(mode), &json!(approver)), "{args}");
    }
    // Joining again is no second joining.
    let joins = events(&node, "meeting.join", &id).await;
    let told: Vec<_> =
        joins.iter().map(|it| format!("{} {}", text(&it["actor"]), text(&it["detail"]))).collect();
    assert_eq!(told, ["tool active, required", "codex:b active, required"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_reads_from_where_it_said() {
    let node = Node::found("sole").await;
    let a = codex("a");
    let id = start(&node, &a, "plan").await;
    for number in 1..=4 {
        say(&node, &a, &id, &format!("m{number}")).await;
    }
    let late = ["m3", "m4"];
    for (name, since, expected) in [
        ("latest", None, &[][..]),
        ("said", Some(json!("latest")), &[]),
        ("beginning", Some(json!("beginning")), &["m1", "m2", "m3", "m4"]),
        ("zero", Some(json!(0)), &["m1", "m2", "m3", "m4"]),
        ("number", Some(json!(2)), &late),
        ("newest", Some(json!(4)), &[]),
    ] {
        for by in [codex(name), instance(name)] {
            let mut args = json!({"meetingId": id});
            if let Some(since) = &since {
                args["since"] = since.clone();
            }
            call(&node, &by, "join_meeting", args).await;
            assert_eq!(unread(&node, &by, &id).await, expected, "{name}");
        }
    }
    // Who only reads begins at the beginning.
    assert_eq!(unread(&node, &codex("reader"), &id).await.len(), 4);
    let beyond = json!({"meetingId": id, "since": 5});
    let (code, said) = refused(&node, &a, "join_meeting", beyond).await;
    assert_eq!(code, "invalid_arguments");
    let right = "since: must be at most 4, the newest message's number";
    assert_eq!(said, format!("Invalid arguments for join_meeting: {right}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_joins_again_goes_on_and_who_left_begins_at_the_newest() {
    let node = Node::found("sole").await;
    let (a, b) = (codex("a"), codex("b"));
    let id = start(&node, &a, "plan").await;
    say(&node, &a, &id, "before").await;
    join(&node, &b, &id).await;
    say(&node, &a, &id, "m2").await;
    // Only how it takes part has changed, also to pause and to come back.
    for mode in ["async", "active"] {
        call(&node, &b, "join_meeting", json!({"meetingId": id, "mode": mode})).await;
    }
    assert_eq!(unread(&node, &b, &id).await, ["m2"]);
    call(&node, &b, "join_meeting", json!({"meetingId": id, "since": "beginning"})).await;
    let args = json!({"meetingId": id});
    let page = call(&node, &b, "read_messages", args.clone()).await;
    let again: Vec<bool> =
        page["messages"].as_array().unwrap().iter().map(|it| it["again"] == true).collect();
    assert_eq!(again, [true, true], "what it had before comes again, and says so: {page}");

    assert_eq!(
        call(&node, &b, "leave_meeting", args.clone()).await,
        json!({"ok": true, "meetingId": id})
    );
    assert_eq!(json!(ids(&shown(&node, &id).await["members"])), of(&[&a]));
    let (code, said) = refused(&node, &b, "leave_meeting", args).await;
    let right = format!("meetingId: meeting {id}: you are no member of it; join it (join_meeting)");
    assert_eq!((code.as_str(), said), ("conflict", right));
    say(&node, &a, &id, "while away").await;
    join(&node, &b, &id).await;
    assert_eq!(unread(&node, &b, &id).await, [""; 0]);
    assert_eq!(events(&node, "meeting.leave", &id).await.len(), 1);
    // One's own messages are no news to oneself.
    say(&node, &b, &id, "own").await;
    assert_eq!(unread(&node, &b, &id).await, [""; 0]);
    assert_eq!(unread(&node, &a, &id).await, ["own"]);
    // Who left stays out when the meeting is taken up again.
    call(&node, &b, "leave_meeting", json!({"meetingId": id})).await;
    call(&node, &a, "end_meeting", json!({})).await;
    call(&node, &a, "reopen_meeting", json!({"meetingId": id})).await;
    assert_eq!(json!(ids(&shown(&node, &id).await["members"])), of(&[&a]));
}
