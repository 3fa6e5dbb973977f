//! The transport over QUIC with mutual TLS.
//!
//! One UDP socket serves both directions. Each (node, lane) has a connection of its own, dialled
//! when first needed; short calls are streams of one frame each way. Two protocols share the
//! port: `nexus/1` for members and `nexus-join/1` for machines that are not members yet.
//!
//! Wire format, after the TLS handshake of `nexus/1`: the first stream carries the dialler's
//! greeting (lane and hello) and the acceptor's hello; every later stream begins with a byte that
//! tells a call from a long stream. The side that refuses closes the connection with the code and
//! the text of its [`Refusal`].

mod accept;
mod dial;
mod ids;
mod join;
mod notice;
mod pool;
mod rate;
mod rebind;
mod socket;
mod stream;
mod tls;

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use nexus_rt::{CancellationToken, Clock, Jobs};
use quinn::congestion::CubicConfig;
use quinn::{Connection, ConnectionError, Endpoint, EndpointConfig, IdleTimeout, ServerConfig};
use quinn::{TransportConfig, VarInt};
use tokio::time::{Instant, timeout, timeout_at};

use self::accept::{Acceptor, Inbound};
use self::notice::Notice;
use self::pool::{Link, Pool};
use self::tls::Tls;
use super::frame::{Duplex, FrameReceiver, FrameSender, StreamError, check_length};
use super::{CallError, Directory, Handler, Lane, NodeId, Refusal, Transport, hello};
use crate::identity::NodeIdentity;

pub use self::join::{JoinError, join};
pub(crate) use self::stream::{QuicReceiver, QuicSender};

/// Sent while nothing else is, so that both ends know that the other lives.
const KEEP_ALIVE: Duration = Duration::from_secs(1);
/// Silence after which a connection is over; five lost keep-alives.
const IDLE_LIMIT: Duration = Duration::from_secs(5);
/// What a LAN takes at most as a rule; the library's 333 ms make one lost packet cost a second.
const INITIAL_RTT: Duration = Duration::from_millis(50);
/// Streams that a peer may have open at once: all calls of a busy node, with room.
const STREAMS_MAX: u32 = 1024;
/// What one stream may have in flight.
const STREAM_WINDOW: u32 = 4 * 1024 * 1024;
/// What all streams of a connection may have in flight, so that one whose reader stands still
/// does not stop the others.
const CONNECTION_WINDOW: u32 = 32 * 1024 * 1024;
/// What is queued for a peer before senders wait: enough for a fast LAN, and on slow Wi-Fi no more
/// than a second behind.
const SEND_WINDOW: u64 = 4 * 1024 * 1024;

/// The largest hello.
const HELLO_BYTES_MAX: usize = 16 * 1024;
/// The longest text that a refusal carries, so that it fits one packet.
const REASON_BYTES_MAX: usize = 800;

/// Short calls overtake long streams on the same connection.
const PRIORITY_CALL: i32 = 1;

/// First byte of a stream that carries a call.
const STREAM_CALL: u8 = 0;
/// First byte of a long stream; its kind follows.
const STREAM_LONG: u8 = 1;
/// First byte of an answer.
const ANSWER_DONE: u8 = 0;
/// First byte of a refusal.
const ANSWER_REFUSED: u8 = 1;

/// How long a stop waits for peers to be told.
const CLOSE_LIMIT: Duration = Duration::from_secs(1);

/// Why the transport did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address could not be bound.
    #[error("cannot listen on {address} (udp)")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// What the operating system said.
        source: io::Error,
    },
    /// The key or the certificate cannot be used.
    #[error("TLS cannot be set up: {0}")]
    Tls(String),
}

impl StartError {
    fn tls(error: impl ToString) -> Self {
        Self::Tls(error.to_string())
    }
}

/// What the transport needs to start.
#[derive(Debug)]
pub struct QuicConfig {
    /// Where to listen; a wildcard address means both families.
    pub bind: SocketAddr,
    /// This node's key and certificate.
    pub identity: NodeIdentity,
    /// Where its jobs run.
    pub jobs: Jobs,
    /// The clock that certificates are checked with.
    pub clock: Arc<dyn Clock>,
}

/// What all parts of the transport share.
pub(crate) struct Shared {
    endpoint: Endpoint,
    directory: Arc<dyn Directory>,
    jobs: Jobs,
    tls: Tls,
    pool: Pool,
    inbound: Mutex<Inbound>,
    notice: Notice,
    stop: CancellationToken,
}

impl Shared {
    /// Ends the connections to and from some nodes and forgets failed dials.
    fn disconnect(&self, concerns: impl Fn(NodeId) -> bool, reason: &str) {
        self.pool.disconnect(&concerns, reason);
        let mut inbound = self.inbound.lock().unwrap_or_else(PoisonError::into_inner);
        inbound.disconnect(&concerns, reason);
    }
}

/// The QUIC transport of one node; clones share it.
#[derive(Clone)]
pub struct QuicTransport {
    shared: Arc<Shared>,
}

impl std::fmt::Debug for QuicTransport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let address = self.shared.endpoint.local_addr().ok();
        f.debug_struct("QuicTransport").field("address", &address).finish_non_exhaustive()
    }
}

impl QuicTransport {
    /// Binds the socket. Calls can be made at once; [`QuicTransport::serve`] accepts them.
    ///
    /// # Errors
    ///
    /// [`StartError`] when the address cannot be bound or the identity cannot be used.
    pub fn bind(config: QuicConfig, directory: Arc<dyn Directory>) -> Result<Self, StartError> {
        let address = config.bind;
        let bind = |endpoint, server| {
            Endpoint::new(endpoint, server, socket::bind(address)?, Arc::new(quinn::TokioRuntime))
        };
        Self::start(config, directory, bind)
    }

    /// Uses a socket that is none of the operating system's.
    ///
    /// # Errors
    ///
    /// As [`QuicTransport::bind`]; the address in the configuration is not used.
    pub(super) fn over(
        socket: Arc<dyn quinn::AsyncUdpSocket>,
        config: QuicConfig,
        directory: Arc<dyn Directory>,
    ) -> Result<Self, StartError> {
        let bind = |endpoint, server| {
            let runtime = Arc::new(quinn::TokioRuntime);
            Endpoint::new_with_abstract_socket(endpoint, server, socket, runtime)
        };
        Self::start(config, directory, bind)
    }

    fn start(
        config: QuicConfig,
        directory: Arc<dyn Directory>,
        bind: impl FnOnce(EndpointConfig, Option<ServerConfig>) -> io::Result<Endpoint>,
    ) -> Result<Self, StartError> {
        let QuicConfig { bind: address, identity, jobs, clock } = config;
        let tls = Tls::new(&identity, clock, Arc::clone(&directory))?;
        let mut server = ServerConfig::with_crypto(Arc::new(tls.server()?));
        server.transport_config(member_transport());
        // A peer whose address changes dials anew; the old path only lingers.
        server.migration(false);
        let endpoint = bind(ids::endpoint_config(identity.key()), Some(server))
            .map_err(|source| StartError::Bind { address, source })?;
        let stop = jobs.token().child_token();
        let shared = Shared {
            endpoint,
            directory,
            jobs,
            tls,
            pool: Pool::default(),
            inbound: Mutex::default(),
            notice: Notice::default(),
            stop,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Begins to accept connections; until then they wait. Called once.
    pub fn serve(&self, handler: Arc<dyn Handler>) {
        let acceptor = Acceptor::new(Arc::clone(&self.shared), handler);
        self.shared.jobs.spawn_core("transport accept", acceptor.run());
    }

    /// Listens on another address from now on; all connections end and are made anew.
    ///
    /// The old address is given up first when both use the same port, since a wildcard and an
    /// address of its own cannot share one.
    ///
    /// # Errors
    ///
    /// [`StartError::Bind`] when the address cannot be bound; the old one is then bound again.
    pub async fn rebind(&self, address: SocketAddr) -> Result<SocketAddr, StartError> {
        rebind::rebind(&self.shared, address).await
    }

    /// Shows a renewed certificate from the next connection on.
    ///
    /// # Errors
    ///
    /// [`StartError::Tls`] when the identity cannot be used.
    pub fn renew(&self, identity: &NodeIdentity) -> Result<(), StartError> {
        self.shared.tls.renew(identity)
    }
}

impl Transport for QuicTransport {
    fn call(
        &self,
        to: NodeId,
        lane: Lane,
        request: Bytes,
        limit: Duration,
    ) -> BoxFuture<'static, Result<Bytes, CallError>> {
        call(Arc::clone(&self.shared), to, lane, request, limit).boxed()
    }

    fn open(
        &self,
        to: NodeId,
        lane: Lane,
        kind: u8,
        limit: Duration,
    ) -> BoxFuture<'static, Result<Duplex, CallError>> {
        open(Arc::clone(&self.shared), to, lane, kind, limit).boxed()
    }

    fn disconnect(&self, to: NodeId) {
        self.shared.disconnect(|node| node == to, "disconnected");
    }

    fn redial(&self, to: NodeId) {
        self.shared.pool.disconnect(|node| node == to, "dialling anew");
    }

    fn local_address(&self) -> Option<SocketAddr> {
        self.shared.endpoint.local_addr().ok().map(socket::canonical)
    }

    fn close(&self, code: u32, reason: &str) -> BoxFuture<'static, ()> {
        let endpoint = self.shared.endpoint.clone();
        // The words first: jobs that stop drop their connections without any.
        endpoint.close(VarInt::from_u32(code), cut(reason));
        self.shared.stop.cancel();
        async move {
            if timeout(CLOSE_LIMIT, endpoint.wait_idle()).await.is_err() {
                tracing::debug!("not every peer has heard that this node closes");
            }
        }
        .boxed()
    }
}

/// Sends one request and returns its answer.
async fn call(
    shared: Arc<Shared>,
    to: NodeId,
    lane: Lane,
    request: Bytes,
    limit: Duration,
) -> Result<Bytes, CallError> {
    let deadline = Instant::now() + limit;
    let bytes = request.len();
    if check_length(bytes, lane.frame_bytes_max()).is_err() {
        let limit = lane.frame_bytes_max();
        return Err(CallError::TooLarge { node: to, bytes, limit, sent: false });
    }
    let (link, sender, receiver) = start(&shared, to, lane, deadline).await?;
    sender.set_priority(PRIORITY_CALL).ok();
    let packets = link.packets();
    let mut sender = QuicSender::new(sender);
    let mut receiver = QuicReceiver::new(receiver, lane.frame_bytes_max());
    let exchange = async {
        sender.write_last(STREAM_CALL, request).await?;
        let kind = receiver.byte().await?;
        Ok((kind, receiver.only().await?))
    };
    match timeout_at(deadline, exchange).await {
        Err(_elapsed) => {
            link.note_timeout(packets);
            Err(CallError::TimedOut { node: to, sent: true })
        }
        Ok(Err(error)) => Err(after_sending(to, &link.connection, error)),
        Ok(Ok((ANSWER_DONE, answer))) => {
            link.note_answer();
            Ok(answer)
        }
        Ok(Ok((_refused, answer))) => {
            link.note_answer();
            let Refusal { code, text } = hello::decode_refusal(&answer);
            Err(CallError::Refused { node: to, code, text, sent: true })
        }
    }
}

/// Opens a long stream.
async fn open(
    shared: Arc<Shared>,
    to: NodeId,
    lane: Lane,
    kind: u8,
    limit: Duration,
) -> Result<Duplex, CallError> {
    let deadline = Instant::now() + limit;
    let (link, sender, receiver) = start(&shared, to, lane, deadline).await?;
    let mut sender = QuicSender::new(sender);
    // The peer learns of a stream by its first byte alone.
    let mut first = [Bytes::copy_from_slice(&[STREAM_LONG, kind])];
    match timeout_at(deadline, sender.write(&mut first)).await {
        Err(_elapsed) => Err(CallError::TimedOut { node: to, sent: true }),
        Ok(Err(error)) => Err(after_sending(to, &link.connection, error)),
        Ok(Ok(())) => {
            let limit = lane.frame_bytes_max();
            let receiver = QuicReceiver::new(receiver, limit);
            Ok(Duplex {
                sender: FrameSender::quic(sender, limit),
                receiver: FrameReceiver::quic(receiver),
            })
        }
    }
}

/// Takes a new stream on a connection to the node, dialling when there is none.
///
/// A connection that turns out dead is replaced once: nothing has been sent on it yet.
async fn start(
    shared: &Arc<Shared>,
    to: NodeId,
    lane: Lane,
    deadline: Instant,
) -> Result<(Arc<Link>, quinn::SendStream, quinn::RecvStream), CallError> {
    let mut tries = 0;
    loop {
        tries += 1;
        let link = shared.pool.get(shared, (to, lane), deadline).await?;
        match timeout_at(deadline, link.connection.open_bi()).await {
            Ok(Ok((sender, receiver))) => return Ok((link, sender, receiver)),
            Ok(Err(error)) => {
                shared.pool.remove((to, lane), &link);
                if tries > 1 {
                    let cause = describe(&error);
                    return Err(CallError::Broken { node: to, sent: false, cause });
                }
            }
            Err(_elapsed) => return Err(CallError::TimedOut { node: to, sent: false }),
        }
    }
}

/// Says what a broken exchange means to the caller.
fn after_sending(node: NodeId, connection: &Connection, error: StreamError) -> CallError {
    if let StreamError::TooLarge { bytes, limit } = error {
        return CallError::TooLarge { node, bytes, limit, sent: true };
    }
    let reason = connection.close_reason();
    if let Some(Refusal { code, text }) = reason.as_ref().and_then(dial::refusal_of) {
        return CallError::Refused { node, code, text, sent: true };
    }
    let cause = reason.map_or_else(|| error.to_string(), |reason| describe(&reason));
    CallError::Broken { node, sent: true, cause }
}

/// Closes a connection; nothing happens when it is closed already.
fn close(connection: &Connection, code: u32, reason: &str) {
    connection.close(VarInt::from_u32(code), cut(reason));
}

/// Returns the part of a text that fits a packet, cut between characters.
fn cut(text: &str) -> &[u8] {
    text.get(..text.floor_char_boundary(REASON_BYTES_MAX)).unwrap_or_default().as_bytes()
}

/// Says in words why a connection ended.
fn describe(error: &ConnectionError) -> String {
    if let ConnectionError::ApplicationClosed(closed) = error {
        let reason = String::from_utf8_lossy(&closed.reason);
        let reason = if reason.is_empty() { "without a word" } else { &*reason };
        return format!("closed by the other side: {reason}");
    }
    error.to_string()
}

/// Returns the settings of members' connections, made once.
fn member_transport() -> Arc<TransportConfig> {
    static CONFIG: OnceLock<Arc<TransportConfig>> = OnceLock::new();
    Arc::clone(CONFIG.get_or_init(|| {
        let mut config = TransportConfig::default();
        config
            .keep_alive_interval(Some(KEEP_ALIVE))
            .max_idle_timeout(IdleTimeout::try_from(IDLE_LIMIT).ok())
            .initial_rtt(INITIAL_RTT)
            .max_concurrent_bidi_streams(VarInt::from_u32(STREAMS_MAX))
            .max_concurrent_uni_streams(VarInt::from_u32(0))
            .stream_receive_window(VarInt::from_u32(STREAM_WINDOW))
            .receive_window(VarInt::from_u32(CONNECTION_WINDOW))
            .send_window(SEND_WINDOW)
            .datagram_receive_buffer_size(None)
            .congestion_controller_factory(Arc::new(CubicConfig::default()));
        Arc::new(config)
    }))
}
