//! What tests of whole nodes look at and twist.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::relay::{KIND_RELAY, RELAYED_MAX};
use super::{Detours, Shared};
use crate::store::lock;
use crate::transport::{ChannelBinding, Duplex, Handler, Lane, NodeId, Peer, Refusal};

impl Detours {
    /// Returns the relay through which a node is called, if it is not called directly.
    pub(crate) fn relay_to(&self, node: NodeId) -> Option<NodeId> {
        let (_, by) = self.shared.circuits.newest(node)?;
        self.shared.is_on_detour(node).then_some(by)
    }

    /// Puts off the next look for a relay to a node by an hour.
    pub(crate) fn put_off(&self, node: NodeId) {
        let mut ways = lock(&self.shared.ways);
        let later = Instant::now() + Duration::from_secs(3600);
        ways.entry(node).or_default().look_after = Some(later);
    }

    /// Takes all places for circuits of others.
    pub(crate) fn carry_all(&self) -> OwnedSemaphorePermit {
        let all = u32::try_from(RELAYED_MAX).unwrap();
        Arc::clone(&self.shared.relaying).try_acquire_many_owned(all).unwrap()
    }

    /// Returns a handler that takes every circuit for its own: it poses as whoever is asked for.
    pub(crate) fn pose(&self, handler: Arc<dyn Handler>) -> Arc<dyn Handler> {
        self.shared.around.serve(Arc::clone(&handler));
        Arc::new(Posing { shared: Arc::clone(&self.shared), handler })
    }
}

struct Posing {
    shared: Arc<Shared>,
    handler: Arc<dyn Handler>,
}

impl Handler for Posing {
    fn call(
        &self,
        from: &Peer,
        lane: Lane,
        request: Bytes,
    ) -> BoxFuture<'static, Result<Bytes, Refusal>> {
        self.handler.call(from, lane, request)
    }

    fn stream(&self, from: &Peer, lane: Lane, kind: u8, duplex: Duplex) -> BoxFuture<'static, ()> {
        if kind != KIND_RELAY {
            return self.handler.stream(from, lane, kind, duplex);
        }
        let (shared, from) = (Arc::clone(&self.shared), from.node);
        async move {
            let Duplex { mut sender, mut receiver } = duplex;
            let _named = receiver.recv().await;
            if sender.send(Bytes::new()).await.is_ok() {
                let place = shared.circuits.add(from, from, false);
                place.carry(Duplex { sender, receiver }).await;
            }
        }
        .boxed()
    }

    fn join(
        &self,
        from: SocketAddr,
        binding: ChannelBinding,
        request: Bytes,
    ) -> BoxFuture<'static, Bytes> {
        self.handler.join(from, binding, request)
    }
}
