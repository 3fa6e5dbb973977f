//! How long things took: counts by microseconds, exact to a hundredth.

use hdrhistogram::Histogram;

/// Microseconds that nothing measured here passes: beyond a minute it is a failure.
const MICROS_MAX: u64 = 60_000_000;

/// A collection of latencies.
#[derive(Clone, Debug)]
pub(crate) struct Latency(Option<Histogram<u64>>);

impl Default for Latency {
    fn default() -> Self {
        Self::new()
    }
}

impl Latency {
    /// Makes an empty one.
    pub(crate) fn new() -> Self {
        // These bounds are within what the histogram takes; without it percentiles are 0.
        Self(Histogram::new_with_bounds(1, MICROS_MAX, 2).ok())
    }

    /// Adds `count` times so many microseconds.
    pub(crate) fn add(&mut self, micros: u64, count: u64) {
        if let Some(histogram) = &mut self.0 {
            histogram.saturating_record_n(micros, count);
        }
    }

    /// Returns the microseconds within which a share of all stayed, in percent.
    pub(crate) fn percentile(&self, percent: f64) -> u64 {
        self.0.as_ref().map_or(0, |histogram| histogram.value_at_percentile(percent))
    }

    /// Returns microseconds and how many took that long, in order.
    pub(crate) fn counts(&self) -> Vec<(u64, u64)> {
        let recorded = self.0.iter().flat_map(Histogram::iter_recorded);
        recorded.map(|item| (item.value_iterated_to(), item.count_at_value())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Latency;

    #[test]
    fn counts_travel_without_changing_percentiles() {
        let mut latency = Latency::new();
        (1..=1000).for_each(|micros| latency.add(micros, 1));
        let mut copy = Latency::new();
        latency.counts().into_iter().for_each(|(micros, count)| copy.add(micros, count));
        assert_eq!(copy.percentile(50.0), latency.percentile(50.0));
        assert_eq!(copy.percentile(99.0), latency.percentile(99.0));
        assert!((495..=505).contains(&copy.percentile(50.0)), "{}", copy.percentile(50.0));
    }
}
