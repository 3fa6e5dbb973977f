//! Proposing: from any node to the leader and back, with one request id over every retry.
//!
//! Ends (promise 2): done, refused, unknown. What was certainly not proposed waits for a leader and
//! then says so; what may have been proposed is asked again with the same id, after an error that
//! ends the try or a change of leader, never on a timer (traps.md 7), and is *unknown* after the
//! write timeout.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "whatever was not expected here is answered in one way, whichever it is"
)]

use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use nexus_domain::command::Origin;
use nexus_domain::{
    Actor, Answered, Command, NodeId, Proposal, Rejection, Reply, RequestId, SUPPORTED, Stamp,
    codec,
};
use nexus_rt::Backoff;
use openraft::async_runtime::WatchReceiver as _;
use openraft::errors::{ClientWriteError, RaftError};
use tokio::time::Instant;

use crate::cluster::is_disk_full;
use crate::core::{Anchor, Core};
use crate::reach::{Missed, Way};
use crate::rpc::message::{Answer, Call};
use crate::store::lock;
use crate::types::{LogData, Outcome};

/// After this long without an answer a write is unknown.
pub(crate) const WRITE_LIMIT: Duration = Duration::from_secs(10);
/// Proposals that may wait in one node.
pub(crate) const WAITING_MAX: u64 = 4096;
/// Bytes of proposals that may wait in one node.
pub(crate) const WAITING_BYTES_MAX: u32 = 16 << 20;
/// For how long an unknown outcome can be asked for again.
const PARKED_MAX: Duration = Duration::from_secs(3600);
/// How many newer requests may pass before an unknown outcome is given up: the state keeps 10,000
/// ids of a node, and everything above the oldest open one.
const PARKED_DISTANCE_MAX: u64 = 5_000;
/// When a node that is busy may be asked again.
const BUSY_RETRY: Duration = Duration::from_millis(200);
/// When to try again after there was no quorum.
const NO_QUORUM_RETRY: Duration = Duration::from_secs(2);

/// Something to propose.
#[derive(Clone, Debug)]
pub struct Request {
    /// Who asks.
    pub actor: Actor,
    /// The caller's own request id; without one it is made here.
    pub id: Option<String>,
    /// What to do.
    pub command: Command,
}

/// A proposal that was applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// Its answer.
    pub reply: Reply,
    /// Its place in the log: a read at or after it sees its effect.
    pub index: u64,
    /// Whether this node has applied it.
    pub applied_here: bool,
    /// The request id that it went by.
    pub request: RequestId,
}

/// Why a proposal was not done, or is not known to be.
#[derive(Debug, thiserror::Error)]
pub enum ProposeError {
    /// The state machine refused it; the same everywhere.
    #[error(transparent)]
    Rejected(Rejection),
    /// It was certainly not proposed: no leader was found in time.
    #[error("no quorum: {missing}; nothing was written, try again in {} s", retry_after.as_secs())]
    NoQuorum {
        /// Who is missing and what to do.
        missing: String,
        /// When to try again.
        retry_after: Duration,
    },
    /// It may or may not have been done.
    #[error(
        "outcome unknown: no answer within {} s; it may have been done: repeat the call with \
         request id {request} to learn it, nothing is done twice{}",
        WRITE_LIMIT.as_secs(),
        missing.as_deref().map(missing_text).unwrap_or_default()
    )]
    Unknown {
        /// The id to ask again with.
        request: String,
        /// Who is missing or refuses this node, and what to do, when no leader with a quorum is
        /// known: then asking again is of no use before.
        missing: Option<String>,
    },
    /// Too much waits already.
    #[error(
        "busy: too many writes are waiting on this node; try again in {} ms",
        retry_after.as_millis()
    )]
    Busy {
        /// When to try again.
        retry_after: Duration,
    },
    /// It does not fit into a log entry.
    #[error("request: {text}")]
    TooLarge {
        /// What is too large and what would be right.
        text: String,
    },
    /// The node is stopping.
    #[error("node: is stopping; ask another node, or this one after its restart")]
    Stopping,
    /// The disk is full: the node stops; whether this write was done is not known.
    #[error(
        "the disk is full: this node stops; free space under its data folder and start it again, \
         then {}",
        after_disk_full(request)
    )]
    DiskFull {
        /// The id of the request.
        request: String,
    },
    /// The node cannot go on.
    #[error("node: has stopped working: {0}")]
    Fatal(String),
}

fn missing_text(missing: &str) -> String {
    format!("; but now {missing}")
}

/// Says what to do with a call that met a full disk. Ids that a node made end with its boot, so
/// only one that the caller gave can be repeated after the restart.
fn after_disk_full(request: &str) -> String {
    if read_request_text(request).is_some() {
        format!("look whether the call (request id {request}) was done before you repeat it")
    } else {
        format!("repeat the call with request id {request}, nothing is done twice")
    }
}

/// One try at one leader.
enum Try {
    Applied {
        index: u64,
        outcome: Result<Reply, Rejection>,
    },
    /// Not written for certain; perhaps another leads.
    NotLeader(Option<NodeId>),
    /// May be written; ask again when something changed.
    Maybe,
    Refused(String),
    Fatal(String),
}

/// A request id of this boot, open until it is dropped.
struct Open<'a> {
    core: &'a Core,
    counter: u64,
    /// Whether it stays open, because its outcome is unknown and may be asked for again.
    parked: bool,
}

impl<'a> Open<'a> {
    fn new(core: &'a Core) -> Self {
        let mut open = lock(&core.requests.open);
        let counter = core.requests.next.fetch_add(1, Ordering::Relaxed);
        open.insert(counter, None);
        // What was left unknown too long ago is given up, or the table of ids would never shrink.
        let late = |counter_then: u64, since: &Option<Instant>| {
            since.is_some_and(|since| {
                since.elapsed() > PARKED_MAX
                    || counter.saturating_sub(counter_then) > PARKED_DISTANCE_MAX
            })
        };
        open.retain(|counter_then, since| !late(*counter_then, since));
        Self { core, counter, parked: false }
    }

    /// Returns below which counter everything is answered.
    fn below(&self) -> u64 {
        let open = lock(&self.core.requests.open);
        open.first_key_value().map_or(self.counter, |(counter, _)| *counter)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        let mut open = lock(&self.core.requests.open);
        if self.parked {
            open.insert(self.counter, Some(Instant::now()));
        } else {
            open.remove(&self.counter);
        }
    }
}

impl Core {
    /// Proposes and waits until it is applied here.
    ///
    /// # Errors
    /// See [`ProposeError`]; only `Unknown` leaves open whether it was done.
    pub(crate) async fn propose(&self, request: Request) -> Result<Committed, ProposeError> {
        if *self.stopping.borrow() {
            return Err(ProposeError::Stopping);
        }
        let busy = |_full| ProposeError::Busy { retry_after: BUSY_RETRY };
        let _place = self.requests.places.try_acquire().map_err(busy)?;
        let mut open = Open::new(self);
        let myself = self.book.myself();
        let id = match request.id {
            // An id that an unknown outcome was reported with comes back as it was given.
            Some(text) => self.given_id(text)?,
            None => RequestId::Node { node: self.node, boot: myself.boot, counter: open.counter },
        };
        let proposal = Proposal {
            version: request.command.needs(),
            request: id.clone(),
            actor: request.actor,
            answered: Answered { boot: myself.boot, below: open.below() },
            not_after: u64::MAX,
            command: request.command,
        };
        debug_assert!(proposal.version <= SUPPORTED);
        let bytes: Bytes = codec::encode_proposal(&proposal).into();
        if let Err(error) = codec::decode_proposal(&bytes) {
            return Err(ProposeError::TooLarge { text: error.to_string() });
        }
        let weight = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let _bytes = self.requests.bytes.try_acquire_many(weight).map_err(busy)?;
        let begun = Instant::now();
        metrics::counter!("nexus_proposals_total").increment(1);
        let result = self.drive(&bytes, &proposal, begun).await;
        metrics::histogram!("nexus_commit_seconds").record(begun.elapsed());
        // It stays open for a while even when it is repeated: that answer may be lost too.
        open.parked = matches!(result, Err(ProposeError::Unknown { .. }));
        let (index, outcome) = result?;
        // A commit proves a quorum: reads need not assume any more that there is none.
        self.freshness.hopeful();
        let reply = outcome.map_err(ProposeError::Rejected)?;
        let left = WRITE_LIMIT.saturating_sub(begun.elapsed());
        let applied_here = self.wait_applied(index, left).await;
        Ok(Committed { reply, index, applied_here, request: id })
    }

    /// Reads an id that a caller gave: its own, or one that an unknown outcome was reported with.
    fn given_id(&self, text: String) -> Result<RequestId, ProposeError> {
        let Some(id) = read_request_text(&text) else { return Ok(RequestId::Client(text)) };
        let RequestId::Node { node, boot, counter } = id else {
            return Ok(RequestId::Client(text));
        };
        let ours = node == self.node && boot == self.book.myself().boot;
        let parked = ours && matches!(lock(&self.requests.open).get(&counter), Some(Some(_)));
        if parked {
            return Ok(id);
        }
        // Taken as a new id it would be done twice, if it was done.
        Err(ProposeError::Rejected(Rejection::Invalid {
            field: "requestId".to_owned(),
            rule: format!(
                "{text} was made by node {node} for a call whose outcome it did not know; repeat \
                 the call there within an hour, or look whether it was done"
            ),
        }))
    }

    /// Tries leaders until one answers or time is up.
    async fn drive(
        &self,
        bytes: &Bytes,
        proposal: &Proposal,
        begun: Instant,
    ) -> Result<(u64, Result<Reply, Rejection>), ProposeError> {
        let mut maybe_written = false;
        let mut backoff = Backoff::new(Duration::from_millis(10), Duration::from_millis(250));
        let mut told: Option<NodeId> = None;
        loop {
            let limit = if maybe_written { WRITE_LIMIT } else { self.profile.patience() };
            let left = limit.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Err(self.give_up(maybe_written, proposal));
            }
            let known = self.leader();
            let Some(way) = self.way(told.take()).await else {
                self.leader_change(None, backoff.next().min(left)).await;
                continue;
            };
            let whole = WRITE_LIMIT.saturating_sub(begun.elapsed());
            match self.try_way(way, bytes, proposal, whole).await {
                Try::Applied { index, outcome } => return Ok((index, outcome)),
                Try::NotLeader(other) => {
                    told = other.filter(|other| *other != way.leader(self.node));
                    if told.is_none() {
                        self.leader_change(known, backoff.next().min(left)).await;
                    }
                }
                Try::Maybe => {
                    maybe_written = true;
                    self.leader_change(known, backoff.next()).await;
                }
                Try::Refused(what) => {
                    return Err(ProposeError::Rejected(Rejection::Forbidden { what }));
                }
                Try::Fatal(text) if is_disk_full(&text) => {
                    let request = request_text(&proposal.request);
                    return Err(ProposeError::DiskFull { request });
                }
                Try::Fatal(text) => return Err(ProposeError::Fatal(text)),
            }
        }
    }

    fn give_up(&self, maybe_written: bool, proposal: &Proposal) -> ProposeError {
        if maybe_written {
            let hopeless = !self.cluster_works() || self.refused().is_some();
            let missing = hopeless.then(|| self.who_is_missing());
            return ProposeError::Unknown { request: request_text(&proposal.request), missing };
        }
        ProposeError::NoQuorum { missing: self.who_is_missing(), retry_after: NO_QUORUM_RETRY }
    }

    async fn try_way(&self, way: Way, bytes: &Bytes, proposal: &Proposal, limit: Duration) -> Try {
        let answered = match way {
            Way::Here => {
                let written = self.write_here(self.node, proposal.clone());
                // Dropping the wait leaves the entry where it is: it may still be done.
                return tokio::time::timeout(limit, written).await.unwrap_or(Try::Maybe);
            }
            Way::There(leader) => {
                self.ask_toward(leader, &Call::Propose(bytes.clone()), limit).await
            }
        };
        match answered {
            Ok(answer) => read_answer(answer),
            Err(Missed { sent: true, .. }) => Try::Maybe,
            Err(Missed { sent: false, .. }) => Try::NotLeader(None),
        }
    }

    /// The leader's part: stamps a proposal that `from` brought and writes it.
    async fn write_here(&self, from: NodeId, proposal: Proposal) -> Try {
        if from != self.node && proposal.command.origin() == Origin::Leader {
            return Try::Refused("command: only the leader itself may propose it".to_owned());
        }
        let (tick, at) = self.stamp();
        let stamp = Stamp { tick, at, node: from };
        let bytes = codec::encode_entry(&stamp, &proposal);
        // An entry that `apply` cannot read would stop every node: it never gets into the log.
        if let Err(error) = codec::decode_entry(0, &bytes) {
            return Try::Refused(error.to_string());
        }
        let data = LogData(bytes.into());
        match self.raft().client_write(data).await {
            Ok(written) => match written.data {
                Outcome::Done(outcome) => Try::Applied { index: written.log_id.index, outcome },
                Outcome::Nothing => Try::Fatal("a command was applied as a blank entry".into()),
            },
            Err(RaftError::APIError(ClientWriteError::ForwardToLeader(forward))) => {
                Try::NotLeader(forward.leader_id)
            }
            Err(RaftError::APIError(ClientWriteError::LogEntryDiscarded(_))) => Try::Maybe,
            Err(RaftError::APIError(error)) => Try::Fatal(error.to_string()),
            Err(RaftError::Fatal(error)) => Try::Fatal(error.to_string()),
        }
    }

    /// Returns the tick and the time that the leader gives an entry now (traps.md 4).
    pub(crate) fn stamp(&self) -> (u64, u64) {
        let now = self.clock.boot_millis();
        let applied = *self.progress.applied.borrow();
        let term = self.raft().server_metrics().borrow_watched().vote.leader_id.term;
        let tick = {
            let mut anchor = lock(&self.anchor);
            let counted = anchor.tick.saturating_add(now.saturating_sub(anchor.boot_millis));
            // Another term, or a clock that others have carried further: count from the state.
            if anchor.term != term || counted < applied.clock.tick {
                let (tick, boot_millis) = (applied.clock.tick, applied.boot_millis);
                *anchor = Anchor { term, tick, boot_millis };
            }
            anchor.tick.saturating_add(now.saturating_sub(anchor.boot_millis))
        };
        let elapsed = tick.saturating_sub(applied.clock.tick);
        nexus_domain::clock::stamp(applied.clock, elapsed, self.clock.wall_millis())
    }

    /// Answers a member that forwarded a proposal: one hop, never forwarded again.
    pub(crate) async fn forwarded(&self, from: NodeId, bytes: &[u8]) -> Answer {
        let proposal = match codec::decode_proposal(bytes) {
            Ok(proposal) => proposal,
            Err(error) => return Answer::Failed { text: error.to_string(), again: false },
        };
        match self.write_here(from, proposal).await {
            Try::Applied { index, outcome } => {
                // It answers its caller when it knows that this is committed.
                self.notices.hurry(from);
                Answer::Proposed { index, outcome: outcome.into() }
            }
            Try::NotLeader(leader) => {
                Answer::NotLeader { leader: leader.unwrap_or(0), maybe_written: false }
            }
            Try::Maybe => Answer::NotLeader { leader: 0, maybe_written: true },
            Try::Refused(text) => Answer::Failed { text, again: false },
            Try::Fatal(text) => Answer::Failed { text, again: true },
        }
    }

    /// Says which voters are missing and what to do.
    pub(crate) fn who_is_missing(&self) -> String {
        if let Some(text) = self.refused() {
            return format!("another member refuses this node: {text}");
        }
        let members =
            self.state.view(|view| nexus_domain::cluster::members(view)).unwrap_or_default();
        let metrics = self.raft().server_metrics();
        let voters: Vec<NodeId> = metrics.borrow_watched().membership_config.voter_ids().collect();
        let others: Vec<String> = voters
            .iter()
            .filter(|id| **id != self.node)
            .map(|id| {
                let name = members.iter().find(|member| member.id == *id);
                name.map_or_else(|| format!("node {id}"), |member| member.name.clone())
            })
            .collect();
        if voters == [self.node] {
            return "this node has not become leader yet; try again in a moment".to_owned();
        }
        if voters.is_empty() {
            return "no leader is reachable, and none has reached this node since it joined: check \
                    the network"
                .to_owned();
        }
        format!(
            "no leader is reachable; of {} voters {} must be awake and reachable (the others: {}): \
             wake them or check the network",
            voters.len(),
            voters.len() / 2 + 1,
            others.join(", ")
        )
    }
}

fn read_answer(answer: Answer) -> Try {
    match answer {
        Answer::Proposed { index, outcome } => Try::Applied { index, outcome: outcome.into() },
        Answer::NotLeader { maybe_written: true, .. } => Try::Maybe,
        Answer::NotLeader { leader, .. } => Try::NotLeader((leader > 0).then_some(leader)),
        Answer::Failed { text, again: false } => Try::Refused(text),
        Answer::Failed { text, .. } => {
            tracing::warn!("proposal: the leader could not do it: {text}");
            Try::Maybe
        }
        _ => Try::Maybe,
    }
}

/// Returns a request id as callers see it and may give it back.
pub(crate) fn request_text(id: &RequestId) -> String {
    match id {
        RequestId::Client(id) => id.clone(),
        RequestId::Node { node, boot, counter } => format!("n{node}.{boot}.{counter}"),
    }
}

/// Reads what [`request_text`] wrote for an id that a node made.
fn read_request_text(text: &str) -> Option<RequestId> {
    let mut parts = text.strip_prefix('n')?.splitn(3, '.').map(str::parse::<u64>);
    let (node, boot, counter) = (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
    Some(RequestId::Node { node, boot, counter })
}
