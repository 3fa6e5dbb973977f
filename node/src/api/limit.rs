//! How often a caller may call: token buckets, one a caller and one an address.

use std::hash::Hash;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};

use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultKeyedRateLimiter, NotUntil, Quota, RateLimiter};
use nexus_contract::ApiError;

/// The limits' own time.
type Instant = <DefaultClock as governor::clock::Clock>::Instant;

/// An address may carry several callers.
const CALLERS_PER_ADDRESS: u32 = 5;
/// So many buckets of a kind are kept before full ones are thrown away, as good as none. Who makes
/// up callers faster than their buckets fill has as many more looked through only when they have
/// doubled, so that a call costs the same in the long run.
const BUCKETS_MAX: usize = 4_096;

/// The buckets.
#[derive(Debug)]
pub(crate) struct Limiter {
    clock: DefaultClock,
    buckets: Option<Buckets>,
}

#[derive(Debug)]
struct Buckets {
    callers: Kind<String>,
    addresses: Kind<IpAddr>,
}

/// The buckets of one kind of key.
#[derive(Debug)]
struct Kind<K: Clone + Eq + Hash> {
    buckets: DefaultKeyedRateLimiter<K>,
    /// How many there may be before the next sweep.
    sweep_over: AtomicUsize,
}

impl<K: Clone + Eq + Hash> Kind<K> {
    fn new(quota: Quota) -> Self {
        Self { buckets: RateLimiter::keyed(quota), sweep_over: AtomicUsize::new(BUCKETS_MAX) }
    }

    /// Takes one out of a bucket.
    fn take(&self, key: &K) -> Result<(), NotUntil<Instant>> {
        if self.buckets.len() > self.sweep_over.load(Ordering::Relaxed) {
            self.buckets.retain_recent();
            let next = self.buckets.len().saturating_mul(2).max(BUCKETS_MAX);
            self.sweep_over.store(next, Ordering::Relaxed);
        }
        self.buckets.check_key(key)
    }
}

impl Limiter {
    /// Makes the buckets: `rate` calls a second and `burst` at once; a rate of 0 is no limit.
    pub(crate) fn new(rate: u32, burst: u32) -> Self {
        let quota = |times: u32| {
            let rate = NonZeroU32::new(rate.saturating_mul(times))?;
            let burst = NonZeroU32::new(burst.saturating_mul(times))?;
            Some(Quota::per_second(rate).allow_burst(burst))
        };
        let buckets = quota(1).zip(quota(CALLERS_PER_ADDRESS)).map(|(caller, address)| Buckets {
            callers: Kind::new(caller),
            addresses: Kind::new(address),
        });
        Self { clock: DefaultClock::default(), buckets }
    }

    /// Takes one call out of the caller's bucket, and out of the address's unless it is this
    /// machine's: all local conversations come from there.
    ///
    /// # Errors
    /// `rate_limited` with the seconds to wait.
    pub(crate) fn take(&self, caller: &str, address: IpAddr) -> Result<(), ApiError> {
        let Some(Buckets { callers, addresses }) = &self.buckets else { return Ok(()) };
        callers.take(&caller.to_owned()).map_err(|early| self.refused(&early))?;
        let address = address.to_canonical();
        if address.is_loopback() {
            return Ok(());
        }
        addresses.take(&address).map_err(|early| self.refused(&early))
    }

    fn refused(&self, early: &NotUntil<Instant>) -> ApiError {
        let wait = early.wait_time_from(self.clock.now());
        let seconds = wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0)).max(1);
        ApiError::rate_limit(seconds)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use nexus_contract::ErrorCode;

    const LOCAL: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[test]
    fn each_caller_has_a_bucket_of_its_own() {
        let limiter = Limiter::new(1, 3);
        for _ in 0..3 {
            limiter.take("one", LOCAL).unwrap();
        }
        let error = limiter.take("one", LOCAL).unwrap_err();
        assert_eq!((error.code, error.retry_after), (ErrorCode::RateLimited, Some(1)));
        assert!(error.message.starts_with("Rate limit exceeded"), "{}", error.message);
        assert!(error.message.ends_with("retry after 1s"), "{}", error.message);
        limiter.take("other", LOCAL).unwrap();
    }

    #[test]
    fn addresses_of_others_have_one_too() {
        let limiter = Limiter::new(1, 1);
        let far: IpAddr = "10.0.0.9".parse().unwrap();
        for caller in ["a", "b", "c", "d", "e"] {
            limiter.take(caller, far).unwrap();
        }
        assert!(limiter.take("f", far).is_err());
        limiter.take("f", LOCAL).unwrap_err();
        limiter.take("g", LOCAL).unwrap();
    }

    #[test]
    fn an_address_is_one_however_it_is_written() {
        let limiter = Limiter::new(1, 1);
        for (caller, far) in ["a", "b", "c", "d", "e"].into_iter().zip(["10.0.0.9"; 5]) {
            limiter.take(caller, far.parse().unwrap()).unwrap();
        }
        assert!(limiter.take("f", "::ffff:10.0.0.9".parse().unwrap()).is_err());
    }

    #[test]
    fn made_up_keys_are_swept_when_they_have_doubled() {
        let fill = |quota: Quota, keys: usize| {
            let kind = Kind::new(quota);
            for key in 0..keys {
                kind.take(&key).unwrap();
            }
            (kind.buckets.len(), kind.sweep_over.load(Ordering::Relaxed))
        };
        let keys = BUCKETS_MAX + 1;
        // None of these is full again in the time of a test, so that all stay.
        let slow = Quota::with_period(Duration::from_secs(3_600)).unwrap();
        assert_eq!(fill(slow, keys), (keys, BUCKETS_MAX));
        assert_eq!(fill(slow, keys + 1), (keys + 1, 2 * keys));
        // These are at once.
        let (left, over) = fill(Quota::per_second(NonZeroU32::new(1_000_000).unwrap()), 4 * keys);
        assert!(left <= keys && over == BUCKETS_MAX, "{left} {over}");
    }

    #[test]
    fn a_rate_of_zero_is_no_limit() {
        let limiter = Limiter::new(0, 1);
        for _ in 0..1_000 {
            limiter.take("one", LOCAL).unwrap();
        }
    }
}
