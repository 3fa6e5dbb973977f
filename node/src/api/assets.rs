//! Assets of projects: files of up to 256 MiB, sent and fetched byte for byte.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{ConnectInfo, Path, Query, State};
use axum::http::header::{
    CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE, ETAG, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use futures::{Stream, stream};
use nexus_contract::http::{HEADER_AS_OF, HEADER_STALE, ToolCall};
use nexus_contract::{ApiError, ErrorCode, ids};
use nexus_domain::bodies;
use serde_json::{Map, Value};

use super::Shared;
use super::respond::Refused;
use crate::service::assets::{Found, Place, Sender, hex};
use crate::service::caller;

/// What is done, for messages.
const SEND: &str = "PUT of an asset";
const DELETE: &str = "DELETE of an asset";
const FETCH: &str = "GET of an asset";
/// How much of an unknown name is repeated.
const NAME_CHARS_MAX: usize = 64;

/// Types of files by the end of their names, as far as a reader does something with them. What is
/// not here is bytes.
const TYPES: [(&str, &str); 18] = [
    ("css", "text/css; charset=utf-8"),
    ("csv", "text/csv; charset=utf-8"),
    ("gif", "image/gif"),
    ("gz", "application/gzip"),
    ("htm", "text/html; charset=utf-8"),
    ("html", "text/html; charset=utf-8"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("js", "text/javascript; charset=utf-8"),
    ("json", "application/json"),
    ("md", "text/markdown; charset=utf-8"),
    ("mp4", "video/mp4"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("svg", "image/svg+xml"),
    ("txt", "text/plain; charset=utf-8"),
    ("webp", "image/webp"),
    ("zip", "application/zip"),
];

type Named = Result<Path<(String, String)>, PathRejection>;
type Asked = Result<Query<Vec<(String, String)>>, QueryRejection>;

/// `PUT /api/projects/{id}/assets/{name}`.
pub(super) async fn put(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    named: Named,
    query: Asked,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Map<String, Value>>, Refused> {
    let place = place(named, SEND)?;
    let sender = sender(&shared, SEND, query, peer)?;
    let node = &shared.node;
    let work = async {
        node.service.takes_files(&place).await?;
        let spooled = shared.spool.keep(body.into_data_stream(), length(&headers)).await?;
        let stored = node.service.put_asset(&sender, &place, spooled.file).await;
        drop(spooled.place);
        stored
    };
    // A file may take a minute, and a node that stops does not wait for that.
    let stopping = || {
        let text =
            "the node is stopping, and the file was not stored: send it again once it is back";
        ApiError::new(ErrorCode::Stopping, text).with_retry_after(1)
    };
    let stored = tokio::select! {
        biased;
        () = node.stops() => Err(stopping()),
        stored = work => stored,
    };
    Ok(Json(stored?))
}

/// `DELETE /api/projects/{id}/assets/{name}`.
pub(super) async fn delete(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    named: Named,
    query: Asked,
) -> Result<Json<Map<String, Value>>, Refused> {
    let place = place(named, DELETE)?;
    let sender = sender(&shared, DELETE, query, peer)?;
    Ok(Json(shared.node.service.delete_asset(&sender, &place).await?))
}

/// `GET /api/projects/{id}/assets/{name}`.
pub(super) async fn get(
    State(shared): State<Arc<Shared>>,
    named: Named,
) -> Result<Response, Refused> {
    let place = place(named, FETCH)?;
    let Found { asset, marks } = shared.node.service.asset(&place).await?;
    let body = Body::from_stream(parts(Arc::clone(&shared), asset.body));
    let mut response = body.into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_LENGTH, HeaderValue::from(asset.body.size));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind(&asset.name)));
    // It is what its type says or bytes, and never a page of this address.
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    if let Ok(tag) = HeaderValue::from_str(&format!("\"{}\"", hex(&asset.sha256))) {
        headers.insert(ETAG, tag);
    }
    let as_of = marks.as_of.and_then(|text| HeaderValue::from_str(&text).ok());
    if marks.stale == Some(true) {
        headers.insert(HeaderName::from_static(HEADER_STALE), HeaderValue::from_static("true"));
        as_of.map(|as_of| headers.insert(HeaderName::from_static(HEADER_AS_OF), as_of));
    }
    Ok(response)
}

/// Reads a body part by part, each when the one before is sent. A body that goes meanwhile breaks
/// the answer off, which its reader sees by its length.
fn parts(
    shared: Arc<Shared>,
    body: bodies::Body,
) -> impl Stream<Item = Result<Vec<u8>, std::io::Error>> {
    stream::try_unfold((shared, 0), move |(shared, from)| async move {
        if from >= body.size {
            return Ok(None);
        }
        let part = shared.node.service.asset_part(body, from);
        let part = part.map_err(std::io::Error::other)?;
        let gone = || std::io::Error::other("the asset was replaced or deleted meanwhile");
        let part = part.filter(|part| !part.is_empty()).ok_or_else(gone)?;
        let next = crate::service::count(part.len()).saturating_add(from);
        Ok(Some((part, (shared, next))))
    })
}

/// Returns what a file is, by its name.
fn kind(name: &str) -> &'static str {
    let end = name.rsplit_once('.').map_or("", |(_, end)| end);
    let known = TYPES.iter().find(|(known, _)| known.eq_ignore_ascii_case(end));
    known.map_or("application/octet-stream", |(_, kind)| kind)
}

/// Returns how long a body is, as its sender says.
fn length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn place(named: Named, what: &str) -> Result<Place, ApiError> {
    let Path((project, name)) = named.map_err(|_words_about_types| {
        let text = "project or name in the path is not UTF-8: give them percent-encoded";
        ApiError::new(ErrorCode::BadRequest, text)
    })?;
    let place = Place { project, name };
    place.check(what)?;
    Ok(place)
}

/// Reads from the query who changes something, and counts the call.
fn sender(
    shared: &Shared,
    what: &'static str,
    query: Asked,
    peer: SocketAddr,
) -> Result<Sender, ApiError> {
    let Query(query) = query.map_err(|rejection| {
        let text = format!("query cannot be read: {}; give instanceId=ID", rejection.body_text());
        ApiError::new(ErrorCode::BadRequest, text)
    })?;
    let call = asked(what, query)?;
    shared.limiter.take(&caller::bucket(&call, peer.ip()), peer.ip())?;
    let invalid = |violation| ApiError::invalid_arguments(what, violation);
    let who = caller::who(&call, shared.node.cluster.node()).map_err(invalid)?;
    let who = who.ok_or_else(|| {
        let text = format!("{what} needs to know who sends: give ?instanceId=ID in the query");
        ApiError::new(ErrorCode::Unidentified, text)
    })?;
    Ok(Sender { what, who, request_id: call.request_id })
}

/// Reads the query. A name that is none of ours is refused, or who misspelt it would be taken for
/// nobody.
fn asked(what: &str, query: Vec<(String, String)>) -> Result<ToolCall, ApiError> {
    let mut call = ToolCall { instance_given: true, ..ToolCall::default() };
    for (name, value) in query {
        match name.as_str() {
            "instanceId" => call.instance_id = Some(value),
            "requestId" => {
                let invalid = |violation| ApiError::invalid_arguments(what, violation);
                ids::request("requestId", &value).map_err(invalid)?;
                call.request_id = Some(value);
            }
            other => {
                let name: String = other.chars().take(NAME_CHARS_MAX).collect();
                let text =
                    format!("{name} is not asked for here: give instanceId=ID, or requestId=ID");
                return Err(ApiError::new(ErrorCode::BadRequest, text));
            }
        }
    }
    Ok(call)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_follow_from_names() {
        for (name, expected) in [
            ("a.png", "image/png"),
            ("a.b.PNG", "image/png"),
            ("read.md", "text/markdown; charset=utf-8"),
            ("png", "application/octet-stream"),
            ("a.", "application/octet-stream"),
            ("a.exe", "application/octet-stream"),
        ] {
            assert_eq!(kind(name), expected, "{name}");
        }
        assert!(TYPES.is_sorted());
    }

    #[test]
    fn the_query_says_who_and_nothing_else() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let call = asked(SEND, vec![pair("instanceId", "script"), pair("requestId", "r-1")]);
        let call = call.unwrap();
        assert_eq!(call.instance_id.as_deref(), Some("script"));
        assert_eq!(call.request_id.as_deref(), Some("r-1"));
        assert!(call.instance_given);
        for (query, code, named) in [
            (pair("instanceid", "x"), ErrorCode::BadRequest, "instanceid is not asked for here"),
            (pair("requestId", ""), ErrorCode::InvalidArguments, "requestId: is empty"),
            (pair("requestId", "a\u{1}"), ErrorCode::InvalidArguments, "requestId: has"),
        ] {
            let error = asked(SEND, vec![query]).unwrap_err();
            assert_eq!(error.code, code, "{error}");
            assert!(error.message.contains(named), "{error}");
        }
    }
}
