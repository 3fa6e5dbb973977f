//! Bad arguments, one line each: what is sent, and the whole text that comes back.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use nexus_contract::chat::{
    Category, Identity, Message, ReadMessagesOutput, ReadMode, Room, SendMessageOutput,
};
use nexus_contract::conversations::{ClientKind, PeersOutput, Profile, Status};
use nexus_contract::events::{Event, ListEventsOutput};
use nexus_contract::http::{Body as _, Caller, InviteRequest, ToolCall};
use nexus_contract::{ApiError, ErrorCode, ReadMarks, catalog, validate};
use serde_json::{Value, json};

fn refusal(tool: &str, arguments: Value) -> String {
    let spec = catalog::find(tool).unwrap();
    let error = validate::arguments(spec, arguments.clone())
        .expect_err(&format!("{tool} accepts {arguments}"));
    assert_eq!(error.code, ErrorCode::InvalidArguments);
    let start = format!("Invalid arguments for {tool}: ");
    error.message.strip_prefix(&start).unwrap_or_else(|| panic!("{error}")).to_owned()
}

fn refused(table: &[(&str, Value, &str)]) {
    for (tool, arguments, expected) in table {
        assert_eq!(refusal(tool, arguments.clone()), *expected, "{tool} {arguments}");
    }
}

fn clean(tool: &str, arguments: Value) -> Value {
    validate::arguments(catalog::find(tool).unwrap(), arguments).unwrap()
}

#[test]
fn refusals_name_the_field_and_what_would_be_right() {
    let long = "x".repeat(32_001);
    let table = [
        ("send_message", json!({}), "message: is missing; give a string of 1 to 32000 characters"),
        (
            "send_message",
            json!({"message": null}),
            "message: is null; give a string of 1 to 32000 characters",
        ),
        (
            "send_message",
            json!({"message": ""}),
            "message: is empty; give a string of 1 to 32000 characters",
        ),
        (
            "send_message",
            json!({"message": long}),
            "message: has 32001 characters; give a string of 1 to 32000 characters",
        ),
        (
            "send_message",
            json!({"message": 7}),
            "message: is 7; give a string of 1 to 32000 characters",
        ),
        (
            "send_message",
            json!({"message": "x", "category": "SHOUT"}),
            "category: is the string \"SHOUT\"; give one of PROPOSAL, DECISION, UPDATE, CHAT, \
             MEETING_START",
        ),
        ("send_message", json!([1, 2]), "arguments: is an array of 2; give an object"),
    ];
    refused(&table);
}

#[test]
fn numbers_flags_and_rules_between_fields_too() {
    let table = [
        ("read_messages", json!({"count": 0}), "count: is 0; give an integer, 1 to 500"),
        ("read_messages", json!({"count": 501}), "count: is 501; give an integer, 1 to 500"),
        (
            "read_messages",
            json!({"count": "ten"}),
            "count: is the string \"ten\"; give an integer, 1 to 500",
        ),
        ("read_messages", json!({"count": 1.5}), "count: is 1.5; give an integer, 1 to 500"),
        ("read_messages", json!({"afterId": -1}), "afterId: is -1; give an integer, at least 0"),
        (
            "read_messages",
            json!({"latest": "yes"}),
            "latest: is the string \"yes\"; give true or false",
        ),
        (
            "read_messages",
            json!({"latest": true, "afterId": 4}),
            "latest, afterId: both are given; give one: latest for the newest messages, afterId \
             for those after an id",
        ),
        ("list_events", json!({"limit": 1000}), "limit: is 1000; give an integer, 1 to 500"),
        (
            "list_events",
            json!({"action": ""}),
            "action: is empty; give a string of 1 to 64 characters",
        ),
        ("peers", json!({"includeOffline": 1}), "includeOffline: is 1; give true or false"),
        ("set_profile", json!({}), "name, note, title: none is given; give at least one of them"),
        (
            "set_profile",
            json!({"name": "two words"}),
            "name: has ' ' in it; give a string of 1 to 48 characters out of A-Z a-z 0-9 . _ @ # -",
        ),
        (
            "set_profile",
            json!({"name": "", "note": "x".repeat(201), "title": "x".repeat(81)}),
            "name: is empty; give a string of 1 to 48 characters out of A-Z a-z 0-9 . _ @ # -; \
             note: has 201 characters; give a string of at most 200 characters; \
             title: has 81 characters; give a string of at most 80 characters",
        ),
    ];
    refused(&table);
}

#[test]
fn texts_that_say_nothing_or_hide_something_are_refused_everywhere() {
    let message = "give a string of 1 to 32000 characters";
    let table = [
        ("send_message", json!({"message": " \n\t"}), "is only white space", "that says something"),
        (
            "send_message",
            json!({"message": "a\u{0}b"}),
            "has the control character U+0000 in it",
            "without control characters other than line breaks and tabs",
        ),
        (
            "send_message",
            json!({"message": "\u{1b}[2J"}),
            "has the control character U+001B in it",
            "without control characters other than line breaks and tabs",
        ),
    ];
    for (tool, arguments, is, right) in table {
        assert_eq!(refusal(tool, arguments), format!("message: {is}; {message} {right}"));
    }
    for (tool, arguments, begin) in [
        ("send_message", json!({"message": "x", "meetingId": " "}), "meetingId: has ' ' in it"),
        ("read_messages", json!({"meetingId": "a\u{7}"}), "meetingId: has '\\u{7}' in it"),
        ("list_events", json!({"action": "\t"}), "action: is only white space"),
        ("set_profile", json!({"name": "a\u{0}"}), "name: has '\\0' in it"),
        ("set_profile", json!({"note": "  "}), "note: is only white space"),
        ("set_profile", json!({"note": "a\nb"}), "note: has a line break or a tab in it; give"),
        ("set_profile", json!({"title": "a\u{0}"}), "title: has the control character U+0000"),
        ("set_profile", json!({"title": "a\tb"}), "title: has a line break or a tab in it; give"),
    ] {
        let text = refusal(tool, arguments);
        assert!(text.starts_with(begin), "{text}");
    }
    // What a text may be is kept as it is.
    let text = "  two\r\n\tlines, ü and 👍  ";
    assert_eq!(clean("send_message", json!({"message": text}))["message"], text);
    assert_eq!(clean("set_profile", json!({"title": ""}))["title"], "");
}

#[test]
fn bodies_name_the_field_in_words_of_json() {
    let call = |body: Value| ToolCall::read(body).unwrap_err();
    let such = "; such as {\"tool\": NAME, \"args\": {…}}";
    for (body, what) in [
        (json!([]), "body: is an array of 0; give an object"),
        (json!("x"), "body: is the string \"x\"; give an object"),
        (json!({}), "tool: is missing; give a string"),
        (json!({"tool": 1}), "tool: is 1; give a string"),
        (json!({"tool": "x", "instanceId": {}}), "instanceId: is an object; give a string"),
        (json!({"tool": "x", "instanceGiven": 1}), "instanceGiven: is 1; give true or false"),
        (json!({"tool": "x", "caller": "junk"}), "caller: is the string \"junk\"; give an object"),
        (
            json!({"tool": "x", "caller": {}}),
            "caller.client: is missing; give one of claude, codex",
        ),
        (
            json!({"tool": "x", "caller": {"client": "other"}}),
            "caller.client: is the string \"other\"; give one of claude, codex",
        ),
        (
            json!({"tool": "x", "caller": {"client": "codex"}}),
            "caller.sessionId: is missing; give a string",
        ),
        (
            json!({"tool": "x", "caller": {"client": "claude", "toolUseId": 7}, "requestId": 1}),
            "caller.toolUseId: is 7; give a string; requestId: is 1; give a string",
        ),
    ] {
        assert_eq!(call(body), format!("body does not fit: {what}{such}"));
    }
    let codex = json!({"client": "codex", "sessionId": "s"});
    let body = json!({"tool": "x", "args": [1], "caller": codex, "cwd": null, "more": {"a": 1}});
    let read = ToolCall::read(body).unwrap();
    // A folder's name is no text that anybody wrote for others.
    let odd = json!({"tool": "x", "cwd": "/a\u{1b}b"});
    assert_eq!(ToolCall::read(odd).unwrap().cwd.as_deref(), Some("/a\u{1b}b"));
    assert_eq!(read.caller, Some(Caller::Codex { session_id: "s".into() }));
    assert_eq!((read.args, read.cwd), (json!([1]), None));
    let invite = |body: Value| InviteRequest::read(body);
    assert_eq!(invite(json!({})).unwrap(), InviteRequest::default());
    assert_eq!(invite(json!({"ttlSeconds": 60.0})).unwrap().ttl_seconds, Some(60));
    for (body, what) in [
        (json!({"role": "king"}), "role: is the string \"king\"; give one of voter, learner"),
        (json!({"ttlSeconds": "1h"}), "ttlSeconds: is the string \"1h\"; give an integer"),
        (json!({"ttlSeconds": -1}), "ttlSeconds: is -1; give an integer, at least 0"),
        (json!({"ttlSeconds": 1.5}), "ttlSeconds: is 1.5; give an integer, at least 0"),
    ] {
        let said = invite(body).unwrap_err();
        assert!(said.starts_with(&format!("body does not fit: {what}")), "{said}");
    }
}

#[test]
fn a_code_is_not_said_twice() {
    for (error, shown) in [
        (
            ApiError::invalid_arguments("peers", "includeOffline: is 1; give true or false"),
            "invalid_arguments: peers: includeOffline: is 1; give true or false",
        ),
        (ApiError::rate_limit(2), "rate_limited: retry after 2s"),
        (ApiError::new(ErrorCode::NotFound, "x does not exist"), "not_found: x does not exist"),
    ] {
        assert_eq!(error.coded(), shown);
    }
    assert_eq!(ApiError::rate_limit(2).message, "Rate limit exceeded: retry after 2s");
    assert_eq!(ApiError::rate_limit(2).retry_after, Some(2));
}

#[test]
fn a_long_value_does_not_get_into_the_text() {
    let text = refusal("read_messages", json!({"count": "9".repeat(100_000)}));
    assert!(text.len() < 200, "{text}");
}

#[test]
fn what_is_generous_is_cleaned() {
    assert_eq!(clean("peers", Value::Null), json!({}));
    assert_eq!(
        clean("send_message", json!({"message": "x", "category": null, "extra": {"a": [1]}})),
        json!({"message": "x"})
    );
    assert_eq!(clean("read_messages", json!({"count": 10.0})), json!({"count": 10}));
    assert_eq!(
        clean("read_messages", json!({"latest": false, "afterId": 3})),
        json!({"latest": false, "afterId": 3})
    );
    let text = "ä".repeat(32_000);
    assert_eq!(clean("send_message", json!({"message": text}))["message"], text);
}

#[test]
fn inputs_are_typed_with_their_defaults() {
    use nexus_contract::chat::{ReadMessages, SendMessage};
    use nexus_contract::events::ListEvents;
    let read = validate::input::<ReadMessages>(json!({})).unwrap();
    assert_eq!((read.count, read.mode()), (10, ReadMode::Unread));
    let read = validate::input::<ReadMessages>(json!({"afterId": 0})).unwrap();
    assert_eq!(read.mode(), ReadMode::History);
    assert_eq!(validate::input::<ListEvents>(Value::Null).unwrap().limit, 20);
    let send = validate::input::<SendMessage>(json!({"message": "x", "category": "UPDATE"}));
    assert_eq!(send.unwrap().category, Some(Category::Update));
}

fn profile() -> Profile {
    Profile {
        id: "codex:1".into(),
        name: "codex@app".into(),
        title: String::new(),
        client: ClientKind::Codex,
        node: "desk".into(),
        cwd: "/src/app".into(),
        note: String::new(),
        status: Status::Asleep,
        last_active_at: "2026-12-01T03:05:00.000Z".into(),
        unread: None,
        listening: None,
    }
}

#[test]
fn results_fit_their_schemas_with_and_without_marks() {
    let message = Message {
        id: 4,
        from: "mcp-desk".into(),
        sender_name: None,
        text: "hello".into(),
        category: None,
        timestamp: "2026-12-01T03:05:00.000Z".into(),
        again: true,
    };
    let read = ReadMessagesOutput {
        source: Room::Global,
        mode: ReadMode::Unread,
        identity: Some(Identity::Instance),
        meeting_id: None,
        messages: vec![message.clone(), Message { category: Some(Category::Chat), ..message }],
        count: 2,
        note: None,
    };
    let sent = SendMessageOutput {
        ok: true,
        sent_to: Room::Global,
        meeting_id: None,
        message_id: 5,
        identity: Identity::Session,
        current_proposal_id: None,
        message: "posted".into(),
    };
    let event = Event {
        timestamp: "2026-12-01T03:05:00.000Z".into(),
        actor: "node 1".into(),
        action: "node.join".into(),
        target: Some("desk".into()),
        detail: None,
    };
    let marks = ReadMarks {
        stale: Some(true),
        as_of: Some("2026-12-01T03:05:00.000Z".into()),
        cursor_moved: Some(false),
        missing_your_write: Some(true),
        applied_here: Some(false),
    };
    for marks in [ReadMarks::default(), marks] {
        let peers = PeersOutput { own: None, peers: vec![profile()], more: false };
        let own = PeersOutput { own: Some(profile()), peers: vec![], more: false };
        let events = ListEventsOutput { count: 1, events: vec![event.clone()] };
        for (tool, result) in [
            ("peers", marks.stamp(&peers).unwrap()),
            ("peers", marks.stamp(&own).unwrap()),
            ("send_message", marks.stamp(&sent).unwrap()),
            ("read_messages", marks.stamp(&read).unwrap()),
            ("list_events", marks.stamp(&events).unwrap()),
        ] {
            let result = Value::Object(result);
            let spec = catalog::find(tool).unwrap();
            validate::result(spec, &result).unwrap_or_else(|found| panic!("{result}: {found:?}"));
            assert_eq!(result.get("stale").is_some(), marks.stale.is_some());
        }
    }
    let text = serde_json::to_string(&read).unwrap();
    assert_eq!(serde_json::from_str::<ReadMessagesOutput>(&text).unwrap(), read);
}

#[test]
fn results_that_do_not_fit_are_found() {
    let spec = catalog::find("read_messages").unwrap();
    let bad =
        json!({"source": "attic", "mode": "unread", "messages": [{"id": "x"}], "count": null});
    let found = validate::result(spec, &bad).unwrap_err();
    let fields: Vec<&str> = found.iter().map(|violation| violation.field.as_str()).collect();
    for field in ["source", "messages[0].id", "messages[0].from", "messages[0].senderName", "count"]
    {
        assert!(fields.contains(&field), "{field} is not among {fields:?}");
    }
}

#[test]
fn a_refusal_survives_json() {
    let error = ApiError::new(ErrorCode::UnknownOutcome, "the write is not known to be done")
        .with_request_id("abc-7")
        .with_retry_after(3);
    let body = error.to_json();
    assert_eq!(
        body,
        json!({
            "ok": false,
            "code": "unknown_outcome",
            "error": "the write is not known to be done",
            "requestId": "abc-7",
            "retryAfter": 3,
        })
    );
    assert_eq!(ApiError::from_json(body.to_string().as_bytes()), Some(error));
    assert_eq!(ApiError::from_json(b"<html>"), None);
    assert_eq!(ApiError::from_json(b"{\"ok\":true}"), None);
    let unknown = ApiError::unknown_tool("no_such").to_string();
    assert!(unknown.starts_with("unknown_tool: unknown tool \"no_such\": the tools are peers,"));
}
