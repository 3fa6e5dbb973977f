//! Cluster time: ticks for timers, and a clock for people (traps.md 4).
//!
//! The tick is milliseconds of cluster life and never runs faster than real time, so a leader with
//! a wrong wall clock expires nothing. The clock for people follows the leader's wall clock, but
//! gains or loses at most a tenth of what the tick moved; a larger step is an entry of its own.

use minicbor::{Decode, Encode};

use crate::entry::Stamp;
use crate::store::{Fault, Read, Store};
use crate::tables;

/// How far the wall clock must be ahead before a step is wanted, in milliseconds.
const STEP_MILLIS_MIN: u64 = 60_000;

/// What the cluster's clocks show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Clock {
    /// Milliseconds of cluster life.
    #[n(0)]
    pub tick: u64,
    /// Milliseconds since 1970, for people.
    #[n(1)]
    pub at: u64,
}

/// Returns the cluster's clock as the last entry left it.
///
/// # Errors
/// A fault when the state cannot be read.
pub fn clock(state: &impl Read) -> Result<Clock, Fault> {
    Ok(tables::CLOCK.get(state, ())?.unwrap_or_default())
}

/// Returns tick and time for the leader's next entry: `last` is the clock of the newest entry that
/// it stamped or applied, `elapsed_millis` the suspend-aware time since then (0 across a restart).
///
/// A fresh cluster takes the wall clock as it is.
#[must_use]
pub fn stamp(last: Clock, elapsed_millis: u64, wall_millis: u64) -> (u64, u64) {
    let tick = last.tick.saturating_add(elapsed_millis);
    if last == Clock::default() {
        return (tick, wall_millis);
    }
    let passed = tick.saturating_sub(last.tick);
    // A tenth, rounded down: slow never passes fast.
    let tenth = passed.checked_div(10).unwrap_or_default();
    let slow = last.at.saturating_add(passed.saturating_sub(tenth));
    let fast = last.at.saturating_add(passed.saturating_add(tenth));
    (tick, wall_millis.clamp(slow, fast.max(slow)))
}

/// Returns the time that a `ClockStep` should set, when the wall clock is more than a minute ahead
/// of `last`: the clock that [`stamp`] would give now.
///
/// The leader proposes it only when the clocks of most live members agree within a minute.
#[must_use]
pub fn needs_step(last: Clock, wall_millis: u64) -> Option<u64> {
    let ahead = wall_millis.saturating_sub(last.at);
    (last != Clock::default() && ahead > STEP_MILLIS_MIN).then_some(wall_millis)
}

/// Moves the clock to an entry's stamp, never back, and returns what it shows then.
pub(crate) fn advance(state: &mut impl Store, stamp: &Stamp) -> Result<Clock, Fault> {
    let last = clock(state)?;
    let now = Clock { tick: last.tick.max(stamp.tick), at: last.at.max(stamp.at) };
    if now != last {
        tables::CLOCK.put(state, (), &now)?;
    }
    Ok(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fresh_cluster_takes_the_wall_clock() {
        assert_eq!(stamp(Clock::default(), 0, 1_000_000), (0, 1_000_000));
        assert_eq!(needs_step(Clock::default(), 1_000_000), None);
    }

    #[test]
    fn the_wall_clock_moves_time_by_a_tenth_at_most() {
        let last = Clock { tick: 500, at: 1_000_000 };
        assert_eq!(stamp(last, 100, 1_000_100), (600, 1_000_100));
        assert_eq!(stamp(last, 100, 9_000_000), (600, 1_000_110));
        assert_eq!(stamp(last, 100, 0), (600, 1_000_090));
        assert_eq!(stamp(last, 0, 9_000_000), (500, 1_000_000));
        assert_eq!(stamp(last, 9, 0), (509, 1_000_009));
        assert_eq!(stamp(last, u64::MAX, u64::MAX), (u64::MAX, u64::MAX));
    }

    #[test]
    fn a_step_is_wanted_beyond_a_minute() {
        let last = Clock { tick: 500, at: 1_000_000 };
        assert_eq!(needs_step(last, 1_060_000), None);
        assert_eq!(needs_step(last, 1_060_001), Some(1_060_001));
        assert_eq!(needs_step(last, 0), None);
    }
}
