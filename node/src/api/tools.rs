//! The tools: their list, and calls.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, QueryRejection};
use axum::extract::{ConnectInfo, Query, State};
use nexus_contract::http::{ToolAnswer, ToolCall, ToolList};
use nexus_contract::{ApiError, ErrorCode};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::Shared;
use super::respond::{Refused, read};
use crate::service::caller;

/// `GET /api/tools`.
pub(super) async fn list() -> Json<ToolList> {
    Json(ToolList::own())
}

/// `POST /api/tools/call`.
pub(super) async fn call(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<ToolAnswer>, Refused> {
    let call: ToolCall = read(body)?;
    Ok(Json(ToolAnswer::new(shared.call(call, peer.ip()).await?)))
}

impl Shared {
    /// Serves a call, over whatever it came, if its caller does not call too often.
    pub(super) async fn call(
        &self,
        call: ToolCall,
        from: IpAddr,
    ) -> Result<Map<String, Value>, ApiError> {
        self.limiter.take(&caller::bucket(&call, from), from)?;
        let tool = nexus_contract::catalog::find(&call.tool).map_or("unknown", |spec| spec.name);
        let since = Instant::now();
        let outcome = self.node.service.call(call).await;
        count(tool, since, &outcome);
        outcome
    }
}

/// The query of `GET /api/peers`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Peers {
    #[serde(default)]
    include_offline: bool,
}

/// `GET /api/peers`: what people see; no conversation asks, so none is needed.
pub(super) async fn peers(
    State(shared): State<Arc<Shared>>,
    query: Result<Query<Peers>, QueryRejection>,
) -> Result<Json<Map<String, Value>>, Refused> {
    let Query(query) = query.map_err(|_words_about_types| {
        let text = "includeOffline in the query is not known: give true or false";
        ApiError::new(ErrorCode::BadRequest, text)
    })?;
    Ok(Json(shared.node.service.peers(query.include_offline).await?))
}

fn count<T>(tool: &'static str, since: Instant, outcome: &Result<T, ApiError>) {
    let word = match outcome {
        Ok(_) => "ok",
        Err(error) => error.code.as_str(),
    };
    metrics::counter!("nexus_tool_calls_total", "tool" => tool, "outcome" => word).increment(1);
    metrics::histogram!("nexus_tool_call_seconds", "tool" => tool).record(since.elapsed());
    if let Err(error) = outcome {
        tracing::debug!(tool, code = error.code.as_str(), "call refused");
    }
}
