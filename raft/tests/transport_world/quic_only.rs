//! What only the real transport has: keys, joins, strangers on the port.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use nexus_raft::identity::{
    Authority, InviteCode, InviteRole, NodeIdentity, NodeKey, join_proof_is_valid,
};
use nexus_raft::transport::quic::{JoinError, QuicConfig, QuicTransport, StartError, join};
use nexus_rt::{Clock as _, Jobs, ManualClock, SystemClock};

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_node_at_the_address_is_not_called() {
    let world = World::quic();
    let one = world.start(1).await;
    let two = world.start(2).await;
    world.publish(3, &two);
    let error = one.call(3, Lane::Rpc, say(ECHO, b""), LIMIT).await.unwrap_err();
    // The address is wrong; node 3 has refused nothing.
    let CallError::Unreachable { node: 3, cause } = &error else { panic!("{error:?}") };
    assert!(cause.contains("node 2 answered where node 3 was dialled"), "{cause}");
    assert_eq!(two.handler.calls(), 0);
}

/// Dials a node as anybody could and returns why the connection ended.
async fn dial_raw(
    address: SocketAddr,
    protocol: &[u8],
    identity: Option<&NodeIdentity>,
) -> quinn::ConnectionError {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyServer(provider)));
    let mut config = match identity {
        None => builder.with_no_client_auth(),
        Some(identity) => {
            let key = std::fs::read(identity_key_file(identity)).unwrap();
            let key = rustls::pki_types::pem::PemObject::from_pem_slice(&key).unwrap();
            builder.with_client_auth_cert(identity.chain().to_vec(), key).unwrap()
        }
    };
    config.alpn_protocols = vec![protocol.to_vec()];
    let crypto = quinn::crypto::rustls::QuicClientConfig::try_from(config).unwrap();
    let endpoint = quinn::Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let config = quinn::ClientConfig::new(Arc::new(crypto));
    let connecting = endpoint.connect_with(config, address, "anybody").unwrap();
    match timeout(LIMIT, connecting).await.unwrap() {
        Err(error) => error,
        Ok(connection) => {
            if let Ok((mut sender, _receiver)) = connection.open_bi().await {
                sender.write_all(&[0; 64]).await.ok();
            }
            timeout(LIMIT, connection.closed()).await.unwrap()
        }
    }
}

fn identity_key_file(identity: &NodeIdentity) -> std::path::PathBuf {
    let folder = tempfile::tempdir().unwrap().keep();
    identity.save(&folder).unwrap();
    folder.join("node.key")
}

#[derive(Debug)]
struct AnyServer(Arc<rustls::crypto::CryptoProvider>);

impl rustls::client::danger::ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _end_entity: &rustls::pki_types::CertificateDer<'_>,
        _intermediates: &[rustls::pki_types::CertificateDer<'_>],
        _server_name: &rustls::pki_types::ServerName<'_>,
        _ocsp_response: &[u8],
        _now: rustls::pki_types::UnixTime,
    ) -> Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
        Ok(rustls::client::danger::ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &rustls::pki_types::CertificateDer<'_>,
        _dss: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _cert: &rustls::pki_types::CertificateDer<'_>,
        _dss: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

fn closed_with(error: &quinn::ConnectionError) -> (u32, String) {
    let quinn::ConnectionError::ApplicationClosed(closed) = error else { panic!("{error:?}") };
    let code = u32::try_from(closed.error_code.into_inner()).unwrap();
    (code, String::from_utf8_lossy(&closed.reason).into_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_connection_without_certificate_is_closed() {
    let world = World::quic();
    let one = world.start(1).await;
    let address = one.transport.local_address().unwrap();
    let (code, text) = closed_with(&dial_raw(address, b"nexus/1", None).await);
    assert_eq!(code, code::NO_CERTIFICATE);
    assert!(text.contains("no client certificate"), "{text}");
    assert_eq!(one.handler.calls(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_of_another_authority_is_refused() {
    let world = World::quic();
    let one = world.start(1).await;
    let _two = world.start(2).await;
    let address = one.transport.local_address().unwrap();
    // The same names, signed by somebody else.
    let forger = Authority::generate("home", SystemClock.wall_millis()).unwrap();
    let key = NodeKey::generate().unwrap();
    let now = SystemClock.wall_millis();
    let forged = forger.issue(2, "home", &key.public_key(), now).unwrap();
    let identity = NodeIdentity::new(key, vec![forged]).unwrap();
    let error = dial_raw(address, b"nexus/1", Some(&identity)).await;
    let quinn::ConnectionError::ConnectionClosed(closed) = &error else { panic!("{error:?}") };
    let reason = String::from_utf8_lossy(&closed.reason).into_owned();
    assert!(reason.contains("not signed by an authority of cluster home"), "{reason}");
    // The right authority and the right id, with a key that membership does not know.
    let key = NodeKey::generate().unwrap();
    let other = world.cluster.authority.issue(2, "home", &key.public_key(), now).unwrap();
    let identity = NodeIdentity::new(key, vec![other]).unwrap();
    let error = dial_raw(address, b"nexus/1", Some(&identity)).await;
    let (code, _text) = closed_with(&error);
    // Its greeting is no greeting either; what counts is that it got nowhere.
    assert!(code == code::MALFORMED || code == 2002, "{error:?}");
    assert_eq!(one.handler.calls(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_with_a_replaced_key_is_refused() {
    let world = World::quic();
    let one = world.start(1).await;
    let two = world.start(2).await;
    world.cluster.keys.lock().unwrap().insert(1, b"another key".to_vec());
    let error = one.call(2, Lane::Rpc, say(ECHO, b""), LIMIT).await.unwrap_err();
    assert!(matches!(error, CallError::Refused { code: 2002, sent: false, .. }), "{error:?}");
    assert_eq!(two.handler.calls(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_protocol_is_refused() {
    let world = World::quic();
    let one = world.start(1).await;
    let address = one.transport.local_address().unwrap();
    let error = dial_raw(address, b"h3", None).await;
    assert!(matches!(error, quinn::ConnectionError::ConnectionClosed(_)), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_on_a_join_does_no_harm() {
    let world = World::quic();
    let one = world.start(1).await;
    let address = one.transport.local_address().unwrap();
    let identity = world.identity(2);
    // It sends no frame that can be read, so it is closed with that, not with its certificate.
    let (code, text) = closed_with(&dial_raw(address, b"nexus-join/1", Some(&identity)).await);
    assert!(code == code::MALFORMED || code == code::DONE, "{code} {text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_join_proves_its_key_and_is_answered() {
    let world = World::quic();
    let one = world.start(1).await;
    let address = one.transport.local_address().unwrap();
    let authority = world.cluster.authority.fingerprint();
    let code = InviteCode::generate(InviteRole::Voter, authority).unwrap();
    let key = NodeKey::generate().unwrap();
    let mut proof = Vec::new();
    let make = |binding| {
        proof = key.prove_join(&binding).unwrap();
        Bytes::from_static(b"me")
    };
    let answer = join(&code, &[address], Arc::new(SystemClock), make, LIMIT).await.unwrap();
    assert_eq!(answer, Bytes::from_static(b"welcome me"));
    let [binding] = one.handler.bindings()[..] else { panic!("one join") };
    assert!(join_proof_is_valid(&key.public_key(), &binding, &proof));
    // The proof is worth nothing on another connection.
    let make = |_| Bytes::from_static(b"me again");
    join(&code, &[address], Arc::new(SystemClock), make, LIMIT).await.unwrap();
    let second = one.handler.bindings()[1];
    assert!(!join_proof_is_valid(&key.public_key(), &second, &proof));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_join_to_another_cluster_sends_nothing() {
    let world = World::quic();
    let one = world.start(1).await;
    let address = one.transport.local_address().unwrap();
    let other = Authority::generate("other", SystemClock.wall_millis()).unwrap();
    let code = InviteCode::generate(InviteRole::Auto, other.fingerprint()).unwrap();
    let made = AtomicUsize::new(0);
    let make = |_| {
        made.fetch_add(1, Ordering::SeqCst);
        Bytes::from_static(b"secret")
    };
    let error = join(&code, &[address], Arc::new(SystemClock), make, LIMIT).await.unwrap_err();
    let JoinError::WrongAuthority { address: who, found } = &error else { panic!("{error:?}") };
    assert_eq!(*who, address);
    assert_eq!(*found, Some(world.cluster.authority.fingerprint()));
    assert_eq!((made.load(Ordering::SeqCst), one.handler.joins()), (0, 0));
    assert!(error.to_string().contains("nothing was sent"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_join_passes_over_strangers_and_dead_addresses() {
    let world = World::quic();
    let one = world.start(1).await;
    let foreign = world.foreign("other").start(1).await;
    let code =
        InviteCode::generate(InviteRole::Learner, world.cluster.authority.fingerprint()).unwrap();
    let silent = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let addresses = [
        silent.local_addr().unwrap(),
        foreign.transport.local_address().unwrap(),
        one.transport.local_address().unwrap(),
    ];
    let make = |_| Bytes::from_static(b"me");
    let answer = join(&code, &addresses, Arc::new(SystemClock), make, LIMIT).await.unwrap();
    assert_eq!(answer, Bytes::from_static(b"welcome me"));
    assert_eq!(foreign.handler.joins(), 0);

    let limit = Duration::from_millis(700);
    let make = |_| Bytes::from_static(b"me");
    let nobody = &addresses[..1];
    let error = join(&code, nobody, Arc::new(SystemClock), make, limit).await.unwrap_err();
    assert!(matches!(error, JoinError::Unreachable { .. }), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_on_the_port_disturbs_nobody() {
    let world = World::quic();
    let one = world.start(1).await;
    let two = world.start(2).await;
    let address = two.transport.local_address().unwrap();
    one.call(2, Lane::Rpc, say(ECHO, b""), LIMIT).await.unwrap();
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let mut state = 1_u32;
    for round in 0..3000_usize {
        let length = round % 1400;
        let mut packet: Vec<u8> = (0..length)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                state.to_le_bytes()[3]
            })
            .collect();
        // Some look like the first packet of a handshake, some like one of a connection.
        match (round % 3, packet.first_mut()) {
            (0, Some(first)) => *first = 0xc3,
            (1, Some(first)) => *first = 0x43,
            _ => {}
        }
        if round % 3 == 0 && length > 6 {
            packet[1..6].copy_from_slice(&[0, 0, 0, 1, 8]);
        }
        socket.send_to(&packet, address).unwrap();
        if round % 500 == 0 {
            one.call(2, Lane::Rpc, say(ECHO, b""), LIMIT).await.unwrap();
        }
    }
    let three = world.start(3).await;
    three.call(2, Lane::Rpc, say(ECHO, b""), LIMIT).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_port_in_use_is_a_clear_error() {
    let world = World::quic();
    let one = world.start(1).await;
    let bind = one.transport.local_address().unwrap();
    let config = QuicConfig {
        bind,
        identity: world.identity(2),
        jobs: Jobs::new(),
        clock: Arc::new(SystemClock),
    };
    let error = QuicTransport::bind(config, world.directory(2)).unwrap_err();
    assert!(matches!(error, StartError::Bind { address, .. } if address == bind), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wildcard_serves_both_families_where_there_are_two() {
    let world = World::quic();
    let one = world.start(1).await;
    let directory = world.directory(2);
    let handler = Arc::new(transport_world::Told::default());
    let config = QuicConfig {
        bind: SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        identity: world.identity(2),
        jobs: Jobs::new(),
        clock: Arc::new(SystemClock),
    };
    let two = QuicTransport::bind(config, directory).unwrap();
    two.serve(handler);
    let port = two.local_address().unwrap().port();
    let key = world.identity(2).key().public_key();
    world.cluster.keys.lock().unwrap().insert(2, key);
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    world.cluster.addresses.lock().unwrap().insert(2, vec![address]);
    one.call(2, Lane::Rpc, say(ECHO, b""), LIMIT).await.unwrap();
    two.call(1, Lane::Rpc, say(ECHO, b""), LIMIT).await.unwrap();
    two.close(code::SHUTDOWN, "done").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_address_that_answers_wins() {
    let world = World::quic();
    let one = world.start(1).await;
    let two = world.start(2).await;
    let silent = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let addresses = vec![silent.local_addr().unwrap(), two.transport.local_address().unwrap()];
    world.cluster.addresses.lock().unwrap().insert(2, addresses);
    let began = Instant::now();
    one.call(2, Lane::Rpc, say(ECHO, b""), LIMIT).await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopping_node_says_so_and_calls_fail() {
    let world = World::quic();
    let one = world.start(1).await;
    let two = world.start(2).await;
    let mut stream = one.transport.open(2, Lane::Log, ECHO_STREAM, LIMIT).await.unwrap();
    stream.sender.send(Bytes::from_static(b"there?")).await.unwrap();
    stream.receiver.recv().await.unwrap().unwrap();
    two.transport.close(code::SHUTDOWN, "node 2 is stopping").await;
    let ended = timeout(LIMIT, stream.receiver.recv()).await.unwrap();
    let Some(Err(StreamError::Broken(text))) = ended else { panic!("{ended:?}") };
    assert!(text.contains("node 2 is stopping"), "{text}");
    let limit = Duration::from_millis(300);
    let error = one.call(2, Lane::Log, say(ECHO, b""), limit).await.unwrap_err();
    assert!(error.certainly_not_sent(), "{error:?}");
    assert!(two.jobs.shutdown(LIMIT).await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_is_a_day_behind_is_forgiven_and_a_week_is_not() {
    let world = World::quic();
    let one = world.start(1).await;
    let address = one.transport.local_address().unwrap();
    let code =
        InviteCode::generate(InviteRole::Voter, world.cluster.authority.fingerprint()).unwrap();
    let day = 24 * 3600 * 1000;
    let now = SystemClock.wall_millis();
    for (clock, works) in [
        (now - day - day / 2, true),
        (now - 7 * day, false),
        (now + 370 * day, true),
        (now + 500 * day, false),
    ] {
        let clock = Arc::new(ManualClock::new(clock));
        let result = join(&code, &[address], clock, |_| Bytes::from_static(b"me"), LIMIT).await;
        assert_eq!(result.is_ok(), works, "{result:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endpoint_moves_from_loopback_to_all_on_its_port() {
    let world = World::quic();
    let one = world.start(1).await;
    let config = QuicConfig {
        bind: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        identity: world.identity(2),
        jobs: Jobs::new(),
        clock: Arc::new(SystemClock),
    };
    let two = QuicTransport::bind(config, world.directory(2)).unwrap();
    two.serve(Arc::new(transport_world::Told::default()));
    let before = two.local_address().unwrap();
    let key = world.identity(2).key().public_key();
    world.cluster.keys.lock().unwrap().insert(2, key);
    world.cluster.addresses.lock().unwrap().insert(2, vec![before]);
    one.call(2, Lane::Rpc, say(ECHO, b""), LIMIT).await.unwrap();

    let found = || {
        eventually("the node is found after its move", || async {
            let limit = Duration::from_secs(1);
            one.call(2, Lane::Rpc, say(ECHO, b""), limit).await
        })
    };
    let everywhere = SocketAddr::from((Ipv4Addr::UNSPECIFIED, before.port()));
    let after = two.rebind(everywhere).await.unwrap();
    assert!(after.ip().is_unspecified() && after.port() == before.port(), "{after}");
    found().await;
    // A port that is taken: the address stays.
    let taken = one.transport.local_address().unwrap();
    let error = two.rebind(taken).await.unwrap_err();
    assert!(matches!(error, StartError::Bind { address, .. } if address == taken), "{error:?}");
    assert_eq!(two.local_address(), Some(after));
    found().await;
    let moved = two.rebind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await.unwrap();
    assert_ne!(moved.port(), before.port());
    world.cluster.addresses.lock().unwrap().insert(2, vec![moved]);
    found().await;
    two.close(code::SHUTDOWN, "done").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_peer_is_noticed_by_silence() {
    let world = World::quic();
    let one = world.start(1).await;
    let two = world.start(2).await;
    let mut stream = one.transport.open(2, Lane::Log, ECHO_STREAM, LIMIT).await.unwrap();
    stream.sender.send(Bytes::from_static(b"there?")).await.unwrap();
    stream.receiver.recv().await.unwrap().unwrap();
    one.call(2, Lane::Rpc, say(ECHO, b""), LIMIT).await.unwrap();
    two.crash();
    // Two calls that meet silence end the connection; the next one dials and finds nobody. What
    // was under way when the node went may still be counted as a sign of life.
    let limit = Duration::from_millis(150);
    let mut sent = 0;
    while let Err(CallError::TimedOut { sent: true, .. }) =
        one.call(2, Lane::Rpc, say(ECHO, b""), limit).await
    {
        sent += 1;
    }
    assert!((2..=4).contains(&sent), "{sent} calls were sent into silence");
    let error = one.call(2, Lane::Rpc, say(ECHO, b""), limit).await.unwrap_err();
    assert!(error.certainly_not_sent(), "{error:?}");
    // The stream has no answers to miss: keep-alive tells.
    let ended = timeout(LIMIT, stream.receiver.recv()).await.unwrap();
    assert!(matches!(ended, Some(Err(StreamError::Broken(_)))), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_of_strangers_leaves_room_for_members() {
    let world = World::quic();
    let one = world.start(1).await;
    let two = world.start(2).await;
    let address = two.transport.local_address().unwrap();
    let crowd = join_all((0..100).map(|_| dial_raw(address, b"nexus/1", None)));
    let call = one.call(2, Lane::Rpc, say(ECHO, b""), LIMIT);
    let (ends, answer) = tokio::join!(crowd, call);
    answer.unwrap();
    assert_eq!(ends.len(), 100);
    one.call(2, Lane::Log, say(ECHO, b""), LIMIT).await.unwrap();
    assert_eq!(two.handler.calls(), 2);
}
