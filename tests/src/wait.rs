//! Waiting for a state: with a limit, and with the last state seen in the failure.

use std::fmt::Display;
use std::time::Duration;

use tokio::time::Instant;

/// How often a state is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// Waits until `look` gives a value; what it says instead is the state shown when it never does.
///
/// # Panics
/// When the limit is over, with the last state.
pub async fn until<T, S: Display>(
    what: &str,
    limit: Duration,
    mut look: impl AsyncFnMut() -> Result<T, S>,
) -> T {
    let since = Instant::now();
    loop {
        match look().await {
            Ok(value) => return value,
            Err(state) if since.elapsed() >= limit => {
                panic!("{what} did not come within {} s; last seen: {state}", limit.as_secs());
            }
            Err(_not_yet) => tokio::time::sleep(LOOK).await,
        }
    }
}

/// Waits until a file is there.
///
/// # Panics
/// When the limit is over.
pub async fn file(path: &std::path::Path, limit: Duration) {
    let what = format!("file {}", path.display());
    until(&what, limit, async || if path.exists() { Ok(()) } else { Err("it is not there") }).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_value_ends_the_wait() {
        let mut looks = 0;
        let value = until("three looks", Duration::from_secs(20), async || {
            looks += 1;
            if looks == 3 { Ok(looks) } else { Err(looks) }
        });
        assert_eq!(value.await, 3);
    }

    #[tokio::test]
    #[should_panic(expected = "the end did not come within 0 s; last seen: still waiting")]
    async fn a_wait_that_fails_shows_the_last_state() {
        until::<(), _>("the end", Duration::ZERO, async || Err("still waiting")).await;
    }
}
