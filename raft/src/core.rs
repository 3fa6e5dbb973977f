//! What all parts of a running node share.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use nexus_domain::NodeId;
use nexus_rt::{Clock, Jobs};
use openraft::async_runtime::WatchReceiver as _;
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;

use crate::book::Book;
use crate::compare::Difference;
use crate::freshness::Freshness;
use crate::identity::Authority;
use crate::link::Link;
use crate::machine::Progress;
use crate::reach::Reach;
use crate::read::Rounds;
use crate::renewal::CertificateLife;
use crate::rpc::commit_notice::Notices;
use crate::snapshot::Snapshots;
use crate::snapshot::receive::Receiver;
use crate::store::log::LogStore;
use crate::store::state::StateStore;
use crate::timing::Profile;
use crate::types::Raft;

/// A running node.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) node: NodeId,
    pub(crate) book: Arc<Book>,
    pub(crate) log: LogStore,
    pub(crate) state: Arc<StateStore>,
    pub(crate) snapshots: Arc<Snapshots>,
    pub(crate) receiver: Receiver,
    pub(crate) progress: Arc<Progress>,
    pub(crate) link: Arc<Link>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) jobs: Jobs,
    pub(crate) profile: Profile,
    /// The CA, on a signer only.
    pub(crate) authority: Option<Authority>,
    /// Set once, right after it was built; the transport serves only afterwards.
    pub(crate) raft: OnceLock<Raft>,
    /// Why another member refused this node's connection and when, if one did and none has
    /// answered since.
    pub(crate) refused: Mutex<Option<(String, Instant)>>,
    /// From where this leader counts ticks.
    pub(crate) anchor: Mutex<Anchor>,
    pub(crate) requests: Requests,
    pub(crate) rounds: Rounds,
    pub(crate) notices: Arc<Notices>,
    pub(crate) freshness: Arc<Freshness>,
    pub(crate) reach: Reach,
    /// The node's public key (SPKI DER).
    pub(crate) public_key: Vec<u8>,
    /// Since when each member has been in its shown state, as this node saw it as leader.
    pub(crate) sightings: Mutex<BTreeMap<NodeId, Sighting>>,
    /// Whose state differs, as this node found as leader.
    pub(crate) difference: Mutex<Option<Difference>>,
    /// How this node's certificate stands.
    pub(crate) certificate: Mutex<CertificateLife>,
    /// Wrong secrets per invite, counted by this node as leader.
    pub(crate) wrong_secrets: Mutex<BTreeMap<String, u32>>,
    pub(crate) stopping: watch::Sender<bool>,
}

/// Requests of this node's boot that are not answered yet, and the bound on them.
#[derive(Debug)]
pub(crate) struct Requests {
    pub(crate) next: AtomicU64,
    /// Counters that are not answered; those with a time were left with an unknown outcome.
    pub(crate) open: Mutex<BTreeMap<u64, Option<Instant>>>,
    pub(crate) places: Arc<Semaphore>,
    pub(crate) bytes: Arc<Semaphore>,
}

/// A tick and when it was, for one term: a leader counts from it with its own clock.
///
/// Counting anew from each applied entry would lose a part of a millisecond every time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Anchor {
    pub(crate) term: u64,
    pub(crate) tick: u64,
    pub(crate) boot_millis: u64,
}

/// What the leader saw of a member.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sighting {
    pub(crate) up: bool,
    /// Whether it was up at any time since this node leads.
    pub(crate) heard: bool,
    /// When it came into this state.
    pub(crate) since_wall_millis: u64,
    pub(crate) since: Instant,
}

impl Core {
    /// Returns the Raft instance.
    ///
    /// # Panics
    /// Never after `Cluster::open`: it is set before anything else runs.
    #[expect(clippy::expect_used, reason = "set before any job or handler is started")]
    pub(crate) fn raft(&self) -> &Raft {
        self.raft.get().expect("raft is set before anything runs")
    }

    /// Returns the leader that this node knows of.
    pub(crate) fn leader(&self) -> Option<NodeId> {
        self.raft().server_metrics().borrow_watched().current_leader
    }

    /// Returns whether this node leads, as far as it knows.
    pub(crate) fn leads(&self) -> bool {
        self.leader() == Some(self.node)
    }

    /// Returns the applied index.
    pub(crate) fn applied(&self) -> u64 {
        self.progress.applied.borrow().index()
    }

    /// Waits until an index is applied here.
    pub(crate) async fn wait_applied(&self, index: u64, limit: Duration) -> bool {
        let mut applied = self.progress.applied.subscribe();
        let reached = applied.wait_for(|applied| applied.index() >= index);
        matches!(tokio::time::timeout(limit, reached).await, Ok(Ok(_)))
    }

    /// Waits until another leader is known than `than`, or none if it was one.
    pub(crate) async fn leader_change(&self, than: Option<NodeId>, limit: Duration) {
        let mut metrics = self.raft().server_metrics();
        let changed = async {
            loop {
                let now = metrics.borrow_and_update().current_leader;
                if now != than {
                    return;
                }
                if metrics.changed().await.is_err() {
                    return;
                }
            }
        };
        let _in_time = tokio::time::timeout(limit, changed).await;
    }
}
