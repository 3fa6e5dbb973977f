//! The HTTP client as the command line uses it: one try, a typed answer or a typed failure.

use crate::support::{Act, FakeNode, LIMIT};
use nexus_adapter::{ClientError, EndpointSource, LocalNode};
use nexus_contract::http::{Done, Health, PATH_HEALTH, ToolCall};
use nexus_contract::{ApiError, ErrorCode};
use nexus_rt::Jobs;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

#[tokio::test]
async fn answers_are_typed_and_failures_told_apart() {
    let data = tempfile::tempdir().unwrap();
    let node = LocalNode::new(EndpointSource::folder(data.path())).unwrap();
    let away = node.get::<Done>("/health").await.unwrap_err();
    assert!(matches!(away, ClientError::NotReachable { sent: false, .. }), "{away}");

    let conflict = ApiError::new(ErrorCode::Conflict, "name is taken: give another");
    let acts = vec![Act::Refuse(conflict.clone()), Act::Result(json!({"profile": {}}))];
    let _fake = FakeNode::start(data.path(), acts).await;
    let done: Done = node.delete("/api/invites/i-1").await.unwrap();
    assert_eq!(done, Done::new("invite i-1 is withdrawn"));
    let call = ToolCall {
        tool: "set_profile".into(),
        args: json!({"name": "x"}),
        instance_id: Some("cli-user".into()),
        ..ToolCall::default()
    };
    match node.call(&call).await {
        Err(ClientError::Refused(error)) => assert_eq!(error, conflict),
        other => panic!("{other:?}"),
    }
    assert_eq!(node.call(&call).await.unwrap()["profile"], json!({}));
    assert!(node.get_text(PATH_HEALTH).await.unwrap().contains("nexus"));
    // An answer without the fields of this version comes from something else.
    let odd = node.get::<Health>(PATH_HEALTH).await.unwrap_err();
    assert!(odd.to_string().contains("does not answer as a node"), "{odd}");
}

/// A program that is no node: it reads a little of each connection, writes these bytes, and closes.
async fn other_program(says: &'static [u8], jobs: &Jobs) -> EndpointSource {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let token = jobs.token();
    jobs.spawn("other program", async move {
        let serve = async {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut some = [0; 64];
                let read = stream.read(&mut some).await.unwrap();
                assert!(read > 0);
                // What was not read makes the end a reset.
                stream.write_all(says).await.unwrap();
            }
        };
        token.run_until_cancelled(serve).await;
    });
    EndpointSource {
        endpoint: Some(address.to_string()),
        token: Some("t".into()),
        ..EndpointSource::folder(std::path::Path::new("/nowhere"))
    }
}

#[tokio::test]
async fn what_only_looks_is_never_in_doubt() {
    const HTML: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>";
    const JSON: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{\"a\": []}";
    const BARE: &[u8] = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
    let jobs = Jobs::new();
    let (unknown, away) = (ErrorCode::UnknownOutcome, ErrorCode::NodeUnreachable);
    for (says, words, write) in [
        // As a node that dies with a call in its hands.
        (&b""[..], "", unknown),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "is no nexus node: it speaks no HTTP", away),
        (b"220 mail.example ESMTP\r\n", "is no nexus node: it speaks no HTTP", away),
        (HTML, "is no nexus node", away),
        (BARE, "is no nexus node (HTTP 404 Not Found)", away),
        // As a node of a version to come.
        (JSON, "does not answer as a node of this version", unknown),
    ] {
        let node = LocalNode::new(other_program(says, &jobs).await).unwrap();
        let tool = |tool: &str| ToolCall { tool: tool.into(), ..ToolCall::default() };
        let health = node.get::<Health>(PATH_HEALTH).await.unwrap_err();
        let events = node.call(&tool("list_events")).await.unwrap_err();
        let sent = node.call(&tool("send_message")).await.unwrap_err();
        for (error, code) in [(health, away), (events, away), (sent, write)] {
            let error = error.into_api_error(None);
            assert_eq!(error.code, code, "{error}");
            assert!(error.message.contains(words), "{error}");
            if code == away {
                assert!(error.message.contains("--endpoint or NEXUS_ENDPOINT"), "{error}");
            }
        }
    }
    assert!(jobs.shutdown(LIMIT).await.is_empty());
}
