//! Randomness that nobody can repeat, for names that must not meet.
//!
//! What a test should be able to repeat takes a seeded generator as an argument instead; secrets
//! come from ring in `raft/`.

/// Returns bytes that no other process, and no other call, will get.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the place without a seed")]
pub fn unique_bytes<const N: usize>() -> [u8; N] {
    rand::random()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_draws_differ() {
        assert_ne!(unique_bytes::<16>(), unique_bytes::<16>());
    }
}
