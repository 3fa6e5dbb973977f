//! What every kind of line is answered with, and that none is lost on the way.

use std::time::Duration;

use super::*;
use tokio::io::AsyncReadExt as _;

const INVALID: i64 = -32600;
const UNKNOWN: i64 = -32601;
const PARAMS: i64 = -32602;
const PARSE: i64 = -32700;

fn answers(line: &[u8]) -> Vec<Value> {
    match line::read(line, Set::All, false) {
        Read::Answers(answers) => answers,
        Read::Message(message) => panic!("it goes on to rmcp: {message:?}"),
    }
}

#[test]
fn what_cannot_be_served_is_answered_under_its_id() {
    for (text, id, code, words) in [
        ("not json", json!(null), PARSE, "expected ident at line 1 column 2"),
        ("{\"jsonrpc\":\"2.0\",\"id\":1", json!(null), PARSE, "EOF while parsing"),
        ("7", json!(null), INVALID, "the message is 7; give a JSON object"),
        ("\"ping\"", json!(null), INVALID, "the message is a string"),
        ("{}", json!(null), INVALID, "jsonrpc is missing"),
        (r#"{"id":1,"method":"ping"}"#, json!(1), INVALID, "give \"2.0\""),
        (r#"{"jsonrpc":"1.0","id":"a","method":"ping"}"#, json!("a"), INVALID, "jsonrpc"),
        (r#"{"jsonrpc":2.0,"id":2,"method":"ping"}"#, json!(2), INVALID, "jsonrpc"),
        (r#"{"jsonrpc":"2.0","id":3}"#, json!(3), INVALID, "method is missing"),
        (r#"{"jsonrpc":"2.0","id":4,"method":5}"#, json!(4), INVALID, "method is 5"),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, json!(null), INVALID, "id is null"),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, json!(null), INVALID, "id is an object"),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, json!(null), INVALID, "id is 1.5"),
        (r#"{"jsonrpc":"2.0","id":6,"method":"ping","result":{}}"#, json!(6), INVALID, "one of"),
        (r#"{"jsonrpc":"2.0","id":7,"method":"tools/nothing"}"#, json!(7), UNKNOWN, "this server"),
        (r#"{"jsonrpc":"2.0","id":8,"method":"a","params":[1]}"#, json!(8), UNKNOWN, "found: a;"),
        (
            r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"a","name":"b"}}"#,
            json!(9),
            INVALID,
            "the message has the key \"name\" twice at line 1 column 73: give each key once",
        ),
        (r#"{"id":{},"id":{},"method":"ping"}"#, json!(null), INVALID, "the key \"id\" twice"),
        (r#"{"id":1,"id":1,"method":}"#, json!(null), PARSE, "expected value"),
    ] {
        let found = answers(text.as_bytes());
        let [found] = found.as_slice() else { panic!("{text}: {found:?}") };
        assert_eq!((&found["id"], &found["error"]["code"]), (&id, &json!(code)), "{text}: {found}");
        assert_eq!(found["jsonrpc"], "2.0");
        let said = found["error"]["message"].as_str().unwrap();
        assert!(said.contains(words), "{text}: {said}");
    }
}

#[test]
fn parameters_are_named_where_they_do_not_fit() {
    for (method, params, words) in [
        ("tools/call", json!({}), "params.name is missing; give a tool's name: one of peers,"),
        ("tools/call", json!(null), "params.name is missing"),
        ("tools/call", json!({"arguments": {}}), "params.name is missing"),
        ("tools/call", json!({"name": 7}), "params.name is 7"),
        ("tools/call", json!({"name": "peers", "arguments": [1]}), "params.arguments is an array"),
        ("tools/call", json!({"name": "peers", "_meta": 1}), "params._meta is 1; give an object"),
        ("tools/call", json!(["peers"]), "params is an array; give an object"),
        ("tools/list", json!({"cursor": 7}), "params.cursor is 7; give a string"),
        ("tools/list", json!("x"), "params is a string"),
        ("resources/list", json!({"cursor": 7}), "params.cursor is 7; give a string"),
        ("resources/read", json!({}), "params.uri is missing; give a resource's uri, such as"),
        ("prompts/get", json!({"name": 7}), "params.name is 7; give a prompt's name"),
        ("prompts/get", json!({"name": "x", "arguments": 1}), "params.arguments is 1"),
        ("initialize", json!({}), "params.protocolVersion is missing"),
        ("initialize", json!({"protocolVersion": "2025-11-25"}), "params.capabilities is missing"),
        (
            "initialize",
            json!({"protocolVersion": "2025-11-25", "capabilities": {}}),
            "params.clientInfo is missing",
        ),
        (
            "initialize",
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}}),
            "params.clientInfo.name is missing",
        ),
    ] {
        let line = json!({"jsonrpc": "2.0", "id": 9, "method": method, "params": params});
        let found = answers(line.to_string().as_bytes());
        let [found] = found.as_slice() else { panic!("{line}: {found:?}") };
        assert_eq!((&found["id"], &found["error"]["code"]), (&json!(9), &json!(PARAMS)), "{found}");
        let said = found["error"]["message"].as_str().unwrap();
        let begin = format!("invalid params of {method}: ");
        assert!(said.starts_with(&begin) && said.contains(words), "{line}: {said}");
    }
}

#[test]
fn a_batch_is_refused_request_by_request() {
    for (text, ids) in [
        ("[]", json!([null])),
        ("[1, 2]", json!([null])),
        (r#"[{"id":1,"method":"ping","method":"ping"}]"#, json!([1])),
        (r#"[{"jsonrpc":"2.0","method":"notifications/initialized"}]"#, json!([null])),
        (
            r#"[{"id":1,"method":"ping"},{"method":"a"},{"id":"b","method":"ping"},{"id":3}]"#,
            json!([1, "b"]),
        ),
    ] {
        let found = answers(text.as_bytes());
        let of: Vec<&Value> = found.iter().map(|answer| &answer["id"]).collect();
        assert_eq!(json!(of), ids, "{text}");
        assert!(found.iter().all(|answer| answer["error"]["code"] == INVALID), "{found:?}");
    }
    let many: Vec<Value> = (0..1_000).map(|id| json!({"id": id, "method": "ping"})).collect();
    assert_eq!(answers(json!(many).to_string().as_bytes()).len(), 64);
}

#[test]
fn nothing_is_said_to_notifications_answers_and_empty_lines() {
    for text in [
        "",
        "  \t\r",
        r#"{"jsonrpc":"2.0","id":1,"result":7}"#,
        r#"{"id":1,"error":"what?"}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":5}"#,
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{}}"#,
        r#"{"jsonrpc":"2.0","method":"$/setTrace","params":["x"]}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":7,"result":8}"#,
    ] {
        match line::read(text.as_bytes(), Set::All, false) {
            Read::Answers(answers) => assert_eq!(answers, Vec::<Value>::new(), "{text}"),
            Read::Message(message) => {
                assert!(!matches!(*message, JsonRpcMessage::Request(_)), "{text}: {message:?}");
            }
        }
    }
}

#[test]
fn what_can_be_served_goes_on() {
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1.0,"method":"tools/list","params":null}"#,
        "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"tools/list\",\"params\":{}}\r",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","more":1}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"x"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    ] {
        assert!(matches!(line::read(text.as_bytes(), Set::All, false), Read::Message(_)), "{text}");
    }
}

/// Feeds bytes, ends the input, and returns what is written in the end and what reaches rmcp.
async fn pass(input: &[u8]) -> (Vec<Value>, Vec<ClientJsonRpcMessage>) {
    let (mut near, far) = tokio::io::duplex(64 * 1024);
    let (mut wire, output) = open(input, far, Set::All);
    let mut reached = Vec::new();
    let read = async {
        while let Some(message) = wire.receive().await {
            reached.push(message);
        }
        wire.close().await.unwrap();
    };
    let mut text = String::new();
    let all = async {
        let (_, written, _) = tokio::join!(read, output.run(), near.read_to_string(&mut text));
        written.unwrap();
    };
    tokio::time::timeout(Duration::from_secs(60), all).await.unwrap();
    (text.lines().map(|line| serde_json::from_str(line).unwrap()).collect(), reached)
}

#[tokio::test]
async fn a_line_that_is_too_long_is_refused_and_the_next_one_served() {
    let mut input = vec![b'x'; LINE_BYTES_MAX + 1];
    input.extend_from_slice(b"\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n");
    let (said, reached) = pass(&input).await;
    let [said] = said.as_slice() else { panic!("{said:?}") };
    assert_eq!(said["error"]["code"], INVALID);
    assert!(said["error"]["message"].as_str().unwrap().contains("line is over 8388608 bytes"));
    assert_eq!(reached.len(), 1);
    // One of exactly the limit is still read as a whole.
    let (said, _) = pass(&vec![b'x'; LINE_BYTES_MAX]).await;
    assert_eq!(said[0]["error"]["code"], PARSE);
}

#[tokio::test]
async fn the_last_line_needs_no_end_and_every_answer_is_written() {
    let mut input = b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n".to_vec();
    for _ in 0..1_000 {
        input.extend_from_slice(b"noise\n");
    }
    input.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}");
    let (said, reached) = pass(&input).await;
    assert_eq!(said.len(), 1_000);
    // The notification came before any handshake, over which rmcp would end.
    let [JsonRpcMessage::Request(_)] = reached.as_slice() else { panic!("{reached:?}") };
}

#[tokio::test]
async fn what_comes_before_the_handshake_says_what_to_send_first() {
    let (said, reached) = pass(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n").await;
    assert!(reached.is_empty(), "{reached:?}");
    assert_eq!((&said[0]["id"], &said[0]["error"]["code"]), (&json!(1), &json!(PARAMS)));
    let text = said[0]["error"]["message"].as_str().unwrap();
    assert!(text.contains("tools/list came before") && text.contains("initialize"), "{text}");
}
