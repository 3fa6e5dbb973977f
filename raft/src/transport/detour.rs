//! Ways around a broken link: two members that do not reach each other talk through a third that
//! reaches both (traps.md 19, decision 34).
//!
//! Everything goes directly at first. When nothing of a node answers for as long as a follower
//! waits for a heartbeat, the other members are asked for a circuit to it ([`relay`]), and a second
//! QUIC endpoint, whose packets travel in circuits ([`circuits`]), takes over for that node: all
//! lanes, with the same certificates, so that the relay sees no byte of what is said and can forge
//! none. The direct way is tried each second, and taken again as soon as it answers.

mod circuits;
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
use tokio::time::{Instant, timeout};

use self::circuits::{Circuits, address};
use self::relay::{KIND_RELAY, KIND_RELAYED, RELAYED_MAX};
use super::quic::{QuicConfig, QuicTransport, StartError};
use super::{CallError, ChannelBinding, Directory, Duplex, Handler, Hello, Lane, NodeId, Peer};
use super::{Refusal, Transport};
use crate::identity::NodeIdentity;
use crate::store::lock;

/// How often the direct way is tried while there is a detour.
const PROBE_EVERY: Duration = Duration::from_secs(1);
/// A detour that nobody has used for so long is given up.
const UNUSED_MAX: Duration = Duration::from_secs(600);
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
    /// Before that no relay is looked for again.
    look_after: Option<Instant>,
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
                way.answered = Some(Instant::now());
                return;
            }
        }
        drop(ways);
        let watch = Watch { shared: Arc::clone(self), node };
        self.jobs.spawn("detour", watch.run());
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
        if let Some((number, by)) = newest {
            way.failed.insert(by, Instant::now());
            drop(ways);
            tracing::info!(node, by, "nothing comes through this relay");
            self.circuits.end(node, number);
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

    /// Finds a circuit to a node: one that it has opened itself, or the first that a member gives.
    async fn find(self: &Arc<Self>, node: NodeId) -> Result<(), String> {
        if self.circuits.newest(node).is_some() {
            return Ok(());
        }
        let mut members = self.directory.members();
        members.retain(|member| *member != node && *member != self.node);
        {
            let mut ways = lock(&self.ways);
            let answered = |member: &NodeId| ways.get(member).and_then(|way| way.answered);
            members.sort_by_key(|member| std::cmp::Reverse(answered(member)));
            let failed = &mut ways.entry(node).or_default().failed;
            failed.retain(|_, at| at.elapsed() < FAILED_LASTS);
            if !members.iter().all(|member| failed.contains_key(member)) {
                members.retain(|member| !failed.contains_key(member));
            }
        }
        members.truncate(ASKED_MAX);
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

/// The job that looks after one way, from the first silence until the node answers directly again
/// or nobody calls it any more.
struct Watch {
    shared: Arc<Shared>,
    node: NodeId,
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut ways = lock(&self.shared.ways);
        let Some(way) = ways.get_mut(&self.node) else { return };
        (way.watched, way.detour) = (false, false);
    }
}

impl Watch {
    async fn run(self) {
        let (shared, node) = (&self.shared, self.node);
        let (probed, mut found) = futures::join!(shared.probe(node), shared.find(node));
        if probed.is_ok() {
            return self.answers();
        }
        if let Err(text) = &found {
            tracing::debug!(node, "no way around was found: {text}");
            return self.pause();
        }
        self.begin();
        while found.is_ok() {
            self.next_look().await;
            if shared.probe(node).await.is_ok() {
                tracing::info!(node, "answers directly again");
                return self.answers();
            }
            if self.is_unused() {
                tracing::debug!(node, "the way around is not used any more");
                return self.end();
            }
            found = shared.find(node).await;
        }
        tracing::info!(node, "no way around is left: {}", found.err().unwrap_or_default());
        self.end();
        self.pause();
    }

    /// Takes the detour from now on: what still waits on the direct way is broken off.
    fn begin(&self) {
        let by = self.shared.circuits.newest(self.node).map(|(_, by)| by);
        tracing::info!(node = self.node, by, "does not answer directly: reached through a relay");
        metrics::counter!("nexus_detours_total").increment(1);
        {
            let mut ways = lock(&self.shared.ways);
            let way = ways.entry(self.node).or_default();
            (way.detour, way.carried) = (true, Some(Instant::now()));
            way.pause.reset();
        }
        self.shared.begun.send_modify(|begun| *begun = begun.wrapping_add(1));
        self.shared.direct.redial(self.node);
    }

    /// Goes directly again.
    fn answers(&self) {
        {
            let mut ways = lock(&self.shared.ways);
            let way = ways.entry(self.node).or_default();
            (way.answered, way.look_after) = (Some(Instant::now()), None);
            way.pause.reset();
        }
        self.end();
    }

    fn end(&self) {
        {
            let mut ways = lock(&self.shared.ways);
            ways.entry(self.node).or_default().detour = false;
        }
        self.shared.circuits.end_ours(self.node);
        self.shared.around.redial(self.node);
    }

    fn pause(&self) {
        let mut ways = lock(&self.shared.ways);
        let way = ways.entry(self.node).or_default();
        let pause = way.pause.next();
        way.look_after = Some(Instant::now() + pause);
    }

    /// Waits until it is time to try the direct way, or the circuit has ended.
    async fn next_look(&self) {
        let mut changes = self.shared.circuits.changes();
        let lost = async {
            while self.shared.circuits.newest(self.node).is_some() {
                if changes.changed().await.is_err() {
                    return;
                }
            }
        };
        // In time or not: both are a reason to look.
        let _lost = timeout(PROBE_EVERY, lost).await;
    }

    fn is_unused(&self) -> bool {
        let ways = lock(&self.shared.ways);
        ways.get(&self.node).is_none_or(|way| silent_for(way.used, UNUSED_MAX))
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
                () = shared.detour_begins(to) => {
                    let cause = "another way is taken from now on".to_owned();
                    return Err(CallError::Broken { node: to, sent: true, cause });
                }
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
            let transport: &dyn Transport = if detour { &shared.around } else { &*shared.direct };
            let result = transport.open(to, lane, kind, limit).await;
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
            (Lane::Rpc, KIND_RELAY) => {
                async move { relay::relay(&shared, node, duplex).await }.boxed()
            }
            (Lane::Rpc, KIND_RELAYED) => {
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
