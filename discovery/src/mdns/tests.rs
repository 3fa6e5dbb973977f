//! Live daemons on loopback, on a port of their own.

use nexus_rt::{Jobs, SystemClock};

use super::*;
use crate::{ClusterHint, Config, Discovery, Hint, Lan, Role};

const LIMIT: Duration = Duration::from_secs(30);

/// A UDP port that was free a moment ago; several daemons share it.
fn free_port() -> u16 {
    std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn start(port: u16, jobs: &Jobs) -> Discovery {
    let options = Options { scope: Scope::Loopback, port };
    Discovery::start(Config {
        announce: None,
        seeds: Vec::new(),
        lan: Lan::Mdns(options),
        clock: Arc::new(SystemClock),
        jobs: jobs.clone(),
    })
}

fn announcement(node: u64, boot: u64, invite: &str) -> Announcement {
    let record = Record {
        cluster: ClusterHint::of("ours"),
        node,
        role: Role::Voter,
        boot,
        invites: vec![invite.parse().unwrap()],
    };
    Announcement { record, port: 7000, addresses: Vec::new() }
}

fn invite(id: &str) -> Hint {
    Hint::Invite(id.parse().unwrap())
}

async fn wait_until(discovery: &Discovery, what: &str, hint: &Hint, there: bool) {
    let mut changes = discovery.changes();
    let now = discovery.sink.now();
    let fits = changes.wait_for(|known| known.candidates(hint, now).is_empty() != there);
    let waited = tokio::time::timeout(LIMIT, fits).await.is_ok();
    let (known, status) = (discovery.directory(), discovery.status());
    assert!(waited, "{what}; last seen: {known:#?} {status:?}");
}

#[tokio::test]
async fn two_daemons_find_each_other_follow_changes_and_say_goodbye() {
    let (jobs, port) = (Jobs::new(), free_port());
    let (node, joiner) = (start(port, &jobs), start(port, &jobs));
    node.announce(announcement(1, 0xa1, "aaaa11"));
    let search = joiner.search(invite("aaaa11"));
    wait_until(&joiner, "the inviter is found", &invite("aaaa11"), true).await;
    let found = search.candidates().remove(0);
    assert_eq!(found.node, Some((ClusterHint::of("ours"), 1)));
    assert!(found.addresses.contains(&"127.0.0.1:7000".parse().unwrap()), "{found:?}");
    assert_eq!(node.directory().candidates(&invite("aaaa11"), 0), [], "it does not find itself");

    node.announce(announcement(1, 0xa1, "bbbb22"));
    wait_until(&joiner, "the new invite is seen", &invite("bbbb22"), true).await;
    wait_until(&joiner, "the old invite is gone", &invite("aaaa11"), false).await;

    joiner.rebuild();
    node.rebuild();
    node.announce(announcement(1, 0xa2, "cccc33"));
    wait_until(&joiner, "the new start is seen", &invite("cccc33"), true).await;
    wait_until(&joiner, "the old start said goodbye", &invite("bbbb22"), false).await;

    assert!(node.silence(LIMIT).await, "{:?}", node.status());
    let cluster = Hint::Cluster(ClusterHint::of("ours"));
    wait_until(&joiner, "the node is gone", &cluster, false).await;
    drop(search);
    assert_eq!(jobs.shutdown(LIMIT).await, Vec::<&str>::new());
}

#[tokio::test]
async fn shutdown_says_goodbye() {
    let (jobs, others, port) = (Jobs::new(), Jobs::new(), free_port());
    let (node, watcher) = (start(port, &jobs), start(port, &others));
    node.announce(announcement(1, 0xa1, "aaaa11"));
    let search = watcher.search(invite("aaaa11"));
    wait_until(&watcher, "the node is found", &invite("aaaa11"), true).await;
    assert_eq!(jobs.shutdown(LIMIT).await, Vec::<&str>::new());
    wait_until(&watcher, "the node is gone", &invite("aaaa11"), false).await;
    drop(search);
    assert_eq!(others.shutdown(LIMIT).await, Vec::<&str>::new());
}

#[tokio::test]
async fn a_daemon_that_dies_is_made_anew() {
    let (jobs, port) = (Jobs::new(), free_port());
    let discovery = start(port, &jobs);
    let (_unused, doubts) = mpsc::channel(1);
    let wish = watch::Sender::new(Wish { searches: 1, ..Wish::default() });
    let options = Options { scope: Scope::Loopback, port };
    let mut driver = Driver::new(options, wish.subscribe(), doubts, discovery.sink.clone());
    driver.reconcile().await;
    let done = driver.live.as_ref().unwrap().daemon.shutdown().unwrap();
    done.recv_async().await.unwrap();
    let token = CancellationToken::new();
    let mut status = discovery.status_changes();
    let follow = driver.follow(&token);
    let revived = async {
        status.wait_for(|status| status.activity == Activity::Failing).await.unwrap();
        status.wait_for(|status| status.activity == Activity::Live).await.unwrap();
    };
    tokio::select! {
        () = follow => panic!("the driver ended"),
        done = tokio::time::timeout(LIMIT, revived) => done.expect("a new daemon"),
    }
}

#[tokio::test]
async fn nobody_asks_and_no_daemon_is_made() {
    let (jobs, port) = (Jobs::new(), free_port());
    let discovery = start(port, &jobs);
    let mut status = discovery.status_changes();
    let silent = status.wait_for(|status| status.activity == Activity::Silent);
    tokio::time::timeout(LIMIT, silent).await.unwrap().unwrap();
    // The daemon opens its sockets on this port; alone and without sharing it can be bound.
    let bound = std::net::UdpSocket::bind(("0.0.0.0", port));
    assert!(bound.is_ok(), "{bound:?}");
}

#[test]
fn foreign_loopback_is_dropped_and_scopes_stay_with_link_local_addresses() {
    let ips: Vec<IpAddr> = ["127.0.0.1", "::1", "10.0.0.2", "2001:db8::1", "fe80::1"]
        .iter()
        .map(|ip| ip.parse().unwrap())
        .collect();
    let mut announced = announcement(1, 1, "aaaa11");
    announced.addresses = ips;
    let resolved = service(&announced).unwrap().as_resolved_service();
    let there: Vec<String> = addresses(&resolved, false).iter().map(ToString::to_string).collect();
    assert_eq!(there, ["10.0.0.2:7000", "[2001:db8::1]:7000", "[fe80::1]:7000"]);
    assert_eq!(addresses(&resolved, true).len(), 5);
}
