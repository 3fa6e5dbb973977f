//! What a long file costs, and whom; run by hand, prints and checks only that it comes back.
//!
//! ```text
//! cargo test -p nexus-tests --test projects -- --ignored --nocapture measure
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nexus_rt::Jobs;
use nexus_tests::call::{As, Http};
use nexus_tests::process::{LIMIT, Node, agree, three_voters};
use reqwest::Method;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::Instant;

use super::files::{request, sha256};
use super::{bytes, make, manifest};

/// As long as an asset may be.
const LENGTH: usize = 256 * 1024 * 1024;
/// How long the chat is measured by itself.
const QUIET: Duration = Duration::from_secs(5);
/// How long a transfer may take.
const TRANSFER: Duration = Duration::from_secs(600);

/// Posts one message after the other until told to stop, and gives the time of each.
async fn chat(http: Http, stop: Arc<AtomicBool>, done: watch::Sender<Vec<Duration>>) {
    let mut times = Vec::new();
    while !stop.load(Ordering::Acquire) {
        let since = Instant::now();
        let who = As { instance: "talker", request: None };
        let said = http.call("send_message", json!({"message": "hello"}), who).await;
        assert!(said.is_ok(), "{}", said.unwrap_err());
        times.push(since.elapsed());
    }
    done.send_replace(times);
}

/// Does something while somebody talks on another node; returns how long it took, and how long the
/// messages did.
async fn beside_a_chat<T>(node: &Node, work: impl Future<Output = T>) -> (T, String) {
    let (jobs, stop) = (Jobs::new(), Arc::new(AtomicBool::new(false)));
    let (done, times) = watch::channel(Vec::new());
    jobs.spawn("chat", chat(node.http().clone(), Arc::clone(&stop), done));
    let value = work.await;
    stop.store(true, Ordering::Release);
    assert!(jobs.shutdown(LIMIT).await.is_empty());
    let mut times = times.borrow().clone();
    times.sort();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100];
    let [half, most, max] = [50, 99, 100].map(at);
    (value, format!("{} messages: p50 {half:.1?}, p99 {most:.1?}, max {max:.1?}", times.len()))
}

/// Returns a node's resident memory now and at most since the last look, in MB.
fn memory(node: &Node) -> String {
    let status = format!("/proc/{}/status", node.pid());
    let status = std::fs::read_to_string(status).unwrap_or_default();
    let of = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        let kilobytes = line.trim().split(' ').next().and_then(|word| word.parse::<u64>().ok());
        kilobytes.unwrap_or_default() / 1024
    };
    // Where that is allowed, the next peak counts from here.
    std::fs::write(format!("/proc/{}/clear_refs", node.pid()), "5").ok();
    format!("{} {} MB (peak {})", node.name(), of("VmRSS:"), of("VmHWM:"))
}

fn memories(nodes: [&Node; 3]) -> String {
    nodes.map(memory).join(", ")
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures, by hand"]
async fn measure_the_longest_file() {
    let [one, two, three] = three_voters(["one", "two", "three"]).await;
    let nodes = [&one, &two, &three];
    make(&one, &manifest("web_shop")).await;
    let file = bytes(LENGTH, 1);
    eprintln!("idle: {}", memories(nodes));
    let (_, quiet) = beside_a_chat(&three, tokio::time::sleep(QUIET)).await;
    eprintln!("chat alone: {quiet}; {}", memories(nodes));

    let name = "long.bin?instanceId=sender";
    let put = request(&two, Method::PUT, "web_shop", name).timeout(TRANSFER).body(file.clone());
    let sent = async {
        let since = Instant::now();
        let stored = two.http().send(put).await.unwrap();
        assert_eq!(stored["sha256"], sha256(&file).as_str());
        since.elapsed()
    };
    let (took, talked) = beside_a_chat(&three, sent).await;
    eprintln!("PUT to a follower: {took:.1?}; {talked}; {}", memories(nodes));

    let get = request(&three, Method::GET, "web_shop", "long.bin").timeout(TRANSFER);
    let fetched = async {
        let since = Instant::now();
        let back = get.send().await.unwrap().bytes().await.unwrap();
        assert!(*back == *file);
        since.elapsed()
    };
    let (took, talked) = beside_a_chat(&one, fetched).await;
    eprintln!("GET from another: {took:.1?}; {talked}; {}", memories(nodes));
    agree(&nodes, LIMIT).await;
}
