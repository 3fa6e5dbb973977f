//! How often one source may try to join.
//!
//! Codes cannot be guessed, but guesses burn an invite: so tries are counted by source, delayed
//! when they come often, and refused when they do not stop.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use tokio::time::Instant;

/// Tries are counted over this time.
const WINDOW: Duration = Duration::from_secs(60);
/// Tries without a delay: a mistyped code and its repetitions.
const FREE_TRIES: u32 = 10;
/// Tries of one source that are answered at all.
const TRIES_MAX: u32 = 30;
/// The first delay; it doubles with each further try.
const DELAY: Duration = Duration::from_millis(250);
/// The longest delay: a joiner waits longer than that.
const DELAY_MAX: Duration = Duration::from_secs(8);
/// Sources counted at once; the oldest one makes room.
const SOURCES_MAX: usize = 1024;

#[derive(Debug, Clone, Copy)]
struct Tries {
    since: Instant,
    count: u32,
}

/// Counts of tries by source.
#[derive(Debug, Default)]
pub(super) struct JoinRate {
    sources: BTreeMap<IpAddr, Tries>,
}

impl JoinRate {
    /// Counts a try; returns how long its answer is held back, `None` to refuse it.
    pub(super) fn count(&mut self, from: IpAddr, now: Instant) -> Option<Duration> {
        self.sources.retain(|_, tries| now.duration_since(tries.since) < WINDOW);
        if self.sources.len() >= SOURCES_MAX
            && !self.sources.contains_key(&from)
            && let Some(oldest) =
                self.sources.iter().min_by_key(|(_, tries)| tries.since).map(|(from, _)| *from)
        {
            self.sources.remove(&oldest);
        }
        let tries = self.sources.entry(from).or_insert(Tries { since: now, count: 0 });
        tries.count = tries.count.saturating_add(1);
        match tries.count {
            count if count <= FREE_TRIES => Some(Duration::ZERO),
            count if count <= TRIES_MAX => {
                let doublings = (count - FREE_TRIES - 1).min(8);
                Some(DELAY.saturating_mul(1 << doublings).min(DELAY_MAX))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_are_free_then_slow_then_refused_then_forgotten() {
        let mut rate = JoinRate::default();
        let from = IpAddr::from([192, 0, 2, 1]);
        let other = IpAddr::from([192, 0, 2, 2]);
        let start = Instant::now();
        let delays: Vec<_> = (0..=TRIES_MAX).map(|_| rate.count(from, start)).collect();
        assert!(delays.iter().take(10).all(|delay| *delay == Some(Duration::ZERO)), "{delays:?}");
        assert_eq!(delays[10], Some(DELAY));
        assert_eq!(delays[11], Some(DELAY * 2));
        assert_eq!(delays[29], Some(DELAY_MAX));
        assert_eq!(delays[30], None);
        assert_eq!(rate.count(other, start), Some(Duration::ZERO));
        assert_eq!(rate.count(from, start + WINDOW), Some(Duration::ZERO));
    }

    #[test]
    fn the_table_of_sources_is_bounded() {
        let mut rate = JoinRate::default();
        let start = Instant::now();
        for number in 0..5000_u32 {
            rate.count(IpAddr::from(number.to_be_bytes()), start);
        }
        assert_eq!(rate.sources.len(), SOURCES_MAX);
    }
}
