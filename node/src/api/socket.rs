//! The sockets of HTTP: they know which answers are written.
//!
//! An answer is written when hyper has flushed what follows its last byte; what the kernel does
//! with it then nobody knows. A socket that closes before loses the answers that are still on their
//! way.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use nexus_adapter::streamable::Delivery;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

/// The listener of HTTP.
#[derive(Debug)]
pub(crate) struct Sockets(pub(crate) TcpListener);

impl Listener for Sockets {
    type Io = Socket;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Socket, SocketAddr) {
        let (stream, address) = Listener::accept(&mut self.0).await;
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY cannot be set");
        }
        (Socket { stream, leaving: Leaving::default() }, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Socket {
    stream: TcpStream,
    leaving: Leaving,
}

impl Drop for Socket {
    fn drop(&mut self) {
        // Others may hold the list still; with the socket its answers are lost.
        drop(self.leaving.take());
    }
}

/// The answers that hyper has and the socket has not, of one connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Leaving(Arc<Mutex<Vec<Delivery>>>);

impl Leaving {
    /// Adds an answer whose last byte is handed to hyper.
    pub(crate) fn add(&self, delivery: Delivery) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(delivery);
    }

    fn take(&self) -> Vec<Delivery> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Who is at the other end, and what is on its way there.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    /// Its address.
    pub(crate) address: SocketAddr,
    /// The answers to it that are not written yet.
    pub(crate) leaving: Leaving,
}

impl Connected<IncomingStream<'_, Sockets>> for Peer {
    fn connect_info(stream: IncomingStream<'_, Sockets>) -> Self {
        Self { address: *stream.remote_addr(), leaving: stream.io().leaving.clone() }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        // hyper flushes the socket when it has written all that it holds.
        self.leaving.take().into_iter().for_each(Delivery::written);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
