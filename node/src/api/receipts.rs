//! Receipts: what became of a conversation's direct messages. There is no tool for them; who sent
//! one may ask on any node.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use nexus_contract::{ApiError, ErrorCode};
use serde_json::{Map, Value};

use super::Shared;
use super::respond::Refused;
use crate::service::receipts::{self, Asked};

/// How much of an unknown name is repeated.
const NAME_CHARS_MAX: usize = 64;
/// What may be asked for.
const RIGHT: &str = "give of=SESSION, and message=ID, before=ID or limit=N besides";

/// `GET /api/receipts`.
pub(super) async fn list(
    State(shared): State<Arc<Shared>>,
    query: Result<Query<Vec<(String, String)>>, QueryRejection>,
) -> Result<Json<Map<String, Value>>, Refused> {
    let Query(query) = query.map_err(|rejection| {
        wrong(&format!("query cannot be read: {}; {RIGHT}", rejection.body_text()))
    })?;
    let asked = asked(query)?;
    Ok(Json(receipts::list(&shared.node.service, &asked).await?))
}

/// Reads the query. A name that is none of ours is refused, or who misspelt it would take the
/// answer for the one that was asked for.
fn asked(query: Vec<(String, String)>) -> Result<Asked, ApiError> {
    let mut asked = Asked::default();
    for (name, value) in query {
        match name.as_str() {
            "of" => asked.of = value,
            "message" => asked.message = Some(value),
            "before" => asked.before = Some(value),
            "limit" => {
                let number = value.parse().ok();
                asked.limit = Some(number.ok_or_else(|| wrong(receipts::LIMIT))?);
            }
            _ => {
                let name: String = name.chars().take(NAME_CHARS_MAX).collect();
                return Err(wrong(&format!("{name} is not asked for here: {RIGHT}")));
            }
        }
    }
    Ok(asked)
}

fn wrong(text: &str) -> ApiError {
    ApiError::new(ErrorCode::BadRequest, text)
}
