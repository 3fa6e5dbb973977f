//! `/mcp`: MCP over Streamable HTTP on every node, without sessions, on both wires.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "all of this file is a test")]

use std::io::Write as _;
use std::process::Stdio;

use nexus_tests::command;
use nexus_tests::process::{LIMIT, Node, Setup, every_role, text, three_voters};
use nexus_tests::wait;
use reqwest::header::{HOST, ORIGIN};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

/// The two generations of the protocol.
const WIRES: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// A client of one node; it keeps nothing but a request id.
struct Client<'a> {
    node: &'a Node,
    wire: &'a str,
    query: &'a str,
}

impl<'a> Client<'a> {
    fn new(node: &'a Node, wire: &'a str) -> Self {
        Self { node, wire, query: "" }
    }

    /// One that its user gave a name.
    fn named(node: &'a Node, wire: &'a str) -> Self {
        Self { node, wire, query: "?instance=roamer" }
    }

    fn is_stateless(&self) -> bool {
        self.wire == "2026-07-28"
    }

    fn post(&self, body: impl Into<reqwest::Body>) -> reqwest::RequestBuilder {
        let http = self.node.http();
        http.client()
            .post(format!("{}/mcp{}", http.url(), self.query))
            .bearer_auth(http.token())
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", self.wire)
            .body(body)
    }

    fn request(&self, method: &str, mut params: Value) -> reqwest::RequestBuilder {
        if self.is_stateless() {
            let meta = json!({
                "io.modelcontextprotocol/protocolVersion": self.wire,
                "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            });
            let given = params["_meta"].as_object().cloned().unwrap_or_default();
            params["_meta"] = meta;
            params["_meta"].as_object_mut().unwrap().extend(given);
        }
        let name = params["name"].as_str().or(params["uri"].as_str()).unwrap_or_default();
        let name = name.to_owned();
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        let request = self.post(body.to_string());
        if self.is_stateless() {
            let request = request.header("mcp-method", method);
            return if name.is_empty() { request } else { request.header("mcp-name", name) };
        }
        request
    }

    async fn ask(&self, method: &str, params: Value) -> Value {
        let answer = read(self.request(method, params)).await.1;
        assert_eq!(answer["id"], 7, "{answer}");
        answer
    }

    async fn call(&self, tool: &str, arguments: Value, meta: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
        let answer = self.ask("tools/call", params).await;
        assert!(answer["error"].is_null(), "{answer}");
        answer["result"].clone()
    }

    /// Posts a message, and returns its id in the chat.
    async fn say(&self, message: &str, meta: Value) -> u64 {
        let result = self.call("send_message", json!({"message": message}), meta).await;
        let id = result["structuredContent"]["messageId"].as_u64();
        id.unwrap_or_else(|| panic!("{result}"))
    }
}

/// Replaces a header of a request.
fn instead(
    request: reqwest::RequestBuilder,
    name: &'static str,
    value: &'static str,
) -> reqwest::RequestBuilder {
    let mut headers = reqwest::header::HeaderMap::new();
    headers.insert(name, value.parse().unwrap());
    request.headers(headers)
}

async fn read(request: reqwest::RequestBuilder) -> (u16, Value) {
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    let body = response.text().await.unwrap();
    if body.is_empty() {
        return (status, Value::Null);
    }
    (status, serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}")))
}

fn said(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn any_request_may_go_to_any_node() {
    let [leader, mut follower, other, learner] =
        every_role(["lead", "follow", "third", "learn"]).await;
    // It reads what comes from now on.
    Client::named(&other, WIRES[1]).call("read_messages", json!({}), json!({})).await;
    let mut sent = 0;
    for wire in WIRES {
        for node in [&leader, &follower, &other, &learner] {
            let client = Client::new(node, wire);
            let begun = if client.is_stateless() {
                let found = client.ask("server/discover", json!({})).await;
                let versions = found["result"]["supportedVersions"].to_string();
                assert!(WIRES.iter().all(|wire| versions.contains(wire)), "{found}");
                found
            } else {
                let hello = json!({
                    "protocolVersion": wire, "capabilities": {},
                    "clientInfo": {"name": "raw", "version": "1"},
                });
                let request = client.request("initialize", hello);
                let response = request.send().await.unwrap();
                assert!(response.headers().get("mcp-session-id").is_none());
                let answer: Value = response.json().await.unwrap();
                assert_eq!(answer["result"]["protocolVersion"], wire, "{answer}");
                let body = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
                assert_eq!(read(client.post(body)).await, (202, Value::Null));
                answer
            };
            let info = "io.modelcontextprotocol/serverInfo";
            let result = &begun["result"];
            let own =
                if client.is_stateless() { &result["_meta"][info] } else { &result["serverInfo"] };
            assert_eq!(own["name"], "n2n-nexus", "{begun}");
            let list = client.ask("tools/list", json!({})).await;
            let listed = node.http().get("/api/tools").await.unwrap();
            assert_eq!(list["result"]["tools"], listed["tools"], "{}", node.name());
            // A session of another server is nothing to this one.
            let call = json!({"name": "send_message", "arguments": {"message": "hello"}});
            let request = client.request("tools/call", call);
            let (status, answer) = read(request.header("mcp-session-id", "stale")).await;
            sent += 1;
            assert_eq!((status, &answer["result"]["isError"]), (200, &json!(false)), "{answer}");
            assert_eq!(answer["result"]["structuredContent"]["messageId"], sent, "{answer}");
            let same: Value = serde_json::from_str(said(&answer["result"])).unwrap();
            assert_eq!(same, answer["result"]["structuredContent"]);
        }
    }
    // One instance goes from node to node, and reads on where it was.
    let mut seen = Vec::new();
    for (node, wire) in [(&leader, WIRES[0]), (&learner, WIRES[1]), (&follower, WIRES[0])] {
        let roamer = Client::named(node, wire);
        let result = roamer.call("read_messages", json!({"count": 3}), json!({})).await;
        let messages = result["structuredContent"]["messages"].as_array().unwrap();
        seen.extend(messages.iter().map(|message| message["id"].as_u64().unwrap()));
    }
    assert_eq!(seen, [1, 2, 3, 4, 5, 6, 7, 8]);
    // A node that comes back needs no new beginning.
    follower.kill();
    follower.start(&[]).await;
    for wire in WIRES {
        sent += 1;
        let id = Client::named(&follower, wire).say("after the restart", json!({})).await;
        assert_eq!(id, sent);
    }
    let history = leader.http().history().await.unwrap();
    let from: Vec<String> = history.iter().map(|message| text(&message["from"])).collect();
    assert_eq!(from[8..], ["roamer", "roamer"]);
    assert!(from[..4].iter().all(|from| from.starts_with("mcp-http-client-n")), "{from:?}");
    assert!(from[4..8].iter().all(|from| from.starts_with("mcp-http-raw-n")), "{from:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_team_keeps_is_there_as_resources() {
    let [leader, follower, _third] = three_voters(["lead", "follow", "third"]).await;
    let list = async |client: &Client<'_>| {
        let listed = client.ask("resources/list", json!({})).await;
        let all = listed["result"]["resources"].as_array().unwrap().clone();
        all.iter().map(|resource| text(&resource["uri"])).collect::<Vec<String>>()
    };
    for wire in WIRES {
        let client = Client::named(&follower, wire);
        let id = format!("plan-{wire}");
        let uri = format!("nexus://documents/{id}");
        assert!(!list(&client).await.contains(&uri));
        let document = json!({"docId": id, "title": "The plan", "content": "# Plan\n\nÄ"});
        let made = Client::new(&leader, wire).call("sync_global_doc", document, json!({})).await;
        assert_eq!(made["isError"], false, "{made}");
        // Who looks elsewhere at once sees it.
        let uris = list(&client).await;
        assert_eq!((&uris[0], &uris[1]), (&"nexus://strategy".to_owned(), &uri));
        let read = client.ask("resources/read", json!({"uri": uri})).await;
        let contents = &read["result"]["contents"][0];
        assert_eq!(contents["text"], "# Plan\n\nÄ", "{read}");
        assert_eq!(
            (&contents["uri"], &contents["mimeType"]),
            (&json!(uri), &json!("text/markdown"))
        );
        assert_eq!(contents["_meta"]["nexus/title"], "The plan", "{read}");
        let empty = client.ask("resources/read", json!({"uri": "nexus://strategy"})).await;
        assert_eq!(empty["result"]["contents"][0]["text"], "", "{empty}");
        for (uri, words) in [
            ("nexus://documents/none", "none"),
            ("nexus://documents/", "resources/list"),
            ("file:///etc/passwd", "resources/list"),
        ] {
            let answer = client.ask("resources/read", json!({"uri": uri})).await;
            let right = if client.is_stateless() { -32602 } else { -32002 };
            assert_eq!(answer["error"]["code"], right, "{answer}");
            assert!(answer["error"]["message"].as_str().unwrap().contains(words), "{answer}");
        }
        let wrong = json!({"uri": "nexus://documents/a%2Fb"});
        let answer = client.ask("resources/read", wrong).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("docId"), "{answer}");
        // Projects follow the documents.
        let project = format!("web_{}", wire.replace('-', "_"));
        let mut manifest = nexus_contract::testing::manifest();
        manifest["id"] = json!(project);
        let arguments = json!({"manifest": manifest, "internalDocs": "# Notes"});
        let made = client.call("sync_project_assets", arguments, json!({})).await;
        assert_eq!(made["isError"], false, "{made}");
        let listed = client.ask("resources/list", json!({"cursor": "projects"})).await;
        let uri = format!("nexus://projects/{project}");
        let resources = listed["result"]["resources"].as_array().unwrap();
        assert!(resources.iter().any(|resource| resource["uri"] == uri), "{listed}");
        let read = client.ask("resources/read", json!({"uri": uri})).await;
        let read = text(&read["result"]["contents"][0]["text"]);
        let read: Value = serde_json::from_str(&read).unwrap();
        assert_eq!(
            (&read["manifest"]["id"], &read["internalDocs"]),
            (&json!(project), &json!("# Notes"))
        );
        let prompt = client.ask("prompts/get", json!({"name": "use-nexus"})).await;
        let said = &prompt["result"]["messages"][0]["content"]["text"];
        assert!(said.as_str().unwrap().contains("send_message"), "{prompt}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_ask_is_told_so() {
    let node = Node::found("guarded").await;
    let client = Client::new(&node, WIRES[1]);
    let list = || client.request("tools/list", json!({}));
    for (request, code, status) in [
        (list().header(HOST, "evil.example"), "foreign_host", 421),
        (list().header(ORIGIN, "http://evil.example"), "foreign_origin", 403),
        (list().header(ORIGIN, "null"), "foreign_origin", 403),
    ] {
        let (found, body) = read(request).await;
        assert_eq!((found, body["code"].as_str()), (status, Some(code)), "{body}");
    }
    let http = node.http();
    let bare = http.client().post(format!("{}/mcp", http.url()));
    let response = bare.json(&json!({})).send().await.unwrap();
    assert_eq!(response.status(), 401);
    assert_eq!(response.headers()["www-authenticate"], "Bearer");
    for method in [reqwest::Method::GET, reqwest::Method::DELETE] {
        let request = http.client().request(method.clone(), format!("{}/mcp", http.url()));
        let request = request.bearer_auth(http.token()).header("content-type", "application/json");
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 405, "{method}");
        assert_eq!(response.headers()["allow"], "POST", "{method}");
    }
    // By address and by the names that every node has.
    let port = http.url().rsplit(':').next().unwrap();
    for host in [format!("localhost:{port}"), format!("10.1.2.3:{port}")] {
        assert_eq!(read(list().header(HOST, host)).await.0, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_is_answered_as_over_standard_input() {
    let node = Node::found("strict").await;
    let completion = json!({
        "jsonrpc": "2.0", "id": 11, "method": "completion/complete",
        "params": {
            "ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "a", "value": "b"},
        },
    });
    let completion = completion.to_string();
    let lines = [
        "not json",
        "[1, 2",
        "7",
        "{}",
        r#"{"id":1,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":3}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/nothing"}"#,
        r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"x","name":"y"}}"#,
        r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{}}"#,
        r#"{"jsonrpc":"2.0","id":10,"method":"tools/call","params":{"name":"launch"}}"#,
        completion.as_str(),
        r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]"#,
    ];
    let folder = tempfile::tempdir_in(command::scratch()).unwrap();
    let path = folder.path().join("stdout");
    let mut command = node.command(&["mcp"]);
    command.stdin(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.stdout(std::fs::File::create(&path).unwrap()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let hello = json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "raw", "version": "1"},
        },
    });
    writeln!(input, "{hello}").unwrap();
    for line in lines {
        writeln!(input, "{line}").unwrap();
    }
    // Each line has one answer, the batch has two, and so has the handshake its own.
    let written = wait::until("every answer over standard output", LIMIT, async || {
        let written = std::fs::read_to_string(&path).unwrap();
        let whole = written.matches('\n').count();
        if whole == lines.len() + 2 { Ok(written) } else { Err(written) }
    });
    let written = written.await;
    drop(input);
    child.wait().unwrap();
    let parsed = written.lines().map(|line| serde_json::from_str(line).unwrap());
    let near: Vec<Value> = parsed.filter(|answer: &Value| answer["id"] != 0).collect();
    let client = Client::new(&node, WIRES[0]);
    let mut far = Vec::new();
    for line in lines {
        let (status, answer) = read(client.post(line.to_owned())).await;
        assert!(matches!(status, 200 | 400), "{line}: {status}");
        match answer.as_array() {
            Some(answers) => far.extend(answers.iter().cloned()),
            None => far.push(answer),
        }
    }
    // rmcp answers out of order.
    let sorted = |mut answers: Vec<Value>| {
        answers.sort_by_key(Value::to_string);
        answers
    };
    assert_eq!(sorted(far), sorted(near));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_standard_input_has_no_words_for_has_some() {
    let node = Node::found("strict").await;
    let client = Client::new(&node, WIRES[0]);
    let stateless = Client::new(&node, WIRES[1]);
    let unknown = r#"{"jsonrpc":"2.0","id":7,"method":"tools/nothing"}"#;
    for (request, status, words) in [
        (client.post(""), 400, "the body is empty"),
        (client.post(vec![b' '; 6 * 1024 * 1024 + 1]), 413, "message is over 6291456 bytes"),
        (client.post("[".repeat(10_000)), 400, "recursion limit"),
        (stateless.request("initialize", json!({})), 404, "method not found: initialize;"),
        (stateless.post(unknown), 404, "method not found: tools/nothing; this server has"),
        (instead(client.request("ping", json!({})), "accept", "text/html"), 406, "Not Acceptable"),
        (
            instead(client.request("ping", json!({})), "mcp-protocol-version", "1999-01-01"),
            400,
            "Unsupported MCP-Protocol-Version",
        ),
    ] {
        let (found, answer) = read(request).await;
        let said = answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{answer}"));
        assert_eq!(found, status, "{said}");
        assert!(said.contains(words), "{said}");
    }
    assert!(node.http().history().await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_with_an_id_has_one_effect() {
    let node = Node::found("once").await;
    for (wire, at) in WIRES.into_iter().zip([1, 3]) {
        let client = Client::new(&node, wire);
        let key = json!({"idempotencyKey": format!("key-{wire}")});
        assert_eq!(client.say("once", key.clone()).await, at);
        assert_eq!(client.say("once", key.clone()).await, at);
        // Without an id, twice is meant.
        assert_eq!(client.say("once", json!({})).await, at + 1);
        let other = client.call("send_message", json!({"message": "other"}), key).await;
        assert!(said(&other).starts_with("conflict: "), "{other}");
        for wrong in [json!(7), json!(""), json!("a\nb"), json!("x".repeat(300))] {
            let meta = json!({"idempotencyKey": wrong});
            let refused = client.call("send_message", json!({"message": "x"}), meta).await;
            let words = "invalid_arguments: send_message: _meta.idempotencyKey";
            assert!(said(&refused).starts_with(words), "{refused}");
        }
        let meta = json!({"instanceId": "a/b"});
        let refused = client.call("send_message", json!({"message": "x"}), meta).await;
        let words = "invalid_arguments: send_message: _meta.instanceId";
        assert!(said(&refused).starts_with(words), "{refused}");
        // Codex names its conversation and its call, on this wire too.
        let codex = json!({"sessionId": "s-1", "callId": format!("c-{wire}")});
        let result = client.call("peers", json!({}), codex).await;
        assert_eq!(result["structuredContent"]["self"]["id"], "codex:s-1", "{result}");
    }
    let history = node.http().history().await.unwrap();
    assert_eq!(history.len(), 4, "{history:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_identical_call_takes_over_what_was_lost() {
    let [leader, second, third] = three_voters(["lead", "second", "third"]).await;
    let client = Client::named(&leader, WIRES[0]);
    assert_eq!(client.say("first", json!({})).await, 1);
    let last = async || {
        let http = leader.http();
        let metrics = http.client().get(format!("{}/metrics", http.url()));
        let text = metrics.bearer_auth(http.token()).send().await.unwrap().text().await.unwrap();
        let line = text.lines().find(|line| line.starts_with("nexus_log_last_index"));
        line.unwrap_or_else(|| panic!("{text}")).to_owned()
    };
    // The write reaches the leader's log and cannot be agreed on, so that its client gives up.
    second.freeze();
    third.freeze();
    let before = last().await;
    let call = json!({"name": "send_message", "arguments": {"message": "lost"}});
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": call});
    let body = body.to_string();
    let http = leader.http();
    let host = http.url().strip_prefix("http://").unwrap();
    let head = format!(
        "POST /mcp?instance=roamer HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\naccept: application/json, text/event-stream\r\n\
         mcp-protocol-version: 2025-11-25\r\ncontent-length: {}\r\n\r\n{body}",
        http.token(),
        body.len()
    );
    let mut socket = tokio::net::TcpStream::connect(host).await.unwrap();
    socket.write_all(head.as_bytes()).await.unwrap();
    wait::until("the write in the leader's log", LIMIT, async || {
        let now = last().await;
        if now == before { Err(now) } else { Ok(()) }
    })
    .await;
    drop(socket);
    wait::until("the leader's word that the answer was lost", LIMIT, async || {
        let log = leader.log();
        if log.contains("the answer to a call was lost") { Ok(()) } else { Err(log) }
    })
    .await;
    second.thaw();
    third.thaw();
    wait::until("the same call again", LIMIT, async || {
        let result = client.call("send_message", json!({"message": "lost"}), json!({})).await;
        if result["isError"] == false { Ok(()) } else { Err(result.to_string()) }
    })
    .await;
    let texts = async || -> Vec<String> {
        let history = leader.http().history().await.unwrap();
        history.iter().map(|message| text(&message["text"])).collect()
    };
    assert_eq!(texts().await, ["first", "lost"]);
    // It was taken over once; from now on twice is meant.
    client.say("lost", json!({})).await;
    client.say("lost", json!({})).await;
    assert_eq!(texts().await, ["first", "lost", "lost", "lost"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_settings_choose_the_tools() {
    let settings = json!({"tools": "core", "rateLimit": 1, "rateBurst": 2});
    let mut node = Node::with("short", Setup { settings, ..Setup::default() });
    node.start(&[]).await;
    for wire in WIRES {
        let client = Client { node: &node, wire, query: &format!("?instance=in-{wire}") };
        let list = client.ask("tools/list", json!({})).await;
        let tools = list["result"]["tools"].to_string();
        assert!(tools.contains("\"send_message\"") && !tools.contains("\"list_events\""));
        let answer = client.ask("tools/call", json!({"name": "list_events"})).await;
        let words = answer["error"]["message"].as_str().unwrap();
        assert!(words.contains("not in the set \"core\""), "{answer}");
        // The limits of calls hold here too, a bucket for each caller.
        let mut refused = None;
        for _ in 0..200 {
            let result = client.call("send_message", json!({"message": "x"}), json!({})).await;
            if result["isError"] == true {
                refused = Some(result);
                break;
            }
        }
        let refused = refused.expect("one of 200 calls is too many");
        assert_eq!(said(&refused), "rate_limited: retry after 1s");
    }
    let listed = node.nexus(&["call", "list_events", "{}"]).await;
    assert_eq!(listed.code(), 0, "what a script calls by HTTP has every tool: {listed}");
}
