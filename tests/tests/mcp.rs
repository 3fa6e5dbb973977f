//! `nexus mcp` as clients start it: raw lines of JSON-RPC on its standard input and output, a real
//! node behind it.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "all of this file is a test")]

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Stdio};

use nexus_tests::process::{LIMIT, Node};
use nexus_tests::{command, wait};
use serde_json::{Value, json};

/// A text that must be in no log, whatever is asked of it.
const SECRET: &str = "nobody-logs-this";

/// A running `nexus mcp`, and everything that it has written.
struct Mcp {
    child: Child,
    input: Option<ChildStdin>,
    folder: tempfile::TempDir,
    stateless: bool,
    asked: u64,
    noises: usize,
}

impl Mcp {
    /// Starts it on a node's data folder, and says nothing to it yet; what it would log is logged.
    fn start(node: &Node, stateless: bool, arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir_in(command::scratch()).unwrap();
        let file = |name: &str| std::fs::File::create(folder.path().join(name)).unwrap();
        let mut command = node.command(&["mcp"]);
        command.args(arguments).current_dir(folder.path()).env("NEXUS_LOG", "trace");
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(file("stdout"))
            .stderr(file("stderr"))
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        Self { child, input, folder, stateless, asked: 0, noises: 0 }
    }

    /// Starts it and begins as the wire asks: 2026-07-28 needs no beginning, 2025-11-25 does.
    async fn ready(node: &Node, stateless: bool) -> Self {
        let mut mcp = Self::start(node, stateless, &[]);
        if stateless {
            let found = mcp.ask("server/discover", json!({})).await;
            let versions = found["result"]["supportedVersions"].to_string();
            assert!(versions.contains("2026-07-28"), "{found}");
        } else {
            let hello = json!({
                "protocolVersion": "2025-11-25", "capabilities": {},
                "clientInfo": {"name": "raw", "version": "1"},
            });
            let answer = mcp.ask("initialize", hello).await;
            assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
            mcp.line(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
        }
        mcp
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn line(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Writes a line that is no JSON, and waits for the answer, which can name no id.
    async fn noise(&mut self, line: &str) {
        self.asked += 1;
        self.noises += 1;
        self.line(line);
        wait::until("the answer to a line that is no JSON", LIMIT, async || {
            let of_noise =
                |answer: &Value| answer["id"].is_null() && answer["error"]["code"] == -32700;
            let written = self.written();
            let answers = written.iter().filter(|answer| of_noise(answer)).count();
            if answers == self.noises { Ok(()) } else { Err(format!("{written:?}")) }
        })
        .await;
    }

    /// Sends a request and waits for its answer.
    async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.answer(id).await
    }

    fn send(&mut self, method: &str, mut params: Value) -> u64 {
        self.asked += 1;
        if self.stateless {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        let id = self.asked;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.line(&request.to_string());
        id
    }

    async fn answer(&self, id: u64) -> Value {
        wait::until("an answer of nexus mcp", LIMIT, async || {
            let found = self.written().into_iter().find(|answer| answer["id"] == id);
            found.ok_or_else(|| {
                let said = std::fs::read_to_string(self.path("stderr")).unwrap();
                format!("{:?}; standard error: {said}", self.written())
            })
        })
        .await
    }

    /// Calls a tool and returns its result.
    async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.ask("tools/call", json!({"name": tool, "arguments": arguments})).await;
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    }

    /// Returns every whole line of standard output; each must be JSON-RPC.
    fn written(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path("stdout")).unwrap();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let parse = |line: &str| -> Value {
            let value: Value = serde_json::from_str(line)
                .unwrap_or_else(|error| panic!("{error} on standard output: {line:?}"));
            assert_eq!(value["jsonrpc"], "2.0", "{line}");
            value
        };
        whole.lines().map(parse).collect()
    }

    /// Closes its input, and waits for its good end.
    async fn close(mut self) {
        self.input = None;
        let status = wait::until("the end of nexus mcp", LIMIT, async || {
            self.child.try_wait().unwrap().ok_or("it still runs")
        });
        assert!(status.await.success());
        let log = std::fs::read_to_string(self.path("stderr")).unwrap();
        assert!(!log.contains(SECRET), "a text of a message is in the log: {log}");
        let answered = self.written().len();
        assert_eq!(u64::try_from(answered).unwrap(), self.asked, "{:?}", self.written());
    }
}

impl Drop for Mcp {
    fn drop(&mut self) {
        // After a good end there is nothing left to kill.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}"))
}

async fn both_wires(situation: impl AsyncFn(bool)) {
    for stateless in [false, true] {
        situation(stateless).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_are_listed_before_any_node_was_started() {
    both_wires(async |stateless| {
        let mut node = Node::new("late");
        let mut mcp = Mcp::ready(&node, stateless).await;
        let list = mcp.ask("tools/list", json!({})).await;
        let tools = list["result"]["tools"].as_array().unwrap();
        let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        for name in ["peers", "set_profile", "send_message", "read_messages", "list_events"] {
            assert!(names.contains(&name), "{names:?}");
        }
        // The call waits for its node, which comes.
        let id = mcp.send("tools/call", json!({"name": "list_events", "arguments": {}}));
        node.start(&[]).await;
        let answer = mcp.answer(id).await;
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        mcp.close().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_node_a_call_says_so_in_the_end() {
    let node = Node::new("never");
    let mut mcp = Mcp::ready(&node, false).await;
    let result = mcp.call("send_message", json!({"message": "x"})).await;
    assert_eq!(result["isError"], true);
    let said = text(&result);
    assert!(said.starts_with("node_unreachable: ") && said.contains("nexus up"), "{said}");
    assert!(said.contains("not reachable") && said.contains("nothing was done"), "{said}");
    mcp.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_goes_on_over_a_restart_of_its_node() {
    both_wires(async |stateless| {
        let mut node = Node::found("beside").await;
        let mut mcp = Mcp::ready(&node, stateless).await;
        let mut other = Mcp::start(&node, true, &["--id", "other"]);
        let first = mcp.call("read_messages", json!({})).await;
        assert_eq!(first["structuredContent"]["count"], 0, "{first}");
        let sent = other.call("send_message", json!({"message": SECRET})).await;
        assert_eq!(sent["structuredContent"]["messageId"], 1, "{sent}");
        let same: Value = serde_json::from_str(text(&sent)).unwrap();
        assert_eq!(same, sent["structuredContent"]);

        node.kill();
        let id = mcp.send("tools/call", json!({"name": "read_messages", "arguments": {}}));
        node.start(&[]).await;
        let read = mcp.answer(id).await;
        let read = &read["result"]["structuredContent"];
        assert_eq!((&read["count"], &read["messages"][0]["text"]), (&json!(1), &json!(SECRET)));
        assert_eq!(read["messages"][0]["from"], "other");
        let sent = other.call("send_message", json!({"message": "after"})).await;
        assert_eq!(sent["structuredContent"]["messageId"], 2, "{sent}");
        let read = mcp.call("read_messages", json!({})).await;
        let messages = read["structuredContent"]["messages"].as_array().unwrap();
        let texts: Vec<&Value> = messages.iter().map(|message| &message["text"]).collect();
        assert_eq!(texts, ["after"], "what was read before comes once");
        mcp.close().await;
        other.close().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_are_results_and_never_retried() {
    both_wires(async |stateless| {
        let node = Node::found("strict").await;
        let mut mcp = Mcp::ready(&node, stateless).await;
        let result = mcp.call("send_message", json!({"message": 7})).await;
        assert_eq!(result["isError"], true);
        let said = text(&result);
        let right = "invalid_arguments: send_message: message: ";
        assert!(said.starts_with(right), "{said}");
        // An instance is no conversation, here and on the command line.
        let result = mcp.call("peers", json!({})).await;
        assert!(text(&result).starts_with("unidentified: This call carries no agent session"));
        let typed = node.nexus(&["call", "peers"]).await;
        assert_eq!(typed.code(), 1, "{typed}");
        assert!(typed.stderr.contains("This call carries no agent session"), "{typed}");
        let shown = node.nexus(&["peers"]).await.good();
        assert!(shown.stdout.contains("no conversations"), "{shown}");
        let unknown = json!({"name": "send_mesage", "arguments": {}});
        let answer = mcp.ask("tools/call", unknown).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        let answer = mcp.ask("tools/nothing", json!({})).await;
        assert_eq!(answer["error"]["code"], -32601, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("this server has"));
        // Lines that are no request are answered so, change nothing and end nothing.
        mcp.line("");
        for line in ["not json", "[1, 2", "\u{1b}[31m"] {
            mcp.noise(line).await;
        }
        // Another token: the node is there, and says no.
        let token = node.data().join("token");
        let right = std::fs::read(&token).unwrap();
        std::fs::write(&token, "wrong").unwrap();
        let result = mcp.call("send_message", json!({"message": "x"})).await;
        assert_eq!(result["isError"], true);
        assert!(text(&result).starts_with("unauthorized: "), "{result}");
        std::fs::write(&token, right).unwrap();
        let result = mcp.call("send_message", json!({"message": "x"})).await;
        assert_eq!(result["structuredContent"]["messageId"], 1, "{result}");
        mcp.close().await;
    })
    .await;
}
