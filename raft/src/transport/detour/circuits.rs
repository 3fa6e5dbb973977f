//! Circuits: streams through relays that carry packets, and the socket that QUIC sees in them.
//!
//! A packet that finds no circuit, or a full queue, is lost as on any network: QUIC sends it again.

use std::collections::BTreeMap;
use std::io::{self, IoSliceMut};
use std::net::{Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};
use tokio::sync::{mpsc, watch};

use crate::store::lock;
use crate::transport::{Duplex, FrameReceiver, FrameSender, NodeId, StreamError};

/// Packets that wait for a circuit: with 1,452 bytes each 1.5 MB, about what a socket holds.
const QUEUE_MAX: usize = 1024;
/// Packets that have arrived and that QUIC has not taken yet.
const ARRIVED_MAX: usize = 1024;
/// Packets that go out in one write.
const BATCH_MAX: usize = 64;
/// Circuits to one node: one that each side has opened, and old ones whose end is not noticed yet.
const CIRCUITS_OF_NODE_MAX: usize = 4;

/// The addresses that stand for nodes: a range of its own for local use (RFC 4193).
const PREFIX: [u16; 4] = [0xfd6e, 0x6578, 0x7573, 0];

/// Returns the address that stands for a node.
pub(super) fn address(node: NodeId) -> SocketAddr {
    let [p, q, r, s] = PREFIX;
    let [a, b, c, d] = [node >> 48, node >> 32, node >> 16, node]
        .map(|part| u16::try_from(part & 0xffff).unwrap_or_default());
    SocketAddr::from((Ipv6Addr::new(p, q, r, s, a, b, c, d), 1))
}

/// Returns the node that an address stands for.
fn node_at(address: SocketAddr) -> Option<NodeId> {
    let SocketAddr::V6(v6) = address else { return None };
    let [p, q, r, s, parts @ ..] = v6.ip().segments();
    let node = parts.into_iter().fold(0, |node, part| (node << 16) | NodeId::from(part));
    ([p, q, r, s] == PREFIX).then_some(node)
}

/// All circuits of this node.
#[derive(Debug)]
pub(super) struct Circuits {
    own: NodeId,
    /// By the node at the far end, oldest first.
    open: Mutex<BTreeMap<NodeId, Vec<Circuit>>>,
    next: AtomicU64,
    /// Changes with each circuit that opens or ends.
    changes: watch::Sender<u64>,
    arrived: mpsc::Sender<(NodeId, Bytes)>,
    arrivals: Mutex<mpsc::Receiver<(NodeId, Bytes)>>,
}

#[derive(Debug)]
struct Circuit {
    number: u64,
    by: NodeId,
    /// Whether this node has asked for it.
    ours: bool,
    packets: mpsc::Sender<Bytes>,
}

/// A circuit's place among the others; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    circuits: Arc<Circuits>,
    peer: NodeId,
    number: u64,
    packets: mpsc::Receiver<Bytes>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.circuits.end(self.peer, self.number);
    }
}

impl Circuits {
    pub(super) fn new(own: NodeId) -> Self {
        let (arrived, arrivals) = mpsc::channel(ARRIVED_MAX);
        Self {
            own,
            open: Mutex::default(),
            next: AtomicU64::new(1),
            changes: watch::Sender::new(0),
            arrived,
            arrivals: Mutex::new(arrivals),
        }
    }

    /// Takes a place for a circuit to `peer` through `by`: packets go there from now on.
    pub(super) fn add(self: &Arc<Self>, peer: NodeId, by: NodeId, ours: bool) -> Place {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, packets) = mpsc::channel(QUEUE_MAX);
        let mut open = lock(&self.open);
        let circuits = open.entry(peer).or_default();
        circuits.push(Circuit { number, by, ours, packets: sender });
        if circuits.len() > CIRCUITS_OF_NODE_MAX {
            // Its job notices that nobody sends any more.
            circuits.remove(0);
        }
        drop(open);
        self.nudge();
        Place { circuits: Arc::clone(self), peer, number, packets }
    }

    /// Ends a circuit.
    pub(super) fn end(&self, peer: NodeId, number: u64) {
        self.end_those(peer, |circuit| circuit.number == number);
    }

    /// Ends the circuits to a node that this node has asked for.
    pub(super) fn end_ours(&self, peer: NodeId) {
        self.end_those(peer, |circuit| circuit.ours);
    }

    fn end_those(&self, peer: NodeId, ends: impl Fn(&Circuit) -> bool) {
        let mut open = lock(&self.open);
        let Some(circuits) = open.get_mut(&peer) else { return };
        circuits.retain(|circuit| !ends(circuit));
        if circuits.is_empty() {
            open.remove(&peer);
        }
        drop(open);
        self.nudge();
    }

    /// Returns the number and the relay of the circuit that packets to a node take.
    pub(super) fn newest(&self, peer: NodeId) -> Option<(u64, NodeId)> {
        let open = lock(&self.open);
        open.get(&peer)?.last().map(|circuit| (circuit.number, circuit.by))
    }

    /// Returns a channel that changes with each circuit that opens or ends.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Wakes who waits for changes.
    pub(super) fn nudge(&self) {
        self.changes.send_modify(|changes| *changes = changes.wrapping_add(1));
    }

    fn send(&self, peer: NodeId, packet: Bytes) {
        let open = lock(&self.open);
        let Some(circuit) = open.get(&peer).and_then(|circuits| circuits.last()) else { return };
        if circuit.packets.try_send(packet).is_err() {
            metrics::counter!("nexus_detour_packets_lost_total").increment(1);
        }
    }
}

impl Place {
    /// Carries packets both ways until the stream or the place ends.
    pub(super) async fn carry(mut self, duplex: Duplex) {
        let Duplex { sender, receiver } = duplex;
        let (peer, arrived) = (self.peer, self.circuits.arrived.clone());
        let ended = tokio::select! {
            biased;
            ended = send_out(&mut self.packets, sender) => ended,
            ended = take_in(receiver, peer, &arrived) => ended,
        };
        if let Err(error) = ended {
            tracing::debug!(peer, "circuit: {error}");
        }
    }
}

async fn send_out(
    packets: &mut mpsc::Receiver<Bytes>,
    mut sender: FrameSender,
) -> Result<(), StreamError> {
    let mut batch = Vec::with_capacity(BATCH_MAX);
    while packets.recv_many(&mut batch, BATCH_MAX).await > 0 {
        sender.send_all(&batch).await?;
        batch.clear();
    }
    sender.finish();
    Ok(())
}

async fn take_in(
    mut receiver: FrameReceiver,
    peer: NodeId,
    arrived: &mpsc::Sender<(NodeId, Bytes)>,
) -> Result<(), StreamError> {
    while let Some(packet) = receiver.recv().await {
        if arrived.try_send((peer, packet?)).is_err() {
            metrics::counter!("nexus_detour_packets_lost_total").increment(1);
        }
    }
    Ok(())
}

impl AsyncUdpSocket for Circuits {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(AlwaysWritable)
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        // One packet each: `max_transmit_segments` is one.
        if let Some(peer) = node_at(transmit.destination) {
            self.send(peer, Bytes::copy_from_slice(transmit.contents));
        }
        Ok(())
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let mut arrivals = lock(&self.arrivals);
        let mut count = 0;
        for (buffer, meta) in bufs.iter_mut().zip(meta) {
            let next = match arrivals.poll_recv(cx) {
                Poll::Ready(Some(next)) => next,
                Poll::Ready(None) | Poll::Pending => break,
            };
            let (peer, packet) = next;
            // One that does not fit is no packet of ours: what is left of it is thrown away by
            // QUIC.
            let length = packet.len().min(buffer.len());
            if let (Some(to), Some(from)) = (buffer.get_mut(..length), packet.get(..length)) {
                to.copy_from_slice(from);
            }
            *meta = RecvMeta { addr: address(peer), len: length, stride: length, ..*meta };
            (meta.ecn, meta.dst_ip) = (None, None);
            count += 1;
        }
        if count == 0 { Poll::Pending } else { Poll::Ready(Ok(count)) }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(address(self.own))
    }

    fn may_fragment(&self) -> bool {
        false
    }
}

/// What does not fit is lost, so nobody ever waits.
#[derive(Debug)]
struct AlwaysWritable;

impl UdpPoller for AlwaysWritable {
    fn poll_writable(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_stands_for_one_node() {
        for node in [1, 2, 0xffff, 0x1_0000, 0x1234_5678_9abc_def0, NodeId::MAX] {
            assert_eq!(node_at(address(node)), Some(node));
        }
        for other in ["127.0.0.1:1", "[fd00::1]:1", "[fd6e:6578:7573:1::1]:1"] {
            assert_eq!(node_at(other.parse().unwrap()), None, "{other}");
        }
    }

    #[tokio::test]
    async fn the_newest_circuit_carries_and_the_oldest_of_too_many_ends() {
        let circuits = Arc::new(Circuits::new(1));
        let mut places: Vec<Place> = (10..15).map(|by| circuits.add(2, by, true)).collect();
        assert_eq!(circuits.newest(2).map(|(_, by)| by), Some(14));
        circuits.send(2, Bytes::from_static(b"packet"));
        circuits.send(3, Bytes::from_static(b"lost"));
        assert_eq!(places[4].packets.recv().await, Some(Bytes::from_static(b"packet")));
        assert_eq!(places[0].packets.recv().await, None, "pushed out");
        places.pop();
        assert_eq!(circuits.newest(2).map(|(_, by)| by), Some(13));
        places.clear();
        assert_eq!(circuits.newest(2), None);
    }
}
