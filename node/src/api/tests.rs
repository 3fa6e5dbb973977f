//! The forms in which failures leave.

use axum::body::Bytes;
use axum::http::StatusCode;

use super::respond::read;
use super::*;

async fn body(response: Response) -> (StatusCode, serde_json::Value) {
    let status = response.status();
    let bytes = axum::body::to_bytes(response.into_body(), BODY_BYTES_MAX).await.unwrap();
    (status, serde_json::from_slice(&bytes).unwrap())
}

#[tokio::test]
async fn a_panic_leaves_as_a_fault_in_json() {
    let (status, body) = body(panicked(Box::new("secret words"))).await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(body["code"], "internal");
    assert!(!body.to_string().contains("secret words"), "{body}");
}

#[tokio::test]
async fn refusals_carry_their_headers() {
    let limited = ApiError::new(ErrorCode::RateLimited, "x").with_retry_after(3);
    let response = Refused(limited).into_response();
    assert_eq!(response.headers()["retry-after"], "3");
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    let (_, body) = body(response).await;
    assert_eq!(body["retryAfter"], 3);
    let response = Refused(ApiError::new(ErrorCode::Unauthorized, "x")).into_response();
    assert_eq!(response.headers()["www-authenticate"], "Bearer");
    let (status, body) =
        self::body(unknown_path(Method::GET, Uri::from_static("/x")).await.into_response()).await;
    assert_eq!((status, body["code"].as_str()), (StatusCode::NOT_FOUND, Some("not_found")));
}

#[test]
fn bad_bodies_say_where_they_are_bad() {
    let call = |text: &'static str| read::<ToolCall>(Ok(Bytes::from_static(text.as_bytes())));
    for (text, what) in [
        ("{", "is not JSON: EOF while parsing an object at line 1 column 1"),
        ("{\n  \"tool\": }", "at line 2 column 11"),
        (
            "{\"tool\": \"x\", \"args\": {\"message\": 1, \"message\": 2}}",
            "body has the key \"message\" twice at line 1 column 46: give each key once; give {",
        ),
        ("[]", "body does not fit: body: is an array of 0; give an object"),
        ("{}", "body does not fit: tool: is missing; give a string"),
        ("", "body does not fit: tool: is missing; give a string"),
        ("{\"tool\": 1}", "body does not fit: tool: is 1; give a string"),
        (
            "{\"tool\": \"x\", \"caller\": \"junk\"}",
            "caller: is the string \"junk\"; give an object",
        ),
    ] {
        let error = call(text).unwrap_err();
        assert_eq!(error.code, ErrorCode::BadRequest);
        assert!(error.message.contains(what), "{text}: {}", error.message);
    }
    let deep = "[".repeat(10_000);
    let error = read::<ToolCall>(Ok(Bytes::from(deep))).unwrap_err();
    assert!(error.message.contains("recursion limit"), "{}", error.message);
    assert!(call("{\"tool\": \"x\", \"more\": 1}").is_ok());
}

#[test]
fn paths_in_metrics_are_never_made_up_by_callers() {
    for (uri, known) in [
        ("/api/tools/call", PATH_CALL),
        ("/api/tools", PATH_TOOLS),
        ("/api/peers?includeOffline=true", PATH_PEERS),
        ("/api/invites/abc?x=1", PATH_INVITES),
        ("/api/invitesx", "other"),
        ("/", "other"),
    ] {
        assert_eq!(known_path(&Uri::from_static(uri)), known, "{uri}");
    }
}
