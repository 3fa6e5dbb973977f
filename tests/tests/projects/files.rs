//! Files of projects by HTTP: sent, fetched, replaced, deleted, and what is refused.

use nexus_tests::call::Failed;
use nexus_tests::process::{LIMIT, Node, every_role, three_voters};
use nexus_tests::wait;
use reqwest::header::HeaderMap;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{bytes, call, get, make, manifest};

/// Begins a request about an asset; both parts of its path are written as given.
pub(crate) fn request(node: &Node, method: Method, project: &str, name: &str) -> RequestBuilder {
    let url = format!("{}/api/projects/{project}/assets/{name}", node.http().url());
    node.http().client().request(method, url).bearer_auth(node.http().token()).timeout(LIMIT)
}

/// Sends a file as the node's own instance, under a request id if one is given.
pub(crate) async fn put(
    node: &Node,
    (project, name): (&str, &str),
    file: Vec<u8>,
    request_id: Option<&str>,
) -> Result<Value, Failed> {
    let mut query = vec![("instanceId", format!("worker-{}", node.name()))];
    query.extend(request_id.map(|id| ("requestId", id.to_owned())));
    let query: Vec<String> = query.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let name = format!("{name}?{}", query.join("&"));
    let request = request(node, Method::PUT, project, &name).header("content-type", "image/png");
    node.http().send(request.body(file)).await
}

/// Fetches a file: its headers and its bytes.
pub(crate) async fn fetch(node: &Node, project: &str, name: &str) -> (HeaderMap, Vec<u8>) {
    let response = request(node, Method::GET, project, name).send().await.unwrap();
    assert_eq!(response.status(), 200, "{project} {name} on {}", node.name());
    (response.headers().clone(), response.bytes().await.unwrap().to_vec())
}

pub(crate) fn sha256(file: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(&Sha256::digest(file))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_comes_back_byte_for_byte_from_every_node() {
    let nodes = every_role(["one", "two", "three", "four"]).await;
    make(&nodes[0], &manifest("web_shop")).await;
    let lengths = [0, 1, 65_536, 65_537, 3_000_017];
    for (at, length) in lengths.into_iter().enumerate() {
        let (node, name) = (&nodes[at % nodes.len()], format!("{length}.png"));
        let file = bytes(length, 3);
        let stored = put(node, ("web_shop", &name), file.clone(), None).await.unwrap();
        let expected = json!({
            "ok": true, "projectId": "web_shop", "fileName": name, "size": length,
            "sha256": sha256(&file),
        });
        assert_eq!(stored, expected);
        for reader in &nodes {
            let (headers, back) = fetch(reader, "web_shop", &name).await;
            assert!(back == file, "{length} bytes, {} on {}", back.len(), reader.name());
            assert_eq!(headers["content-length"], length.to_string().as_str());
            assert_eq!(headers["content-type"], "image/png");
            assert_eq!(headers["etag"], format!("\"{}\"", sha256(&file)).as_str());
            assert!(headers.get("nexus-stale").is_none());
        }
    }
    let head = request(&nodes[1], Method::HEAD, "web_shop", "65537.png").send().await.unwrap();
    assert!(head.status().is_success() && head.headers()["content-length"] == "65537");
    assert!(head.bytes().await.unwrap().is_empty());
    let listed = get(&nodes[3], "web_shop").await["assets"].clone();
    assert_eq!(listed.as_array().unwrap().len(), lengths.len(), "{listed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_follows_its_project_and_is_replaced_and_deleted() {
    let [one, two, three] = three_voters(["one", "two", "three"]).await;
    make(&one, &manifest("web_shop")).await;
    let (old, new) = (bytes(300_000, 1), bytes(200_000, 2));
    // Names are cleaned, and found as they were given.
    let stored = put(&two, ("web_shop", "dir%2Fa%20%C3%BC.txt"), old, None).await.unwrap();
    assert_eq!(stored["fileName"], "dir_a ü.txt");
    let again = put(&three, ("web_shop", "dir_a%20%C3%BC.txt"), new.clone(), None).await.unwrap();
    assert_eq!(again["fileName"], "dir_a ü.txt");
    let rename = json!({"oldId": "web_shop", "newId": "api_shop"});
    call(&one, "rename_project", rename).await;
    let (headers, back) = fetch(&two, "api_shop", "dir%2Fa%20%C3%BC.txt").await;
    assert!(back == new && headers["content-type"] == "text/plain; charset=utf-8");
    let listed = get(&one, "api_shop").await["assets"].clone();
    let (size, by) = (&listed[0]["size"], &listed[0]["updatedBy"]);
    assert_eq!((size, by, listed.get(1)), (&json!(200_000), &json!("worker-three"), None));

    let delete = |name: &str| {
        let name = format!("{name}?instanceId=worker-two");
        two.http().send(request(&two, Method::DELETE, "api_shop", &name))
    };
    let done = delete("dir_a%20%C3%BC.txt").await.unwrap();
    assert_eq!(done["ok"], true, "{done}");
    assert_eq!(get(&one, "api_shop").await["assets"], json!([]));
    let failed = delete("dir_a%20%C3%BC.txt").await.unwrap_err();
    assert_eq!(failed.code(), "not_found");
    assert!(failed.to_string().contains("get_project lists those"), "{failed}");
    // What goes with its project is gone for readers at once.
    put(&two, ("api_shop", "a"), new, None).await.unwrap();
    call(&one, "host_delete_project", json!({"projectId": "api_shop"})).await;
    let missing = one.http().send(request(&three, Method::GET, "api_shop", "a")).await.unwrap_err();
    assert_eq!(missing.code(), "not_found", "{missing}");
    assert!(missing.to_string().contains("projectId: project api_shop does not"), "{missing}");
}

/// One bad request: its method, project, name with query, and how it must be answered.
type Case = (Method, &'static str, &'static str, u16, &'static str, &'static str);

fn cases() -> Vec<Case> {
    let (put, get, delete) = (Method::PUT, Method::GET, Method::DELETE);
    let as_me = "a?instanceId=me";
    vec![
        (put.clone(), "web_none", as_me, 404, "not_found", "projectId: project web_none does not"),
        (put.clone(), "a%23b", as_me, 400, "invalid_arguments", "projectId: has '#' in it; give"),
        (put.clone(), "a%2Fb", as_me, 400, "invalid_arguments", "projectId: has '/' in it; give"),
        (put.clone(), "a%5Cb", as_me, 400, "invalid_arguments", "projectId: has '\\\\' in it"),
        (put.clone(), "%C3%BC", as_me, 400, "invalid_arguments", "projectId: has 'ü' in it"),
        (put.clone(), "a%00", as_me, 400, "invalid_arguments", "projectId: has '\\0' in it"),
        (put.clone(), "%ff", as_me, 400, "bad_request", "is not UTF-8: give them percent-encoded"),
        (put.clone(), "web_shop", "a%0Ab?instanceId=me", 400, "invalid_arguments", "fileName: has"),
        (put.clone(), "web_shop", "%20?instanceId=me", 400, "invalid_arguments", "fileName: is"),
        (put.clone(), "web_shop", "a", 403, "unidentified", "give ?instanceId=ID in the query"),
        (put.clone(), "web_shop", "a?instance=me", 400, "bad_request", "instance is not asked for"),
        (
            put.clone(),
            "web_shop",
            "a?instanceId=codex:1",
            400,
            "invalid_arguments",
            "instanceId: has a :",
        ),
        (
            put.clone(),
            "web_shop",
            "a?instanceId=",
            400,
            "invalid_arguments",
            "instanceId: is empty",
        ),
        (
            put.clone(),
            "web_shop",
            "a?instanceId=me&requestId=",
            400,
            "invalid_arguments",
            "requestId: is empty",
        ),
        (
            put.clone(),
            "web_shop",
            "a?instanceId=me&requestId=%01",
            400,
            "invalid_arguments",
            "requestId: has the control character",
        ),
        (put, "web_shop", "a/b?instanceId=me", 404, "not_found", "is not served here"),
        (get.clone(), "web_none", "a", 404, "not_found", "projectId: project web_none does not"),
        (
            get.clone(),
            "web_shop",
            "none",
            404,
            "not_found",
            "fileName: asset none of project web_shop",
        ),
        (get, "web_shop", "%C3%BC", 404, "not_found", "asset ü of project web_shop does not"),
        (delete.clone(), "web_shop", as_me, 404, "not_found", "fileName: asset a of project"),
        (delete.clone(), "web_none", as_me, 404, "not_found", "projectId: project web_none"),
        (delete, "web_shop", "a", 403, "unidentified", "DELETE of an asset needs to know"),
        (Method::POST, "web_shop", "a", 400, "bad_request", "Content-Type"),
        (Method::PATCH, "web_shop", "a", 405, "method_not_allowed", "does not take PATCH"),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_requests_are_refused_in_words_and_change_nothing() {
    let node = Node::found("one").await;
    make(&node, &manifest("web_shop")).await;
    // Whoever is refused is registered by then, and so is what a new cluster writes down.
    let me = request(&node, Method::PUT, "web_shop", "kept?instanceId=me").body(vec![1]);
    node.http().send(me).await.unwrap();
    wait::until("the first voter's entry", LIMIT, async || {
        let events = call(&node, "list_events", json!({"action": "node.promote"})).await;
        if events["count"] == 1 { Ok(()) } else { Err(events) }
    })
    .await;
    let before = node.content().await;
    for (method, project, name, status, code, words) in cases() {
        let what = format!("{method} {project} {name}");
        let asked = request(&node, method, project, name).body("x");
        let failed = node.http().send(asked).await.unwrap_err();
        let Failed::Refused { status: given, body } = &failed else { panic!("{what}: {failed}") };
        assert_eq!((*given, failed.code()), (status, code), "{what}: {body}");
        assert!(body["error"].as_str().unwrap().contains(words), "{what}: {body}");
    }
    let url = format!("{}/api/projects/web_shop/assets/kept", node.http().url());
    let failed = node.http().send(node.http().client().get(&url)).await.unwrap_err();
    assert_eq!(failed.code(), "unauthorized", "{failed}");
    let too_long = too_long(&node).await;
    assert!(too_long.starts_with("HTTP/1.1 413 ") && too_long.contains("268435456"), "{too_long}");
    assert_eq!(node.content().await, before);
    assert!(!node.log().contains("panicked"), "{}", node.log());
}

/// Announces a file that is too long, sends nothing of it, and returns the answer.
async fn too_long(node: &Node) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let address = node.http().url().strip_prefix("http://").unwrap().to_owned();
    let mut stream = tokio::net::TcpStream::connect(&address).await.unwrap();
    let head = format!(
        "PUT /api/projects/web_shop/assets/a?instanceId=me HTTP/1.1\r\nHost: {address}\r\n\
         Authorization: Bearer {}\r\nContent-Length: 268435457\r\nExpect: 100-continue\r\n\
         Connection: close\r\n\r\n",
        node.http().token()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}
