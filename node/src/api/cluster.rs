//! The cluster: its members, its digests, and the end of a membership.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use nexus_contract::http::{ClusterView, DigestView, Done};
use nexus_contract::{ApiError, ErrorCode};

use super::Shared;
use super::respond::Refused;
use crate::service::cluster;

/// How long one request waits for an index; who wants to wait longer asks again.
const WAIT: Duration = Duration::from_secs(10);
/// How much of an unknown name is repeated.
const NAME_CHARS_MAX: usize = 64;

/// `GET /api/cluster`.
pub(super) async fn view(State(shared): State<Arc<Shared>>) -> Json<ClusterView> {
    Json(cluster::view(&shared.node.cluster).await)
}

/// `GET /api/digest`.
pub(super) async fn digest(
    State(shared): State<Arc<Shared>>,
    query: Result<Query<Vec<(String, String)>>, QueryRejection>,
) -> Result<Json<DigestView>, Refused> {
    let Query(query) = query.map_err(|rejection| {
        let text = format!("query cannot be read: {}; give wait=INDEX", rejection.body_text());
        ApiError::new(ErrorCode::BadRequest, text)
    })?;
    let node = &shared.node;
    if let Some(index) = wait(&query)? {
        node.cluster.wait_applied(index, WAIT).await;
    }
    Ok(Json(cluster::digest(&node.cluster)?))
}

/// Reads the query of `GET /api/digest`: the index to wait for. A name that is none of ours is
/// refused, or who misspelt it would take the answer for the one that was asked for.
fn wait(query: &[(String, String)]) -> Result<Option<u64>, ApiError> {
    let mut index = None;
    for (name, value) in query {
        if name != "wait" {
            let name: String = name.chars().take(NAME_CHARS_MAX).collect();
            let text = format!("{name} is not asked for here: give wait=INDEX, or nothing");
            return Err(ApiError::new(ErrorCode::BadRequest, text));
        }
        let number = value.parse::<u64>().map_err(|_not_a_number| {
            ApiError::new(ErrorCode::BadRequest, "wait is not an index: give a whole number")
        })?;
        index = Some(number);
    }
    Ok(index)
}

/// Reads the query of a removal: whether the first node may go too.
fn force(query: &[(String, String)]) -> Result<bool, ApiError> {
    let mut force = false;
    for (name, value) in query {
        if name != "force" {
            let name: String = name.chars().take(NAME_CHARS_MAX).collect();
            let text = format!("{name} is not asked for here: give force=true, or nothing");
            return Err(ApiError::new(ErrorCode::BadRequest, text));
        }
        force = value.parse().map_err(|_words| {
            ApiError::new(ErrorCode::BadRequest, "force is no yes or no: give true or false")
        })?;
    }
    Ok(force)
}

/// `DELETE /api/members/{name}`, with `force=true` for the first one.
pub(super) async fn remove(
    State(shared): State<Arc<Shared>>,
    name: Result<Path<String>, axum::extract::rejection::PathRejection>,
    query: Result<Query<Vec<(String, String)>>, QueryRejection>,
) -> Result<Json<Done>, Refused> {
    let name = super::respond::named(name, "member's name")?;
    let Query(query) = query.map_err(|rejection| {
        let text = format!("query cannot be read: {}; give force=true", rejection.body_text());
        ApiError::new(ErrorCode::BadRequest, text)
    })?;
    Ok(Json(cluster::remove(&shared.node.cluster, &name, force(&query)?).await?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_query_of_digests_is_an_index_or_nothing() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(wait(&[]).unwrap(), None);
        assert_eq!(wait(&[pair("wait", "7")]).unwrap(), Some(7));
        for (query, named) in [
            (pair("index", "zz"), "index is not asked for here"),
            (pair("index", "7"), "index is not asked for here"),
            (pair("Wait", "7"), "Wait is not asked for here"),
            (pair("wait", "zz"), "wait is not an index"),
            (pair("wait", ""), "wait is not an index"),
            (pair("wait", "-1"), "wait is not an index"),
        ] {
            let error = wait(&[pair("wait", "1"), query.clone()]).unwrap_err();
            assert_eq!(error.code, ErrorCode::BadRequest, "{query:?}");
            assert!(error.message.contains(named), "{query:?}: {}", error.message);
        }
    }
}
