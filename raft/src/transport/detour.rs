//! Ways around a broken link: two members that do not reach each other talk through a third that
//! reaches both (traps.md 19, decision 34).
//!
//! Everything goes directly at first. When nothing of a node answers for as long as a follower
//! waits for a heartbeat, the other members are asked for a circuit to it ([`relay`]), and a second
//! QUIC endpoint, whose packets travel in circuits ([`circuits`]), takes over for that node: all
//! lanes, with the same certificates, so that the relay sees no byte of what is said and can forge
//! none. The direct way is tried each second, and taken again as soon as it answers.

mod circuits;
mod job;
mod relay;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt as _};
use nexus_rt::{Backoff, Clock, Jobs};
use rustls::pki_types::CertificateDer;
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;

use self::circuits::{Circuits, address};
use self::job::Watch;
use self::relay::{KIND_RELAY, KIND_RELAYED, RELAYED_MAX};
use super::quic::{QuicConfig, QuicTransport, StartError};
use super::{CallError, ChannelBinding, Directory, Duplex, Handler, Hello, Lane, NodeId, Peer};
use super::{Refusal, Transport};
use crate::identity::NodeIdentity;
use crate::store::lock;

/// Members that are asked at once for a circuit.
const ASKED_MAX: usize = 8;
/// For how long a relay through which nothing came is not asked while there are others.
const FAILED_LASTS: Duration = Duration::from_secs(30);
/// Pauses between two looks for a relay to a node to which nobody has one: a machine that sleeps is
/// not worth more, and its own look ends the pause.
const LOOK_PAUSE_MIN: Duration = Duration::from_millis(500);
/// The longest pause.
const LOOK_PAUSE_MAX: Duration = Duration::from_secs(30);

/// What detours need to start.
pub(crate) struct DetourConfig {
    pub(crate) node: NodeId,
    /// The transport that goes directly.
    pub(crate) direct: Arc<dyn Transport>,
    pub(crate) directory: Arc<dyn Directory>,
    pub(crate) identity: NodeIdentity,
    pub(crate) jobs: Jobs,
    pub(crate) clock: Arc<dyn Clock>,
    /// How long a node may give no sign of life before a way around is looked for.
    pub(crate) silence: Duration,
}

/// A transport that goes directly where it can and through a relay where it cannot; clones share
/// it.
#[derive(Clone)]
pub(crate) struct Detours {
    shared: Arc<Shared>,
}

impl std::fmt::Debug for Detours {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ways = lock(&self.shared.ways);
        let detours: Vec<_> =
            ways.iter().filter(|(_, way)| way.detour).map(|(node, _)| *node).collect();
        f.debug_struct("Detours").field("to", &detours).finish_non_exhaustive()
    }
}

/// What all parts share.
pub(super) struct Shared {
    node: NodeId,
    direct: Arc<dyn Transport>,
    /// The endpoint whose packets travel in circuits.
    around: QuicTransport,
    circuits: Arc<Circuits>,
    directory: Arc<dyn Directory>,
    jobs: Jobs,
    silence: Duration,
    ways: Mutex<BTreeMap<NodeId, Way>>,
    /// Changes with each detour that begins.
    begun: watch::Sender<u64>,
    relaying: Arc<Semaphore>,
}

/// What is known of the way to a node.
#[derive(Debug)]
struct Way {
    /// When it last answered directly.
    answered: Option<Instant>,
    /// When it last answered through a relay, or the detour began.
    carried: Option<Instant>,
    /// When it was last called.
    used: Option<Instant>,
    /// Whether calls go through a relay.
    detour: bool,
    /// Whether a job looks after this way.
    watched: bool,
    /// Before that no relay is looked for again, unless some node comes back.
    look_after: Option<Instant>,
    /// Whether another relay is wanted than the one that is used.
    doubt: bool,
    pause: Backoff,
    /// Relays through which nothing came, and when that was.
    failed: BTreeMap<NodeId, Instant>,
}

impl Default for Way {
    fn default() -> Self {
        Self {
            answered: None,
            carried: None,
            used: None,
            detour: false,
            watched: false,
            look_after: None,
            doubt: false,
            pause: Backoff::new(LOOK_PAUSE_MIN, LOOK_PAUSE_MAX),
            failed: BTreeMap::new(),
        }
    }
}

/// Returns whether an error leaves open whether the node is there at all.
fn is_silence(error: &CallError) -> bool {
    match error {
        CallError::Unreachable { .. } | CallError::TimedOut { .. } | CallError::Broken { .. } => {
            true
        }
        CallError::Refused { .. } | CallError::TooLarge { .. } => false,
    }
}

/// What waits on the direct way when a detour begins.
fn another_way(node: NodeId, sent: bool) -> CallError {
    CallError::Broken { node, sent, cause: "another way is taken from now on".to_owned() }
}

fn silent_for(at: Option<Instant>, limit: Duration) -> bool {
    at.is_none_or(|at| at.elapsed() >= limit)
}

impl Detours {
    /// Makes the endpoint for detours; it uses no port.
    ///
    /// # Errors
    /// When the identity cannot be used.
    pub(crate) fn new(config: DetourConfig) -> Result<Self, StartError> {
        let DetourConfig { node, direct, directory, identity, jobs, clock, silence } = config;
        let circuits = Arc::new(Circuits::new(node));
        let by_node = Arc::new(ByNode { directory: Arc::clone(&directory) });
        let quic = QuicConfig { bind: address(node), identity, jobs: jobs.clone(), clock };
        let around = QuicTransport::over(Arc::clone(&circuits) as _, quic, by_node)?;
        let relaying = Arc::new(Semaphore::new(RELAYED_MAX));
        let shared = Shared {
            node,
            direct,
            around,
            circuits,
            directory,
            jobs,
            silence,
            ways: Mutex::default(),
            begun: watch::Sender::new(0),
            relaying,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Serves what comes through relays, and returns what the direct transport must serve.
    pub(crate) fn serve(&self, handler: Arc<dyn Handler>) -> Arc<dyn Handler> {
        self.shared.around.serve(Arc::clone(&handler));
        Arc::new(Front { shared: Arc::clone(&self.shared), handler })
    }

    /// Returns the endpoint whose packets travel in circuits.
    pub(crate) fn around(&self) -> &QuicTransport {
        &self.shared.around
    }
}

impl Shared {
    fn is_on_detour(&self, node: NodeId) -> bool {
        lock(&self.ways).get(&node).is_some_and(|way| way.detour)
    }

    /// Waits until calls to a node take a detour.
    async fn detour_begins(&self, node: NodeId) {
        let mut begun = self.begun.subscribe();
        while !self.is_on_detour(node) {
            if begun.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Notes a call, and returns whether it takes the detour.
    fn takes_detour(&self, node: NodeId) -> bool {
        let mut ways = lock(&self.ways);
        let way = ways.entry(node).or_default();
        way.used = Some(Instant::now());
        way.detour
    }

    /// Draws from the end of a direct call what it says of the way.
    fn note_direct<T>(self: &Arc<Self>, node: NodeId, result: &Result<T, CallError>) {
        let mut ways = lock(&self.ways);
        let way = ways.entry(node).or_default();
        match result {
            Err(error) if is_silence(error) => {
                let early = way.look_after.is_some_and(|after| Instant::now() < after);
                if way.watched || early || !silent_for(way.answered, self.silence) {
                    return;
                }
                way.watched = true;
            }
            Ok(_) | Err(_) => {
                let is_back = silent_for(way.answered, self.silence);
                way.answered = Some(Instant::now());
                if is_back {
                    // It may reach those to whom there was no way.
                    ways.values_mut().for_each(|way| way.look_after = None);
                }
                return;
            }
        }
        drop(ways);
        self.jobs.spawn("detour", Watch::new(Arc::clone(self), node).run());
    }

    /// Draws from the end of a call through a relay what it says of that relay.
    fn note_carried<T>(&self, node: NodeId, result: &Result<T, CallError>) {
        let answered = !result.as_ref().is_err_and(is_silence);
        let newest = self.circuits.newest(node);
        let mut ways = lock(&self.ways);
        let way = ways.entry(node).or_default();
        if answered {
            way.carried = Some(Instant::now());
            return;
        }
        if !silent_for(way.carried, self.silence.saturating_mul(2)) {
            return;
        }
        // The next relay gets as much time.
        way.carried = Some(Instant::now());
        if let Some((_, by)) = newest {
            // It stays until there is another: it may only be busy.
            way.failed.insert(by, Instant::now());
            way.doubt = true;
            drop(ways);
            tracing::debug!(node, by, "nothing comes through this relay");
            self.circuits.nudge();
        }
    }

    /// Says of an error that it was met on a detour.
    fn by_detour(&self, error: CallError) -> CallError {
        let CallError::Unreachable { node, cause } = error else { return error };
        let cause = match self.circuits.newest(node) {
            Some((_, by)) => format!("through node {by}: {cause}"),
            None => format!("neither directly nor through another member: {cause}"),
        };
        CallError::Unreachable { node, cause }
    }

    /// Finds a circuit to a node: one that is there, unless it is in doubt, or the first that a
    /// member gives.
    async fn find(self: &Arc<Self>, node: NodeId) -> Result<(), String> {
        let newest = self.circuits.newest(node);
        let members = self.relays(node);
        if newest.is_some() && members.is_none() {
            return Ok(());
        }
        let found = self.ask(node, members.unwrap_or_default()).await;
        let Some((old, _)) = newest else { return found };
        // Another one has taken its place; or it is better than nothing.
        if found.is_ok() {
            self.circuits.end(node, old);
        }
        Ok(())
    }

    /// Returns whom to ask for a circuit to a node, the likeliest first; `None` when there is one
    /// that nobody doubts.
    fn relays(&self, node: NodeId) -> Option<Vec<NodeId>> {
        let has_one = self.circuits.newest(node).is_some();
        let mut members = self.directory.members();
        members.retain(|member| *member != node && *member != self.node);
        let mut ways = lock(&self.ways);
        let answered = |member: &NodeId| ways.get(member).and_then(|way| way.answered);
        members.sort_by_key(|member| std::cmp::Reverse(answered(member)));
        let way = ways.entry(node).or_default();
        if has_one && !std::mem::take(&mut way.doubt) {
            return None;
        }
        way.failed.retain(|_, at| at.elapsed() < FAILED_LASTS);
        let failed = |member: &NodeId| way.failed.contains_key(member);
        // Who failed is asked when there is nobody else, and nothing that could be lost by it.
        if has_one || !members.iter().all(failed) {
            members.retain(|member| !failed(member));
        }
        members.truncate(ASKED_MAX);
        Some(members)
    }

    /// Asks members for a circuit to a node; the first that gives one is taken.
    async fn ask(self: &Arc<Self>, node: NodeId, members: Vec<NodeId>) -> Result<(), String> {
        let mut asking: FuturesUnordered<_> =
            members
                .into_iter()
                .map(|by| async move {
                    (by, relay::open(self, by, KIND_RELAY, node, self.silence).await)
                })
                .collect();
        let mut refusals = Vec::new();
        while let Some((by, opened)) = asking.next().await {
            match opened {
                Ok(duplex) => {
                    let place = self.circuits.add(node, by, true);
                    if self.is_on_detour(node) {
                        tracing::info!(node, by, "reached through another relay");
                    }
                    self.jobs.spawn("detour circuit", place.carry(duplex));
                    return Ok(());
                }
                Err(text) => refusals.push(format!("node {by}: {text}")),
            }
        }
        if refusals.is_empty() {
            return Err("there is no other member to ask".to_owned());
        }
        Err(refusals.join("; "))
    }

    /// Notes that a node has opened a circuit: it is worth looking for again.
    fn is_there(&self, node: NodeId) {
        if let Some(way) = lock(&self.ways).get_mut(&node) {
            way.look_after = None;
        }
    }

    /// Asks a node directly whether it is there.
    async fn probe(&self, node: NodeId) -> Result<(), String> {
        relay::open(self, node, KIND_RELAY, node, self.silence).await.map(drop)
    }
}

impl Transport for Detours {
    fn call(
        &self,
        to: NodeId,
        lane: Lane,
        request: Bytes,
        limit: Duration,
    ) -> BoxFuture<'static, Result<Bytes, CallError>> {
        let shared = Arc::clone(&self.shared);
        async move {
            if shared.takes_detour(to) {
                let result = shared.around.call(to, lane, request, limit).await;
                shared.note_carried(to, &result);
                return result.map_err(|error| shared.by_detour(error));
            }
            let result = tokio::select! {
                biased;
                result = shared.direct.call(to, lane, request, limit) => result,
                // What still waits on the direct way would wait to its limit.
                () = shared.detour_begins(to) => return Err(another_way(to, true)),
            };
            shared.note_direct(to, &result);
            result
        }
        .boxed()
    }

    fn open(
        &self,
        to: NodeId,
        lane: Lane,
        kind: u8,
        limit: Duration,
    ) -> BoxFuture<'static, Result<Duplex, CallError>> {
        let shared = Arc::clone(&self.shared);
        async move {
            let detour = shared.takes_detour(to);
            let result = if detour {
                shared.around.open(to, lane, kind, limit).await
            } else {
                tokio::select! {
                    biased;
                    result = shared.direct.open(to, lane, kind, limit) => result,
                    () = shared.detour_begins(to) => Err(another_way(to, false)),
                }
            };
            // That it opened shows nothing: no answer has come.
            if result.is_err() && detour {
                shared.note_carried(to, &result);
            } else if result.is_err() {
                shared.note_direct(to, &result);
            }
            result.map_err(|error| if detour { shared.by_detour(error) } else { error })
        }
        .boxed()
    }

    fn disconnect(&self, to: NodeId) {
        {
            let mut ways = lock(&self.shared.ways);
            // A job that looks after it puts it back, and ends when nothing answers.
            ways.remove(&to);
        }
        self.shared.around.disconnect(to);
        self.shared.direct.disconnect(to);
    }

    fn redial(&self, to: NodeId) {
        self.shared.around.redial(to);
        self.shared.direct.redial(to);
    }

    fn local_address(&self) -> Option<SocketAddr> {
        self.shared.direct.local_address()
    }

    fn close(&self, code: u32, reason: &str) -> BoxFuture<'static, ()> {
        let around = self.shared.around.close(code, reason);
        let (direct, reason) = (Arc::clone(&self.shared.direct), reason.to_owned());
        async move {
            // First, because its last words travel on the other one.
            around.await;
            direct.close(code, &reason).await;
        }
        .boxed()
    }
}

/// What the direct transport serves: circuits, and all the rest.
struct Front {
    shared: Arc<Shared>,
    handler: Arc<dyn Handler>,
}

impl Handler for Front {
    fn call(
        &self,
        from: &Peer,
        lane: Lane,
        request: Bytes,
    ) -> BoxFuture<'static, Result<Bytes, Refusal>> {
        self.handler.call(from, lane, request)
    }

    fn stream(&self, from: &Peer, lane: Lane, kind: u8, duplex: Duplex) -> BoxFuture<'static, ()> {
        let (shared, node) = (Arc::clone(&self.shared), from.node);
        match (lane, kind) {
            (Lane::Relay, KIND_RELAY) => {
                async move { relay::relay(&shared, node, duplex).await }.boxed()
            }
            (Lane::Relay, KIND_RELAYED) => {
                async move { relay::relayed(&shared, node, duplex).await }.boxed()
            }
            _ => self.handler.stream(from, lane, kind, duplex),
        }
    }

    fn join(
        &self,
        from: SocketAddr,
        binding: ChannelBinding,
        request: Bytes,
    ) -> BoxFuture<'static, Bytes> {
        self.handler.join(from, binding, request)
    }
}

/// The directory of the endpoint for detours: every node is at the address that stands for it.
struct ByNode {
    directory: Arc<dyn Directory>,
}

impl Directory for ByNode {
    fn hello(&self) -> Hello {
        self.directory.hello()
    }

    fn admit(&self, node: NodeId, spki: &[u8], lane: Lane) -> Result<(), Refusal> {
        self.directory.admit(node, spki, lane)
    }

    fn check_hello(&self, peer: &Hello) -> Result<(), Refusal> {
        self.directory.check_hello(peer)
    }

    fn members(&self) -> Vec<NodeId> {
        self.directory.members()
    }

    fn addresses(&self, node: NodeId) -> Vec<SocketAddr> {
        vec![address(node)]
    }

    // Where it was reached says nothing of where it is.
    fn reached(&self, _node: NodeId, _at: SocketAddr) {}

    fn roots(&self) -> Vec<CertificateDer<'static>> {
        self.directory.roots()
    }
}
