//! How the node itself is, and its stop.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use nexus_contract::CONTRACT_VERSION;
use nexus_contract::http::{Done, Health};

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
        ready: node.unready().is_none(),
    })
}

/// `GET /ready`.
pub(super) async fn ready(State(shared): State<Arc<Shared>>) -> Result<Json<Done>, Refused> {
    match shared.node.unready() {
        None => Ok(Json(Done::new("a linearizable read has succeeded, and a leader is at work"))),
        Some(error) => Err(Refused(error)),
    }
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
