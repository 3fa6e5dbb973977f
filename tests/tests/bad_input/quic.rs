//! Garbage on the cluster's UDP port.

use std::net::UdpSocket;
use std::time::Duration;

use nexus_tests::process::{LIMIT, Node, agree};
use nexus_tests::wait;

use super::{Intact, say};

/// Packets of each kind: enough to meet a parser's branches, few enough to pass in a moment.
const PACKETS: u64 = 2_000;

/// A small generator with a seed, so that a packet that hurts can be sent again.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(length + 8);
        while bytes.len() < length {
            bytes.extend(self.next().to_le_bytes());
        }
        bytes.truncate(length);
        bytes
    }
}

async fn address_of(node: &Node) -> String {
    let status = node.status().await;
    status["members"][0]["addresses"][0].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_on_the_cluster_port_is_dropped() {
    let mut intact = Intact::new().await;
    let address = address_of(&intact.node).await;
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut noise = Noise(0x9e37_79b9_7f4a_7c15);
    for _ in 0..PACKETS {
        let length = usize::try_from(noise.next() % 1_400).unwrap();
        let mut packet = noise.bytes(length);
        socket.send_to(&packet, &address).unwrap();
        // The same with the first byte of a QUIC handshake, and with its version too.
        if let [first, rest @ ..] = packet.as_mut_slice() {
            *first |= 0xc0;
            if let Some(version) = rest.get_mut(..4) {
                version.copy_from_slice(&[0, 0, 0, 1]);
            }
            socket.send_to(&packet, &address).unwrap();
        }
    }
    socket.send_to(&[], &address).unwrap();
    intact.check("noise").await;

    // Whoever speaks QUIC and none of our protocols is refused, and others still join.
    let node = &intact.node;
    let second = Node::join("second", node, &["--voter"]).await;
    say(&second, "joined among noise").await;
    wait::until("both hold the same", LIMIT, async || {
        let (here, there) = (node.content().await, second.content().await);
        if here == there { Ok(()) } else { Err(format!("{here} {there}")) }
    })
    .await;
    agree(&[node, &second], Duration::from_secs(60)).await;
    intact.messages += 1;
    intact.serves("a join among noise").await;
}
