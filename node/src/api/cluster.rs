//! The cluster: its members, its digests, and the end of a membership.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, Query, State};
use nexus_contract::http::{ClusterView, DigestView, Done};
use nexus_contract::{ApiError, ErrorCode};
use serde::Deserialize;

use super::Shared;
use super::respond::Refused;
use crate::service::cluster;

/// How long one request waits for an index; who wants to wait longer asks again.
const WAIT: Duration = Duration::from_secs(10);

/// `GET /api/cluster`.
pub(super) async fn view(State(shared): State<Arc<Shared>>) -> Json<ClusterView> {
    Json(cluster::view(&shared.node.cluster).await)
}

/// The query of `GET /api/digest`.
#[derive(Debug, Deserialize)]
pub(super) struct Wait {
    wait: Option<u64>,
}

/// `GET /api/digest`.
pub(super) async fn digest(
    State(shared): State<Arc<Shared>>,
    query: Result<Query<Wait>, axum::extract::rejection::QueryRejection>,
) -> Result<Json<DigestView>, Refused> {
    let Query(query) = query.map_err(|_rejection| {
        ApiError::new(ErrorCode::BadRequest, "wait is not an index: give a whole number")
    })?;
    let node = &shared.node;
    if let Some(index) = query.wait {
        node.cluster.wait_applied(index, WAIT).await;
    }
    Ok(Json(cluster::digest(&node.cluster)?))
}

/// `DELETE /api/members/{name}`.
pub(super) async fn remove(
    State(shared): State<Arc<Shared>>,
    name: Result<Path<String>, axum::extract::rejection::PathRejection>,
) -> Result<Json<Done>, Refused> {
    let name = super::respond::named(name, "member's name")?;
    Ok(Json(cluster::remove(&shared.node.cluster, &name).await?))
}
