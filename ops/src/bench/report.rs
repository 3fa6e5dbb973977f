//! What was measured, for people and for programs.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::trio::{Place, Round, Shape};
use super::usage::load_average;

/// What was measured.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// Processors that this process may use.
    pub processors: usize,
    /// The load average before.
    pub load_before: Option<f64>,
    /// The load average after.
    pub load_after: Option<f64>,
    /// Writes by clients and their place.
    pub writes: Vec<WriteReport>,
    /// Tool calls over HTTP.
    pub tools: Vec<ToolReport>,
    /// The start of a node that has messages.
    pub start: Option<StartReport>,
}

/// One load, repeated.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WriteReport {
    /// How many clients.
    pub clients: usize,
    /// Where they are.
    pub place: Place,
    /// The rounds.
    pub rounds: Vec<Round>,
}

/// Tool calls over HTTP.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ToolReport {
    /// How many clients.
    pub clients: usize,
    /// Calls that were done, a second.
    pub per_second: f64,
    /// The median, microseconds.
    pub p50_micros: u64,
    /// The 99th percentile, microseconds.
    pub p99_micros: u64,
    /// Calls that were refused.
    pub failed: u64,
    /// The last refusal.
    pub failure: Option<String>,
}

/// The start of a node that has messages.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StartReport {
    /// Messages that it has.
    pub messages: u64,
    /// Milliseconds to the ready line, for each start.
    pub ready_millis: Vec<f64>,
    /// Resident bytes after the idle time.
    pub resident_bytes: u64,
    /// Seconds that it was idle.
    pub idle_seconds: u64,
    /// Whether it was a whole node (`nexus up`), or the replicated log alone.
    pub whole_node: bool,
}

impl Report {
    pub(crate) fn begin() -> Self {
        let processors = std::thread::available_parallelism().map_or(0, usize::from);
        Self { processors, load_before: load_average(), ..Self::default() }
    }

    pub(crate) fn end(&mut self) {
        self.load_after = load_average();
    }
}

impl WriteReport {
    /// Makes one without rounds.
    #[must_use]
    pub fn new(shape: Shape) -> Self {
        Self { clients: shape.clients, place: shape.place, rounds: Vec::new() }
    }

    /// Returns the round whose rate is the median.
    #[must_use]
    pub fn median(&self) -> Option<&Round> {
        let mut rounds: Vec<&Round> = self.rounds.iter().collect();
        rounds.sort_by(|one, other| one.per_second.total_cmp(&other.per_second));
        rounds.get(rounds.len() / 2).copied()
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Leader => "leader",
            Self::Spread => "spread",
        })
    }
}

impl fmt::Display for WriteReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(round) = self.median() else { return Ok(()) };
        let rates = || self.rounds.iter().map(|round| round.per_second);
        let least = rates().fold(f64::INFINITY, f64::min);
        let most = rates().fold(0.0, f64::max);
        write!(f, "{:>7}  {:<6}", self.clients, self.place)?;
        write!(f, " {:>8.0} ({least:.0} to {most:.0})", round.per_second)?;
        write!(f, "  {} / {}", millis(round.p50_micros), millis(round.p99_micros))?;
        let list = |values: &[f64], digits: usize| {
            let texts: Vec<String> = values.iter().map(|it| format!("{it:.digits$}")).collect();
            texts.join(" ")
        };
        write!(f, "  cpu {}", list(&round.cpu_micros, 0))?;
        write!(f, "  fsyncs {}", list(&round.fsyncs, 3))?;
        write!(f, "  each {} µs", list(&round.fsync_micros, 0))?;
        if round.failed > 0 {
            write!(f, "  FAILED {}", round.failed)?;
        }
        if let Some(failure) = &round.failure {
            write!(f, ": {failure}")?;
        }
        Ok(())
    }
}

fn millis(micros: u64) -> String {
    format!("{}.{:02} ms", micros / 1000, micros % 1000 / 10)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let load = |load: Option<f64>| load.map_or("?".to_owned(), |load| format!("{load:.1}"));
        let (before, after) = (load(self.load_before), load(self.load_after));
        writeln!(f, "{} processors, load average {before} before, {after} after", self.processors)?;
        if !self.writes.is_empty() {
            writeln!(
                f,
                "\nWrites: three nodes on loopback, flushed to disk, median (least to most)"
            )?;
            writeln!(f, "clients  at      writes/s  p50 / p99  for one write, leader first:")?;
            self.writes.iter().try_for_each(|write| writeln!(f, "{write}"))?;
        }
        if !self.tools.is_empty() {
            writeln!(f, "\nTool calls: POST /api/tools/call\nclients  calls/s  p50 / p99")?;
        }
        for tool in &self.tools {
            let (p50, p99) = (millis(tool.p50_micros), millis(tool.p99_micros));
            write!(f, "{:>7} {:>8.0}  {p50} / {p99}", tool.clients, tool.per_second)?;
            if let Some(failure) = &tool.failure {
                write!(f, "  FAILED {}: {failure}", tool.failed)?;
            }
            writeln!(f)?;
        }
        self.start.iter().try_for_each(|start| writeln!(f, "\n{start}"))
    }
}

impl fmt::Display for StartReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.whole_node { "nexus up" } else { "the log alone" };
        let times: Vec<String> = self.ready_millis.iter().map(|it| format!("{it:.0}")).collect();
        writeln!(
            f,
            "Start with {} messages ({what}): {} ms to the ready line",
            self.messages,
            times.join(", ")
        )?;
        write!(
            f,
            "Resident memory after {} s idle: {:.1} MB",
            self.idle_seconds,
            f64::from(u32::try_from(self.resident_bytes / 1000).unwrap_or(u32::MAX)) / 1000.0
        )
    }
}
