//! What comes in, read; and the one form of every failure that goes out.

use axum::Json;
use axum::body::Bytes;
use axum::extract::Path;
use axum::extract::rejection::{BytesRejection, PathRejection};
use axum::http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use nexus_contract::http::Body;
use nexus_contract::{ApiError, ErrorCode, json};

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
pub(crate) fn read<T: Body>(body: Result<Bytes, BytesRejection>) -> Result<T, ApiError> {
    let body = body.map_err(|rejection| {
        if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
            let most = T::BYTES_MAX;
            let beyond = T::BEYOND.map(|text| format!("; {text}")).unwrap_or_default();
            let text = format!("body is over {most} bytes: send less{beyond}");
            ApiError::new(ErrorCode::TooLarge, text)
        } else {
            ApiError::new(ErrorCode::BadRequest, "body did not arrive whole: send it again")
        }
    })?;
    let bytes: &[u8] = if body.is_empty() { b"{}" } else { &body };
    let value = json::read(bytes).map_err(|error| {
        let text = format!("body {error}; give {}", T::EXAMPLE);
        ApiError::new(ErrorCode::BadRequest, text)
    })?;
    T::read(value).map_err(|what| ApiError::new(ErrorCode::BadRequest, what))
}

/// Reads the last part of a path; `what` is what it names.
pub(crate) fn named(
    part: Result<Path<String>, PathRejection>,
    what: &str,
) -> Result<String, ApiError> {
    let wrong = |_words_about_types| {
        let text = format!("{what} in the path is not UTF-8: give it percent-encoded");
        ApiError::new(ErrorCode::BadRequest, text)
    };
    part.map(|Path(name)| name).map_err(wrong)
}
