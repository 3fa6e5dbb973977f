//! The transport that can be exchanged under way: `nexus invite` opens the LAN on a new socket.

use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use nexus_domain::NodeId;

use crate::transport::{CallError, Duplex, Lane, Transport};

/// Passes everything on to the transport of the moment.
#[derive(Debug)]
pub(crate) struct Link {
    current: RwLock<Arc<dyn Transport>>,
}

impl Link {
    /// Begins with a transport.
    pub(crate) fn new(first: Arc<dyn Transport>) -> Self {
        Self { current: RwLock::new(first) }
    }

    /// Puts another transport in place and returns the old one, which the caller closes.
    pub(crate) fn replace(&self, next: Arc<dyn Transport>) -> Arc<dyn Transport> {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *current, next)
    }

    fn current(&self) -> Arc<dyn Transport> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Transport for Link {
    fn call(
        &self,
        to: NodeId,
        lane: Lane,
        request: Bytes,
        limit: Duration,
    ) -> BoxFuture<'static, Result<Bytes, CallError>> {
        self.current().call(to, lane, request, limit)
    }

    fn open(
        &self,
        to: NodeId,
        lane: Lane,
        kind: u8,
        limit: Duration,
    ) -> BoxFuture<'static, Result<Duplex, CallError>> {
        self.current().open(to, lane, kind, limit)
    }

    fn disconnect(&self, to: NodeId) {
        self.current().disconnect(to);
    }

    fn local_address(&self) -> Option<SocketAddr> {
        self.current().local_address()
    }

    fn close(&self, code: u32, reason: &str) -> BoxFuture<'static, ()> {
        self.current().close(code, reason)
    }
}
