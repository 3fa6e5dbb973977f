//! Invites, and what they open.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, PathRejection};
use axum::extract::{Path, State};
use nexus_contract::http::{Done, InviteList, InviteMade, InviteRequest};

use super::Shared;
use super::respond::{Refused, named, read};
use crate::service::invites;

/// `POST /api/invites`.
pub(super) async fn make(
    State(shared): State<Arc<Shared>>,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<InviteMade>, Refused> {
    let request: InviteRequest = read(body)?;
    Ok(Json(invites::make(&shared.node.cluster, &shared.node.lan, &request).await?))
}

/// `GET /api/invites`.
pub(super) async fn list(State(shared): State<Arc<Shared>>) -> Result<Json<InviteList>, Refused> {
    Ok(Json(invites::list(&shared.node.cluster).await?))
}

/// `DELETE /api/invites/{id}`.
pub(super) async fn withdraw(
    State(shared): State<Arc<Shared>>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<Done>, Refused> {
    let id = named(id, "invite's id")?;
    Ok(Json(invites::withdraw(&shared.node.cluster, &id).await?))
}

/// `DELETE /api/lan`.
pub(super) async fn close_lan(State(shared): State<Arc<Shared>>) -> Result<Json<Done>, Refused> {
    Ok(Json(invites::close_lan(&shared.node.cluster, &shared.node.lan).await?))
}
