//! The time, as an argument.
//!
//! Two readings, never mixed. *Wall* time is for people and may jump when somebody sets the
//! clock. *Boot* time only grows and goes on while the machine sleeps, so a closed lid shows as
//! a long step; every duration is a difference of two boot times of one machine.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Tells the time.
pub trait Clock: Debug + Send + Sync {
    /// Returns the milliseconds since the Unix epoch, as this machine believes them to be.
    ///
    /// May go back or jump; zero if the machine's clock stands before 1970.
    fn wall_millis(&self) -> u64;

    /// Returns the milliseconds since some fixed moment before, counting sleep.
    ///
    /// Never goes back within one process. Values of two machines or two boots do not compare.
    fn boot_millis(&self) -> u64;
}

/// The clock of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the place that asks the machine")]
    fn wall_millis(&self) -> u64 {
        let since_epoch = std::time::SystemTime::now()
            .duration_since(std::time::SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        whole_millis(since_epoch)
    }

    fn boot_millis(&self) -> u64 {
        whole_millis(boot_time())
    }
}

/// Reads the clock that goes on while the machine sleeps.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn boot_time() -> Duration {
    // Linux stops CLOCK_MONOTONIC in suspend and has CLOCK_BOOTTIME beside it. On Apple's systems
    // CLOCK_MONOTONIC itself counts sleep (the one that stops is called CLOCK_UPTIME_RAW).
    #[cfg(not(target_vendor = "apple"))]
    const SLEEP_AWARE: rustix::time::ClockId = rustix::time::ClockId::Boottime;
    #[cfg(target_vendor = "apple")]
    const SLEEP_AWARE: rustix::time::ClockId = rustix::time::ClockId::Monotonic;

    let now = rustix::time::clock_gettime(SLEEP_AWARE);
    let secs = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(now.tv_nsec).unwrap_or(0);
    Duration::from_secs(secs).saturating_add(Duration::from_nanos(nanos))
}

/// Reads the clock that goes on while the machine sleeps.
///
/// Where no such clock is known, the monotonic one since the first call stands in; on Windows it
/// counts sleep.
#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
#[expect(clippy::disallowed_methods, reason = "this is the place that asks the machine")]
fn boot_time() -> Duration {
    static FIRST: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    FIRST.get_or_init(std::time::Instant::now).elapsed()
}

/// A clock that stands still until told otherwise, for tests and simulation.
#[derive(Debug, Default)]
pub struct ManualClock {
    wall_millis: AtomicU64,
    boot_millis: AtomicU64,
}

impl ManualClock {
    /// Makes a clock whose wall time is `wall_millis` and whose boot time is zero.
    #[must_use]
    pub fn new(wall_millis: u64) -> Self {
        Self { wall_millis: AtomicU64::new(wall_millis), boot_millis: AtomicU64::new(0) }
    }

    /// Lets time pass on both readings.
    pub fn advance(&self, by: Duration) {
        let by = whole_millis(by);
        self.wall_millis.fetch_add(by, Ordering::SeqCst);
        self.boot_millis.fetch_add(by, Ordering::SeqCst);
    }

    /// Sets the wall time alone, forward or back, as a person or a time server may.
    pub fn set_wall_millis(&self, wall_millis: u64) {
        self.wall_millis.store(wall_millis, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn wall_millis(&self) -> u64 {
        self.wall_millis.load(Ordering::SeqCst)
    }

    fn boot_millis(&self) -> u64 {
        self.boot_millis.load(Ordering::SeqCst)
    }
}

/// Converts to whole milliseconds; what does not fit is more than any machine's life.
fn whole_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_clock_reads_this_century_and_never_goes_back() {
        let clock = SystemClock;
        assert!(clock.wall_millis() > 946_684_800_000, "wall time before the year 2000");
        let mut last = clock.boot_millis();
        for _ in 0..1_000 {
            let now = clock.boot_millis();
            assert!(now >= last, "boot time went back from {last} to {now}");
            last = now;
        }
    }

    #[test]
    fn manual_clock_moves_only_when_told() {
        let clock = ManualClock::new(1_000);
        assert_eq!((clock.wall_millis(), clock.boot_millis()), (1_000, 0));
        clock.advance(Duration::from_millis(250));
        assert_eq!((clock.wall_millis(), clock.boot_millis()), (1_250, 250));
    }

    #[test]
    fn setting_the_wall_leaves_boot_time_alone() {
        let clock = ManualClock::new(1_000);
        clock.advance(Duration::from_secs(1));
        clock.set_wall_millis(5);
        assert_eq!((clock.wall_millis(), clock.boot_millis()), (5, 1_000));
    }
}
