//! The HTTP client of the local node.
//!
//! It tells apart what callers must treat differently: the node is *not reachable* (nothing
//! answered, or something else did), or the node *refused* (it answered, and says why). For the
//! first it knows whether the request may have reached a node: only then may something have been
//! done.

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use nexus_contract::http::{self, ToolAnswer, ToolCall};
use nexus_contract::{ApiError, ErrorCode, catalog};
use nexus_rt::Backoff;
use reqwest::Method;
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::endpoint::{EndpointError, EndpointSource};

/// How long a connection to this machine may take.
const CONNECT_LIMIT: Duration = Duration::from_secs(2);
/// How long an answer may take: the node ends a write after ten seconds by itself.
const ANSWER_LIMIT: Duration = Duration::from_secs(15);
/// How long a call waits for a node that is away, counted from the first failure: as long as a
/// node that was killed needs to come back, and less than any client's own limit.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Why a request has no result.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nothing answered that is a node.
    #[error("the local node is not reachable ({place}): {reason}")]
    NotReachable {
        /// Where it was looked for.
        place: String,
        /// What happened, in words.
        reason: String,
        /// Whether the request may have reached a node, and so may have been done: never for one
        /// that only looks.
        sent: bool,
        /// Whether the address was given, so that no node of this folder need be meant.
        given: bool,
    },
    /// The node answered no.
    #[error(transparent)]
    Refused(#[from] ApiError),
}

impl ClientError {
    /// Returns the error as callers see it, with what to do; `request_id` is the call's.
    pub fn into_api_error(self, request_id: Option<&str>) -> ApiError {
        match self {
            ClientError::Refused(error) => error,
            ClientError::NotReachable { place, reason, sent: false, given } => {
                let remedy = if given {
                    "look at the address that --endpoint or NEXUS_ENDPOINT gives"
                } else {
                    "start it with: nexus up"
                };
                ApiError::new(
                    ErrorCode::NodeUnreachable,
                    format!(
                        "the local node is not reachable ({place}): {reason}; nothing was done; \
                         {remedy}"
                    ),
                )
            }
            ClientError::NotReachable { place, reason, sent: true, .. } => {
                let again = match request_id {
                    Some(id) => format!(
                        "call again with request id {id}, which has one effect however often it \
                         is sent"
                    ),
                    None => "look before calling again".to_owned(),
                };
                let error = ApiError::new(
                    ErrorCode::UnknownOutcome,
                    format!(
                        "the local node ({place}) was asked and gave no answer: {reason}; the call \
                         may or may not have been done; see that the node runs (nexus status, \
                         nexus up), then {again}"
                    ),
                );
                match request_id {
                    Some(id) => error.with_request_id(id),
                    None => error,
                }
            }
        }
    }

    fn may_pass(&self) -> bool {
        match self {
            ClientError::NotReachable { .. } => true,
            // The node is there, and says that it will serve in a moment.
            ClientError::Refused(error) => {
                matches!(error.code, ErrorCode::Starting | ErrorCode::Stopping)
            }
        }
    }
}

/// The local node, wherever it is at the moment.
#[derive(Debug, Clone)]
pub struct LocalNode {
    source: EndpointSource,
    http: reqwest::Client,
}

impl LocalNode {
    /// Makes the client. Nothing is opened before the first request.
    ///
    /// # Errors
    /// When the HTTP client cannot be set up on this system.
    pub fn new(source: EndpointSource) -> Result<Self, ClientError> {
        // A proxy set for the web must never see calls to this machine.
        let http = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_LIMIT)
            .tcp_nodelay(true)
            .build()
            .map_err(|error| ClientError::NotReachable {
                place: source.place(),
                reason: innermost(&error),
                sent: false,
                given: source.endpoint.is_some(),
            })?;
        Ok(Self { source, http })
    }

    /// Returns where the node is looked for.
    pub fn source(&self) -> &EndpointSource {
        &self.source
    }

    /// Calls a tool, once.
    ///
    /// # Errors
    /// Not reachable, or refused.
    pub async fn call(&self, call: &ToolCall) -> Result<Map<String, Value>, ClientError> {
        let answer: Result<ToolAnswer, ClientError> = self.post(http::PATH_CALL, call).await;
        match answer {
            Ok(answer) => Ok(answer.result),
            Err(ClientError::NotReachable { place, reason, sent, given }) => {
                // A tool that changes nothing leaves nothing in doubt.
                let looks = catalog::find(&call.tool).is_some_and(|spec| spec.hints.read_only);
                let sent = sent && !looks;
                Err(ClientError::NotReachable { place, reason, sent, given })
            }
            Err(refused @ ClientError::Refused(_)) => Err(refused),
        }
    }

    /// Calls a tool, and again under the same request id while the node is away or starting.
    ///
    /// Without a request id a call that may have reached the node is not sent again.
    ///
    /// # Errors
    /// Refused at once; not reachable when the node stayed away for `patience`.
    pub async fn call_patiently(
        &self,
        call: &ToolCall,
        patience: Duration,
    ) -> Result<Map<String, Value>, ClientError> {
        let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_millis(500));
        let mut first_failure = None;
        let mut ever_sent = false;
        loop {
            let mut error = match self.call(call).await {
                Ok(result) => return Ok(result),
                Err(error) => error,
            };
            if let ClientError::NotReachable { sent, .. } = &mut error {
                // An earlier attempt may have been done even if the last one reached nobody.
                ever_sent |= *sent;
                *sent = ever_sent;
            }
            let since = *first_failure.get_or_insert_with(Instant::now);
            let again = error.may_pass() && (call.request_id.is_some() || !ever_sent);
            if !again || since.elapsed() >= patience {
                return Err(error);
            }
            tracing::warn!(tool = call.tool, %error, "node not reachable, retrying");
            tokio::time::sleep(backoff.next()).await;
        }
    }

    /// Asks for a path.
    ///
    /// # Errors
    /// Not reachable, or refused.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.typed(Method::GET, path, None).await
    }

    /// Asks for a path that answers in text.
    ///
    /// # Errors
    /// Not reachable, or refused.
    pub async fn get_text(&self, path: &str) -> Result<String, ClientError> {
        let (_, bytes) = self.send(Method::GET, path, None).await?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Posts a body.
    ///
    /// # Errors
    /// Not reachable, or refused.
    pub async fn post<B: Serialize + Sync, T: DeserializeOwned>(
        &self,
        path: &str,
        body: &B,
    ) -> Result<T, ClientError> {
        let body = serde_json::to_vec(body).map_err(|error| {
            ApiError::internal(format!("request to {path} does not become JSON: {error}"))
        })?;
        self.typed(Method::POST, path, Some(body)).await
    }

    /// Deletes what a path names.
    ///
    /// # Errors
    /// Not reachable, or refused.
    pub async fn delete<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.typed(Method::DELETE, path, None).await
    }

    async fn typed<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<Vec<u8>>,
    ) -> Result<T, ClientError> {
        let changes = method != Method::GET;
        let (url, bytes) = self.send(method, path, body).await?;
        serde_json::from_slice(&bytes).map_err(|error| {
            tracing::debug!(url, %error, "an answer that is none of this version");
            // A node of any version answers in JSON.
            let is_json = serde_json::from_slice::<IgnoredAny>(&bytes).is_ok();
            let reason = if is_json {
                "what answers there does not answer as a node of this version"
            } else {
                "something answers there that is no nexus node"
            };
            self.lost(url, reason, changes && is_json)
        })
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<Vec<u8>>,
    ) -> Result<(String, Bytes), ClientError> {
        let endpoint = self.source.resolve().map_err(|error| self.not_found(&error))?;
        let url = endpoint.url;
        let changes = method != Method::GET;
        let mut request = self.http.request(method, format!("{url}{path}")).timeout(ANSWER_LIMIT);
        if let Some(token) = &endpoint.token {
            request = request.bearer_auth(token);
        }
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body);
        }
        let lost = |error: &reqwest::Error| {
            if speaks_no_http(error) {
                let reason = "something answers there that is no nexus node: it speaks no HTTP";
                return self.lost(url.clone(), reason, false);
            }
            let reason = if error.is_timeout() && !error.is_connect() {
                format!("no answer within {} s", ANSWER_LIMIT.as_secs())
            } else {
                innermost(error)
            };
            // A builder's error never left this process; a failed connection carried nothing.
            let left = !error.is_connect() && !error.is_builder();
            self.lost(url.clone(), reason, left && changes)
        };
        let response = request.send().await.map_err(|error| lost(&error))?;
        let status = response.status();
        let bytes = response.bytes().await.map_err(|error| lost(&error))?;
        if status.is_success() {
            return Ok((url, bytes));
        }
        match ApiError::from_json(&bytes) {
            Some(refusal) => Err(ClientError::Refused(refusal)),
            None => {
                let reason =
                    format!("something answers there that is no nexus node (HTTP {status})");
                Err(self.lost(url, reason, false))
            }
        }
    }

    fn lost(&self, place: String, reason: impl Into<String>, sent: bool) -> ClientError {
        let given = self.source.endpoint.is_some();
        ClientError::NotReachable { place, reason: reason.into(), sent, given }
    }

    fn not_found(&self, error: &EndpointError) -> ClientError {
        self.lost(self.source.place(), chain(error), false)
    }
}

/// Returns an HTTP error's first cause: what wraps it repeats the address and names layers.
fn innermost(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

/// Returns whether what answered was no HTTP at all. Only hyper's own words tell: the library that
/// is used hides its types, and a test holds it to them.
fn speaks_no_http(error: &reqwest::Error) -> bool {
    let words = innermost(error);
    words.starts_with("invalid HTTP") && words.contains("parsed")
}

/// Writes an error with its causes on one line; the innermost one says most.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        cause = inner.source();
    }
    text
}
