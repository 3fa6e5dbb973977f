//! The handle that the rest of nexus sees: open, propose, read, watch, status, shut down.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use nexus_domain::command::{ClusterCommand, Role};
use nexus_domain::{Actor, Command, Fault, NodeId, digest};
use openraft::async_runtime::WatchReceiver as _;
use tokio::sync::{broadcast, watch};

use crate::core::Core;
use crate::identity::{InviteCode, InviteRole};
use crate::machine::Hint;
use crate::membership::runner;
use crate::open::{Config, MemberFile, OpenError, Start, prepare};
use crate::propose::{Committed, ProposeError, Request};
use crate::read::{Fresh, ReadError};
use crate::renewal::CertificateLife;
use crate::rpc::server::Server;
use crate::start::{around, bind, build, start_raft};
use crate::status::Status;
use crate::store::state::View;
use crate::transport::quic::QuicTransport;
use crate::transport::{Transport, code};
use crate::{chores, compare, renewal, selftest, upkeep};

/// How long a leader that stops waits for another to take over.
const HAND_OVER_LIMIT: Duration = Duration::from_millis(1500);

/// A running node: the only handle that others see. Clones share it.
#[derive(Clone, Debug)]
pub struct Cluster {
    pub(crate) core: Arc<Core>,
    quic: QuicTransport,
}

/// An open invite as its maker sees it, once.
#[derive(Debug)]
pub struct Invitation {
    /// The code to carry to the other machine; it is shown once and stored nowhere.
    pub code: InviteCode,
    /// Its public part.
    pub id: String,
    /// When it ends, milliseconds since 1970.
    pub expires_at_millis: u64,
}

/// What a node keeps on its disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Storage {
    /// The last log index.
    pub last: u64,
    /// The log index up to which entries are gone.
    pub purged: u64,
    /// The index of the newest snapshot; 0: none.
    pub snapshot: u64,
    /// Bytes of the newest snapshot.
    pub snapshot_bytes: u64,
    /// Bytes of the entries that the log keeps, to within a quarter of a MiB.
    pub log_bytes: u64,
}

/// Digests of the state (traps.md 22): equal on two nodes at the same index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DigestReport {
    /// Now.
    pub now: DigestAt,
    /// The last ones at multiples of 64, oldest first.
    pub history: Vec<DigestAt>,
}

/// The digests at an index, in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DigestAt {
    /// The index.
    pub index: u64,
    /// Over what people put in.
    pub content: String,
    /// Over clocks, request records and timers.
    pub books: String,
}

impl Cluster {
    /// Opens the folder, starts Raft and the transport, and returns the handle.
    ///
    /// # Errors
    /// See [`OpenError`]; `Unreachable` and `Later` of a join may be tried again.
    pub async fn open(config: Config, start: Start) -> Result<Self, OpenError> {
        let (member, identity) = prepare(&config, start).await?;
        selftest::pre_vote_can_be_refused(config.jobs.clone()).await.map_err(OpenError::Raft)?;
        let core = build(&config, &member, &identity).await?;
        let quic = bind(&core, &config, &identity)?;
        let detours = around(&core, Arc::new(quic.clone()), &identity)?;
        core.link.set(Arc::new(detours.clone()));
        start_raft(&core, &member).await?;
        quic.serve(detours.serve(Arc::new(Server { core: core.clone() })));
        let address = core.link.local_address();
        spawn_jobs(&core, &config, &member, address);
        let renewal = renewal::run(
            core.clone(),
            [quic.clone(), detours.around().clone()],
            config.data.clone(),
            identity,
        );
        config.jobs.spawn_core("renew certificate", until_stopped(&core, renewal));
        Ok(Self { core, quic })
    }

    /// Returns this node's id.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.core.node
    }

    /// Returns the cluster's id.
    #[must_use]
    pub fn cluster_id(&self) -> String {
        self.core.book.myself().cluster.clone()
    }

    /// Returns the number of this start.
    #[must_use]
    pub fn boot(&self) -> u64 {
        self.core.book.myself().boot
    }

    /// Returns the number that was drawn at this start.
    #[must_use]
    pub fn nonce(&self) -> u64 {
        self.core.book.myself().nonce
    }

    /// Returns where QUIC listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.core.link.local_address().unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 0)))
    }

    /// Proposes a command and waits until it is applied here.
    ///
    /// # Errors
    /// See [`ProposeError`]; only `Unknown` leaves open whether it was done.
    pub async fn propose(&self, request: Request) -> Result<Committed, ProposeError> {
        self.core.propose(request).await
    }

    /// Runs a query linearizably; on the local state, marked stale, when no quorum answers in time.
    ///
    /// # Errors
    /// When the local state cannot be read.
    pub async fn read<T: Send>(
        &self,
        query: impl FnOnce(&View<'_>) -> Result<T, Fault> + Send,
    ) -> Result<Fresh<T>, ReadError> {
        self.core.read(query).await
    }

    /// Runs a query on the local state at once.
    ///
    /// # Errors
    /// When the local state cannot be read.
    pub fn look<T>(
        &self,
        query: impl FnOnce(&View<'_>) -> Result<T, Fault>,
    ) -> Result<T, ReadError> {
        Ok(self.core.state.view(query)?)
    }

    /// Returns hints of what changes from now on; a lagging receiver counts as a reset.
    #[must_use]
    pub fn hints(&self) -> broadcast::Receiver<Hint> {
        self.core.progress.hints()
    }

    /// Returns what changes when members, names, addresses or invites may have.
    #[must_use]
    pub fn members_changed(&self) -> watch::Receiver<()> {
        self.core.progress.members.subscribe()
    }

    /// Returns how this node's certificate stands.
    #[must_use]
    pub fn certificate(&self) -> CertificateLife {
        crate::store::lock(&self.core.certificate).clone()
    }

    /// Returns the cluster's status: the leader's view, or this node's, marked stale.
    pub async fn status(&self) -> Status {
        self.core.status().await
    }

    /// Returns what this node alone can say.
    #[must_use]
    pub fn local_status(&self) -> Status {
        self.core.local_status()
    }

    /// Waits until a quorum has confirmed a read since the start.
    pub async fn ready(&self, limit: Duration) -> bool {
        tokio::time::timeout(limit, self.core.confirm()).await.unwrap_or(false)
    }

    /// Opens an invite and returns its code.
    ///
    /// # Errors
    /// See [`ProposeError`].
    pub async fn invite(&self, role: Role, ttl: Duration) -> Result<Invitation, ProposeError> {
        let myself = self.core.book.myself();
        let fingerprint = crate::identity::Fingerprint::of_certificate(&myself.authority)
            .map_err(|error| ProposeError::Fatal(error.to_string()))?;
        let kind = match role {
            Role::Voter => InviteRole::Voter,
            Role::Learner => InviteRole::Learner,
            Role::Auto => InviteRole::Auto,
        };
        let code = InviteCode::generate(kind, fingerprint)
            .map_err(|error| ProposeError::Fatal(error.to_string()))?;
        let id = code.id().to_owned();
        let ttl = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        let secret_hash = code.secret_hash().0.to_vec();
        self.act(ClusterCommand::Invite { id: id.clone(), secret_hash, role, ttl }).await?;
        let expires_at_millis = self.core.clock.wall_millis().saturating_add(ttl);
        Ok(Invitation { code, id, expires_at_millis })
    }

    /// Takes an open invite back.
    ///
    /// # Errors
    /// See [`ProposeError`].
    pub async fn withdraw(&self, id: &str) -> Result<(), ProposeError> {
        self.act(ClusterCommand::Withdraw { id: id.to_owned() }).await
    }

    /// Removes a member for good: its key is refused as soon as this is applied.
    ///
    /// # Errors
    /// See [`ProposeError`].
    pub async fn remove(&self, node: NodeId) -> Result<(), ProposeError> {
        self.act(ClusterCommand::Remove { node }).await
    }

    /// Says what this node is called and where it can be reached.
    ///
    /// # Errors
    /// See [`ProposeError`].
    pub async fn describe(
        &self,
        name: Option<String>,
        host: String,
        advertise: Vec<SocketAddr>,
    ) -> Result<(), ProposeError> {
        self.act(ClusterCommand::Describe {
            name: name.unwrap_or_default(),
            host,
            addresses: advertise.iter().map(ToString::to_string).collect(),
        })
        .await
    }

    async fn act(&self, command: ClusterCommand) -> Result<(), ProposeError> {
        let command = Command::Cluster(command);
        self.core.propose(Request { actor: Actor::Node, id: None, command }).await.map(drop)
    }

    /// Listens on another address from now on: connections are made anew.
    ///
    /// # Errors
    /// When the address cannot be bound; the old one then stays.
    pub async fn rebind(&self, bind: SocketAddr) -> Result<SocketAddr, OpenError> {
        self.quic.rebind(bind).await?;
        Ok(self.address())
    }

    /// Notes where members may be reached: hints of discovery or of the user.
    pub fn found_addresses(&self, node: Option<NodeId>, addresses: &[SocketAddr]) {
        self.core.book.hint(node, addresses);
    }

    /// Returns the digests of the state.
    ///
    /// # Errors
    /// When the local state cannot be read.
    pub fn digests(&self) -> Result<DigestReport, ReadError> {
        self.look(|view| {
            let now = digest::read(view)?;
            let history = digest::history(view)?
                .into_iter()
                .map(|mark| digest_at(mark.index, &mark.digests))
                .collect();
            Ok(DigestReport { now: digest_at(view.applied()?, &now), history })
        })
    }

    /// Waits until an index is applied here.
    pub async fn wait_applied(&self, index: u64, limit: Duration) -> bool {
        self.core.wait_applied(index, limit).await
    }

    /// Returns what the node keeps on its disk.
    #[must_use]
    pub fn storage(&self) -> Storage {
        let folder = self.core.snapshots.newest_folder();
        Storage {
            last: self.core.log.last().map_or(0, |id| id.index),
            purged: self.core.log.purged().map_or(0, |id| id.index),
            snapshot: folder.as_ref().map_or(0, |folder| folder.manifest().index()),
            snapshot_bytes: folder.as_ref().map_or(0, |folder| folder.manifest().total()),
            log_bytes: self.core.log.kept_bytes(),
        }
    }

    /// Takes a snapshot now, without waiting for it.
    pub async fn snapshot(&self) {
        self.core.snapshot().await;
    }

    /// Hands leadership to another voter; the most caught-up one that is up when none is named.
    pub async fn transfer_leadership(&self, to: Option<NodeId>, limit: Duration) -> bool {
        if !self.core.leads() {
            return true;
        }
        let Some(to) = to.or_else(|| self.successor()) else { return false };
        if let Err(error) = self.core.raft().trigger().transfer_leader(to).await {
            tracing::warn!("leadership: cannot be handed over: {error}");
            return false;
        }
        self.core.leader_change(Some(self.core.node), limit).await;
        !self.core.leads()
    }

    fn successor(&self) -> Option<NodeId> {
        let status = self.core.local_status();
        let up = status.members.iter().filter(|member| {
            member.id != self.core.node
                && member.role == crate::status::MemberRole::Voter
                && member.state == crate::status::MemberState::Up
        });
        up.min_by_key(|member| member.lag).map(|member| member.id)
    }

    /// Stops: hands leadership over, flushes, and closes connections in good order.
    pub async fn shutdown(&self) {
        if self.core.leads() && self.successor().is_some() {
            let handed = self.transfer_leadership(None, HAND_OVER_LIMIT).await;
            tracing::info!(handed, "leadership: handed over before stopping");
        }
        self.core.stopping.send_replace(true);
        if let Err(error) = self.core.raft().shutdown().await {
            tracing::warn!("raft: did not stop in good order: {error}");
        }
        if let Err(error) = self.core.log.flusher().all_on_disk().await {
            tracing::error!("log: {error}");
        }
        self.core.link.close(code::SHUTDOWN, "node stops").await;
    }

    /// Returns a channel that is set when the node must stop, with the message to print.
    #[must_use]
    pub fn fatal(&self) -> watch::Receiver<Option<String>> {
        self.core.progress.fatal.subscribe()
    }
}

fn digest_at(index: u64, digests: &digest::Digests) -> DigestAt {
    DigestAt {
        index,
        content: data_encoding::HEXLOWER.encode(&digests.content),
        books: data_encoding::HEXLOWER.encode(&digests.books),
    }
}

/// Starts what a node does beside answering.
pub(crate) fn spawn_jobs(
    core: &Arc<Core>,
    config: &Config,
    member: &MemberFile,
    address: Option<SocketAddr>,
) {
    let jobs = &config.jobs;
    let describe = ClusterCommand::Describe {
        name: String::new(),
        host: config.host.clone(),
        addresses: address.map(|address| config.advertised(address)).unwrap_or_default(),
    };
    let founding = member.founder.then(|| ClusterCommand::Found {
        cluster: member.cluster.clone(),
        authority: member.authority.clone(),
        public_key: core.public_key.clone(),
        name: member.name.clone(),
        host: member.host.clone(),
    });
    jobs.spawn_core("follow state", until_stopped(core, chores::follow_state(core.clone())));
    jobs.spawn_core("membership", until_stopped(core, runner::run(core.clone())));
    jobs.spawn_core("timers", until_stopped(core, chores::lead(core.clone())));
    jobs.spawn_core("seek", until_stopped(core, chores::seek(core.clone())));
    jobs.spawn_core("compare", until_stopped(core, compare::run(core.clone())));
    jobs.spawn_core("upkeep", until_stopped(core, upkeep::run(core.clone())));
    jobs.spawn("watch raft", until_stopped(core, watch_raft(core.clone())));
    let announce = chores::announce(core.clone(), founding, describe);
    jobs.spawn("announce", until_stopped(core, announce));
}

/// Runs a job until the node stops.
fn until_stopped(
    core: &Arc<Core>,
    job: impl Future<Output = ()> + Send + 'static,
) -> impl Future<Output = ()> + Send + 'static {
    let token = core.jobs.token();
    let mut stopping = core.stopping.subscribe();
    async move {
        tokio::select! {
            biased;
            () = token.cancelled() => {}
            _ = stopping.wait_for(|stopping| *stopping) => {}
            () = job => {}
        }
    }
}

/// Reports when Raft stops by itself, and counts changes of leader.
///
/// It follows what rarely changes: the whole metrics change several times with each write. Their
/// sender is gone when Raft has stopped, and the whole ones then tell why.
async fn watch_raft(core: Arc<Core>) {
    let mut metrics = core.raft().server_metrics();
    let mut leader = None;
    loop {
        let now = metrics.borrow_and_update().current_leader;
        if let Some(leads) = now.filter(|leads| leader != Some(*leads)) {
            core.reach.leader_is(leads);
            metrics::counter!("nexus_leader_changes_total").increment(1);
            tracing::info!(leader = now, "leader changed");
            core.freshness.hopeful();
        }
        leader = now;
        if metrics.changed().await.is_err() {
            break;
        }
    }
    let state = core.raft().metrics().borrow_watched().running_state.clone();
    let why = state.map_or_else(|error| error.to_string(), |()| "without a reason".to_owned());
    core.progress.stop(fatal_text(&format!("raft has stopped: {why}")));
}

/// Says why the node must stop, and what to do where that is known.
pub(crate) fn fatal_text(error: &str) -> String {
    if is_disk_full(error) {
        return "the disk is full: free space under the data folder, then start the node again; \
                nothing that was answered is lost"
            .to_owned();
    }
    error.to_owned()
}

/// Returns whether an error's text tells of a full disk: the databases give no code.
pub(crate) fn is_disk_full(error: &str) -> bool {
    error.contains("No space left on device")
}
