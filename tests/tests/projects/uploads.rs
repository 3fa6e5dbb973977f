//! Long files on their way: one effect, no place taken for nothing, nobody buried.

use std::time::Duration;

use nexus_rt::Jobs;
use nexus_tests::process::{LIMIT, Node, agree, text, three_voters};
use nexus_tests::wait;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::files::{fetch, put, request, sha256};
use super::{bytes, call, get, make, manifest};

/// Long enough that it is on its way for a while.
const LONG: usize = 24 * 1024 * 1024;

async fn applied(node: &Node) -> u64 {
    let view = node.http().get("/api/digest").await;
    view.unwrap_or_else(|failed| panic!("{failed}"))["now"]["index"].as_u64().unwrap()
}

/// Sends a whole file and hangs up as soon as so many entries of it are in the log.
async fn hang_up(node: &Node, name: &str, file: &[u8], entries: u64) {
    let before = applied(node).await;
    let address = node.http().url().strip_prefix("http://").unwrap().to_owned();
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let head = format!(
        "PUT /api/projects/web_shop/assets/{name} HTTP/1.1\r\nHost: {address}\r\n\
         Authorization: Bearer {}\r\nContent-Length: {}\r\n\r\n",
        node.http().token(),
        file.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(file).await.unwrap();
    wait::until("chunks in the log", LIMIT, async || {
        let now = applied(node).await;
        if now >= before + entries { Ok(()) } else { Err(format!("{now}, {before} before")) }
    })
    .await;
    drop(stream);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_hangs_up_takes_neither_place_nor_room() {
    let [one, two, three] = three_voters(["one", "two", "three"]).await;
    make(&one, &manifest("web_shop")).await;
    let long = bytes(LONG, 5);
    let (a, b) = ("a?instanceId=first", "b?instanceId=second&requestId=r-1");
    tokio::join!(hang_up(&two, a, &long, 20), hang_up(&three, b, &long, 20));
    // Both places would be taken for a minute by uploads that nobody brings.
    let since = Instant::now();
    put(&one, ("web_shop", "c"), bytes(200_000, 6), None).await.unwrap();
    let took = since.elapsed();
    assert!(took < Duration::from_secs(20), "{took:?}");
    let assets = get(&one, "web_shop").await["assets"].clone();
    assert_eq!((&assets[0]["fileName"], assets.get(1)), (&json!("c"), None), "{assets}");
    // Half of a file that stays away is nothing at all.
    let address = two.http().url().strip_prefix("http://").unwrap().to_owned();
    let index = applied(&two).await;
    let mut half = TcpStream::connect(&address).await.unwrap();
    let head = format!(
        "PUT /api/projects/web_shop/assets/d?instanceId=first HTTP/1.1\r\nHost: {address}\r\n\
         Authorization: Bearer {}\r\nContent-Length: {LONG}\r\n\r\n",
        two.http().token()
    );
    half.write_all(head.as_bytes()).await.unwrap();
    half.write_all(&long[..LONG / 2]).await.unwrap();
    drop(half);
    // The same call again, under the id of the one that was given up, is done.
    let stored = put(&three, ("web_shop", "b"), long.clone(), Some("r-1")).await.unwrap();
    assert_eq!(stored["sha256"], sha256(&long).as_str());
    assert!(fetch(&one, "web_shop", "b").await.1 == long);
    let entries = applied(&two).await - index;
    let most = u64::try_from(LONG / 65_536).unwrap() + 40;
    assert!(entries < most, "{entries} entries for one file of {}", LONG / 65_536);
    agree(&[&one, &two, &three], LIMIT).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_id_stores_once_wherever_it_is_sent() {
    let [one, two, three] = three_voters(["one", "two", "three"]).await;
    make(&one, &manifest("web_shop")).await;
    let (file, other) = (bytes(500_000, 8), bytes(500_000, 9));
    let send = async |node: &Node, name: &str, file: &[u8]| {
        let name = format!("{name}?instanceId=sender&requestId=r-1");
        let request = request(node, Method::PUT, "web_shop", &name);
        node.http().send(request.body(file.to_vec())).await
    };
    // At once from two nodes: one upload, which both bring.
    let (first, second) = tokio::join!(send(&one, "a", &file), send(&two, "a", &file));
    let (first, second) = (first.unwrap(), second.unwrap());
    assert_eq!(first, second);
    put(&three, ("web_shop", "a"), other.clone(), None).await.unwrap();
    for node in [&one, &two, &three] {
        assert_eq!(send(node, "a", &file).await.unwrap(), first);
    }
    assert!(fetch(&two, "web_shop", "a").await.1 == other);
    for (name, file) in [("a", &other), ("b", &file)] {
        let failed = send(&three, name, file).await.unwrap_err();
        assert_eq!(failed.code(), "conflict", "{failed}");
    }
    let events = call(&one, "list_events", json!({"action": "project.asset"})).await;
    assert_eq!(events["count"], 2, "{events:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn more_than_two_files_at_once_wait_for_a_place() {
    let [one, two, three] = three_voters(["one", "two", "three"]).await;
    make(&one, &manifest("web_shop")).await;
    let nodes = [&one, &two, &three, &two, &three];
    let names = ["a", "b", "c", "d", "e"];
    let file = bytes(2_000_000, 4);
    let send = |at: usize| put(nodes[at], ("web_shop", names[at]), file.clone(), None);
    let (a, b, c, d, e) = tokio::join!(send(0), send(1), send(2), send(3), send(4));
    for stored in [a, b, c, d, e] {
        assert_eq!(stored.unwrap()["size"], 2_000_000);
    }
    for name in names {
        assert!(fetch(&one, "web_shop", name).await.1 == file, "{name}");
    }
}

/// Returns how a member is, as this node says, and how many entries it lacks.
fn member(status: &Value, name: &str) -> (String, u64) {
    let members = status["members"].as_array().into_iter().flatten();
    let member = members.into_iter().find(|member| member["name"] == name);
    let member = member.unwrap_or_else(|| panic!("{name} is not in {status:#}"));
    (text(&member["state"]), member["lag"].as_u64().unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_is_up_and_slow_is_waited_for() {
    let [one, two, three] = three_voters(["one", "two", "three"]).await;
    make(&one, &manifest("web_shop")).await;
    let file = bytes(LONG, 11);
    // It says nothing, and counts as up until the leader notices.
    three.freeze();
    let sent = Jobs::new();
    let (http, body) = (two.http().clone(), file.clone());
    let (done, mut stored) = tokio::sync::watch::channel(None);
    sent.spawn("put", async move {
        let url = format!("{}/api/projects/web_shop/assets/a?instanceId=me", http.url());
        let request = http.client().put(url).bearer_auth(http.token()).timeout(LIMIT);
        done.send_replace(Some(http.send(request.body(body)).await));
    });
    let mut most = 0;
    let mut looks = 0;
    while stored.borrow_and_update().is_none() {
        let (state, lag) = member(&one.http().get("/api/cluster").await.unwrap(), "three");
        if state == "up" {
            most = most.max(lag);
            looks += 1;
        }
    }
    eprintln!("while it was up, in {looks} looks, three lacked {most} entries at most");
    // 1 MiB of chunks, the one that is under way, and what else a cluster writes.
    assert!(looks > 0 && most <= 16 + 8, "three was up and lacked {most} entries");
    let stored = stored.borrow().clone().unwrap();
    assert_eq!(stored.unwrap()["sha256"], sha256(&file).as_str());
    three.thaw();
    agree(&[&one, &two, &three], LIMIT).await;
    assert!(fetch(&three, "web_shop", "a").await.1 == file);
    assert!(sent.shutdown(LIMIT).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_dies_under_an_upload_costs_nothing() {
    let [mut one, two, three] = three_voters(["one", "two", "three"]).await;
    make(&one, &manifest("web_shop")).await;
    let file = bytes(LONG, 12);
    let before = applied(&two).await;
    let sending = put(&two, ("web_shop", "a"), file.clone(), None);
    let killing = async {
        wait::until("chunks in the log", LIMIT, async || {
            let now = applied(&two).await;
            if now >= before + 30 { Ok(()) } else { Err(now) }
        })
        .await;
        one.kill();
    };
    let (stored, ()) = tokio::join!(sending, killing);
    assert_eq!(stored.unwrap()["sha256"], sha256(&file).as_str());
    assert!(fetch(&three, "web_shop", "a").await.1 == file);
    one.start(&[]).await;
    agree(&[&one, &two, &three], LIMIT).await;
    assert!(fetch(&one, "web_shop", "a").await.1 == file);
}
