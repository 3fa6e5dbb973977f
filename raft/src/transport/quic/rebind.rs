//! Moving a running endpoint to another address.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use quinn::Endpoint;
use tokio::time::{Instant, sleep};

use super::socket::{bind, canonical};
use super::{Shared, StartError};

/// How long the old socket may take to be gone: connections hold it until they have turned over.
const RELEASE_LIMIT: Duration = Duration::from_secs(2);
/// Pause between two looks whether it is gone.
const RELEASE_PAUSE: Duration = Duration::from_millis(10);

/// Ends all connections, puts the endpoint on `address` and returns what was bound.
pub(super) async fn rebind(shared: &Shared, address: SocketAddr) -> Result<SocketAddr, StartError> {
    let endpoint = &shared.endpoint;
    let failed = |source| StartError::Bind { address, source };
    let before = endpoint.local_addr().map(canonical).map_err(failed)?;
    // Peers do not follow a server that moves, so they are told, by the old socket.
    shared.disconnect(|_| true, "this node listens on another address now");
    sleep(RELEASE_PAUSE).await;
    if address.port() != before.port() {
        endpoint.rebind(bind(address).map_err(failed)?).map_err(failed)?;
    } else {
        park(endpoint).map_err(failed)?;
        if let Err(source) = take(endpoint, address).await {
            if let Err(error) = take(endpoint, before).await {
                tracing::error!(%before, "the old address cannot be bound again: {error}");
            }
            return Err(failed(source));
        }
    }
    endpoint.local_addr().map(canonical).map_err(failed)
}

/// Lets go of the socket. The endpoint keeps the one before the current until something arrives,
/// so the old one is gone after two changes.
fn park(endpoint: &Endpoint) -> io::Result<()> {
    for _ in 0..2 {
        endpoint.rebind(bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?)?;
    }
    Ok(())
}

/// Binds an address that may still be held by the socket just let go.
async fn take(endpoint: &Endpoint, address: SocketAddr) -> io::Result<()> {
    let deadline = Instant::now() + RELEASE_LIMIT;
    loop {
        match bind(address) {
            Ok(socket) => return endpoint.rebind(socket),
            Err(error) if error.kind() != io::ErrorKind::AddrInUse => return Err(error),
            Err(error) if Instant::now() > deadline => return Err(error),
            Err(_still_held) => sleep(RELEASE_PAUSE).await,
        }
    }
}
