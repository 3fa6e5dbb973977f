//! HTTP as a client of a node speaks it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nexus_contract::{catalog, validate};
use serde_json::{Value, json};

/// How long an answer may take: a node ends every call by itself well before that.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);

/// Why a call has no result.
#[derive(Debug, Clone)]
pub enum Failed {
    /// The node said no: the status, and the body.
    Refused {
        /// The HTTP status.
        status: u16,
        /// The body.
        body: Value,
    },
    /// No answer came; whether the call was done is not known.
    Lost(String),
}

impl fmt::Display for Failed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { status, body } => write!(out, "{status} {body}"),
            Self::Lost(why) => write!(out, "no answer: {why}"),
        }
    }
}

impl Failed {
    /// Returns the refusal's code; empty when there was no answer.
    pub fn code(&self) -> &str {
        match self {
            Self::Refused { body, .. } => body["code"].as_str().unwrap_or_default(),
            Self::Lost(_) => "",
        }
    }

    /// Returns whether the same call under the same request id may succeed later.
    pub fn may_pass(&self) -> bool {
        let again =
            ["unknown_outcome", "no_quorum", "starting", "stopping", "busy", "rate_limited"];
        match self {
            Self::Refused { .. } => again.contains(&self.code()),
            Self::Lost(_) => true,
        }
    }

    /// Returns whether the call was certainly not done.
    pub fn is_certain(&self) -> bool {
        match self {
            Self::Refused { .. } => self.code() != "unknown_outcome",
            Self::Lost(why) => why.starts_with("not connected"),
        }
    }
}

/// Where a node serves, and how to be let in.
#[derive(Debug, Clone, Default)]
pub struct Http {
    url: String,
    data: PathBuf,
    client: reqwest::Client,
    is_near: bool,
}

/// Who calls a tool, and under which request id.
#[derive(Debug, Clone, Copy)]
pub struct As<'a> {
    /// The instance.
    pub instance: &'a str,
    /// The request id; none lets the node make one.
    pub request: Option<&'a str>,
}

/// As whom a tool is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Speaker {
    /// An instance, by an id that its user chose.
    Instance(String),
    /// A conversation of Codex, which names itself.
    Codex(String),
    /// One process of such a conversation: its session, and the process's own id.
    Process(String, String),
    /// Nobody: the call names no caller.
    Nobody,
}

impl Speaker {
    /// Returns the id under which the cluster knows it; empty for nobody.
    pub fn id(&self) -> String {
        match self {
            Self::Instance(id) => id.clone(),
            Self::Codex(session) | Self::Process(session, _) => format!("codex:{session}"),
            Self::Nobody => String::new(),
        }
    }

    /// Returns the body of a call of its.
    pub fn body(&self, tool: &str, args: &Value, request: Option<&str>) -> Value {
        let mut body = json!({"tool": tool, "args": args});
        match self {
            Self::Instance(id) => {
                body["instanceId"] = id.as_str().into();
                body["instanceGiven"] = true.into();
            }
            Self::Codex(session) => {
                body["caller"] = json!({"client": "codex", "sessionId": session});
            }
            Self::Process(session, process) => {
                body["caller"] = json!({"client": "codex", "sessionId": session});
                body["process"] = process.as_str().into();
            }
            Self::Nobody => {}
        }
        if let Some(request) = request {
            body["requestId"] = request.into();
        }
        body
    }
}

impl Http {
    /// Makes the way to the node of that data folder; `is_near` unless it is in another network
    /// namespace, where HTTP from here does not reach.
    ///
    /// # Panics
    /// When no HTTP client can be made.
    pub fn at(url: &str, data: &Path, is_near: bool) -> Self {
        let client = reqwest::Client::builder().no_proxy().timeout(ANSWER_LIMIT).build();
        let client = client.expect("an HTTP client can be made");
        Self { url: url.to_owned(), data: data.to_owned(), client, is_near }
    }

    /// Returns `http://ADDRESS:PORT`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns a client that keeps its connections.
    pub fn client(&self) -> &reqwest::Client {
        &self.client
    }

    /// Returns the token of the data folder.
    ///
    /// # Panics
    /// When there is none.
    pub fn token(&self) -> String {
        let path = self.data.join("token");
        let text = std::fs::read_to_string(&path);
        text.unwrap_or_else(|error| panic!("{}: {error}", path.display())).trim().to_owned()
    }

    /// Asks for a path.
    ///
    /// # Errors
    /// Refused, or lost.
    pub async fn get(&self, path: &str) -> Result<Value, Failed> {
        let request = self.client.get(format!("{}{path}", self.url));
        self.send(request.bearer_auth(self.token())).await
    }

    /// Calls a tool as an instance.
    ///
    /// # Errors
    /// Refused, or lost.
    ///
    /// # Panics
    /// As [`Self::call_as`].
    pub async fn call(&self, tool: &str, args: Value, who: As<'_>) -> Result<Value, Failed> {
        let speaker = Speaker::Instance(who.instance.to_owned());
        self.call_as(&speaker, tool, args, who.request).await
    }

    /// Calls a tool as anybody.
    ///
    /// # Errors
    /// Refused, or lost.
    ///
    /// # Panics
    /// When the result is not as the tool's own schema says.
    pub async fn call_as(
        &self,
        speaker: &Speaker,
        tool: &str,
        args: Value,
        request: Option<&str>,
    ) -> Result<Value, Failed> {
        let body = speaker.body(tool, &args, request);
        let request = self.client.post(format!("{}/api/tools/call", self.url)).json(&body);
        let answer = self.send(request.bearer_auth(self.token())).await?;
        let result = answer["result"].clone();
        let spec = catalog::find(tool).unwrap_or_else(|| panic!("{tool} is not served: {answer}"));
        let fits = validate::result(spec, &result);
        assert!(fits.is_ok(), "{tool} answers {result}, but {fits:?}");
        Ok(result)
    }

    /// Returns all messages of the global chat, oldest first, by a linearizable read.
    ///
    /// # Errors
    /// Refused, or lost.
    ///
    /// # Panics
    /// When the answer is stale, or no answer at all.
    pub async fn history(&self) -> Result<Vec<Value>, Failed> {
        let mut all: Vec<Value> = Vec::new();
        loop {
            let after = all.last().map_or(json!(0), |last| last["id"].clone());
            let who = As { instance: "history", request: None };
            let args = json!({"afterId": after, "count": 500});
            let page = self.call("read_messages", args, who).await?;
            assert!(page.get("stale").is_none(), "a stale history: {page}");
            let messages = page["messages"].as_array().expect("messages are a list");
            if messages.is_empty() {
                return Ok(all);
            }
            all.extend(messages.iter().cloned());
        }
    }

    /// Sends a request and sorts its answer.
    ///
    /// # Errors
    /// Refused, or lost.
    ///
    /// # Panics
    /// When the node is in another network namespace.
    pub async fn send(&self, request: reqwest::RequestBuilder) -> Result<Value, Failed> {
        assert!(self.is_near, "{} is in another network namespace", self.url);
        let lost = |error: &reqwest::Error| {
            let place = if error.is_connect() { "not connected" } else { "broken off" };
            Failed::Lost(format!("{place}: {}", innermost(error)))
        };
        let response = request.send().await.map_err(|error| lost(&error))?;
        let status = response.status();
        let bytes = response.bytes().await.map_err(|error| lost(&error))?;
        let shown = || Value::String(String::from_utf8_lossy(&bytes).into_owned());
        let body = serde_json::from_slice(&bytes).unwrap_or_else(|_not_json| shown());
        if status.is_success() {
            Ok(body)
        } else {
            Err(Failed::Refused { status: status.as_u16(), body })
        }
    }
}

fn innermost(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
