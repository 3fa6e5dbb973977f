//! The joining side of `nexus-join/1`: one request, one answer, and nothing said to strangers.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use nexus_rt::Clock;
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Connection, Endpoint, EndpointConfig};
use tokio::time::{Instant, timeout, timeout_at};

use super::dial::{DialError, race, refusal_of};
use super::stream::{QuicReceiver, QuicSender};
use super::tls::{Foreign, SERVER_NAME, joining_client};
use super::{CLOSE_LIMIT, StartError, close, describe, member_transport, socket};
use crate::identity::{Fingerprint, InviteCode};
use crate::transport::frame::{check_length, pieces};
use crate::transport::{ChannelBinding, JOIN_BYTES_MAX, Refusal, StreamError, code};

/// What both ends derive the channel binding with.
pub(super) const BINDING_LABEL: &[u8] = b"EXPORTER-nexus-join-1";

/// Why a join was not answered.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// There was nowhere to dial.
    #[error("no address of a member is known: give one with --seed")]
    NoAddress,
    /// Nobody answered.
    #[error("no member can be reached: {cause}")]
    Unreachable {
        /// What was tried.
        cause: String,
    },
    /// Whoever answered is not of the cluster that the code names; nothing was sent.
    #[error(
        "{address} is not of the cluster that the invite code names{}: nothing was sent",
        shown(*found)
    )]
    WrongAuthority {
        /// Who answered.
        address: SocketAddr,
        /// The authority that it showed, if it showed one.
        found: Option<Fingerprint>,
    },
    /// The member refused.
    #[error("the member refused: {text} (code {code})")]
    Refused {
        /// The code of the refusal.
        code: u32,
        /// What it said.
        text: String,
    },
    /// No answer in time.
    #[error("no answer in time ({})", sent_word(*sent))]
    TimedOut {
        /// Whether the request may have been handled.
        sent: bool,
    },
    /// The connection broke after the request was sent: it may have been handled.
    #[error("connection broke after the request was sent: {cause}")]
    Broken {
        /// Why.
        cause: String,
    },
    /// The request is too large.
    #[error("join request of {bytes} bytes is above the limit of {JOIN_BYTES_MAX}")]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// No socket or no TLS.
    #[error("cannot dial")]
    Start(#[source] StartError),
}

/// Sends a join request to the first member that proves to be of the code's cluster.
///
/// `make_request` gets the channel binding of that connection, for the proof of possession. It is
/// called, and anything sent, only after the authority has been checked.
///
/// # Errors
///
/// [`JoinError`]; only `TimedOut` with `sent` and `Broken` leave open whether it was handled.
pub async fn join(
    code: &InviteCode,
    addresses: &[SocketAddr],
    clock: Arc<dyn Clock>,
    make_request: impl FnOnce(ChannelBinding) -> Bytes + Send,
    limit: Duration,
) -> Result<Bytes, JoinError> {
    if addresses.is_empty() {
        return Err(JoinError::NoAddress);
    }
    let deadline = Instant::now() + limit;
    let (crypto, foreign) = joining_client(code.authority(), clock).map_err(JoinError::Start)?;
    let endpoint = endpoint(addresses).map_err(JoinError::Start)?;
    let crypto = Arc::new(crypto);
    let result = async {
        let dialled =
            race(addresses, limit, |address| dial(&endpoint, &crypto, &foreign, address)).await;
        let connection = match dialled {
            Ok((connection, _address)) => connection,
            Err(failures) => return Err(worst(failures, addresses)),
        };
        let mut binding = [0; 32];
        if connection.export_keying_material(&mut binding, BINDING_LABEL, b"").is_err() {
            return Err(JoinError::Broken { cause: "no channel binding".to_owned() });
        }
        exchange(&connection, make_request(binding), deadline).await
    };
    let result = result.await;
    endpoint.close(quinn::VarInt::from_u32(code::DONE), b"done");
    // Lets the member know; whether it does changes nothing.
    timeout(CLOSE_LIMIT, endpoint.wait_idle()).await.ok();
    result
}

fn endpoint(addresses: &[SocketAddr]) -> Result<Endpoint, StartError> {
    // A socket of both families where there is one; loopback alone needs no other.
    let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let loopback = addresses.iter().all(|address| address.ip().is_loopback() && address.is_ipv4());
    let bind = if loopback { SocketAddr::from((Ipv4Addr::LOCALHOST, 0)) } else { any };
    let bind_error = |source| StartError::Bind { address: bind, source };
    let socket = socket::bind(bind).map_err(bind_error)?;
    let runtime = Arc::new(quinn::TokioRuntime);
    Endpoint::new(EndpointConfig::default(), None, socket, runtime).map_err(bind_error)
}

async fn dial(
    endpoint: &Endpoint,
    crypto: &Arc<QuicClientConfig>,
    foreign: &Foreign,
    address: SocketAddr,
) -> Result<Connection, JoinError> {
    let unreachable = |cause: String| JoinError::Unreachable { cause };
    let crypto: Arc<QuicClientConfig> = Arc::clone(crypto);
    let mut config = ClientConfig::new(crypto);
    config.transport_config(member_transport());
    let connecting = endpoint
        .connect_with(config, address, SERVER_NAME)
        .map_err(|error| unreachable(format!("{address}: {error}")))?;
    connecting.await.map_err(|error| match DialError::from_connection(&error) {
        DialError::Refused(refusal) if refusal.code == code::CERTIFICATE => {
            // One cell for all addresses: it only says what to print.
            let found = *foreign.read().unwrap_or_else(PoisonError::into_inner);
            if found.is_some() {
                JoinError::WrongAuthority { address, found }
            } else {
                JoinError::Refused { code: refusal.code, text: refusal.text }
            }
        }
        DialError::Refused(Refusal { code, text }) => JoinError::Refused { code, text },
        DialError::Failed(cause) => unreachable(format!("{address}: {cause}")),
    })
}

async fn exchange(
    connection: &Connection,
    request: Bytes,
    deadline: Instant,
) -> Result<Bytes, JoinError> {
    if check_length(request.len(), JOIN_BYTES_MAX).is_err() {
        return Err(JoinError::TooLarge { bytes: request.len() });
    }
    let exchange = async {
        let broken = |error: &dyn ToString| StreamError::Broken(error.to_string());
        let (sender, receiver) = connection.open_bi().await.map_err(|error| broken(&error))?;
        let mut sender = QuicSender::new(sender);
        sender.write(&mut pieces(&[], &[request])).await?;
        sender.finish();
        QuicReceiver::new(receiver, JOIN_BYTES_MAX).only().await
    };
    match timeout_at(deadline, exchange).await {
        Ok(Ok(answer)) => {
            close(connection, code::DONE, "done");
            Ok(answer)
        }
        Ok(Err(error)) => Err(match connection.close_reason() {
            Some(reason) => match refusal_of(&reason) {
                Some(Refusal { code, text }) => JoinError::Refused { code, text },
                None => JoinError::Broken { cause: describe(&reason) },
            },
            None => JoinError::Broken { cause: error.to_string() },
        }),
        Err(_elapsed) => Err(JoinError::TimedOut { sent: true }),
    }
}

/// Picks what to report: a stranger, then a refusal, then silence.
fn worst(failures: Vec<(SocketAddr, JoinError)>, addresses: &[SocketAddr]) -> JoinError {
    let rank = |error: &JoinError| match error {
        JoinError::WrongAuthority { .. } => 2,
        JoinError::Refused { .. } => 1,
        JoinError::NoAddress
        | JoinError::Unreachable { .. }
        | JoinError::TimedOut { .. }
        | JoinError::Broken { .. }
        | JoinError::TooLarge { .. }
        | JoinError::Start(_) => 0,
    };
    let worst = failures.into_iter().map(|(_, error)| error).max_by_key(rank);
    worst.unwrap_or_else(|| {
        let list: Vec<_> = addresses.iter().map(ToString::to_string).collect();
        JoinError::Unreachable { cause: format!("no answer from {}", list.join(", ")) }
    })
}

fn shown(found: Option<Fingerprint>) -> String {
    found.map_or_else(String::new, |found| format!(" (its authority is {found})"))
}

fn sent_word(sent: bool) -> &'static str {
    if sent { "the request was sent" } else { "nothing was sent" }
}
