//! Growing, jittered pauses between tries.

use std::time::Duration;

/// The pauses between the tries of one thing.
///
/// Each pause is drawn from the upper half of a span that doubles from `min` up to `max`. The draw
/// keeps several nodes that lost the same peer from knocking in step; the lower half is cut off
/// so that a try never follows at once.
#[derive(Clone, Debug)]
pub struct Backoff {
    min: Duration,
    max: Duration,
    span: Duration,
}

impl Backoff {
    /// Makes a backoff that begins at `min` and never exceeds `max`.
    ///
    /// A `max` below `min` counts as `min`.
    #[must_use]
    pub fn new(min: Duration, max: Duration) -> Self {
        Self { min, max: max.max(min), span: min }
    }

    /// Returns the next pause, and doubles the span for the one after.
    #[expect(clippy::should_implement_trait, reason = "it never ends, so it is no iterator")]
    #[expect(clippy::disallowed_methods, reason = "jitter must differ between nodes")]
    pub fn next(&mut self) -> Duration {
        let half = self.span / 2;
        let pause = half + half.mul_f64(rand::random_range(0.0..=1.0));
        self.span = self.span.saturating_mul(2).min(self.max);
        pause
    }

    /// Begins anew at `min`, after a try that went well.
    pub fn reset(&mut self) {
        self.span = self.min;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_limit_and_begin_anew() {
        let (min, max) = (Duration::from_millis(100), Duration::from_millis(450));
        let mut backoff = Backoff::new(min, max);
        for span in [100, 200, 400, 450, 450] {
            let pause = backoff.next();
            let span = Duration::from_millis(span);
            assert!(pause >= span / 2 && pause <= span, "{pause:?} outside the half of {span:?}");
        }
        backoff.reset();
        assert!(backoff.next() <= min);
    }

    #[test]
    fn a_limit_below_the_start_is_the_start() {
        let start = Duration::from_millis(100);
        let mut backoff = Backoff::new(start, Duration::ZERO);
        for _ in 0..3 {
            let pause = backoff.next();
            assert!(pause >= start / 2 && pause <= start, "{pause:?}");
        }
    }
}
