//! Bad arguments, one line each: what is sent, and the whole text that comes back.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use nexus_contract::chat::{
    Category, Identity, Message, ReadMessagesOutput, ReadMode, Room, SendMessageOutput,
};
use nexus_contract::conversations::{ClientKind, PeersOutput, Profile, Status};
use nexus_contract::events::{Event, ListEventsOutput};
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
        let peers = PeersOutput { own: None, peers: vec![profile()] };
        let own = PeersOutput { own: Some(profile()), peers: vec![] };
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
