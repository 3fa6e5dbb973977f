//! Reset tokens that outlive the process.
//!
//! They are derived from the node's key and the connection id. A peer that still talks to the
//! process before us is then told at once that its connection is over, instead of waiting for the
//! idle limit.

use std::sync::Arc;
use std::time::Duration;

use quinn::{ConnectionId, ConnectionIdGenerator, EndpointConfig};
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::identity::NodeKey;

/// Length of an id: random, so that an old id is never met again.
const ID_BYTES: usize = 8;

/// Returns the settings of the endpoint.
pub(super) fn endpoint_config(key: &NodeKey) -> EndpointConfig {
    let reset = hmac::Key::new(hmac::HMAC_SHA256, &key.derive(b"nexus quic reset v1"));
    let mut config = EndpointConfig::new(Arc::new(reset));
    config.cid_generator(|| Box::new(RandomIds));
    config
}

/// Makes random connection ids. The library's own ones are marked with a key of the process, and
/// packets with the marks of another process are dropped unanswered; these are answered.
struct RandomIds;

impl ConnectionIdGenerator for RandomIds {
    fn generate_cid(&mut self) -> ConnectionId {
        let mut bytes = [0; ID_BYTES];
        // Without randomness ids repeat and no connection comes about; nothing worse happens.
        SystemRandom::new().fill(&mut bytes).ok();
        ConnectionId::new(&bytes)
    }

    fn cid_len(&self) -> usize {
        ID_BYTES
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}
