//! Starting: the stores opened, the parts put together, Raft built.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock};

use rustls::pki_types::CertificateDer;
use tokio::sync::{Semaphore, watch};

use crate::book::{Book, Myself};
use crate::core::{Core, Requests};
use crate::freshness::Freshness;
use crate::identity::{Authority, NodeIdentity};
use crate::link::Link;
use crate::machine::{Machine, Progress};
use crate::open::{Config, MemberFile, OpenError};
use crate::propose::{WAITING_BYTES_MAX, WAITING_MAX};
use crate::reach::Reach;
use crate::read::Rounds;
use crate::rpc::client::Factory;
use crate::snapshot::Snapshots;
use crate::snapshot::receive::Receiver;
use crate::store::StoreError;
use crate::store::local::Local;
use crate::store::log::LogStore;
use crate::store::rocks;
use crate::store::state::StateStore;
use crate::timing::profile;
use crate::transport::Transport;
use crate::transport::detour::{DetourConfig, Detours};
use crate::transport::quic::{QuicConfig, QuicTransport};
use crate::types::Raft;

/// Binds the direct transport.
pub(crate) fn bind(
    core: &Arc<Core>,
    config: &Config,
    identity: &NodeIdentity,
) -> Result<QuicTransport, OpenError> {
    let config = QuicConfig {
        bind: config.bind,
        identity: identity.duplicate()?,
        jobs: config.jobs.clone(),
        clock: config.clock.clone(),
    };
    Ok(QuicTransport::bind(config, core.book.clone())?)
}

/// Makes the transport that leads around broken links of the direct one.
pub(crate) fn around(
    core: &Arc<Core>,
    direct: Arc<dyn Transport>,
    identity: &NodeIdentity,
) -> Result<Detours, OpenError> {
    let config = DetourConfig {
        node: core.node,
        direct,
        directory: core.book.clone(),
        identity: identity.duplicate()?,
        jobs: core.jobs.clone(),
        clock: core.clock.clone(),
        silence: core.profile.silence(),
    };
    Ok(Detours::new(config)?)
}

/// Opens the stores and puts the parts together.
pub(crate) async fn build(
    config: &Config,
    member: &MemberFile,
    identity: &NodeIdentity,
) -> Result<Arc<Core>, OpenError> {
    let io = |source| OpenError::from(StoreError::io(&config.data)(source));
    let cache = rocks::cache();
    let log = LogStore::open(&config.data, &cache)?;
    let state = Arc::new(StateStore::open(&config.data, &cache)?);
    let snapshots = Arc::new(Snapshots::open(state.root(), config.jobs.clone()).map_err(io)?);
    let local = Local::open(&config.data)?;
    let boot = log.next_boot().await.map_err(io)?;
    let authority =
        if Authority::is_in(&config.data) { Some(Authority::load(&config.data)?) } else { None };
    let myself = Myself {
        node: member.node,
        cluster: member.cluster.clone(),
        boot,
        nonce: u64::from_be_bytes(nexus_rt::unique_bytes()),
        software: config.software.clone(),
        authority: CertificateDer::from(member.authority.clone()),
    };
    let book = Arc::new(Book::new(myself, log.clone(), config.clock.clone(), local, &member.known));
    let generation = state.current();
    let fault = |fault| StoreError::fault(generation.path(), &fault);
    book.renew(&state).map_err(fault)?;
    debug_assert_eq!(identity.subject().node, member.node);
    let recorded = state.view(|view| nexus_domain::cluster::info(view)).map_err(fault)?;
    let timing = config
        .timing
        .or(recorded.map(|info| info.timing))
        .unwrap_or(nexus_domain::command::Timing::Wired);
    let progress = Arc::new(Progress::new());
    let clock = config.clock.clone();
    let freshness = Freshness::new(member.node, boot, clock, progress.clone());
    let waiting = usize::try_from(WAITING_MAX).unwrap_or(usize::MAX);
    let bytes = usize::try_from(WAITING_BYTES_MAX).unwrap_or(usize::MAX);
    Ok(Arc::new(Core {
        node: member.node,
        receiver: Receiver::new(state.root()),
        book,
        log,
        state,
        snapshots,
        progress,
        link: Arc::new(Link::new()),
        clock: config.clock.clone(),
        jobs: config.jobs.clone(),
        profile: profile(timing),
        authority,
        raft: OnceLock::new(),
        refused: Mutex::default(),
        anchor: Mutex::default(),
        requests: Requests {
            next: AtomicU64::new(1),
            open: Mutex::default(),
            places: Arc::new(Semaphore::new(waiting)),
            bytes: Arc::new(Semaphore::new(bytes)),
        },
        rounds: Rounds::default(),
        notices: Arc::default(),
        freshness: Arc::new(freshness),
        reach: Reach::new(),
        public_key: identity.key().public_key(),
        sightings: Mutex::new(BTreeMap::new()),
        difference: Mutex::default(),
        certificate: Mutex::default(),
        wrong_secrets: Mutex::new(BTreeMap::new()),
        stopping: watch::Sender::new(false),
    }))
}

/// Builds Raft, and makes the first membership if this node founded the cluster.
pub(crate) async fn start_raft(core: &Arc<Core>, member: &MemberFile) -> Result<(), OpenError> {
    let fail = |error: String| OpenError::Raft(error);
    let machine = Machine::new(
        core.state.clone(),
        core.log.clone(),
        core.snapshots.clone(),
        core.progress.clone(),
        core.clock.clone(),
    )?;
    let config = core.profile.config(&member.cluster).map_err(|error| fail(error.to_string()))?;
    let network = Factory {
        node: core.node,
        transport: core.link.clone(),
        jobs: core.jobs.clone(),
        notices: core.notices.clone(),
        freshness: core.freshness.clone(),
    };
    let raft = Raft::build(core.node, Arc::new(config), network, core.log.clone(), machine)
        .await
        .map_err(|error| fail(error.to_string()))?;
    core.freshness.set_metrics(raft.metrics());
    // Set before it runs; it was empty until now.
    drop(core.raft.set(raft));
    core.raft().run();
    let initialized =
        core.raft().is_initialized().await.map_err(|error| fail(error.to_string()))?;
    if member.founder && !initialized {
        let alone = BTreeMap::from([(core.node, openraft::EmptyNode::new())]);
        core.raft().initialize(alone).await.map_err(|error| fail(error.to_string()))?;
    }
    Ok(())
}
