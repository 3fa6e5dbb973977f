//! How the node itself is, and its stop.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use nexus_contract::http::{Done, Health};
use nexus_contract::{ApiError, CONTRACT_VERSION, ErrorCode};

use super::Shared;
use super::respond::Refused;
use crate::cli::VERSION;

/// `GET /health`.
pub(super) async fn health(State(shared): State<Arc<Shared>>) -> Json<Health> {
    let node = &shared.node;
    Json(Health {
        ok: true,
        name: "nexus".to_owned(),
        version: VERSION.to_owned(),
        contract_version: CONTRACT_VERSION,
        node: node.name(),
        cluster: node.cluster.cluster_id(),
        ready: node.is_ready(),
    })
}

/// `GET /ready`.
pub(super) async fn ready(State(shared): State<Arc<Shared>>) -> Result<Json<Done>, Refused> {
    if shared.node.is_ready() {
        return Ok(Json(Done::new("a linearizable read has succeeded since the start")));
    }
    let text = "no linearizable read has succeeded since the start: a leader is awaited; reads \
                answer from what this node knows";
    Err(Refused(ApiError::new(ErrorCode::Starting, text).with_retry_after(1)))
}

/// `GET /metrics`.
pub(super) async fn metrics(State(shared): State<Arc<Shared>>) -> impl IntoResponse {
    let text = shared.node.metrics_text();
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text)
}

/// `POST /api/node/stop`.
pub(super) async fn stop(State(shared): State<Arc<Shared>>) -> Json<Done> {
    tracing::info!("asked to stop");
    shared.node.ask_to_stop();
    Json(Done::new("the node stops"))
}
