//! Dialling a node: several addresses in a race, then the first exchange.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{FuturesUnordered, StreamExt as _};
use quinn::{ClientConfig, Connection, ConnectionError};
use rustls::pki_types::CertificateDer;
use tokio::time::{Instant, sleep_until};

use super::pool::Link;
use super::socket::canonical;
use super::stream::{QuicReceiver, QuicSender};
use super::tls::{SERVER_NAME, plain_text};
use super::{HELLO_BYTES_MAX, PRIORITY_CALL, Shared, close, describe, member_transport};
use crate::identity::Subject;
use crate::transport::frame::pieces;
use crate::transport::{CallError, Hello, Lane, NodeId, Refusal, code, hello};

/// How long a dial may take in all: a few round trips of a slow Wi-Fi, with losses.
const DIAL_LIMIT: Duration = Duration::from_secs(2);
/// The next address is tried this long after the one before, if that has not answered.
const STAGGER: Duration = Duration::from_millis(150);
/// A new round over all addresses begins this long after the last try. The timers of a handshake
/// double with each loss, so that a new try reaches a node that has just come up much sooner.
const ROUND_PAUSE: Duration = Duration::from_millis(600);

/// TLS alerts appear as transport errors from this code on.
const CRYPTO_ERRORS: std::ops::Range<u64> = 0x100..0x200;
/// The alert of a peer that speaks none of our protocols.
const NO_COMMON_PROTOCOL: u64 = 0x100 + 120;

/// Why a dial failed; kept for the calls of the pause that follows.
#[derive(Clone, Debug)]
pub(super) enum DialError {
    /// One side refused the other.
    Refused(Refusal),
    /// Nobody answered, or the connection broke.
    Failed(String),
}

impl DialError {
    pub(super) fn stopping() -> Self {
        Self::Failed("this node is stopping".to_owned())
    }

    pub(super) fn call_error(self, node: NodeId) -> CallError {
        match self {
            Self::Refused(Refusal { code, text }) => {
                CallError::Refused { node, code, text, sent: false }
            }
            Self::Failed(cause) => CallError::Unreachable { node, cause },
        }
    }

    /// Tells a refusal from a broken connection.
    pub(super) fn from_connection(error: &ConnectionError) -> Self {
        refusal_of(error).map_or_else(|| Self::Failed(describe(error)), Self::Refused)
    }
}

/// Returns the refusal that an ended connection stands for, if it was one.
pub(super) fn refusal_of(error: &ConnectionError) -> Option<Refusal> {
    let (number, reason) = match error {
        ConnectionError::ApplicationClosed(closed) => {
            let number = u32::try_from(closed.error_code.into_inner()).unwrap_or(code::MALFORMED);
            let text = String::from_utf8_lossy(&closed.reason);
            let refuses = number != code::SHUTDOWN && number != code::REDIAL;
            return refuses.then(|| Refusal::new(number, text));
        }
        ConnectionError::TransportError(error) => (u64::from(error.code), error.reason.clone()),
        ConnectionError::ConnectionClosed(closed) => {
            let reason = String::from_utf8_lossy(&closed.reason).into_owned();
            (u64::from(closed.error_code), reason)
        }
        ConnectionError::VersionMismatch
        | ConnectionError::Reset
        | ConnectionError::TimedOut
        | ConnectionError::LocallyClosed
        | ConnectionError::CidsExhausted => return None,
    };
    if number == NO_COMMON_PROTOCOL {
        let text = "the other side speaks no protocol of ours, one of the two is too old";
        return Some(Refusal::new(code::PROTOCOL, text));
    }
    CRYPTO_ERRORS.contains(&number).then(|| Refusal::new(code::CERTIFICATE, plain_text(&reason)))
}

/// Dials a node on a lane.
pub(super) async fn dial(
    shared: &Arc<Shared>,
    node: NodeId,
    lane: Lane,
) -> Result<Link, DialError> {
    let mut addresses = shared.directory.addresses(node);
    // What somebody named for "some member" may be this node's own address.
    let own = shared.endpoint.local_addr().ok().map(canonical);
    addresses.retain(|address| Some(canonical(*address)) != own);
    if addresses.is_empty() {
        return Err(DialError::Failed("no address of it is known".to_owned()));
    }
    let result = race(&addresses, DIAL_LIMIT, |address| attempt(shared, node, lane, address)).await;
    match result {
        Ok((link, address)) => {
            shared.directory.reached(node, address);
            shared.notice.dialled(node, lane);
            tracing::debug!(node, %lane, %address, boot = link.hello.boot, "connected");
            Ok(link)
        }
        Err(failures) => {
            let error = worst(failures, &addresses);
            shared.notice.failed_dial(node, lane, &error);
            Err(error)
        }
    }
}

/// Runs an attempt for each address, staggered; the first that succeeds wins.
///
/// An attempt that fails starts the next at once. Further rounds are for lost packets: they
/// begin only while an attempt is still waiting.
pub(super) async fn race<T, E, F>(
    addresses: &[SocketAddr],
    limit: Duration,
    attempt: impl Fn(SocketAddr) -> F,
) -> Result<(T, SocketAddr), Vec<(SocketAddr, E)>>
where
    F: Future<Output = Result<T, E>>,
{
    let deadline = Instant::now() + limit;
    let mut failures = Vec::new();
    let mut running = FuturesUnordered::new();
    let mut next_start = Instant::now();
    let mut started = 0;
    loop {
        let first_round = started < addresses.len();
        if running.is_empty() && !first_round {
            return Err(failures);
        }
        tokio::select! {
            biased;
            Some((address, result)) = running.next(), if !running.is_empty() => match result {
                Ok(won) => return Ok((won, address)),
                Err(error) => {
                    failures.push((address, error));
                    if first_round {
                        next_start = Instant::now();
                    }
                }
            },
            () = sleep_until(deadline) => return Err(failures),
            () = sleep_until(next_start) => {
                if let Some(&address) = addresses.get(started % addresses.len().max(1)) {
                    let trying = attempt(address);
                    running.push(async move { (address, trying.await) });
                }
                started += 1;
                let round_ends = started % addresses.len().max(1) == 0;
                next_start = Instant::now() + if round_ends { ROUND_PAUSE } else { STAGGER };
            }
        }
    }
}

async fn attempt(
    shared: &Arc<Shared>,
    node: NodeId,
    lane: Lane,
    address: SocketAddr,
) -> Result<Link, DialError> {
    let failed = |error: &dyn std::fmt::Display| DialError::Failed(format!("{address}: {error}"));
    let (crypto, other) = shared.tls.client(node).map_err(|error| failed(&error))?;
    let mut config = ClientConfig::new(Arc::new(crypto));
    config.transport_config(member_transport());
    let connecting = shared
        .endpoint
        .connect_with(config, address, SERVER_NAME)
        .map_err(|error| failed(&error))?;
    let connection = connecting.await.map_err(|error| match other.get() {
        // The address is out of date, or this node's own: nobody has refused anybody.
        Some(other) => failed(&format!("node {other} answered where node {node} was dialled")),
        None => DialError::from_connection(&error),
    })?;
    match greet(shared, &connection, node, lane).await {
        Ok(hello) => Ok(Link::new(connection, hello)),
        Err(error) => {
            if let DialError::Refused(refusal) = &error {
                // Does nothing when it was the other side that refused.
                close(&connection, refusal.code, &refusal.text);
            }
            Err(error)
        }
    }
}

/// Says who we are and on which lane, and checks the answer.
async fn greet(
    shared: &Shared,
    connection: &Connection,
    node: NodeId,
    lane: Lane,
) -> Result<Hello, DialError> {
    let subject = peer_subject(connection).map_err(DialError::Refused)?;
    shared.directory.admit(node, &subject.spki, lane).map_err(DialError::Refused)?;
    let ours = shared.directory.hello();
    let (sender, receiver) =
        connection.open_bi().await.map_err(|error| DialError::from_connection(&error))?;
    sender.set_priority(PRIORITY_CALL).ok();
    let mut sender = QuicSender::new(sender);
    let mut receiver = QuicReceiver::new(receiver, HELLO_BYTES_MAX);
    let greeting = hello::encode_greeting(lane, ours.clone());
    let exchange = async {
        sender.write(&mut pieces(&[], &[greeting])).await?;
        sender.finish();
        receiver.only().await
    };
    let frame = match exchange.await {
        Ok(frame) => frame,
        // The reason of the connection's end says more than the stream's.
        Err(error) => {
            return Err(match connection.close_reason() {
                Some(reason) => DialError::from_connection(&reason),
                None => DialError::Failed(error.to_string()),
            });
        }
    };
    let theirs = hello::decode_hello(&frame).map_err(DialError::Refused)?;
    hello::check(&ours, &theirs, subject.node).map_err(DialError::Refused)?;
    shared.directory.check_hello(&theirs).map_err(DialError::Refused)?;
    Ok(theirs)
}

/// Reads the node's certificate of an established connection.
pub(super) fn peer_subject(connection: &Connection) -> Result<Subject, Refusal> {
    let identity = connection
        .peer_identity()
        .and_then(|identity| identity.downcast::<Vec<CertificateDer<'static>>>().ok());
    let Some(first) = identity.as_ref().and_then(|chain| chain.first()) else {
        let text = "no client certificate: members show theirs, new machines join by a code";
        return Err(Refusal::new(code::NO_CERTIFICATE, text));
    };
    Subject::read(first).map_err(|error| Refusal::new(code::CERTIFICATE, error.to_string()))
}

/// Picks what to report: a refusal says more than silence.
fn worst(failures: Vec<(SocketAddr, DialError)>, addresses: &[SocketAddr]) -> DialError {
    let mut last = None;
    for (_, error) in failures {
        match error {
            DialError::Refused(_) => return error,
            DialError::Failed(_) => last = Some(error),
        }
    }
    last.unwrap_or_else(|| {
        let list: Vec<_> = addresses.iter().map(ToString::to_string).collect();
        DialError::Failed(format!("no answer from {}", list.join(", ")))
    })
}
