//! Accepting connections: members by their certificate, new machines by their code.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quinn::crypto::rustls::HandshakeData;
use quinn::{Connection, Incoming, RecvStream, SendStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Instant, sleep, timeout};

use super::dial::{peer_subject, refusal_of};
use super::join::BINDING_LABEL;
use super::rate::JoinRate;
use super::socket::canonical;
use super::stream::{QuicReceiver, QuicSender};
use super::tls::{ALPN, ALPN_JOIN};
use super::{
    ANSWER_DONE, ANSWER_REFUSED, HELLO_BYTES_MAX, PRIORITY_CALL, STREAM_CALL, STREAM_LONG, Shared,
    close, describe,
};
use crate::transport::frame::{Duplex, FrameReceiver, FrameSender, StreamError, pieces};
use crate::transport::{Handler, JOIN_BYTES_MAX, Lane, NodeId, Peer, Refusal, code, hello};

/// Open connections in all: five lanes of two hundred members, with room for old ones to end.
const CONNECTIONS_MAX: usize = 1280;
/// Connections whose peer has not proved anything yet.
const HANDSHAKES_MAX: usize = 128;
/// With more of them than this, a source must first show that it receives what is sent to it.
const HANDSHAKES_TRUSTING: usize = 32;
/// Joins answered at once.
const JOINS_MAX: usize = 16;
/// Connections of one node on one lane: tries of a race, and one whose end is not noticed yet.
const CONNECTIONS_OF_LANE_MAX: usize = 4;

/// How long TLS and hello may take together.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(5);
/// How long a request may take to arrive, and an answer to leave.
const TRANSFER_LIMIT: Duration = Duration::from_secs(30);
/// How long a join may take in all: the leader must commit it.
const JOIN_LIMIT: Duration = Duration::from_secs(60);
/// How long the side that is done waits for the other to close.
const LINGER: Duration = Duration::from_secs(3);

/// Accepted connections of members, by node and lane, oldest first.
#[derive(Debug, Default)]
pub(super) struct Inbound {
    connections: BTreeMap<(NodeId, Lane), Vec<Connection>>,
}

impl Inbound {
    /// Closes all connections of some nodes.
    pub(super) fn disconnect(&mut self, concerns: impl Fn(NodeId) -> bool, reason: &str) {
        self.connections.retain(|&(node, _), connections| {
            let ends = concerns(node);
            for connection in connections.iter().filter(|_| ends) {
                close(connection, code::REDIAL, reason);
            }
            !ends
        });
    }

    /// Adds a connection; the oldest of too many is closed.
    fn add(&mut self, key: (NodeId, Lane), connection: &Connection) {
        let list = self.connections.entry(key).or_default();
        list.push(connection.clone());
        if list.len() > CONNECTIONS_OF_LANE_MAX {
            close(&list.remove(0), code::SUPERSEDED, "newer connections took its place");
        }
    }

    fn remove(&mut self, key: (NodeId, Lane), connection: &Connection) {
        if let Some(list) = self.connections.get_mut(&key) {
            list.retain(|other| other.stable_id() != connection.stable_id());
            if list.is_empty() {
                self.connections.remove(&key);
            }
        }
    }
}

/// The loop that accepts, and what each accepted connection needs.
pub(super) struct Acceptor {
    shared: Arc<Shared>,
    handler: Arc<dyn Handler>,
    handshakes: Arc<Semaphore>,
    joins: Arc<Semaphore>,
    rate: Arc<Mutex<JoinRate>>,
}

impl Acceptor {
    pub(super) fn new(shared: Arc<Shared>, handler: Arc<dyn Handler>) -> Self {
        Self {
            shared,
            handler,
            handshakes: Arc::new(Semaphore::new(HANDSHAKES_MAX)),
            joins: Arc::new(Semaphore::new(JOINS_MAX)),
            rate: Arc::default(),
        }
    }

    /// Runs until the transport is closed: stop first, ended connections second, new ones last.
    pub(super) async fn run(self) {
        let acceptor = Arc::new(self);
        let (ended, mut ends) = mpsc::unbounded_channel::<()>();
        let mut open = 0_usize;
        loop {
            tokio::select! {
                biased;
                () = acceptor.shared.stop.cancelled() => break,
                Some(()) = ends.recv() => open = open.saturating_sub(1),
                incoming = acceptor.shared.endpoint.accept() => {
                    let Some(incoming) = incoming else { break };
                    if acceptor.take(incoming, open, &ended) {
                        open += 1;
                    }
                }
            }
        }
        // Does nothing when the owner has closed the endpoint with words of its own.
        acceptor.shared.endpoint.close(quinn::VarInt::from_u32(code::SHUTDOWN), b"stopping");
    }

    /// Starts the job of a connection, unless there are too many.
    fn take(
        self: &Arc<Self>,
        incoming: Incoming,
        open: usize,
        ended: &mpsc::UnboundedSender<()>,
    ) -> bool {
        let from = canonical(incoming.remote_address());
        let permit = Arc::clone(&self.handshakes).try_acquire_owned();
        let (Ok(permit), true) = (permit, open < CONNECTIONS_MAX) else {
            tracing::debug!(%from, open, "too many connections, one is refused");
            incoming.refuse();
            return false;
        };
        let waiting = HANDSHAKES_MAX - self.handshakes.available_permits();
        if waiting > HANDSHAKES_TRUSTING && !incoming.remote_address_validated() {
            // Fails only for a source that is validated already.
            incoming.retry().ok();
            return false;
        }
        let acceptor = Arc::clone(self);
        let ended = Ended(ended.clone());
        self.shared.jobs.spawn("transport connection", async move {
            let _ended = ended;
            acceptor.connection(incoming, from, permit).await;
        });
        true
    }

    /// Serves a connection to its end.
    async fn connection(
        self: Arc<Self>,
        incoming: Incoming,
        from: SocketAddr,
        permit: OwnedSemaphorePermit,
    ) {
        let handshake = timeout(HANDSHAKE_LIMIT, incoming.into_future());
        let connection = match handshake.await {
            Ok(Ok(connection)) => connection,
            Ok(Err(error)) => {
                if let Some(refusal) = refusal_of(&error) {
                    self.shared.notice.refused_peer(from.ip(), None, &refusal);
                } else {
                    tracing::debug!(%from, "handshake failed: {}", describe(&error));
                }
                return;
            }
            Err(_elapsed) => {
                tracing::debug!(%from, "handshake was not finished in time");
                return;
            }
        };
        match protocol(&connection).as_deref() {
            Some(ALPN) => self.member(connection, from, permit).await,
            Some(ALPN_JOIN) => {
                drop(permit);
                self.newcomer(connection, from).await;
            }
            _ => close(&connection, code::PROTOCOL, "no such protocol"),
        }
    }

    /// Serves a member: hello, then calls and streams.
    async fn member(
        self: Arc<Self>,
        connection: Connection,
        from: SocketAddr,
        permit: OwnedSemaphorePermit,
    ) {
        let greeted = match timeout(HANDSHAKE_LIMIT, self.greet(&connection, from)).await {
            Ok(greeted) => greeted,
            Err(_elapsed) => Err(Refusal::new(code::MALFORMED, "no hello came in time")),
        };
        drop(permit);
        let (peer, lane, spki) = match greeted {
            Ok(greeted) => greeted,
            Err(refusal) => {
                let node = peer_subject(&connection).ok().map(|subject| subject.node);
                self.shared.notice.refused_peer(from.ip(), node, &refusal);
                close(&connection, refusal.code, &refusal.text);
                return;
            }
        };
        let key = (peer.node, lane);
        self.with_inbound(|inbound| inbound.add(key, &connection));
        self.shared.pool.heard(&peer.hello);
        self.shared.directory.heard(peer.node, from);
        tracing::debug!(node = peer.node, %lane, %from, boot = peer.hello.boot, "peer connected");
        let reason = self.streams(&connection, peer, lane, &spki).await;
        tracing::debug!(node = key.0, %lane, %from, "peer is gone: {reason}");
        self.with_inbound(|inbound| inbound.remove(key, &connection));
    }

    /// Reads the greeting, checks it and answers with our hello.
    async fn greet(
        &self,
        connection: &Connection,
        from: SocketAddr,
    ) -> Result<(Arc<Peer>, Lane, Vec<u8>), Refusal> {
        // Before a byte is read: who has no certificate is not listened to.
        let subject = peer_subject(connection)?;
        let broken = |error: StreamError| Refusal::new(code::MALFORMED, error.to_string());
        let (sender, receiver) = connection.accept_bi().await.map_err(|error| {
            refusal_of(&error).unwrap_or_else(|| Refusal::new(code::DONE, describe(&error)))
        })?;
        sender.set_priority(PRIORITY_CALL).ok();
        let greeting = QuicReceiver::new(receiver, HELLO_BYTES_MAX).only().await.map_err(broken)?;
        let (lane, theirs) = hello::decode_greeting(&greeting)?;
        let directory = &self.shared.directory;
        let ours = directory.hello();
        hello::check(&ours, &theirs, subject.node)?;
        directory.admit(subject.node, &subject.spki, lane)?;
        directory.check_hello(&theirs)?;
        let mut sender = QuicSender::new(sender);
        sender.write(&mut pieces(&[], &[hello::encode_hello(&ours)])).await.map_err(broken)?;
        sender.finish();
        let peer = Peer { node: subject.node, hello: theirs, address: from };
        Ok((Arc::new(peer), lane, subject.spki))
    }

    /// Serves the streams of a member until the connection ends; returns why it did.
    async fn streams(
        self: &Arc<Self>,
        connection: &Connection,
        peer: Arc<Peer>,
        lane: Lane,
        spki: &[u8],
    ) -> String {
        loop {
            let accepted = tokio::select! {
                biased;
                () = self.shared.stop.cancelled() => {
                    let reason = "the node is stopping";
                    close(connection, code::SHUTDOWN, reason);
                    return reason.to_owned();
                }
                accepted = connection.accept_bi() => accepted,
            };
            let (sender, receiver) = match accepted {
                Ok(stream) => stream,
                Err(error) => return describe(&error),
            };
            // Membership may have changed since the hello; removal takes effect at once.
            if let Err(refusal) = self.shared.directory.admit(peer.node, spki, lane) {
                self.shared.notice.refused_peer(peer.address.ip(), Some(peer.node), &refusal);
                close(connection, refusal.code, &refusal.text);
                return refusal.text;
            }
            let acceptor = Arc::clone(self);
            let peer = Arc::clone(&peer);
            self.shared.jobs.spawn("transport stream", async move {
                let node = peer.node;
                let served = tokio::select! {
                    biased;
                    () = acceptor.shared.stop.cancelled() => Ok(()),
                    served = acceptor.stream(sender, receiver, &peer, lane) => served,
                };
                if let Err(error) = served {
                    tracing::debug!(node, %lane, "stream ended: {error}");
                }
            });
        }
    }

    /// Serves one stream: a call or a long one.
    async fn stream(
        &self,
        sender: SendStream,
        receiver: RecvStream,
        peer: &Peer,
        lane: Lane,
    ) -> Result<(), StreamError> {
        let limit = lane.frame_bytes_max();
        let mut sender = QuicSender::new(sender);
        let mut receiver = QuicReceiver::new(receiver, limit);
        match in_time(receiver.byte()).await? {
            STREAM_CALL => {
                sender.set_priority(PRIORITY_CALL);
                let request = in_time(receiver.only()).await;
                let answer = match request {
                    Ok(request) => self.handler.call(peer, lane, request).await,
                    Err(error @ StreamError::TooLarge { .. }) => {
                        Err(Refusal::new(code::TOO_LARGE, error.to_string()))
                    }
                    Err(error) => return Err(error),
                };
                let (kind, answer) = match answer {
                    Ok(answer) if answer.len() > limit => {
                        let text = format!("answer of {} bytes, limit {limit}", answer.len());
                        (ANSWER_REFUSED, hello::encode_refusal(Refusal::new(code::TOO_LARGE, text)))
                    }
                    Ok(answer) => (ANSWER_DONE, answer),
                    Err(refusal) => (ANSWER_REFUSED, hello::encode_refusal(refusal)),
                };
                in_time(sender.write_last(kind, answer)).await
            }
            STREAM_LONG => {
                let kind = in_time(receiver.byte()).await?;
                let duplex = Duplex {
                    sender: FrameSender::quic(sender, limit),
                    receiver: FrameReceiver::quic(receiver),
                };
                self.handler.stream(peer, lane, kind, duplex).await;
                Ok(())
            }
            other => Err(StreamError::Broken(format!("no stream begins with byte {other}"))),
        }
    }

    /// Answers the one request of a machine that wants to join.
    async fn newcomer(&self, connection: Connection, from: SocketAddr) {
        let Ok(_permit) = self.joins.try_acquire() else {
            close(&connection, code::BUSY, "too many machines join at once, try again");
            return;
        };
        let delay = {
            let mut rate = self.rate.lock().unwrap_or_else(PoisonError::into_inner);
            rate.count(from.ip(), Instant::now())
        };
        let Some(delay) = delay else {
            tracing::warn!(%from, "too many tries to join from one address, one is refused");
            close(&connection, code::BUSY, "too many tries from this address, wait a minute");
            return;
        };
        let exchange = async {
            sleep(delay).await;
            self.join(&connection, from).await
        };
        let served = tokio::select! {
            biased;
            () = self.shared.stop.cancelled() => return,
            served = timeout(JOIN_LIMIT, exchange) => served,
        };
        match served {
            Ok(Ok(())) => {
                // The joiner closes when it has read the answer.
                timeout(LINGER, connection.closed()).await.ok();
                close(&connection, code::DONE, "done");
            }
            Ok(Err(refusal)) => {
                tracing::debug!(%from, "join was not answered: {refusal}");
                close(&connection, refusal.code, &refusal.text);
            }
            Err(_elapsed) => close(&connection, code::BUSY, "the join took too long"),
        }
    }

    async fn join(&self, connection: &Connection, from: SocketAddr) -> Result<(), Refusal> {
        let malformed = |error: StreamError| Refusal::new(code::MALFORMED, error.to_string());
        let (sender, receiver) = connection
            .accept_bi()
            .await
            .map_err(|error| Refusal::new(code::MALFORMED, describe(&error)))?;
        let request =
            QuicReceiver::new(receiver, JOIN_BYTES_MAX).only().await.map_err(malformed)?;
        let mut binding = [0; 32];
        if connection.export_keying_material(&mut binding, BINDING_LABEL, b"").is_err() {
            return Err(Refusal::new(code::MALFORMED, "no channel binding"));
        }
        let answer = self.handler.join(from, binding, request).await;
        let mut sender = QuicSender::new(sender);
        sender.write(&mut pieces(&[], &[answer])).await.map_err(malformed)?;
        sender.finish();
        Ok(())
    }

    fn with_inbound(&self, change: impl FnOnce(&mut Inbound)) {
        change(&mut self.shared.inbound.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Tells the accept loop of a connection's end, however it comes.
struct Ended(mpsc::UnboundedSender<()>);

impl Drop for Ended {
    fn drop(&mut self) {
        // The loop may be gone first; nobody counts then.
        self.0.send(()).ok();
    }
}

/// Returns the protocol that both sides agreed on.
fn protocol(connection: &Connection) -> Option<Vec<u8>> {
    connection.handshake_data()?.downcast::<HandshakeData>().ok()?.protocol
}

/// Ends an exchange whose other side has fallen silent.
async fn in_time<T>(
    exchange: impl Future<Output = Result<T, StreamError>>,
) -> Result<T, StreamError> {
    match timeout(TRANSFER_LIMIT, exchange).await {
        Ok(result) => result,
        Err(_elapsed) => Err(StreamError::Broken("the other side fell silent".to_owned())),
    }
}
