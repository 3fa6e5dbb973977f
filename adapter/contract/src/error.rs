//! Errors: stable codes, their HTTP statuses, and the one JSON form of a refusal.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::catalog::Set;

/// Why a call failed. Names are stable; a program decides by them, people read the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// The body is not JSON, or not a call.
    BadRequest,
    /// An argument is missing, of the wrong type or outside its limits.
    InvalidArguments,
    /// The token is missing or wrong.
    Unauthorized,
    /// The call needs a conversation and carries none that is known here.
    Unidentified,
    /// The call comes from a web page of another origin.
    ForeignOrigin,
    /// What the call names does not exist.
    NotFound,
    /// No tool has that name.
    UnknownTool,
    /// The path exists, but not for that method.
    MethodNotAllowed,
    /// The state does not allow it, or the request id was used for another call.
    Conflict,
    /// The caller is at home on another node.
    NotHere,
    /// The request id is too old to be judged: the call was not run again.
    RequestExpired,
    /// The invite is withdrawn, used or past its time.
    InviteEnded,
    /// The body is over the limit.
    TooLarge,
    /// The address that was asked for is over the limit.
    UriTooLong,
    /// The `Host` header names neither this machine nor an allowed name.
    ForeignHost,
    /// Too many calls of one caller or address.
    RateLimited,
    /// Too many writes wait on this node, or others are in the way for a short while.
    Busy,
    /// The node serves no calls yet.
    Starting,
    /// The node is shutting down.
    Stopping,
    /// No majority of the voters answers: certainly not done.
    NoQuorum,
    /// The call may or may not have been done: retry with the same request id.
    UnknownOutcome,
    /// A bound on what the cluster keeps is reached, in any family: an inbox, the number of tasks,
    /// the bytes of assets.
    Full,
    /// The disk is full.
    DiskFull,
    /// A fault in nexus.
    Internal,
    /// The local node does not answer. Never sent by a node.
    NodeUnreachable,
    /// A code of a newer node.
    #[serde(other)]
    Other,
}

impl ErrorCode {
    /// Every code, in the order of the documentation.
    pub const ALL: &'static [ErrorCode] = &[
        ErrorCode::BadRequest,
        ErrorCode::InvalidArguments,
        ErrorCode::Unauthorized,
        ErrorCode::Unidentified,
        ErrorCode::ForeignOrigin,
        ErrorCode::NotFound,
        ErrorCode::UnknownTool,
        ErrorCode::MethodNotAllowed,
        ErrorCode::Conflict,
        ErrorCode::NotHere,
        ErrorCode::RequestExpired,
        ErrorCode::InviteEnded,
        ErrorCode::TooLarge,
        ErrorCode::UriTooLong,
        ErrorCode::ForeignHost,
        ErrorCode::RateLimited,
        ErrorCode::Busy,
        ErrorCode::Starting,
        ErrorCode::Stopping,
        ErrorCode::NoQuorum,
        ErrorCode::UnknownOutcome,
        ErrorCode::Full,
        ErrorCode::DiskFull,
        ErrorCode::Internal,
        ErrorCode::NodeUnreachable,
        ErrorCode::Other,
    ];

    /// Returns the stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            ErrorCode::BadRequest => "bad_request",
            ErrorCode::InvalidArguments => "invalid_arguments",
            ErrorCode::Unauthorized => "unauthorized",
            ErrorCode::Unidentified => "unidentified",
            ErrorCode::ForeignOrigin => "foreign_origin",
            ErrorCode::NotFound => "not_found",
            ErrorCode::UnknownTool => "unknown_tool",
            ErrorCode::MethodNotAllowed => "method_not_allowed",
            ErrorCode::Conflict => "conflict",
            ErrorCode::NotHere => "not_here",
            ErrorCode::RequestExpired => "request_expired",
            ErrorCode::InviteEnded => "invite_ended",
            ErrorCode::TooLarge => "too_large",
            ErrorCode::UriTooLong => "uri_too_long",
            ErrorCode::ForeignHost => "foreign_host",
            ErrorCode::RateLimited => "rate_limited",
            ErrorCode::Busy => "busy",
            ErrorCode::Starting => "starting",
            ErrorCode::Stopping => "stopping",
            ErrorCode::NoQuorum => "no_quorum",
            ErrorCode::UnknownOutcome => "unknown_outcome",
            ErrorCode::Full => "full",
            ErrorCode::DiskFull => "disk_full",
            ErrorCode::Internal => "internal",
            ErrorCode::NodeUnreachable => "node_unreachable",
            ErrorCode::Other => "other",
        }
    }

    /// Returns the HTTP status that carries it.
    pub const fn status(self) -> u16 {
        match self {
            ErrorCode::BadRequest | ErrorCode::InvalidArguments => 400,
            ErrorCode::Unauthorized => 401,
            ErrorCode::Unidentified | ErrorCode::ForeignOrigin => 403,
            ErrorCode::NotFound | ErrorCode::UnknownTool => 404,
            ErrorCode::MethodNotAllowed => 405,
            ErrorCode::Conflict
            | ErrorCode::NotHere
            | ErrorCode::RequestExpired
            | ErrorCode::InviteEnded => 409,
            ErrorCode::TooLarge => 413,
            ErrorCode::UriTooLong => 414,
            ErrorCode::ForeignHost => 421,
            ErrorCode::RateLimited | ErrorCode::Busy => 429,
            ErrorCode::Starting
            | ErrorCode::Stopping
            | ErrorCode::NoQuorum
            | ErrorCode::NodeUnreachable => 503,
            ErrorCode::UnknownOutcome => 504,
            ErrorCode::Full | ErrorCode::DiskFull => 507,
            ErrorCode::Internal | ErrorCode::Other => 500,
        }
    }

    /// Returns whether the same call may succeed later without any change to it.
    pub const fn may_pass(self) -> bool {
        matches!(
            self,
            ErrorCode::RateLimited
                | ErrorCode::Busy
                | ErrorCode::Starting
                | ErrorCode::Stopping
                | ErrorCode::NoQuorum
                | ErrorCode::UnknownOutcome
                | ErrorCode::NodeUnreachable
        )
    }

    /// Returns what the caller should do, in one sentence.
    pub const fn advice(self) -> &'static str {
        match self {
            ErrorCode::BadRequest => "send a JSON object as the interface describes it",
            ErrorCode::InvalidArguments => "correct the fields that the message names",
            ErrorCode::Unauthorized => "send the token of the data folder as a bearer token",
            ErrorCode::Unidentified => "call again from an identified conversation",
            ErrorCode::ForeignOrigin => "call from a program, not from a web page",
            ErrorCode::NotFound => "list what exists and name one of it",
            ErrorCode::UnknownTool => "list the tools and name one of them",
            ErrorCode::MethodNotAllowed => "use the method that the Allow header names",
            ErrorCode::Conflict => "read the present state, then decide again",
            ErrorCode::NotHere => "call the node that the message names, or call again",
            ErrorCode::RequestExpired => "look whether it was done; if not, use a new request id",
            ErrorCode::InviteEnded => "ask for a new code: nexus invite",
            ErrorCode::TooLarge => "send less",
            ErrorCode::UriTooLong => "put what is long into the body of a POST",
            ErrorCode::ForeignHost => "call the node by its address or an allowed name",
            ErrorCode::RateLimited | ErrorCode::Busy => "wait as long as it says, then call again",
            ErrorCode::Starting => "wait a moment, then call again",
            ErrorCode::Stopping => "call again once the node is back",
            ErrorCode::NoQuorum => "bring back the machines that the message names",
            ErrorCode::UnknownOutcome => "call again with the same request id: it has one effect",
            ErrorCode::Full => "make room as the message says, then call again",
            ErrorCode::DiskFull => "free space on the machine that the message names",
            ErrorCode::Internal => "look into the node's log, and report it",
            ErrorCode::NodeUnreachable => "start the node: nexus up",
            ErrorCode::Other => "read the message",
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// How a refusal of bad arguments begins: clients of n2n-nexus know it so.
const INVALID_ARGUMENTS: &str = "Invalid arguments for ";
/// How a refusal of too many calls begins: clients of n2n-nexus know it so.
const RATE_LIMITED: &str = "Rate limit exceeded: ";

/// One refusal, as HTTP, MCP and the command line show it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct ApiError {
    /// Why, for programs.
    pub code: ErrorCode,
    /// Why, for people and models: the thing first, then what is wrong, then what would be right.
    pub message: String,
    /// Seconds to wait before the next try, also the `Retry-After` header.
    pub retry_after: Option<u64>,
    /// The request id to retry with.
    pub request_id: Option<String>,
}

/// The JSON form of [`ApiError`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    ok: bool,
    code: ErrorCode,
    error: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry_after: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
}

impl ApiError {
    /// Makes a refusal of a code and a message.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), retry_after: None, request_id: None }
    }

    /// Makes the refusal of bad arguments; the message begins as every client knows it.
    pub fn invalid_arguments(tool: &str, what: impl fmt::Display) -> Self {
        Self::new(ErrorCode::InvalidArguments, format!("{INVALID_ARGUMENTS}{tool}: {what}"))
    }

    /// Makes the refusal of a caller that calls too often; the message begins and ends as every
    /// client knows it.
    pub fn rate_limit(seconds: u64) -> Self {
        let text = format!("{RATE_LIMITED}retry after {seconds}s");
        Self::new(ErrorCode::RateLimited, text).with_retry_after(seconds)
    }

    /// Makes the refusal of an unknown tool, which names those there are.
    pub fn unknown_tool(name: &str) -> Self {
        Self::unknown_tool_of(Set::All, name)
    }

    /// Makes the refusal of a tool that a set does not have; of one that only another set has it
    /// says so.
    pub fn unknown_tool_of(set: Set, name: &str) -> Self {
        let shown: String = name.chars().take(64).collect();
        let names = set.names();
        let text = if Set::All.find(name).is_some() {
            format!(
                "tool {shown:?} is not in the set {:?}, whose tools are {names}; for the others \
                 choose --tools all, or \"tools\": \"all\" in settings.json",
                set.as_str()
            )
        } else {
            format!("unknown tool {shown:?}: the tools are {names}")
        };
        Self::new(ErrorCode::UnknownTool, text)
    }

    /// Makes the report of a fault in nexus itself.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Internal, message)
    }

    /// Returns the refusal with a time to wait.
    #[must_use]
    pub fn with_retry_after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// Returns the refusal with the request id to retry with.
    #[must_use]
    pub fn with_request_id(mut self, request_id: impl Into<String>) -> Self {
        self.request_id = Some(request_id.into());
        self
    }

    /// Returns the HTTP status that carries it.
    pub fn status(&self) -> u16 {
        self.code.status()
    }

    /// Returns the code and the message on one line, the code first and nothing said twice: a
    /// message that begins with the code's own words is shown without them.
    pub fn coded(&self) -> String {
        let begins = [INVALID_ARGUMENTS, RATE_LIMITED];
        let rest = begins.iter().find_map(|begin| self.message.strip_prefix(begin));
        let rest = rest.unwrap_or(&self.message);
        format!("{}: {rest}", self.code)
    }

    /// Returns the body: `{"ok":false,"code":…,"error":…,"retryAfter"?:…,"requestId"?:…}`.
    pub fn to_json(&self) -> Value {
        let mut body = json!({"ok": false, "code": self.code, "error": self.message});
        if let Some(fields) = body.as_object_mut() {
            if let Some(seconds) = self.retry_after {
                fields.insert("retryAfter".into(), seconds.into());
            }
            if let Some(id) = &self.request_id {
                fields.insert("requestId".into(), id.as_str().into());
            }
        }
        body
    }

    /// Reads such a body; `None` when it is something else.
    pub fn from_json(bytes: &[u8]) -> Option<Self> {
        let body: Body = serde_json::from_slice(bytes).ok()?;
        (!body.ok).then_some(Self {
            code: body.code,
            message: body.error,
            retry_after: body.retry_after,
            request_id: body.request_id,
        })
    }
}
