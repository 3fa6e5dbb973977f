//! Stands in for the histogram crate that openraft uses (decision 27).
//!
//! The original computes the tables of all its sixteen scales, 27 MB, when the first histogram is
//! made, and openraft makes one at every start. As we build it, openraft only records batch sizes
//! there and nobody reads them. So this one has what openraft names, over a bucket for each power
//! of two: 520 bytes, and percentiles that are right within a factor of two.

use std::fmt;
use std::marker::PhantomData;

/// Buckets: one for zero, one for each power of two.
const BUCKETS: usize = 65;

/// How often values of each magnitude were recorded.
///
/// The parameter is the original's, for data beside each slot of a sliding window; here it has no
/// use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram<T = ()> {
    buckets: [u64; BUCKETS],
    slots: PhantomData<T>,
}

/// Percentiles of what was recorded: for each, a value that so many are not above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PercentileStats {
    /// Number of values.
    pub samples: u64,
    /// Of one in a thousand.
    pub p0_1: u64,
    /// Of 1 in 100.
    pub p1: u64,
    /// Of 5 in 100.
    pub p5: u64,
    /// Of 10 in 100.
    pub p10: u64,
    /// Of half of them.
    pub p50: u64,
    /// Of 90 in 100.
    pub p90: u64,
    /// Of 99 in 100.
    pub p99: u64,
    /// Of 999 in a thousand.
    pub p99_9: u64,
}

/// Several histograms below each other.
#[derive(Clone, Debug, Default)]
pub struct AsciiChart {
    series: Vec<(String, Histogram)>,
}

impl<T> Histogram<T> {
    /// Makes an empty histogram.
    #[must_use]
    pub fn new() -> Self {
        Self { buckets: [0; BUCKETS], slots: PhantomData }
    }

    /// Counts a value.
    pub fn record(&mut self, value: u64) {
        self.record_n(value, 1);
    }

    /// Counts a value so many times.
    pub fn record_n(&mut self, value: u64, times: u64) {
        if let Some(count) = self.buckets.get_mut(bucket(value)) {
            *count = count.saturating_add(times);
        }
    }

    /// Returns how many values were counted.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.buckets.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Returns the percentiles.
    #[must_use]
    pub fn percentile_stats(&self) -> PercentileStats {
        PercentileStats {
            samples: self.total(),
            p0_1: self.of_thousand(1),
            p1: self.of_thousand(10),
            p5: self.of_thousand(50),
            p10: self.of_thousand(100),
            p50: self.of_thousand(500),
            p90: self.of_thousand(900),
            p99: self.of_thousand(990),
            p99_9: self.of_thousand(999),
        }
    }

    /// Returns the greatest value of the bucket in which so many of a thousand are reached.
    fn of_thousand(&self, part: u64) -> u64 {
        let wanted = u128::from(self.total()) * u128::from(part);
        let mut reached = 0_u128;
        for (bucket, count) in (0_u32..).zip(self.buckets) {
            reached += u128::from(count) * 1000;
            if count > 0 && reached >= wanted {
                return u64::MAX.checked_shr(u64::BITS.saturating_sub(bucket)).unwrap_or(0);
            }
        }
        0
    }
}

/// Returns the bucket of a value: how many bits it has.
fn bucket(value: u64) -> usize {
    usize::try_from(u64::BITS.saturating_sub(value.leading_zeros())).unwrap_or(0)
}

impl<T> Default for Histogram<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl AsciiChart {
    /// Makes an empty chart.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a histogram.
    #[must_use]
    pub fn add(mut self, name: impl Into<String>, histogram: Histogram) -> Self {
        self.series.push((name.into(), histogram));
        self
    }
}

impl fmt::Display for PercentileStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { samples, p50, p90, p99, p99_9, .. } = self;
        write!(f, "{samples} values, p50 {p50}, p90 {p90}, p99 {p99}, p99.9 {p99_9}")
    }
}

impl fmt::Display for AsciiChart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, histogram) in &self.series {
            writeln!(f, "{name}: {}", histogram.percentile_stats())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_has_a_bucket() {
        let mut histogram = Histogram::<()>::new();
        for value in [0, 1, 2, 3, 4, u64::MAX / 2, u64::MAX] {
            histogram.record(value);
        }
        assert_eq!(histogram.total(), 7);
        let used: Vec<_> = (0..BUCKETS).filter(|at| histogram.buckets[*at] > 0).collect();
        assert_eq!(used, [0, 1, 2, 3, 63, 64]);
    }

    #[test]
    fn percentiles_are_right_within_a_factor_of_two() {
        let mut histogram = Histogram::new();
        assert_eq!(histogram.percentile_stats().p99, 0);
        histogram.record_n(5, 900);
        histogram.record_n(100, 99);
        histogram.record(u64::MAX);
        let stats = histogram.percentile_stats();
        assert_eq!((stats.samples, stats.p50, stats.p90), (1000, 7, 7));
        assert_eq!((stats.p99, stats.p99_9), (127, 127));
        assert_eq!(histogram.of_thousand(1000), u64::MAX);
        let chart = AsciiChart::new().add("batches", histogram);
        let line = "batches: 1000 values, p50 7, p90 7, p99 127, p99.9 127\n";
        assert_eq!(chart.to_string(), line);
    }
}
