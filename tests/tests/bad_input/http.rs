//! Requests that no client should send, and verbs that nobody should type.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use nexus_tests::call::{Failed, Http};
use serde_json::{Value, json};

use super::{Intact, refused};

/// One bad request: what is sent, and how it must be answered.
struct Case {
    name: &'static str,
    request: fn(&Http) -> reqwest::RequestBuilder,
    status: u16,
    code: &'static str,
    words: &'static [&'static str],
}

fn post(http: &Http, body: impl Into<reqwest::Body>) -> reqwest::RequestBuilder {
    let request = http.client().post(format!("{}/api/tools/call", http.url()));
    let request = request.bearer_auth(http.token()).header("content-type", "application/json");
    request.body(body)
}

fn tool(http: &Http, call: &Value) -> reqwest::RequestBuilder {
    post(http, call.to_string())
}

fn send(http: &Http, args: &Value) -> reqwest::RequestBuilder {
    tool(http, &json!({"tool": "send_message", "instanceId": "writer", "args": args}))
}

fn get(http: &Http, path: &str) -> reqwest::RequestBuilder {
    http.client().get(format!("{}{path}", http.url()))
}

const BODIES: &[Case] = &[
    Case {
        name: "no JSON",
        request: |http| post(http, "{\"tool\": \"send_message\", "),
        status: 400,
        code: "bad_request",
        words: &["is not JSON", "line 1 column"],
    },
    Case {
        name: "an empty body",
        request: |http| post(http, ""),
        status: 400,
        code: "bad_request",
        words: &["tool"],
    },
    Case {
        name: "a list for a call",
        request: |http| post(http, "[]"),
        status: 400,
        code: "bad_request",
        words: &["does not fit", "\"tool\": NAME"],
    },
    Case {
        name: "a caller that is none",
        request: |http| {
            let call = json!({
                "tool": "send_message", "caller": "junk", "args": {"message": "x"}
            });
            tool(http, &call)
        },
        status: 400,
        code: "bad_request",
        words: &["caller: is the string \"junk\"; give an object"],
    },
    Case {
        name: "an instance id that is a number",
        request: |http| {
            let call = json!({"tool": "send_message", "instanceId": 7, "args": {"message": "x"}});
            tool(http, &call)
        },
        status: 400,
        code: "bad_request",
        words: &["instanceId: is 7; give a string"],
    },
    Case {
        name: "bytes that are no text",
        request: |http| post(http, vec![0xff, 0xfe, 0x00, 0x80]),
        status: 400,
        code: "bad_request",
        words: &["is not JSON"],
    },
    Case {
        name: "lists in lists without end",
        request: |http| post(http, format!("{{\"args\": {}", "[".repeat(200_000))),
        status: 400,
        code: "bad_request",
        words: &["recursion limit"],
    },
    Case {
        name: "a key that stands twice",
        request: |http| {
            let args = r#"{"message": "x", "message": "y"}"#;
            let call = r#"{"tool": "send_message", "instanceId": "writer", "args": "#;
            post(http, format!("{call}{args}}}"))
        },
        status: 400,
        code: "bad_request",
        words: &["has the key \"message\" twice", "give each key once"],
    },
    Case {
        name: "a body over the limit",
        request: |http| send(http, &json!({"message": "x".repeat(7 << 20)})),
        status: 413,
        code: "too_large",
        words: &["6291456 bytes", "send less"],
    },
    Case {
        name: "another content type",
        request: |http| {
            let request = http.client().post(format!("{}/api/tools/call", http.url()));
            request.bearer_auth(http.token()).header("content-type", "text/plain").body("{}")
        },
        status: 400,
        code: "bad_request",
        words: &["Content-Type", "application/json"],
    },
];

const ARGUMENTS: &[Case] = &[
    Case {
        name: "a tool that does not exist",
        request: |http| tool(http, &json!({"tool": "send_mesage", "args": {}})),
        status: 404,
        code: "unknown_tool",
        words: &["send_mesage"],
    },
    Case {
        name: "a missing field",
        request: |http| send(http, &json!({})),
        status: 400,
        code: "invalid_arguments",
        words: &["Invalid arguments for send_message: ", "message"],
    },
    Case {
        name: "a field of the wrong type",
        request: |http| send(http, &json!({"message": 7})),
        status: 400,
        code: "invalid_arguments",
        words: &["message: is 7", "string"],
    },
    Case {
        name: "arguments that are no object",
        request: |http| send(http, &json!(["kept"])),
        status: 400,
        code: "invalid_arguments",
        words: &["Invalid arguments for send_message", "object"],
    },
    Case {
        name: "an empty text",
        request: |http| send(http, &json!({"message": ""})),
        status: 400,
        code: "invalid_arguments",
        words: &["message: "],
    },
    Case {
        name: "a text of white space",
        request: |http| send(http, &json!({"message": " \t\n"})),
        status: 400,
        code: "invalid_arguments",
        words: &["message: is only white space", "that says something"],
    },
    Case {
        name: "a text with control characters",
        request: |http| send(http, &json!({"message": "a\u{0}b"})),
        status: 400,
        code: "invalid_arguments",
        words: &["message: has the control character U+0000 in it"],
    },
    Case {
        name: "a request id with control characters",
        request: |http| {
            let args = json!({"message": "x"});
            let call = json!({
                "tool": "send_message", "instanceId": "writer", "requestId": "a\u{7}", "args": args
            });
            tool(http, &call)
        },
        status: 400,
        code: "invalid_arguments",
        words: &["requestId: has the control character U+0007 in it"],
    },
    Case {
        name: "an instance that wants to be a peer",
        request: |http| tool(http, &json!({"tool": "peers", "instanceId": "cli-writer"})),
        status: 403,
        code: "unidentified",
        words: &["no agent session", "nexus peers"],
    },
    Case {
        name: "a text that is too long",
        request: |http| send(http, &json!({"message": "x".repeat(32_001)})),
        status: 400,
        code: "invalid_arguments",
        words: &["message: ", "32000"],
    },
    Case {
        name: "a word that is none of the choices",
        request: |http| send(http, &json!({"message": "x", "category": "SHOUT"})),
        status: 400,
        code: "invalid_arguments",
        words: &["category: ", "PROPOSAL"],
    },
    Case {
        name: "a number out of range",
        request: |http| {
            let args = json!({"count": 100_000});
            tool(http, &json!({"tool": "read_messages", "instanceId": "writer", "args": args}))
        },
        status: 400,
        code: "invalid_arguments",
        words: &["count: ", "500"],
    },
    Case {
        name: "two fields that are wrong",
        request: |http| {
            let args = json!({"count": 0, "afterId": -1});
            tool(http, &json!({"tool": "read_messages", "instanceId": "writer", "args": args}))
        },
        status: 400,
        code: "invalid_arguments",
        words: &["count: ", "afterId: "],
    },
    Case {
        name: "a meeting that does not exist",
        request: |http| send(http, &json!({"message": "x", "meetingId": "m-1"})),
        status: 404,
        code: "not_found",
        words: &["meetingId: meeting m-1 does not exist", "list_meetings"],
    },
    Case {
        name: "an instance that passes for a conversation",
        request: |http| {
            let args = json!({"message": "x"});
            tool(http, &json!({"tool": "send_message", "instanceId": "codex:1", "args": args}))
        },
        status: 400,
        code: "invalid_arguments",
        words: &["instanceId: "],
    },
    Case {
        name: "nobody who writes",
        request: |http| tool(http, &json!({"tool": "send_message", "args": {"message": "x"}})),
        status: 403,
        code: "unidentified",
        words: &["instanceId"],
    },
    Case {
        name: "a request id that is too long",
        request: |http| {
            let id = "i".repeat(201);
            let args = json!({"message": "x"});
            tool(
                http,
                &json!({
                    "tool": "send_message", "instanceId": "writer", "requestId": id, "args": args
                }),
            )
        },
        status: 400,
        code: "invalid_arguments",
        words: &["requestId: ", "200"],
    },
];

const CALLERS: &[Case] = &[
    Case {
        name: "no token",
        request: |http| get(http, "/api/cluster"),
        status: 401,
        code: "unauthorized",
        words: &["token is missing", "Authorization: Bearer"],
    },
    Case {
        name: "a wrong token",
        request: |http| get(http, "/api/cluster").bearer_auth("0".repeat(64)),
        status: 401,
        code: "unauthorized",
        words: &["token is wrong"],
    },
    Case {
        name: "a token of another kind",
        request: |http| get(http, "/api/cluster").basic_auth("user", Some("password")),
        status: 401,
        code: "unauthorized",
        words: &["bearer token"],
    },
    Case {
        name: "a foreign Host",
        request: |http| {
            let request = get(http, "/api/cluster").bearer_auth(http.token());
            request.header("host", "evil.example")
        },
        status: 421,
        code: "foreign_host",
        words: &["evil.example", "allowedHosts"],
    },
    Case {
        name: "a foreign Origin",
        request: |http| {
            let request = get(http, "/api/cluster").bearer_auth(http.token());
            request.header("origin", "https://evil.example")
        },
        status: 403,
        code: "foreign_origin",
        words: &["Origin", "not from a web page"],
    },
    Case {
        name: "a path that is not served",
        request: |http| get(http, "/api/nothing").bearer_auth(http.token()),
        status: 404,
        code: "not_found",
        words: &["/api/nothing", "/api/tools/call"],
    },
    Case {
        name: "a method that the path does not take",
        request: |http| get(http, "/api/tools/call").bearer_auth(http.token()),
        status: 405,
        code: "method_not_allowed",
        words: &["GET"],
    },
    Case {
        name: "an invite for no time at all",
        request: |http| {
            let request = http.client().post(format!("{}/api/invites", http.url()));
            request.bearer_auth(http.token()).json(&json!({"ttlSeconds": 0}))
        },
        status: 400,
        code: "invalid_arguments",
        words: &["ttlSeconds: "],
    },
    Case {
        name: "an invite for a role that does not exist",
        request: |http| {
            let request = http.client().post(format!("{}/api/invites", http.url()));
            request.bearer_auth(http.token()).json(&json!({"role": "king"}))
        },
        status: 400,
        code: "bad_request",
        words: &["king", "voter"],
    },
    Case {
        name: "an invite for no number of seconds",
        request: |http| {
            let request = http.client().post(format!("{}/api/invites", http.url()));
            request.bearer_auth(http.token()).json(&json!({"ttlSeconds": "1h"}))
        },
        status: 400,
        code: "bad_request",
        words: &["ttlSeconds: is the string \"1h\"; give an integer"],
    },
    Case {
        name: "a path that is too long",
        request: |http| {
            get(http, &format!("/api/{}", "x".repeat(20_000))).bearer_auth(http.token())
        },
        status: 414,
        code: "uri_too_long",
        words: &["4096 bytes", "body of a POST"],
    },
    Case {
        name: "a member's name that is no text",
        request: |http| {
            let request = http.client().delete(format!("{}/api/members/%ff%fe", http.url()));
            request.bearer_auth(http.token())
        },
        status: 400,
        code: "bad_request",
        words: &["member's name", "percent-encoded"],
    },
    Case {
        name: "peers of no kind",
        request: |http| get(http, "/api/peers?includeOffline=maybe").bearer_auth(http.token()),
        status: 400,
        code: "bad_request",
        words: &["includeOffline", "true or false"],
    },
    Case {
        name: "digests at an index, which is not asked for so",
        request: |http| get(http, "/api/digest?index=zz").bearer_auth(http.token()),
        status: 400,
        code: "bad_request",
        words: &["index ", "wait=INDEX"],
    },
    Case {
        name: "digests after something that is no index",
        request: |http| get(http, "/api/digest?wait=zz").bearer_auth(http.token()),
        status: 400,
        code: "bad_request",
        words: &["wait ", "whole number"],
    },
    Case {
        name: "a member that does not exist",
        request: |http| {
            let request = http.client().delete(format!("{}/api/members/nobody", http.url()));
            request.bearer_auth(http.token())
        },
        status: 404,
        code: "not_found",
        words: &["nobody", "intact"],
    },
];

#[tokio::test(flavor = "multi_thread")]
async fn bad_requests_are_refused_in_words_and_change_nothing() {
    let mut intact = Intact::new().await;
    for case in BODIES.iter().chain(ARGUMENTS).chain(CALLERS) {
        let http = intact.node.http();
        let answer = http.send((case.request)(http)).await;
        let Err(Failed::Refused { status, body }) = &answer else {
            panic!("{}: {answer:?}", case.name);
        };
        assert_eq!(
            (*status, body["code"].as_str(), &body["ok"]),
            (case.status, Some(case.code), &json!(false)),
            "{}: {body}",
            case.name
        );
        let error = body["error"].as_str().unwrap();
        for word in case.words {
            assert!(error.contains(word), "{}: {word:?} is not in {error:?}", case.name);
        }
        for word in ["struct ", "enum ", "expected a ", "`tool`", "u64"] {
            assert!(!error.contains(word), "{}: {word:?} is in {error:?}", case.name);
        }
        assert!(!error.contains(&intact.node.http().token()), "{}: {error}", case.name);
        intact.check(case.name).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_are_no_http_leave_the_node_alone() {
    let mut intact = Intact::new().await;
    let address = intact.node.http().url().strip_prefix("http://").unwrap().to_owned();
    for (name, bytes) in [
        ("noise", vec![0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03]),
        ("a line without an end", vec![b'a'; 1 << 20]),
        (
            "a header without an end",
            [b"GET / HTTP/1.1\r\nx: ".to_vec(), vec![b'a'; 1 << 20]].concat(),
        ),
        (
            "a length that lies",
            b"POST /api/tools/call HTTP/1.1\r\ncontent-length: 99999999999999999999\r\n\r\n"
                .to_vec(),
        ),
        ("nothing", Vec::new()),
    ] {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        // The node may hang up while these are still on their way.
        stream.write_all(&bytes).ok();
        stream.shutdown(std::net::Shutdown::Write).ok();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok();
        let said = String::from_utf8_lossy(&answer);
        assert!(!said.starts_with("HTTP/1.1 2"), "{name}: {said}");
        intact.check(name).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn verbs_say_what_is_wrong_on_standard_error() {
    let mut intact = Intact::new().await;
    for (arguments, code, words) in [
        (&["call", "send_message", "{"][..], 2, &["argument is not JSON", "give an object"][..]),
        (&["call", "send_mesage", "{}"], 1, &["send_mesage", "unknown_tool"]),
        (&["call", "send_message", "{}"], 1, &["Invalid arguments for send_message: message"]),
        (&["node", "remove", "nobody"], 1, &["\"nobody\" does not exist", "intact"]),
        (&["invite", "withdraw", "zzzzzz"], 1, &["zzzzzz"]),
        (&["invite", "withdraw", "../x"], 2, &["nexus invite list"]),
        (&["invite", "--ttl", "1y"], 2, &["--ttl", "1h"]),
        (&["invite", "--voter", "--learner"], 2, &["--voter", "--learner"]),
        (&["statsu"], 2, &["statsu", "status"]),
    ] {
        let ended = intact.node.nexus(arguments).await;
        refused(&ended, code, words);
        intact.check(&arguments.join(" ")).await;
    }
    let broken = intact.node.command(&["status"]).env("NEXUS_TOKEN", "a\nb").output().unwrap();
    assert_eq!(broken.status.code(), Some(2), "{broken:?}");
    assert!(String::from_utf8_lossy(&broken.stderr).contains("NEXUS_TOKEN"), "{broken:?}");
    let wrong = intact.node.command(&["status"]).env("NEXUS_TOKEN", "wrong").output().unwrap();
    let said = String::from_utf8_lossy(&wrong.stderr);
    assert_eq!(wrong.status.code(), Some(1), "{said}");
    assert!(said.contains("token is wrong"), "{said}");
    let ended = intact.node.nexus(&["call", "send_message", "{}", "--json"]).await;
    assert_eq!((ended.code(), &ended.json()["code"]), (1, &json!("invalid_arguments")));
    intact.check("json errors").await;
}
