//! What the adapter's tests stand on: a node's HTTP face with scripted answers, and a client that
//! writes and reads raw JSON-RPC lines.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use nexus_adapter::EndpointSource;
use nexus_adapter::stdio::{self, Options};
use nexus_contract::catalog::Set;
use nexus_contract::{ApiError, ErrorCode};
use nexus_rt::Jobs;
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};
use tokio::net::TcpListener;
use tokio::sync::Notify;

/// How long any wait of a test may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);
/// The token of the test's data folder.
pub(crate) const TOKEN: &str = "right-token";

/// What the node does with the next call; the last one is done for ever.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Answers with this result.
    Result(Value),
    /// Answers with this refusal.
    Refuse(ApiError),
    /// Takes the call and never answers.
    Hang,
    /// Answers as a program that is no node.
    Foreign,
}

#[derive(Debug)]
struct Seen {
    acts: Vec<Act>,
    calls: Vec<Value>,
}

/// A node's HTTP face on a port of its own, gone without a word when dropped.
#[derive(Debug)]
pub(crate) struct FakeNode {
    seen: Arc<(Mutex<Seen>, Notify)>,
    runtime: Option<tokio::runtime::Runtime>,
}

impl FakeNode {
    /// Starts it, and writes its address into the data folder.
    pub(crate) async fn start(data: &Path, acts: Vec<Act>) -> Self {
        let seen = Arc::new((Mutex::new(Seen { acts, calls: Vec::new() }), Notify::new()));
        // A runtime of its own, so that dropping it cuts every connection as a kill does.
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let router = Router::new()
            .route("/api/tools/call", post(call))
            .route("/health", get(|| async { Json(json!({"ok": true, "name": "nexus"})) }))
            .route("/api/invites/{id}", axum::routing::delete(removed))
            .with_state(seen.clone());
        let (tell, told) = tokio::sync::oneshot::channel();
        runtime.spawn(async move {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            tell.send(listener.local_addr().unwrap()).unwrap();
            axum::serve(listener, router).await.unwrap();
        });
        let address = told.await.unwrap();
        let file = json!({"address": format!("http://{address}"), "pid": 1, "startedAt": 1});
        std::fs::write(data.join("endpoint.json"), file.to_string()).unwrap();
        std::fs::write(data.join("token"), TOKEN).unwrap();
        Self { seen, runtime: Some(runtime) }
    }

    /// Returns the calls so far.
    pub(crate) fn calls(&self) -> Vec<Value> {
        self.seen.0.lock().unwrap().calls.clone()
    }

    /// Waits until so many calls have come.
    pub(crate) async fn wait_for_calls(&self, count: usize) {
        let wait = async {
            while self.calls().len() < count {
                self.seen.1.notified().await;
            }
        };
        if tokio::time::timeout(LIMIT, wait).await.is_err() {
            panic!("{count} calls expected, came: {:?}", self.calls());
        }
    }
}

impl Drop for FakeNode {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // From a plain thread, which may wait until every socket is closed.
            std::thread::spawn(move || drop(runtime)).join().unwrap();
        }
    }
}

async fn removed(axum::extract::Path(id): axum::extract::Path<String>) -> Json<Value> {
    Json(json!({"ok": true, "message": format!("invite {id} is withdrawn")}))
}

async fn call(
    State(seen): State<Arc<(Mutex<Seen>, Notify)>>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Response {
    let given = headers.get(header::AUTHORIZATION).map(|value| value.as_bytes().to_vec());
    if given != Some(format!("Bearer {TOKEN}").into_bytes()) {
        return refusal(&ApiError::new(ErrorCode::Unauthorized, "token is missing or wrong"));
    }
    let act = {
        let mut seen = seen.0.lock().unwrap();
        seen.calls.push(body);
        if seen.acts.len() > 1 { seen.acts.remove(0) } else { seen.acts[0].clone() }
    };
    // A permit is kept for the one test that waits.
    seen.1.notify_one();
    match act {
        Act::Result(result) => Json(json!({"ok": true, "result": result})).into_response(),
        Act::Refuse(error) => refusal(&error),
        Act::Hang => std::future::pending().await,
        Act::Foreign => (StatusCode::NOT_FOUND, "<html>no such page</html>").into_response(),
    }
}

fn refusal(error: &ApiError) -> Response {
    let status = StatusCode::from_u16(error.status()).unwrap();
    (status, Json(error.to_json())).into_response()
}

/// Returns the options of a server on that data folder.
pub(crate) fn options(data: &Path) -> Options {
    Options {
        endpoint: EndpointSource::folder(data),
        id: None,
        cwd: "/src/app".into(),
        hostname: "desk".into(),
        patience: LIMIT,
        set: Set::All,
    }
}

/// A client that writes and reads lines.
#[derive(Debug)]
pub(crate) struct RawClient {
    write: Option<WriteHalf<DuplexStream>>,
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    early: Vec<Value>,
    next: u64,
    jobs: Jobs,
}

impl RawClient {
    /// Starts a server and stands before it.
    pub(crate) fn start(options: Options) -> Self {
        let (near, far) = tokio::io::duplex(1 << 20);
        let (input, output) = tokio::io::split(far);
        let jobs = Jobs::new();
        jobs.spawn("mcp server", async move {
            stdio::serve_on(options, input, output).await.unwrap();
        });
        let (read, write) = tokio::io::split(near);
        let lines = BufReader::new(read).lines();
        Self { write: Some(write), lines, early: Vec::new(), next: 0, jobs }
    }

    /// Starts a server and shakes hands in the older way.
    pub(crate) async fn initialized(options: Options, version: &str) -> Self {
        let mut client = Self::start(options);
        let answer = client
            .ask(
                "initialize",
                json!({"protocolVersion": version, "capabilities": {},
                       "clientInfo": {"name": "codex-mcp-client", "version": "1"}}),
            )
            .await;
        assert_eq!(answer["result"]["protocolVersion"], version, "{answer}");
        client.line(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
        client
    }

    /// Writes a line as it is.
    pub(crate) async fn line(&mut self, line: &str) {
        let write = self.write.as_mut().unwrap();
        write.write_all(format!("{line}\n").as_bytes()).await.unwrap();
        write.flush().await.unwrap();
    }

    /// Writes a request and returns its id.
    pub(crate) async fn send(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        let request =
            json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params});
        self.line(&request.to_string()).await;
        self.next
    }

    /// Reads until the answer to a request is there. Every line must be JSON-RPC.
    pub(crate) async fn answer(&mut self, id: impl Into<Value>) -> Value {
        let id = id.into();
        loop {
            if let Some(at) = self.early.iter().position(|answer| answer["id"] == id) {
                return self.early.remove(at);
            }
            let read = tokio::time::timeout(LIMIT, self.lines.next_line()).await;
            let line = match read {
                Ok(line) => line.unwrap().expect("the server closed its output"),
                Err(_elapsed) => panic!("no answer to {id}; came: {:?}", self.early),
            };
            let answer: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(answer["jsonrpc"], "2.0", "{line}");
            self.early.push(answer);
        }
    }

    /// Asks and waits for the answer.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        self.answer(id).await
    }

    /// Calls a tool in the older way and returns the result.
    pub(crate) async fn call(&mut self, name: &str, arguments: Value) -> Value {
        let answer = self.ask("tools/call", json!({"name": name, "arguments": arguments})).await;
        answer.get("result").unwrap_or_else(|| panic!("no result: {answer}")).clone()
    }

    /// Closes the input and waits for the server's end.
    pub(crate) async fn close(mut self) {
        drop(self.write.take());
        // The halves share one stream: only dropping both tells the server.
        drop(self.lines);
        let left = self.jobs.shutdown(LIMIT).await;
        assert!(left.is_empty(), "the server still runs");
    }
}

/// Returns the `_meta` that the stateless wire wants, with more in it.
pub(crate) fn meta(more: &Value) -> Value {
    let mut meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "claude-code", "version": "2"},
    });
    for (key, value) in more.as_object().unwrap() {
        meta[key] = value.clone();
    }
    meta
}
