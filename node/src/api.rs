//! HTTP: the tools, the cluster, and how the node is. axum's types stay in here.
//!
//! Every request passes the guard first, every failure leaves in the one JSON form of
//! [`ApiError`], and a handler that panics answers 500 while the node serves on.

mod assets;
mod cluster;
mod guard;
mod health;
mod invites;
mod limit;
mod mcp;
mod receipts;
mod respond;
pub(crate) mod socket;
mod spool;
mod tools;

use std::any::Any;
use std::sync::Arc;

use axum::Router;
use axum::extract::{ConnectInfo, DefaultBodyLimit, Request, State};
use axum::http::{Method, Uri};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use nexus_contract::catalog::Set;
use nexus_contract::http::{
    Body as _, PATH_CALL, PATH_CLUSTER, PATH_DIGEST, PATH_HEALTH, PATH_INVITES, PATH_MCP,
    PATH_MEMBERS, PATH_METRICS, PATH_PEERS, PATH_PROJECTS, PATH_READY, PATH_RECEIPTS, PATH_STOP,
    PATH_TOOLS, ToolCall,
};
use nexus_contract::limits::{BODY_BYTES_MAX, CALL_BYTES_MAX};
use nexus_contract::{ApiError, ErrorCode};
use tower_http::catch_panic::CatchPanicLayer;

use crate::app::Node;
pub(crate) use guard::Guard;
pub(crate) use limit::Limiter;
use respond::Refused;
use socket::Peer;
pub(crate) use spool::Spool;

/// `DELETE`: listen on loopback only again.
pub(crate) const PATH_LAN: &str = "/api/lan";

/// Bytes of a path with its query: names and numbers are short. Beyond 64 KiB hyper refuses by
/// itself, without words.
const URI_BYTES_MAX: usize = 4_096;

/// Everything that a request needs.
#[derive(Debug)]
pub(crate) struct Shared {
    /// The node.
    pub(crate) node: Arc<Node>,
    /// Who may ask.
    pub(crate) guard: Guard,
    /// How often.
    pub(crate) limiter: Limiter,
    /// Files on their way.
    pub(crate) spool: Spool,
    /// The tools of `/mcp`.
    pub(crate) set: Set,
}

/// Returns all routes.
pub(crate) fn router(shared: Arc<Shared>) -> Router {
    let mcp = mcp::Mcp::new(mcp::Here(Arc::clone(&shared)), shared.set);
    let mcp = Router::new()
        .route(PATH_MCP, post(mcp::post).layer(DefaultBodyLimit::max(CALL_BYTES_MAX)))
        .with_state(Arc::new(mcp));
    Router::new()
        .merge(mcp)
        .route(PATH_CALL, post(tools::call).layer(DefaultBodyLimit::max(ToolCall::BYTES_MAX)))
        .route(PATH_TOOLS, get(tools::list))
        .route(PATH_PEERS, get(tools::peers))
        .route(PATH_RECEIPTS, get(receipts::list))
        .route(PATH_HEALTH, get(health::health))
        .route(PATH_READY, get(health::ready))
        .route(PATH_METRICS, get(health::metrics))
        .route(PATH_CLUSTER, get(cluster::view))
        .route(PATH_DIGEST, get(cluster::digest))
        .route(&format!("{PATH_MEMBERS}/{{name}}"), delete(cluster::remove))
        .route(PATH_INVITES, get(invites::list).post(invites::make))
        .route(&format!("{PATH_INVITES}/{{id}}"), delete(invites::withdraw))
        .route(
            &format!("{PATH_PROJECTS}/{{id}}/assets/{{name}}"),
            get(assets::get).put(assets::put).delete(assets::delete),
        )
        .route(PATH_LAN, delete(invites::close_lan))
        .route(PATH_STOP, post(health::stop))
        .fallback(unknown_path)
        .method_not_allowed_fallback(wrong_method)
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(from_fn_with_state(Arc::clone(&shared), checked))
        .layer(CatchPanicLayer::custom(panicked))
        .with_state(shared)
}

/// Lets a request through, or says why not; counts both.
async fn checked(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(Peer { address: peer, leaving: _ }): ConnectInfo<Peer>,
    mut request: Request,
    next: Next,
) -> Response {
    request.extensions_mut().insert(ConnectInfo(peer));
    let known = known_path(request.uri());
    let passed = if shared.node.is_stopping() {
        let text = "the node is stopping; call again once it is back";
        Err(ApiError::new(ErrorCode::Stopping, text).with_retry_after(1))
    } else if uri_bytes(request.uri()) > URI_BYTES_MAX {
        let text = format!(
            "path and query are over {URI_BYTES_MAX} bytes: put what is long into the body of a \
             POST"
        );
        Err(ApiError::new(ErrorCode::UriTooLong, text))
    } else {
        shared.guard.check(request.method(), request.uri().path(), request.headers(), peer)
    };
    let response = match passed {
        Ok(()) => next.run(request).await,
        Err(error) => Refused(error).into_response(),
    };
    let status = response.status().as_u16().to_string();
    metrics::counter!("nexus_http_requests_total", "path" => known, "status" => status)
        .increment(1);
    response
}

fn uri_bytes(uri: &Uri) -> usize {
    uri.path_and_query().map_or(0, |whole| whole.as_str().len())
}

/// Returns a path's name for metrics: never what a caller made up, or there is one for each.
fn known_path(uri: &Uri) -> &'static str {
    let path = uri.path();
    [
        PATH_CALL,
        PATH_MCP,
        PATH_TOOLS,
        PATH_HEALTH,
        PATH_READY,
        PATH_METRICS,
        PATH_PEERS,
        PATH_RECEIPTS,
        PATH_CLUSTER,
        PATH_DIGEST,
        PATH_MEMBERS,
        PATH_INVITES,
        PATH_PROJECTS,
        PATH_LAN,
        PATH_STOP,
    ]
    .into_iter()
    .find(|known| path == *known || path.strip_prefix(known).is_some_and(|r| r.starts_with('/')))
    .unwrap_or("other")
}

async fn unknown_path(method: Method, uri: Uri) -> Refused {
    let path: String = uri.path().chars().take(128).collect();
    Refused(ApiError::new(
        ErrorCode::NotFound,
        format!("{method} {path} is not served here; tools are called by POST {PATH_CALL}"),
    ))
}

async fn wrong_method(method: Method, uri: Uri) -> Refused {
    let path: String = uri.path().chars().take(128).collect();
    Refused(ApiError::new(
        ErrorCode::MethodNotAllowed,
        format!("{path} does not take {method}; the Allow header says what it takes"),
    ))
}

fn panicked(panic: Box<dyn Any + Send + 'static>) -> Response {
    let said = if let Some(text) = panic.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text.clone()
    } else {
        "a value that is not text".to_owned()
    };
    tracing::error!("a request handler panicked: {said}");
    let text = "the request met a fault in nexus; whether it was done is not known, look before \
                you repeat it, and report the node's log";
    Refused(ApiError::internal(text)).into_response()
}

#[cfg(test)]
mod tests;
