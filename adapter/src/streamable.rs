//! MCP over Streamable HTTP: what every node serves at `/mcp`.
//!
//! Nothing is kept between two requests: no session, no stream, no handshake. Any request may go to
//! any node, and a node that was started again answers as before. rmcp does the protocol, of both
//! generations; what it cannot read is answered here, in the words of the wire over standard input
//! and output (`wire/line.rs`). Whoever may ask at all is decided by the node before.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::request::Parts;
use http::{HeaderMap, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use nexus_contract::catalog::{self, Set};
use nexus_contract::http::ToolCall;
use nexus_contract::{ApiError, ids, limits};
use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, ErrorCode, ProtocolVersion};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::caller::{self, Process};
pub use crate::owed::Delivery;
use crate::owed::{self, Owed, Promise};
use crate::server::{Calls, Server};
use crate::wire::line::{self, Read};

/// The header in which a client of 2026-07-28 names the protocol's version.
const VERSION: &str = "mcp-protocol-version";

/// A body on its way to the client.
pub type Body = BoxBody<Bytes, std::convert::Infallible>;

/// The node that calls go to.
pub trait Node: Send + Sync + 'static {
    /// Serves a call that came from an address.
    fn call(
        &self,
        call: ToolCall,
        from: IpAddr,
    ) -> impl Future<Output = Result<Map<String, Value>, ApiError>> + Send;
}

/// Who sent a request, as far as HTTP tells.
#[derive(Debug, Clone)]
pub struct Sender {
    /// The address it came from.
    pub address: IpAddr,
    /// The instance that its URL names, if any.
    pub instance: Option<String>,
}

/// What serves the requests.
#[cfg(not(feature = "conformance"))]
type Handler<N> = Server<Here<N>>;
/// What serves the requests: in a test build, with the conformance suite's fixtures.
#[cfg(feature = "conformance")]
type Handler<N> = crate::fixtures::Mounted<Server<Here<N>>>;

/// The MCP server of a node.
pub struct Streamable<N: Node> {
    service: StreamableHttpService<Handler<N>, NeverSessionManager>,
    owed: Arc<Owed>,
    set: Set,
}

impl<N: Node> std::fmt::Debug for Streamable<N> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Streamable").field("set", &self.set).finish_non_exhaustive()
    }
}

impl<N: Node> Streamable<N> {
    /// Makes the server of a node, with the tools of a set.
    pub fn new(node: N, set: Set) -> Self {
        let owed = Arc::new(Owed::default());
        let here = Here { node, owed: Arc::clone(&owed), process: Process::random() };
        let server = Server::new(here, set);
        #[cfg(feature = "conformance")]
        let server = crate::fixtures::Mounted(server);
        // rmcp's own checks of Host and Origin know only fixed names: the node's guard knows every
        // address, and asks for the token too.
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_sse_retry(None)
            .with_max_request_body_bytes(limits::CALL_BYTES_MAX)
            .disable_allowed_hosts()
            .disable_allowed_origins();
        let made = move || Ok(server.clone());
        let sessions = Arc::new(NeverSessionManager::default());
        Self { service: StreamableHttpService::new(made, sessions, config), owed, set }
    }

    /// Answers a `POST`. The delivery is to be kept until the answer is written; whoever drops this
    /// future or the delivery says that it was lost.
    pub async fn answer(
        &self,
        mut parts: Parts,
        body: &[u8],
        sender: Sender,
    ) -> (Response<Body>, Delivery) {
        let (delivery, promise) = Delivery::begin(&self.owed);
        let stateless = is_stateless(&parts.headers);
        let message = match line::read(body, self.set, stateless) {
            Read::Message(message) => message,
            Read::Answers(answers) => return (said(answers, body, stateless), delivery),
        };
        parts.extensions.insert(sender);
        parts.extensions.insert(promise);
        // As it was read: what was accepted and what is served are the same.
        let body = serde_json::to_vec::<ClientJsonRpcMessage>(&message).unwrap_or_default();
        let request = http::Request::from_parts(parts, Full::new(Bytes::from(body)));
        let response = self.service.handle(request).await;
        (in_our_words(response).await, delivery)
    }
}

/// Refuses a body of more bytes than are taken.
pub fn too_large() -> Response<Body> {
    let most = limits::CALL_BYTES_MAX;
    let text = format!("message is over {most} bytes: send less in one request");
    let error = line::error(&Value::Null, ErrorCode::INVALID_REQUEST, &text);
    respond(StatusCode::PAYLOAD_TOO_LARGE, &error)
}

/// Refuses a body that broke off.
pub fn broken_off() -> Response<Body> {
    let text = "parse error: the body did not arrive whole; send it again";
    let error = line::error(&Value::Null, ErrorCode::PARSE_ERROR, text);
    respond(StatusCode::BAD_REQUEST, &error)
}

fn is_stateless(headers: &HeaderMap) -> bool {
    let version = headers.get(VERSION).and_then(|value| value.to_str().ok());
    version.is_some_and(|version| version >= ProtocolVersion::V_2026_07_28.as_str())
}

/// Answers what is nothing for rmcp.
fn said(mut answers: Vec<Value>, body: &[u8], stateless: bool) -> Response<Body> {
    if answers.is_empty() {
        if body.trim_ascii().is_empty() {
            let text = "parse error: the body is empty; give one JSON-RPC message at a time";
            let error = line::error(&Value::Null, ErrorCode::PARSE_ERROR, text);
            return respond(StatusCode::BAD_REQUEST, &error);
        }
        // A notification or an answer: nobody waits for a word.
        return empty(StatusCode::ACCEPTED);
    }
    let one = answers.len() == 1;
    let answer = if one { answers.remove(0) } else { Value::Array(answers) };
    let code = answer.pointer("/error/code").and_then(Value::as_i64);
    let is = |known: ErrorCode| code == Some(i64::from(known.0));
    let status = if is(ErrorCode::METHOD_NOT_FOUND) && stateless {
        StatusCode::NOT_FOUND
    } else if is(ErrorCode::METHOD_NOT_FOUND) || is(ErrorCode::INVALID_PARAMS) {
        // The message could be read, so that its client waits for an answer and not for a status.
        StatusCode::OK
    } else {
        StatusCode::BAD_REQUEST
    };
    respond(status, &answer)
}

/// Has everything leave as JSON-RPC, and in the words of the other wire.
async fn in_our_words(response: Response<Body>) -> Response<Body> {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let is_json = kind.is_some_and(|kind| kind.starts_with("application/json"));
    let failed = response.status().is_client_error() || response.status().is_server_error();
    if !is_json && !failed {
        return response;
    }
    let (parts, body) = response.into_parts();
    let Ok(whole) = body.collect().await;
    let whole = whole.to_bytes();
    if !is_json {
        // rmcp refuses headers in plain words.
        let text: String = String::from_utf8_lossy(&whole).chars().take(512).collect();
        let text = format!("invalid request: {text}");
        let mut answer =
            respond(parts.status, &line::error(&Value::Null, ErrorCode::INVALID_REQUEST, &text));
        if let Some(allow) = parts.headers.get(http::header::ALLOW) {
            answer.headers_mut().insert(http::header::ALLOW, allow.clone());
        }
        return answer;
    }
    let unknown = ErrorCode::METHOD_NOT_FOUND.0;
    let mut answer: Value = match serde_json::from_slice(&whole) {
        Ok(answer) if is_error(&answer, unknown) => answer,
        Ok(_) | Err(_) => return Response::from_parts(parts, Full::new(whole).boxed()),
    };
    if let Some(message) = answer.pointer_mut("/error/message") {
        // rmcp gives the method's name alone.
        *message = json!(line::not_served(message.as_str().unwrap_or_default()));
    }
    respond(parts.status, &answer)
}

fn is_error(answer: &Value, code: i32) -> bool {
    answer.pointer("/error/code").and_then(Value::as_i64) == Some(i64::from(code))
}

fn respond(status: StatusCode, answer: &Value) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::from(answer.to_string())).boxed());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Full::default().boxed());
    *response.status_mut() = status;
    response
}

/// The way of calls to the node that serves them.
struct Here<N> {
    node: N,
    owed: Arc<Owed>,
    process: Process,
}

impl<N: Node> Here<N> {
    /// Returns the id that the client gave the call, if it gave one.
    fn given_id(
        tool: &str,
        meta: &Map<String, Value>,
        call_id: Option<String>,
    ) -> Result<Option<String>, ApiError> {
        let Some(given) = meta.get(caller::IDEMPOTENCY_KEY) else { return Ok(call_id) };
        let field = "_meta.idempotencyKey";
        let Some(id) = given.as_str() else {
            let text = format!("{field}: is no string; give an id of your own for this call");
            return Err(ApiError::invalid_arguments(tool, text));
        };
        ids::request(field, id).map_err(|what| ApiError::invalid_arguments(tool, what))?;
        Ok(Some(id.to_owned()))
    }

    /// Returns which instance calls, and whether somebody chose that id.
    fn instance(
        tool: &str,
        meta: &Map<String, Value>,
        sender: &Sender,
        client: Option<&str>,
    ) -> Result<(String, bool), ApiError> {
        let invalid = |what| ApiError::invalid_arguments(tool, what);
        if let Some(given) = meta.get(caller::INSTANCE_ID) {
            let field = "_meta.instanceId";
            let id = given.as_str().unwrap_or_default();
            ids::instance(field, id).map_err(invalid)?;
            return Ok((id.to_owned(), true));
        }
        match &sender.instance {
            Some(id) => {
                ids::instance("instance of the URL", id).map_err(invalid)?;
                Ok((id.clone(), true))
            }
            None => Ok((caller::http_instance_id(sender.address, client), false)),
        }
    }
}

impl<N: Node> Calls for Here<N> {
    fn asked(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        context: &RequestContext<RoleServer>,
    ) -> Result<ToolCall, ApiError> {
        let sender = from_http::<Sender>(context)?;
        let claim = caller::claim(&context.meta);
        // On the older wire only the handshake tells about the client, which may have been with
        // another node.
        let client = context.meta.client_info().map(|info| info.name);
        let given = Self::given_id(tool, &context.meta, claim.call_id)?;
        let (instance, chosen) = Self::instance(tool, &context.meta, sender, client.as_deref())?;
        let mut call = ToolCall {
            tool: tool.to_owned(),
            args: Value::Object(arguments),
            instance_id: Some(instance),
            instance_given: chosen,
            caller: claim.caller,
            request_id: given,
            client_name: client,
            ..ToolCall::default()
        };
        // What only looks has nothing to take over.
        let looks = catalog::find(tool).is_some_and(|spec| spec.hints.read_only);
        if call.request_id.is_none() && !looks {
            let key = owed::key(&call);
            let id = self.owed.take(&key, Instant::now());
            let id = id.unwrap_or_else(|| self.process.next_request_id());
            if !from_http::<Promise>(context)?.make(key, &id) {
                self.owed.put(key, id, Instant::now());
                return Err(ApiError::internal("the client is gone; nothing was done"));
            }
            call.request_id = Some(id);
        }
        Ok(call)
    }

    async fn serve(
        &self,
        call: ToolCall,
        context: &RequestContext<RoleServer>,
    ) -> Result<Map<String, Value>, ApiError> {
        let from = from_http::<Sender>(context)?.address;
        self.node.call(call, from).await
    }
}

/// Returns what [`Streamable::answer`] put beside a request.
fn from_http<T: Send + Sync + 'static>(
    context: &RequestContext<RoleServer>,
) -> Result<&T, ApiError> {
    let found = context.extensions.get::<Parts>().and_then(|parts| parts.extensions.get());
    found.ok_or_else(|| ApiError::internal("a request over HTTP has lost where it came from"))
}
