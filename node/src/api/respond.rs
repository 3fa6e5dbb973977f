//! The one form of every failure.

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use nexus_contract::{ApiError, ErrorCode};
use serde::de::DeserializeOwned;

/// A failure on its way out.
#[derive(Debug)]
pub(crate) struct Refused(pub(crate) ApiError);

impl From<ApiError> for Refused {
    fn from(error: ApiError) -> Self {
        Self(error)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let Self(error) = self;
        let status =
            StatusCode::from_u16(error.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, Json(error.to_json())).into_response();
        if let Some(seconds) = error.retry_after {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if error.code == ErrorCode::Unauthorized {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// Reads a body as JSON; one that is empty counts as an empty object.
pub(crate) fn read<T: DeserializeOwned>(
    body: Result<Bytes, BytesRejection>,
    what: &str,
) -> Result<T, ApiError> {
    let body = body.map_err(|rejection| {
        if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
            let most = super::BODY_BYTES_MAX;
            ApiError::new(ErrorCode::TooLarge, format!("body is over {most} bytes: send less"))
        } else {
            let text = format!("body did not arrive whole: {}", rejection.body_text());
            ApiError::new(ErrorCode::BadRequest, text)
        }
    })?;
    let bytes: &[u8] = if body.is_empty() { b"{}" } else { &body };
    serde_json::from_slice(bytes).map_err(|error| {
        let kind = if error.is_data() { "does not fit" } else { "is not JSON" };
        ApiError::new(ErrorCode::BadRequest, format!("body {kind}: {error}; give {what}"))
    })
}
