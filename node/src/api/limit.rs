//! How often a caller may call: token buckets, one a caller and one an address.

use std::net::IpAddr;
use std::num::NonZeroU32;

use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use nexus_contract::ApiError;

/// An address may carry several callers.
const CALLERS_PER_ADDRESS: u32 = 5;
/// So many buckets are kept before full ones are thrown away; a full one is as good as none.
const BUCKETS_MAX: usize = 4_096;

/// The buckets.
#[derive(Debug)]
pub(crate) struct Limiter {
    clock: DefaultClock,
    buckets: Option<Buckets>,
}

#[derive(Debug)]
struct Buckets {
    callers: DefaultKeyedRateLimiter<String>,
    addresses: DefaultKeyedRateLimiter<IpAddr>,
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
            callers: RateLimiter::keyed(caller),
            addresses: RateLimiter::keyed(address),
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
        if callers.len() > BUCKETS_MAX {
            callers.retain_recent();
        }
        if addresses.len() > BUCKETS_MAX {
            addresses.retain_recent();
        }
        callers.check_key(&caller.to_owned()).map_err(|early| self.refused(&early))?;
        if address.to_canonical().is_loopback() {
            return Ok(());
        }
        addresses.check_key(&address).map_err(|early| self.refused(&early))
    }

    fn refused(
        &self,
        early: &governor::NotUntil<<DefaultClock as governor::clock::Clock>::Instant>,
    ) -> ApiError {
        let wait = early.wait_time_from(self.clock.now());
        let seconds = wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0)).max(1);
        ApiError::rate_limit(seconds)
    }
}

#[cfg(test)]
mod tests {
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
    fn a_rate_of_zero_is_no_limit() {
        let limiter = Limiter::new(0, 1);
        for _ in 0..1_000 {
            limiter.take("one", LOCAL).unwrap();
        }
    }
}
