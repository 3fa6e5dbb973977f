//! The UDP socket under the endpoint.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Once;

use socket2::{Domain, Protocol, Socket, Type};

/// Room for a burst of packets: what Linux gives by default is less than a hundred full packets.
const BUFFER_BYTES: usize = 2 * 1024 * 1024;

/// Binds a socket. A wildcard address means both families where the machine has both, and IPv4
/// where it does not; any other address is bound as given.
pub(super) fn bind(address: SocketAddr) -> io::Result<UdpSocket> {
    if !address.ip().is_unspecified() {
        return bind_as_given(address);
    }
    let both = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), address.port());
    match bind_as_given(both) {
        Ok(socket) => Ok(socket),
        // A port in use is the user's to solve; without IPv6 the other family is tried.
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(error),
        Err(_no_ipv6) => {
            bind_as_given(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), address.port()))
        }
    }
}

/// Returns an address in its own family: IPv4 inside IPv6 is IPv4.
pub(super) fn canonical(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V6(v6) => match v6.ip().to_ipv4_mapped() {
            Some(v4) => SocketAddr::new(IpAddr::V4(v4), v6.port()),
            None => address,
        },
        SocketAddr::V4(_) => address,
    }
}

fn bind_as_given(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() && address.ip().is_unspecified() {
        socket.set_only_v6(false)?;
    }
    enlarge_buffers(&socket);
    socket.bind(&address.into())?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// Asks for larger buffers; smaller ones cost packets under load and nothing else.
fn enlarge_buffers(socket: &Socket) {
    let asked =
        [socket.set_recv_buffer_size(BUFFER_BYTES), socket.set_send_buffer_size(BUFFER_BYTES)];
    let refused = asked.into_iter().any(|result| result.is_err());
    // Linux reports twice what it gives, for its own bookkeeping.
    let factor = if cfg!(target_os = "linux") { 2 } else { 1 };
    let received = socket.recv_buffer_size().unwrap_or(0) / factor;
    let sent = socket.send_buffer_size().unwrap_or(0) / factor;
    if refused || received < BUFFER_BYTES || sent < BUFFER_BYTES {
        // Once: each socket of the process meets the same limit.
        static SAID: Once = Once::new();
        SAID.call_once(|| tracing::warn!(
            received,
            sent,
            "UDP buffers are smaller than the {BUFFER_BYTES} bytes asked for, bursts may be lost; \
             on Linux: sysctl -w net.core.rmem_max={BUFFER_BYTES} net.core.wmem_max={BUFFER_BYTES}"
        ));
    }
}
