//! The HTTP client as the command line uses it: one try, a typed answer or a typed failure.

use crate::support::{Act, FakeNode};
use nexus_adapter::{ClientError, EndpointSource, LocalNode};
use nexus_contract::http::{Done, Health, PATH_HEALTH, ToolCall};
use nexus_contract::{ApiError, ErrorCode};
use serde_json::json;

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
