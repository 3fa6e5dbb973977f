//! The faults of one direction between two nodes.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::transport::NodeId;

/// What a link does to messages; the default does nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkRule {
    /// Share of messages that are lost, 0 to 1; on streams they only arrive later.
    pub loss: f64,
    /// Share of requests that arrive twice.
    pub duplicate: f64,
    /// Share of messages that are held back for another `delay_max`, so that later ones pass.
    pub reorder: f64,
    /// The shortest way.
    pub delay_min: Duration,
    /// The longest way.
    pub delay_max: Duration,
}

impl LinkRule {
    /// Returns a rule with a delay between two bounds.
    #[must_use]
    pub fn delayed(delay_min: Duration, delay_max: Duration) -> Self {
        Self { delay_min, delay_max, ..Self::default() }
    }
}

/// One direction, with random numbers of its own.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) rule: Option<LinkRule>,
    random: StdRng,
}

impl Link {
    pub(super) fn new(seed: u64, from: NodeId, to: NodeId) -> Self {
        // Odd factors keep (1, 2) and (2, 1) apart, and both from the bare seed.
        let mixed = seed
            ^ from.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ^ to.wrapping_add(1).wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
        Self { rule: None, random: StdRng::seed_from_u64(mixed) }
    }

    /// Draws whether something happens that has this share.
    pub(super) fn chance(&mut self, share: f64) -> bool {
        // Drawn in any case, so that changing one share does not shift the other draws.
        self.random.random::<f64>() < share
    }

    /// Draws the delay of a message.
    pub(super) fn delay(&mut self, rule: &LinkRule) -> Duration {
        let span = rule.delay_max.saturating_sub(rule.delay_min);
        let part = self.random.random::<f64>();
        let held = self.chance(rule.reorder);
        let delay = rule.delay_min + span.mul_f64(part);
        if held { delay + rule.delay_max.max(Duration::from_millis(1)) } else { delay }
    }
}
