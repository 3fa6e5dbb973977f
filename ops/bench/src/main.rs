//! nexus beside etcd: three nodes each on loopback, the same load in turn, the same disk.
//!
//! nexus is measured by its own `nexus bench`. etcd is Debian's `etcd-server`, written to by its
//! own gRPC; building this crate needs `protoc` and the types that
//! come with it (Debian: `protobuf-compiler libprotobuf-dev`). To run it:
//! `cargo build` (nexus), then `cargo run -p nexus-bench -- --nexus target/debug/nexus`.

mod etcd;
mod nexus;

use std::io::Write as _;
use std::path::PathBuf;

use clap::Parser;
use serde::Deserialize;

use etcd::Etcd;

/// Measures writes of nexus and of etcd in turn
#[derive(Debug, Parser)]
struct Flags {
    /// The program that has the verb `bench`
    #[arg(long, default_value = "target/debug/nexus")]
    nexus: PathBuf,
    /// etcd's server
    #[arg(long, default_value = "etcd")]
    etcd: PathBuf,
    /// Where data folders are made, for both
    #[arg(long, default_value = ".")]
    folder: PathBuf,
    /// How many clients, one load after the other
    #[arg(long, value_delimiter = ',', default_value = "1,64,256")]
    clients: Vec<usize>,
    /// Measures also with clients spread over the three nodes
    #[arg(long)]
    spread: bool,
    /// How often each load is repeated
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Seconds that are counted
    #[arg(long, default_value_t = 5)]
    seconds: u64,
}

/// One round of one load.
#[derive(Clone, Debug, Default, Deserialize)]
struct Round {
    per_second: f64,
    p50_micros: u64,
    p99_micros: u64,
    failed: u64,
    failure: Option<String>,
    /// Processor microseconds for one write, by node, the leader first.
    cpu_micros: Vec<f64>,
}

/// One load on both.
#[derive(Clone, Debug)]
struct Pair {
    clients: usize,
    spread: bool,
    nexus: Vec<Round>,
    etcd: Vec<Round>,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let flags = Flags::parse();
    let places = if flags.spread { vec![false, true] } else { vec![false] };
    let loads = places.iter().flat_map(|spread| flags.clients.iter().map(move |n| (*n, *spread)));
    let pair = |(clients, spread)| Pair { clients, spread, nexus: Vec::new(), etcd: Vec::new() };
    let mut pairs: Vec<Pair> = loads.map(pair).collect();
    let root = flags.folder.join(format!("nexus-beside-etcd-{}", std::process::id()));
    print(&format!("load average {} before", load_average()))?;
    // In turn, so that what else the machine does falls on both alike.
    for round in 0..flags.rounds {
        for (pair, mut ours) in pairs.iter_mut().zip(nexus::measure(&flags).await?) {
            pair.nexus.append(&mut ours);
        }
        let folder = root.join(round.to_string());
        std::fs::create_dir_all(&folder)?;
        let mut etcd = Etcd::start(&flags.etcd, &folder).await?;
        for pair in &mut pairs {
            pair.etcd.push(etcd.load(pair.clients, pair.spread, flags.seconds).await?);
        }
        etcd.stop().await?;
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::remove_dir_all(&root)?;
    print(&format!("load average {} after", load_average()))?;
    print("clients  at      system  writes/s  p50 / p99 ms  cpu µs a write, leader first")?;
    pairs.iter().try_for_each(show)
}

fn show(pair: &Pair) -> anyhow::Result<()> {
    let place = if pair.spread { "spread" } else { "leader" };
    let (ours, theirs) = (median(&pair.nexus), median(&pair.etcd));
    for (name, round, rounds) in [("nexus", &ours, &pair.nexus), ("etcd", &theirs, &pair.etcd)] {
        let rates: Vec<String> = rounds.iter().map(|it| format!("{:.0}", it.per_second)).collect();
        let cpu: Vec<String> = round.cpu_micros.iter().map(|it| format!("{it:.0}")).collect();
        let (p50, p99) = (millis(round.p50_micros), millis(round.p99_micros));
        let mut line = format!(
            "{:>7}  {place}  {name:<6} {:>9.0}  {p50:.2} / {p99:.2}  cpu {}  rounds {}",
            pair.clients,
            round.per_second,
            cpu.join(" "),
            rates.join(" ")
        );
        if let Some(failure) = &round.failure {
            line.push_str(&format!("  FAILED {}: {failure}", round.failed));
        }
        print(&line)?;
    }
    print(&format!("{:>24} {:.2}", "nexus/etcd", ours.per_second / theirs.per_second.max(1.0)))
}

/// Returns the round whose rate is the median.
fn median(rounds: &[Round]) -> Round {
    let mut sorted = rounds.to_vec();
    sorted.sort_by(|one, other| one.per_second.total_cmp(&other.per_second));
    sorted.get(sorted.len() / 2).cloned().unwrap_or_default()
}

fn millis(micros: u64) -> f64 {
    f64::from(u32::try_from(micros).unwrap_or(u32::MAX)) / 1000.0
}

fn load_average() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().unwrap_or("?").to_owned()
}

fn print(line: &str) -> anyhow::Result<()> {
    Ok(writeln!(std::io::stdout(), "{line}")?)
}
