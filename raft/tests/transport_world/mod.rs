//! Nodes for the transport suite: a handler that does what it is told, a directory that knows all
//! nodes of its world, and both kinds of network.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that meets the unexpected fails there"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use nexus_raft::identity::{Authority, NodeIdentity, NodeKey};
use nexus_raft::transport::memory::{MemoryNet, MemoryTransport};
use nexus_raft::transport::quic::{QuicConfig, QuicTransport};
use nexus_raft::transport::{
    CallError, ChannelBinding, Directory, Duplex, Handler, Hello, Lane, NodeId, PROTOCOL, Peer,
    Refusal, Transport,
};
use nexus_rt::{Clock as _, Jobs, SystemClock};
use rustls::pki_types::CertificateDer;
use tokio::runtime::Runtime;
use tokio::time::{Instant, sleep, timeout};

/// First byte of a request that is answered with itself.
pub(crate) const ECHO: u8 = b'e';
/// First byte of a request that is never answered.
pub(crate) const SILENT: u8 = b's';
/// First byte of a request that is refused with the rest as text.
pub(crate) const REFUSE: u8 = b'r';
/// First byte of a request for an answer of so many bytes.
pub(crate) const ANSWER_OF: u8 = b'n';
/// Kind of stream that sends each frame back.
pub(crate) const ECHO_STREAM: u8 = 1;
/// Kind of stream that counts frames and tells how it ended.
pub(crate) const COUNT: u8 = 2;

/// How long anything in this suite may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// Makes a request.
pub(crate) fn say(what: u8, rest: &[u8]) -> Bytes {
    let mut request = BytesMut::with_capacity(1 + rest.len());
    request.put_u8(what);
    request.put_slice(rest);
    request.freeze()
}

/// Tries until it goes well; panics with the last state after some time.
pub(crate) async fn eventually<T, E, F>(what: &str, mut attempt: impl FnMut() -> F) -> T
where
    E: Debug,
    F: Future<Output = Result<T, E>>,
{
    let deadline = Instant::now() + PATIENCE;
    loop {
        match attempt().await {
            Ok(done) => return done,
            Err(state) if Instant::now() > deadline => panic!("{what}: last seen {state:?}"),
            Err(_) => sleep(Duration::from_millis(10)).await,
        }
    }
}

/// A handler that does what the first byte says.
#[derive(Debug, Default)]
pub(crate) struct Told {
    calls: AtomicUsize,
    joins: AtomicUsize,
    peers: Mutex<Vec<Peer>>,
    /// The bodies of all requests, in the order of their arrival.
    heard: Mutex<Vec<Bytes>>,
    bindings: Mutex<Vec<ChannelBinding>>,
}

impl Told {
    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    pub(crate) fn joins(&self) -> usize {
        self.joins.load(Ordering::SeqCst)
    }

    pub(crate) fn peers(&self) -> Vec<Peer> {
        self.peers.lock().unwrap().clone()
    }

    pub(crate) fn heard(&self) -> Vec<Bytes> {
        self.heard.lock().unwrap().clone()
    }

    pub(crate) fn bindings(&self) -> Vec<ChannelBinding> {
        self.bindings.lock().unwrap().clone()
    }
}

impl Handler for Told {
    fn call(
        &self,
        from: &Peer,
        _lane: Lane,
        request: Bytes,
    ) -> BoxFuture<'static, Result<Bytes, Refusal>> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        self.peers.lock().unwrap().push(from.clone());
        self.heard.lock().unwrap().push(request.clone());
        async move {
            let rest = request.slice(1..);
            match request[0] {
                SILENT => futures::future::pending().await,
                REFUSE => Err(Refusal::new(1234, String::from_utf8_lossy(&rest))),
                ANSWER_OF => {
                    let length = u32::from_le_bytes(rest[..4].try_into().unwrap());
                    Ok(vec![1; usize::try_from(length).unwrap()].into())
                }
                _ => Ok(request),
            }
        }
        .boxed()
    }

    fn stream(
        &self,
        from: &Peer,
        _lane: Lane,
        kind: u8,
        mut duplex: Duplex,
    ) -> BoxFuture<'static, ()> {
        self.peers.lock().unwrap().push(from.clone());
        async move {
            let mut count = 0;
            let end = loop {
                match duplex.receiver.recv().await {
                    Some(Ok(frame)) if kind == ECHO_STREAM => {
                        if duplex.sender.send(frame).await.is_err() {
                            return;
                        }
                    }
                    Some(Ok(_)) => count += 1,
                    Some(Err(_)) => break "failed",
                    None => break "ended",
                }
            };
            if kind == COUNT || end == "failed" {
                duplex.sender.send(format!("{count} {end}").into()).await.ok();
            }
        }
        .boxed()
    }

    fn join(
        &self,
        _from: SocketAddr,
        binding: ChannelBinding,
        request: Bytes,
    ) -> BoxFuture<'static, Bytes> {
        self.joins.fetch_add(1, Ordering::SeqCst);
        self.bindings.lock().unwrap().push(binding);
        async move { [b"welcome ", &request[..]].concat().into() }.boxed()
    }
}

/// What a node knows of its world.
pub(crate) struct Known {
    hello: Mutex<Hello>,
    cluster: Arc<Cluster>,
    removed: Mutex<BTreeSet<NodeId>>,
    boot_min: Mutex<u64>,
    reached: Mutex<BTreeSet<NodeId>>,
}

impl Known {
    pub(crate) fn change_hello(&self, change: impl FnOnce(&mut Hello)) {
        change(&mut self.hello.lock().unwrap());
    }

    pub(crate) fn refuse_boots_below(&self, boot: u64) {
        *self.boot_min.lock().unwrap() = boot;
    }

    pub(crate) fn remove(&self, node: NodeId) {
        self.removed.lock().unwrap().insert(node);
    }

    pub(crate) fn was_reached(&self, node: NodeId) -> bool {
        self.reached.lock().unwrap().contains(&node)
    }
}

impl Directory for Known {
    fn hello(&self) -> Hello {
        self.hello.lock().unwrap().clone()
    }

    fn admit(&self, node: NodeId, spki: &[u8], _lane: Lane) -> Result<(), Refusal> {
        let keys = self.cluster.keys.lock().unwrap();
        let removed = self.removed.lock().unwrap().contains(&node);
        if removed || keys.get(&node).is_none_or(|key| key != spki) {
            return Err(Refusal::new(2002, format!("node {node} is not a member with this key")));
        }
        Ok(())
    }

    fn check_hello(&self, peer: &Hello) -> Result<(), Refusal> {
        if peer.boot < *self.boot_min.lock().unwrap() {
            return Err(Refusal::new(2001, "this folder is older, or is in use twice"));
        }
        Ok(())
    }

    fn members(&self) -> Vec<NodeId> {
        self.cluster.keys.lock().unwrap().keys().copied().collect()
    }

    fn addresses(&self, node: NodeId) -> Vec<SocketAddr> {
        self.cluster.addresses.lock().unwrap().get(&node).cloned().unwrap_or_default()
    }

    fn reached(&self, node: NodeId, _at: SocketAddr) {
        self.reached.lock().unwrap().insert(node);
    }

    fn roots(&self) -> Vec<CertificateDer<'static>> {
        vec![self.cluster.authority.certificate().clone()]
    }
}

/// What all nodes of a world share.
pub(crate) struct Cluster {
    pub(crate) name: String,
    pub(crate) authority: Authority,
    pub(crate) keys: Mutex<BTreeMap<NodeId, Vec<u8>>>,
    pub(crate) addresses: Mutex<BTreeMap<NodeId, Vec<SocketAddr>>>,
    private: Mutex<BTreeMap<NodeId, NodeKey>>,
    boots: Mutex<BTreeMap<NodeId, u64>>,
}

/// One cluster on one of the two networks.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) net: Option<MemoryNet>,
}

/// A running node.
pub(crate) struct Node {
    pub(crate) id: NodeId,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) handler: Arc<Told>,
    pub(crate) directory: Arc<Known>,
    pub(crate) jobs: Jobs,
    world: World,
    runtime: Option<Runtime>,
}

impl World {
    pub(crate) fn quic() -> Self {
        Self::new("home", None)
    }

    pub(crate) fn memory() -> Self {
        Self::new("home", Some(MemoryNet::new(1)))
    }

    fn new(name: &str, net: Option<MemoryNet>) -> Self {
        let cluster = Cluster {
            name: name.to_owned(),
            authority: Authority::generate(name, SystemClock.wall_millis()).unwrap(),
            keys: Mutex::default(),
            addresses: Mutex::default(),
            private: Mutex::default(),
            boots: Mutex::default(),
        };
        Self { cluster: Arc::new(cluster), net }
    }

    /// Makes another cluster on the same network.
    pub(crate) fn foreign(&self, name: &str) -> Self {
        Self::new(name, self.net.clone())
    }

    /// Makes the nodes of this world believe that `node` is found where another one listens.
    pub(crate) fn publish(&self, node: NodeId, other: &Node) {
        let address = other.transport.local_address().unwrap();
        self.cluster.addresses.lock().unwrap().insert(node, vec![address]);
        let key = MemoryNet::public_key(node);
        self.cluster.keys.lock().unwrap().entry(node).or_insert(key);
        // In two steps: the two worlds may be one, with one lock.
        let ours = self.cluster.keys.lock().unwrap().clone();
        let mut keys = other.world.cluster.keys.lock().unwrap();
        for (id, key) in ours {
            keys.entry(id).or_insert(key);
        }
    }

    pub(crate) fn identity(&self, id: NodeId) -> NodeIdentity {
        let mut private = self.cluster.private.lock().unwrap();
        let key = private.entry(id).or_insert_with(|| NodeKey::generate().unwrap());
        let key = key.duplicate().unwrap();
        let now = SystemClock.wall_millis();
        let authority = &self.cluster.authority;
        let own = authority.issue(id, &self.cluster.name, &key.public_key(), now).unwrap();
        NodeIdentity::new(key, vec![own]).unwrap()
    }

    pub(crate) fn directory(&self, id: NodeId) -> Arc<Known> {
        let mut boots = self.cluster.boots.lock().unwrap();
        let boot = boots.entry(id).or_default();
        *boot += 1;
        let hello = Hello {
            protocol: PROTOCOL,
            cluster: self.cluster.name.clone(),
            node: id,
            boot: *boot,
            nonce: *boot * 100 + id,
            last_log: Some((1, 2)),
            software: "suite".to_owned(),
            ..Hello::default()
        };
        Arc::new(Known {
            hello: Mutex::new(hello),
            cluster: Arc::clone(&self.cluster),
            removed: Mutex::default(),
            boot_min: Mutex::new(0),
            reached: Mutex::default(),
        })
    }

    /// Starts a node; one that ran before comes back at its address.
    pub(crate) async fn start(&self, id: NodeId) -> Node {
        let directory = self.directory(id);
        let handler = Arc::new(Told::default());
        let jobs = Jobs::new();
        let (transport, runtime): (Arc<dyn Transport>, _) = if let Some(net) = &self.net {
            let transport: MemoryTransport = net.attach(id, directory.clone(), jobs.clone());
            transport.serve(handler.clone());
            self.cluster.keys.lock().unwrap().insert(id, MemoryNet::public_key(id));
            (Arc::new(transport), None)
        } else {
            let (transport, runtime) = self.start_quic(id, &directory, &handler, &jobs).await;
            (Arc::new(transport), Some(runtime))
        };
        let world = self.clone();
        Node { id, transport, handler, directory, jobs, world, runtime }
    }

    async fn start_quic(
        &self,
        id: NodeId,
        directory: &Arc<Known>,
        handler: &Arc<Told>,
        jobs: &Jobs,
    ) -> (QuicTransport, Runtime) {
        // A runtime of its own, so that a crash can take everything at once, unsaid.
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let known = self.cluster.addresses.lock().unwrap().get(&id).cloned();
        let bind = known
            .and_then(|addresses| addresses.first().copied())
            .unwrap_or(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let transport = eventually("the address can be bound", || async {
            let _inside = runtime.enter();
            let config = QuicConfig {
                bind,
                identity: self.identity(id),
                jobs: jobs.clone(),
                clock: Arc::new(SystemClock),
            };
            QuicTransport::bind(config, directory.clone())
        })
        .await;
        {
            let _inside = runtime.enter();
            transport.serve(handler.clone());
        }
        let address = transport.local_address().unwrap();
        self.cluster.addresses.lock().unwrap().insert(id, vec![address]);
        let key = self.identity(id).key().public_key();
        self.cluster.keys.lock().unwrap().insert(id, key);
        (transport, runtime)
    }
}

impl Node {
    pub(crate) async fn call(
        &self,
        to: NodeId,
        lane: Lane,
        request: Bytes,
        limit: Duration,
    ) -> Result<Bytes, CallError> {
        let outer = limit + PATIENCE;
        let call = self.transport.call(to, lane, request, limit);
        timeout(outer, call).await.expect("a call ends at its limit")
    }

    /// Ends the node without a word to anybody.
    pub(crate) fn crash(mut self) {
        if let Some(net) = &self.world.net {
            net.detach(self.id);
        }
        if let Some(runtime) = self.runtime.take() {
            // Shutting down from outside, since a runtime may not be dropped inside another.
            runtime.shutdown_background();
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.jobs.token().cancel();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
