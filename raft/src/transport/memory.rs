//! An in-process network with faults, for tests and simulation.
//!
//! It keeps the contract of the real one, the hello included, and breaks what may break: messages
//! are lost, late, out of order and handled twice, links are cut one way or both. Each link draws
//! from its own random numbers, made from the seed, so that the same calls in the same order meet
//! the same faults. Time is tokio's, so a paused clock makes a run fast and repeatable.

mod link;
mod stream;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use nexus_rt::{CancellationToken, Jobs};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout_at};

use self::link::Link;
use super::frame::{Duplex, check_length};
use super::{CallError, Directory, Handler, Hello, Lane, NodeId, Peer, Refusal, Transport, hello};

pub use self::link::LinkRule;
pub(crate) use self::stream::{MemoryReceiver, MemorySender};

/// A network of nodes in one process; clones share it.
#[derive(Clone)]
pub struct MemoryNet {
    net: Arc<Net>,
}

struct Net {
    seed: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    nodes: BTreeMap<NodeId, Node>,
    links: BTreeMap<(NodeId, NodeId), Link>,
    rule: LinkRule,
    cuts: BTreeSet<(NodeId, NodeId)>,
    walls: BTreeSet<(NodeId, NodeId)>,
    connections: BTreeMap<(NodeId, NodeId, Lane), Arc<Connection>>,
}

/// A node as the network knows it.
#[derive(Clone)]
struct Node {
    directory: Arc<dyn Directory>,
    key: Vec<u8>,
    handler: Option<Arc<dyn Handler>>,
    jobs: Jobs,
    stop: CancellationToken,
}

/// What two nodes have agreed on for a lane.
struct Connection {
    /// Cancelled when the connection is over.
    over: CancellationToken,
    /// The dialling side, as the accepting one knows it.
    dialler: Peer,
}

impl std::fmt::Debug for MemoryNet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let nodes: Vec<_> = self.net.lock().nodes.keys().copied().collect();
        f.debug_struct("MemoryNet").field("seed", &self.net.seed).field("nodes", &nodes).finish()
    }
}

impl MemoryNet {
    /// Makes a network without nodes and without faults.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { net: Arc::new(Net { seed, state: Mutex::default() }) }
    }

    /// Adds a node; one that is there under this id is gone, with its connections.
    #[must_use]
    pub fn attach(
        &self,
        node: NodeId,
        directory: Arc<dyn Directory>,
        jobs: Jobs,
    ) -> MemoryTransport {
        self.attach_with_key(node, directory, jobs, Self::public_key(node))
    }

    /// Adds a node that proves this public key, as [`MemoryNet::attach`] does.
    #[must_use]
    pub fn attach_with_key(
        &self,
        node: NodeId,
        directory: Arc<dyn Directory>,
        jobs: Jobs,
        key: Vec<u8>,
    ) -> MemoryTransport {
        let stop = jobs.token().child_token();
        self.detach(node);
        let entry = Node { directory, key, handler: None, jobs, stop: stop.clone() };
        self.net.lock().nodes.insert(node, entry);
        MemoryTransport { net: Arc::clone(&self.net), node, stop }
    }

    /// Takes a node away as a crash does: connections break, calls to it fail.
    pub fn detach(&self, node: NodeId) {
        let mut state = self.net.lock();
        if let Some(entry) = state.nodes.remove(&node) {
            entry.stop.cancel();
        }
        state.break_connections(|from, to| from == node || to == node);
    }

    /// Sets the faults of all links that have no rule of their own.
    pub fn set_rule(&self, rule: LinkRule) {
        self.net.lock().rule = rule;
    }

    /// Sets the faults of one direction.
    pub fn set_link_rule(&self, from: NodeId, to: NodeId, rule: LinkRule) {
        self.net.link(&mut self.net.lock(), from, to).rule = Some(rule);
    }

    /// Cuts one direction: nothing arrives, and connections between the two break.
    pub fn cut(&self, from: NodeId, to: NodeId) {
        let mut state = self.net.lock();
        state.cuts.insert((from, to));
        state.break_connections(|a, b| (a, b) == (from, to) || (b, a) == (from, to));
    }

    /// Cuts both directions between each of `left` and each of `right`.
    pub fn partition(&self, left: &[NodeId], right: &[NodeId]) {
        for &a in left {
            for &b in right {
                self.cut(a, b);
                self.cut(b, a);
            }
        }
    }

    /// Builds a wall as a firewall does: `from` cannot dial `to` any more, while connections that
    /// `to` dials carry both ways.
    pub fn wall(&self, from: NodeId, to: NodeId) {
        let mut state = self.net.lock();
        state.walls.insert((from, to));
        state.break_connections(|a, b| (a, b) == (from, to));
    }

    /// Ends all cuts and walls; broken connections stay broken and are dialled anew.
    pub fn heal(&self) {
        let mut state = self.net.lock();
        state.cuts.clear();
        state.walls.clear();
    }

    /// Returns the address that stands for a node.
    #[must_use]
    pub fn address(node: NodeId) -> SocketAddr {
        let [a, b, c, d] = [node >> 48, node >> 32, node >> 16, node]
            .map(|part| u16::try_from(part & 0xffff).unwrap_or_default());
        SocketAddr::from((Ipv6Addr::new(0xfd00, 0, 0, 0, a, b, c, d), 1))
    }

    /// Returns what stands for the public key of a node that was attached without one.
    #[must_use]
    pub fn public_key(node: NodeId) -> Vec<u8> {
        format!("key of node {node}").into_bytes()
    }
}

impl Net {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn link<'a>(&self, state: &'a mut State, from: NodeId, to: NodeId) -> &'a mut Link {
        state.links.entry((from, to)).or_insert_with(|| Link::new(self.seed, from, to))
    }

    /// Draws the fate of one message: when it arrives, or that it does not.
    fn draw(&self, from: NodeId, to: NodeId) -> Fate {
        let mut state = self.lock();
        let is_cut = state.cuts.contains(&(from, to));
        let rule = state.rule;
        let link = self.link(&mut state, from, to);
        let rule = link.rule.unwrap_or(rule);
        let delay = link.delay(&rule);
        let again = link.chance(rule.duplicate).then(|| link.delay(&rule));
        let lost = link.chance(rule.loss) || is_cut;
        Fate { delay, again, lost }
    }

    fn is_cut(&self, from: NodeId, to: NodeId) -> bool {
        self.lock().cuts.contains(&(from, to))
    }

    fn cannot_dial(&self, from: NodeId, to: NodeId) -> bool {
        let walled = self.lock().walls.contains(&(from, to));
        walled || self.is_cut(from, to) || self.is_cut(to, from)
    }
}

impl State {
    fn break_connections(&mut self, concerns: impl Fn(NodeId, NodeId) -> bool) {
        self.connections.retain(|&(from, to, _), connection| {
            let breaks = concerns(from, to);
            if breaks {
                connection.over.cancel();
            }
            !breaks
        });
    }
}

/// What becomes of one message.
#[derive(Debug, Clone, Copy)]
struct Fate {
    delay: Duration,
    /// The delay of a second arrival, if there is one.
    again: Option<Duration>,
    lost: bool,
}

/// The transport of one node in a [`MemoryNet`].
#[derive(Clone)]
pub struct MemoryTransport {
    net: Arc<Net>,
    node: NodeId,
    stop: CancellationToken,
}

impl std::fmt::Debug for MemoryTransport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryTransport").field("node", &self.node).finish_non_exhaustive()
    }
}

impl MemoryTransport {
    /// Begins to accept calls and streams.
    pub fn serve(&self, handler: Arc<dyn Handler>) {
        if let Some(node) = self.net.lock().nodes.get_mut(&self.node) {
            node.handler = Some(handler);
        }
    }

    fn unreachable(node: NodeId, cause: impl Into<String>) -> CallError {
        CallError::Unreachable { node, cause: cause.into() }
    }

    /// Returns the connection of a lane, making it when there is none.
    async fn connect(
        &self,
        to: NodeId,
        lane: Lane,
        deadline: Instant,
    ) -> Result<(Arc<Connection>, Node), CallError> {
        if self.stop.is_cancelled() {
            return Err(Self::unreachable(to, "this node is stopping"));
        }
        let (ours, theirs, known) = {
            let state = self.net.lock();
            let known = state.connections.get(&(self.node, to, lane)).cloned();
            let find = |node| state.nodes.get(&node).cloned();
            (find(self.node), find(to), known)
        };
        let Some(ours) = ours else {
            return Err(Self::unreachable(to, "this node is stopping"));
        };
        let Some(theirs) = theirs.filter(|node| node.handler.is_some()) else {
            return Err(Self::unreachable(to, format!("nobody is at {}", MemoryNet::address(to))));
        };
        if let Some(connection) = known {
            return Ok((connection, theirs));
        }
        let there = self.net.draw(self.node, to);
        let back = self.net.draw(to, self.node);
        // A lost packet of a handshake is sent again; a cut lets none through.
        let silent = self.net.cannot_dial(self.node, to);
        let arrives = Instant::now() + there.delay + back.delay;
        if silent || arrives > deadline {
            tokio::time::sleep_until(deadline).await;
            return Err(CallError::TimedOut { node: to, sent: false });
        }
        tokio::time::sleep_until(arrives).await;
        let connection = self.greet(to, lane, &ours, &theirs).map_err(|refusal| {
            tracing::warn!(from = self.node, to, %lane, "connection refused: {refusal}");
            let Refusal { code, text } = refusal;
            CallError::Refused { node: to, code, text, sent: false }
        })?;
        Ok((connection, theirs))
    }

    /// Does what both sides do with a hello, and notes the connection.
    fn greet(
        &self,
        to: NodeId,
        lane: Lane,
        ours: &Node,
        theirs: &Node,
    ) -> Result<Arc<Connection>, Refusal> {
        let (hello, answer): (Hello, Hello) = (ours.directory.hello(), theirs.directory.hello());
        ours.directory.admit(to, &theirs.key, lane)?;
        hello::check(&answer, &hello, self.node)?;
        theirs.directory.admit(self.node, &ours.key, lane)?;
        theirs.directory.check_hello(&hello)?;
        hello::check(&hello, &answer, to)?;
        ours.directory.check_hello(&answer)?;
        ours.directory.reached(to, MemoryNet::address(to));
        let address = MemoryNet::address(self.node);
        theirs.directory.heard(self.node, address);
        let dialler = Peer { node: self.node, hello, address };
        let connection = Arc::new(Connection { over: CancellationToken::new(), dialler });
        self.net.lock().connections.insert((self.node, to, lane), Arc::clone(&connection));
        Ok(connection)
    }

    /// Asks the accepting side whether the connection may still be used.
    fn admitted(
        &self,
        to: NodeId,
        lane: Lane,
        connection: &Connection,
        theirs: &Node,
    ) -> Result<(), CallError> {
        let ours = self.net.lock().nodes.get(&self.node).map(|node| node.key.clone());
        let key = ours.unwrap_or_default();
        theirs.directory.admit(self.node, &key, lane).map_err(|Refusal { code, text }| {
            connection.over.cancel();
            self.net.lock().connections.remove(&(self.node, to, lane));
            CallError::Refused { node: to, code, text, sent: true }
        })
    }

    async fn call_within(
        self,
        to: NodeId,
        lane: Lane,
        request: Bytes,
        deadline: Instant,
    ) -> Result<Bytes, CallError> {
        let limit = lane.frame_bytes_max();
        if check_length(request.len(), limit).is_err() {
            let bytes = request.len();
            return Err(CallError::TooLarge { node: to, bytes, limit, sent: false });
        }
        let (connection, theirs) = self.connect(to, lane, deadline).await?;
        self.admitted(to, lane, &connection, &theirs)?;
        let fate = self.net.draw(self.node, to);
        let (answers, mut answer) = mpsc::channel(2);
        let delays = [(!fate.lost).then_some(fate.delay), fate.again];
        for delay in delays.into_iter().flatten() {
            let delivery = Delivery {
                net: Arc::clone(&self.net),
                connection: Arc::clone(&connection),
                to,
                lane,
                node: theirs.clone(),
            };
            theirs.jobs.spawn("memory call", delivery.run(delay, request.clone(), answers.clone()));
        }
        // The senders of lost answers are dropped; that is silence and not an end.
        let _answers = answers;
        let waiting = async {
            tokio::select! {
                biased;
                () = connection.over.cancelled() => None,
                answer = answer.recv() => answer,
            }
        };
        match timeout_at(deadline, waiting).await {
            Err(_elapsed) => Err(CallError::TimedOut { node: to, sent: true }),
            Ok(Some(Ok(answer))) if answer.len() > limit => {
                Err(CallError::TooLarge { node: to, bytes: answer.len(), limit, sent: true })
            }
            Ok(Some(Ok(answer))) => Ok(answer),
            Ok(Some(Err(Refusal { code, text }))) => {
                Err(CallError::Refused { node: to, code, text, sent: true })
            }
            Ok(None) => {
                let cause = "the connection was cut".to_owned();
                Err(CallError::Broken { node: to, sent: true, cause })
            }
        }
    }

    async fn open_within(
        self,
        to: NodeId,
        lane: Lane,
        kind: u8,
        deadline: Instant,
    ) -> Result<Duplex, CallError> {
        let (connection, theirs) = self.connect(to, lane, deadline).await?;
        self.admitted(to, lane, &connection, &theirs)?;
        let Some(handler) = theirs.handler.clone() else {
            return Err(Self::unreachable(to, "it does not serve"));
        };
        let (ours, far) = stream::pair(&self.net, self.node, to, lane, &connection.over);
        let delay = self.net.draw(self.node, to).delay;
        let (stop, peer) = (theirs.stop.clone(), connection.dialler.clone());
        theirs.jobs.spawn("memory stream", async move {
            let serving = async {
                sleep(delay).await;
                handler.stream(&peer, lane, kind, far).await;
            };
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = serving => {}
            }
        });
        Ok(ours)
    }
}

/// One arrival of a request.
struct Delivery {
    net: Arc<Net>,
    connection: Arc<Connection>,
    to: NodeId,
    lane: Lane,
    node: Node,
}

impl Delivery {
    async fn run(
        self,
        delay: Duration,
        request: Bytes,
        answers: mpsc::Sender<Result<Bytes, Refusal>>,
    ) {
        let stop = self.node.stop.clone();
        let arriving = async {
            sleep(delay).await;
            let from = self.connection.dialler.node;
            if self.net.is_cut(from, self.to) || self.connection.over.is_cancelled() {
                return;
            }
            let Some(handler) = self.node.handler else { return };
            let answer = handler.call(&self.connection.dialler, self.lane, request).await;
            let fate = self.net.draw(self.to, from);
            sleep(fate.delay).await;
            if !fate.lost && !self.net.is_cut(self.to, from) {
                // The caller may have given up.
                answers.send(answer).await.ok();
            }
        };
        // A node that is gone does nothing more; a broken connection alone stops no handler
        // that has begun, but nobody hears its answer.
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = arriving => {}
        }
    }
}

impl Transport for MemoryTransport {
    fn call(
        &self,
        to: NodeId,
        lane: Lane,
        request: Bytes,
        limit: Duration,
    ) -> BoxFuture<'static, Result<Bytes, CallError>> {
        self.clone().call_within(to, lane, request, Instant::now() + limit).boxed()
    }

    fn open(
        &self,
        to: NodeId,
        lane: Lane,
        kind: u8,
        limit: Duration,
    ) -> BoxFuture<'static, Result<Duplex, CallError>> {
        self.clone().open_within(to, lane, kind, Instant::now() + limit).boxed()
    }

    fn disconnect(&self, to: NodeId) {
        let us = self.node;
        self.net.lock().break_connections(|a, b| (a, b) == (us, to) || (a, b) == (to, us));
    }

    fn redial(&self, to: NodeId) {
        let us = self.node;
        self.net.lock().break_connections(|a, b| (a, b) == (us, to));
    }

    fn local_address(&self) -> Option<SocketAddr> {
        Some(MemoryNet::address(self.node))
    }

    fn close(&self, _code: u32, _reason: &str) -> BoxFuture<'static, ()> {
        let mut state = self.net.lock();
        self.stop.cancel();
        let us = self.node;
        state.break_connections(|from, to| from == us || to == us);
        // Another node of this id may have taken the place.
        if state.nodes.get(&us).is_some_and(|node| node.stop.is_cancelled()) {
            state.nodes.remove(&us);
        }
        futures::future::ready(()).boxed()
    }
}
