//! The way to the transport for parts that are made before it: it is set once, at the start.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use nexus_domain::NodeId;

use crate::transport::{CallError, Duplex, Lane, Transport};

/// Passes everything on to the transport once there is one.
#[derive(Debug, Default)]
pub(crate) struct Link {
    transport: OnceLock<Arc<dyn Transport>>,
}

impl Link {
    /// Makes a link that leads nowhere yet.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Sets the transport; a second one is ignored.
    pub(crate) fn set(&self, transport: Arc<dyn Transport>) {
        let _second = self.transport.set(transport);
    }
}

fn nowhere(node: NodeId) -> CallError {
    CallError::Unreachable { node, cause: "the transport has not started".to_owned() }
}

impl Transport for Link {
    fn call(
        &self,
        to: NodeId,
        lane: Lane,
        request: Bytes,
        limit: Duration,
    ) -> BoxFuture<'static, Result<Bytes, CallError>> {
        match self.transport.get() {
            Some(transport) => transport.call(to, lane, request, limit),
            None => Box::pin(async move { Err(nowhere(to)) }),
        }
    }

    fn open(
        &self,
        to: NodeId,
        lane: Lane,
        kind: u8,
        limit: Duration,
    ) -> BoxFuture<'static, Result<Duplex, CallError>> {
        match self.transport.get() {
            Some(transport) => transport.open(to, lane, kind, limit),
            None => Box::pin(async move { Err(nowhere(to)) }),
        }
    }

    fn disconnect(&self, to: NodeId) {
        if let Some(transport) = self.transport.get() {
            transport.disconnect(to);
        }
    }

    fn redial(&self, to: NodeId) {
        if let Some(transport) = self.transport.get() {
            transport.redial(to);
        }
    }

    fn local_address(&self) -> Option<SocketAddr> {
        self.transport.get()?.local_address()
    }

    fn close(&self, code: u32, reason: &str) -> BoxFuture<'static, ()> {
        match self.transport.get() {
            Some(transport) => transport.close(code, reason),
            None => Box::pin(async {}),
        }
    }
}
