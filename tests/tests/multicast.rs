//! Real multicast between network namespaces: two desks on one switch, and one behind a wall.
//!
//! Needs root and `ip`; says so when it is skipped. Each desk is this test binary again, run inside
//! a namespace as one of the ignored tests below, and spoken to by lines.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "all of this file is a test")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use nexus_discovery::{
    Announcement, ClusterHint, Config, Discovery, Hint, Lan, Record, Role, Search, mdns,
};
use nexus_rt::{Jobs, SystemClock};
use nexus_tests::network::Network;

/// A finding on a quiet switch takes well under a second; a busy machine may take longer.
const LIMIT: Duration = Duration::from_secs(40);
/// Tells a desk from a run of the ignored tests by hand.
const DESK: &str = "NEXUS_DISCOVERY_DESK";

/// This test binary inside a namespace.
struct Desk {
    child: Child,
    orders: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Desk {
    fn start(namespace: &str) -> Self {
        let mut child = Command::new("ip")
            .args(["netns", "exec", namespace])
            .arg(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "desk", "--nocapture"])
            .env(DESK, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (said, lines) = channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if said.send(line).is_err() {
                    break;
                }
            }
        });
        let orders = child.stdin.take();
        Self { child, orders, lines }
    }

    fn order(&mut self, order: &str) {
        writeln!(self.orders.as_mut().unwrap(), "{order}").unwrap();
    }

    /// Waits for a line that begins so, and returns the rest of it.
    fn wait(&self, beginning: &str) -> String {
        let deadline = tokio::time::Instant::now() + LIMIT;
        let mut heard = Vec::new();
        loop {
            let left = deadline.saturating_duration_since(tokio::time::Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => match line.strip_prefix(beginning) {
                    Some(rest) => return rest.trim().to_owned(),
                    None => heard.push(line),
                },
                Err(end @ (RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected)) => {
                    panic!("no line {beginning:?} ({end}); heard {heard:#?}");
                }
            }
        }
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        // The end of its orders ends the desk; the kill is for one that does not listen.
        drop(self.orders.take());
        if std::thread::panicking() {
            drop(self.child.kill());
        }
        drop(self.child.wait());
    }
}

#[test]
fn a_joiner_on_another_machine_finds_its_inviter_by_the_code_alone() {
    let Some(mut switch) = switch('a') else { return };
    let (first, second) =
        (switch.host_of_containers(1).unwrap(), switch.host_of_containers(2).unwrap());
    let (mut inviter, mut joiner) = (Desk::start(&first), Desk::start(&second));

    joiner.order("search aaaa11");
    inviter.order("announce 1 aaaa11");
    let found = joiner.wait("found");
    assert!(found.starts_with("1 10.78.0.1:7000"), "the LAN's address is first: {found}");
    assert!(!found.contains("172.18."), "a container's address was announced: {found}");

    // The same start with another invite.
    joiner.order("search bbbb22");
    inviter.order("announce 1 bbbb22");
    assert!(joiner.wait("found").starts_with("1 10.78.0.1:7000"));

    // Both lose their network and get it back; whoever notices rebuilds.
    for number in [1, 2] {
        switch.cut(number);
        switch.mend(number);
    }
    inviter.order("rebuild");
    joiner.order("rebuild");
    joiner.order("search cccc33");
    inviter.order("announce 1 cccc33");
    assert!(joiner.wait("found").starts_with("1 10.78.0.1:7000"));

    // A goodbye is heard at once, long before any record's time is over.
    inviter.order("silence");
    assert_eq!(inviter.wait("silent"), "true");
    joiner.order("until-gone");
    joiner.wait("gone");
}

#[test]
fn link_local_addresses_of_ipv6_come_with_their_interface() {
    let Some(mut switch) = switch('b') else { return };
    if !std::path::Path::new("/proc/sys/net/ipv6").exists() {
        eprintln!("skipped: this system has no IPv6");
        return;
    }
    let (first, second) = (switch.bare_host(1).unwrap(), switch.bare_host(2).unwrap());
    let (mut inviter, mut joiner) = (Desk::start(&first), Desk::start(&second));
    joiner.order("search aaaa11");
    inviter.order("announce 1 aaaa11");
    let found = joiner.wait("found");
    assert!(found.starts_with("1 [fe80::") && found.contains('%'), "{found}");
}

/// Makes a switch, or says why the test is skipped.
fn switch(letter: char) -> Option<Network> {
    match Network::new(letter) {
        Ok(switch) => Some(switch),
        Err(reason) => {
            eprintln!("skipped: network namespaces are not possible here: {reason}");
            None
        }
    }
}

#[test]
#[ignore = "a desk of the test above, which runs it inside a namespace"]
fn desk() {
    if std::env::var_os(DESK).is_none() {
        return;
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(follow_orders());
}

fn say(line: &str) {
    // Beside the harness's capture, and nobody is left to hear when it fails.
    drop(writeln!(std::io::stdout(), "\n{line}"));
}

async fn follow_orders() {
    let jobs = Jobs::new();
    let discovery = Discovery::start(Config {
        announce: None,
        seeds: Vec::new(),
        lan: Lan::Mdns(mdns::Options::default()),
        clock: Arc::new(SystemClock),
        jobs: jobs.clone(),
    });
    let mut searches: Vec<Search> = Vec::new();
    loop {
        let read = jobs.blocking("orders", || {
            let mut line = String::new();
            std::io::stdin().read_line(&mut line).map(|_| line)
        });
        let line = read.await.unwrap().unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [] => break,
            ["announce", node, invite] => discovery.announce(announcement(node, invite)),
            ["search", invite] => {
                let mut search = discovery.search(Hint::Invite(invite.parse().unwrap()));
                match search.next(LIMIT).await {
                    Some(found) => {
                        let node = found.node.map_or(0, |(_, node)| node);
                        let addresses: Vec<String> =
                            found.addresses.iter().map(ToString::to_string).collect();
                        say(&format!("found {node} {}", addresses.join(" ")));
                    }
                    None => say(&format!("nothing {:?}", discovery.status())),
                }
                searches.push(search);
            }
            ["rebuild"] => discovery.rebuild(),
            ["silence"] => say(&format!("silent {}", discovery.silence(LIMIT).await)),
            ["until-gone"] => {
                let mut changes = discovery.changes();
                let cluster = Hint::Cluster(ClusterHint::of("ours"));
                let gone = changes.wait_for(|known| known.candidates(&cluster, 0).is_empty());
                if tokio::time::timeout(LIMIT, gone).await.is_ok() {
                    say("gone");
                } else {
                    say(&format!("still there {:?}", discovery.directory()));
                }
            }
            other => panic!("unknown order {other:?}"),
        }
    }
    drop(searches);
    assert_eq!(jobs.shutdown(LIMIT).await, Vec::<&str>::new());
}

fn announcement(node: &str, invite: &str) -> Announcement {
    let record = Record {
        cluster: ClusterHint::of("ours"),
        node: node.parse().unwrap(),
        role: Role::Voter,
        boot: 0xb007,
        invites: vec![invite.parse().unwrap()],
    };
    Announcement { record, port: 7000, addresses: Vec::new() }
}
