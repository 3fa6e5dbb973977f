//! The way to the leader: who leads, by this node's own word or another member's, and whether it
//! answers.
//!
//! Which links a call takes is not decided here (`transport/detour.rs`). A call is never sent again
//! because time passed (traps.md 7): what tells silence from a slow answer is a ping.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use nexus_domain::NodeId;
use openraft::async_runtime::WatchReceiver as _;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::core::Core;
use crate::rpc::message::{Answer, Call};
use crate::store::lock;
use crate::transport::{CallError, Lane, Transport as _, code};
use crate::wire::{decode, encode};

/// Members that are asked at once who leads: all voters and some more; the next time others.
const GUIDES_MAX: usize = 8;
/// How often a question is asked: of the leader that is known, of who it names, and once more.
const TRIES_MAX: usize = 4;

/// How long a refusal counts after it was last said: some turns of `seek`, and the longest wait of
/// a write, so that its end still tells why.
pub(crate) const REFUSAL_LASTS: Duration = Duration::from_secs(12);

/// What a node knows of the ways to others.
#[derive(Debug)]
pub(crate) struct Reach {
    ways: Mutex<Ways>,
    /// Where the next round of questions who leads begins.
    next_guide: AtomicUsize,
}

#[derive(Debug, Default)]
struct Ways {
    /// When each member last answered a call.
    answered: BTreeMap<NodeId, Instant>,
    /// When each member last sent an append.
    heard: BTreeMap<NodeId, Instant>,
    /// The leader that did not answer.
    lost: Option<NodeId>,
    /// Members that are being pinged.
    pinged: BTreeSet<NodeId>,
    /// What the look for a leader that is under way finds.
    guiding: Option<watch::Receiver<Option<Option<Way>>>>,
}

/// How the leader is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// This node leads.
    Here,
    /// This one leads, as far as is known.
    There(NodeId),
}

impl Way {
    /// Returns who leads by this way, as seen from `here`.
    pub(crate) fn leader(self, here: NodeId) -> NodeId {
        match self {
            Self::Here => here,
            Self::There(leader) => leader,
        }
    }
}

/// A call that got no answer.
#[derive(Debug)]
pub(crate) struct Missed {
    /// Whether it may have been handled all the same.
    pub(crate) sent: bool,
    /// Why.
    pub(crate) text: String,
}

impl Reach {
    /// Knows nothing yet.
    pub(crate) fn new() -> Self {
        Self { ways: Mutex::default(), next_guide: AtomicUsize::new(0) }
    }

    /// Notes that a leader has sent an append.
    pub(crate) fn heard(&self, leader: NodeId) {
        lock(&self.ways).heard.insert(leader, Instant::now());
    }

    /// Notes that a member has answered a call.
    fn answered(&self, node: NodeId) {
        let mut ways = lock(&self.ways);
        ways.answered.insert(node, Instant::now());
        if ways.lost == Some(node) {
            ways.lost = None;
            drop(ways);
            tracing::info!(leader = node, "the leader answers again");
        }
    }

    /// Notes that a leader does not answer.
    pub(crate) fn lose(&self, leader: NodeId) {
        let new = lock(&self.ways).lost.replace(leader) != Some(leader);
        if new {
            tracing::info!(leader, "the leader does not answer");
        }
    }

    /// Returns the leader that does not answer.
    pub(crate) fn lost(&self) -> Option<NodeId> {
        lock(&self.ways).lost
    }

    /// Forgets that another one did not answer than who leads now.
    pub(crate) fn leader_is(&self, leader: NodeId) {
        let mut ways = lock(&self.ways);
        if ways.lost.is_some_and(|lost| lost != leader) {
            ways.lost = None;
        }
    }

    /// Returns when a member last answered.
    fn last_answer(&self, node: NodeId) -> Option<Instant> {
        lock(&self.ways).answered.get(&node).copied()
    }

    /// Returns whether a member has answered, or sent an append, within this time.
    pub(crate) fn gave_sign(&self, node: NodeId, within: Duration) -> bool {
        let ways = lock(&self.ways);
        let recent = |at: Option<&Instant>| at.is_some_and(|at| at.elapsed() < within);
        recent(ways.answered.get(&node)) || recent(ways.heard.get(&node))
    }

    /// Returns whether any leader has sent an append within this time.
    fn heard_within(&self, within: Duration) -> bool {
        lock(&self.ways).heard.values().any(|at| at.elapsed() < within)
    }

    /// Returns whether a member has answered within this time.
    fn has_answered(&self, node: NodeId, within: Duration) -> bool {
        self.last_answer(node).is_some_and(|at| at.elapsed() < within)
    }

    /// Begins a ping, unless one is under way.
    fn begin_ping(&self, node: NodeId) -> Option<Pinging<'_>> {
        let begun = lock(&self.ways).pinged.insert(node);
        begun.then_some(Pinging { reach: self, node })
    }

    /// Begins to look for a way, or joins who does already.
    fn begin_guide(&self) -> Guiding {
        let mut ways = lock(&self.ways);
        if let Some(found) = ways.guiding.as_ref().filter(|found| found.has_changed().is_ok()) {
            return Guiding::Wait(found.clone());
        }
        let (done, found) = watch::channel(None);
        ways.guiding = Some(found);
        Guiding::Look(done)
    }

    /// Forgets members that are gone.
    pub(crate) fn forget(&self, gone: &[NodeId]) {
        let mut ways = lock(&self.ways);
        ways.answered.retain(|node, _| !gone.contains(node));
        ways.heard.retain(|node, _| !gone.contains(node));
    }
}

/// A look for a leader, shared by all who need one.
enum Guiding {
    Look(watch::Sender<Option<Option<Way>>>),
    Wait(watch::Receiver<Option<Option<Way>>>),
}

/// A ping under way: one for each member, however many wait for it.
struct Pinging<'a> {
    reach: &'a Reach,
    node: NodeId,
}

impl Drop for Pinging<'_> {
    fn drop(&mut self) {
        lock(&self.reach.ways).pinged.remove(&self.node);
    }
}

impl Core {
    /// Calls a member on the rpc lane, and notes what that shows of it.
    ///
    /// # Errors
    /// As the transport; an answer that cannot be read is `Failed`.
    pub(crate) async fn ask(
        &self,
        node: NodeId,
        call: &Call,
        limit: Duration,
    ) -> Result<Answer, CallError> {
        if node == self.node {
            // It would refuse itself, and that would pass for the refusal of a member.
            let cause = "it is this node itself".to_owned();
            return Err(CallError::Unreachable { node, cause });
        }
        let answered = self.link.call(node, Lane::Rpc, encode(call), limit).await;
        match &answered {
            Ok(_) => {
                self.reach.answered(node);
                *lock(&self.refused) = None;
            }
            Err(CallError::Refused { text, code, sent, .. }) if !sent || *code >= code::OWNER => {
                *lock(&self.refused) = Some((text.clone(), Instant::now()));
            }
            Err(_) => {}
        }
        answered.map(|bytes| {
            decode(&bytes).unwrap_or_else(|text| Answer::Failed {
                text: format!("the answer of node {node} cannot be read: {text}"),
                again: true,
            })
        })
    }

    /// Asks the leader.
    ///
    /// # Errors
    /// Why no leader answered; also when this node leads itself.
    pub(crate) async fn ask_leader(&self, call: &Call, limit: Duration) -> Result<Answer, String> {
        let mut told = None;
        let mut last = "no leader is known".to_owned();
        for _ in 0..TRIES_MAX {
            let leader = match self.way(told.take()).await {
                None => return Err(last),
                Some(Way::Here) => return Err("this node leads itself".to_owned()),
                Some(Way::There(leader)) => leader,
            };
            match self.ask_toward(leader, call, limit).await {
                Ok(Answer::NotLeader { leader, maybe_written }) => {
                    told = (leader > 0 && leader != self.node).then_some(leader);
                    last = "the leader has just changed".to_owned();
                    if maybe_written && !repeats(call) {
                        return Err(last);
                    }
                }
                Ok(Answer::Failed { text, .. }) => return Err(text),
                Ok(answer) => return Ok(answer),
                Err(Missed { sent, text }) => {
                    last = text;
                    if sent && !repeats(call) {
                        return Err(last);
                    }
                }
            }
        }
        Err(last)
    }

    /// Calls the leader, and gives up when it falls silent or another member leads.
    ///
    /// # Errors
    /// What was missed, and whether it may have been handled.
    pub(crate) async fn ask_toward(
        &self,
        leader: NodeId,
        call: &Call,
        limit: Duration,
    ) -> Result<Answer, Missed> {
        let silence = self.profile.silence();
        // Who gave no sign is asked for one first: what cannot arrive is then certainly not sent.
        let sign = if repeats(call) {
            self.reach.gave_sign(leader, silence)
        } else {
            // What is not asked twice needs an answer: who is heard may yet not be reached.
            self.reach.has_answered(leader, silence)
        };
        if !sign && let Err(error) = self.ping(leader, (silence / 2).min(limit)).await {
            self.missed(leader, &error);
            return Err(Missed { sent: false, text: error.to_string() });
        }
        let answered = tokio::select! {
            biased;
            answered = self.ask(leader, call, limit) => answered,
            () = self.another_leads(leader) => {
                return Err(Missed { sent: true, text: "another member leads now".to_owned() });
            }
            () = self.falls_silent(leader) => {
                Err(CallError::TimedOut { node: leader, sent: true })
            }
        };
        answered.map_err(|error| {
            self.missed(leader, &error);
            Missed { sent: !error.certainly_not_sent(), text: error.to_string() }
        })
    }

    /// Asks a member for a sign of life; one such question is under way at a time.
    async fn ping(&self, node: NodeId, limit: Duration) -> Result<(), CallError> {
        let begun = Instant::now();
        loop {
            let left = limit.saturating_sub(begun.elapsed());
            if self.reach.last_answer(node).is_some_and(|at| at >= begun) {
                return Ok(());
            }
            if left.is_zero() {
                return Err(CallError::TimedOut { node, sent: false });
            }
            if let Some(_pinging) = self.reach.begin_ping(node) {
                return self.ask(node, &Call::Ping, left).await.map(drop);
            }
            tokio::time::sleep(left.min(limit / 16)).await;
        }
    }

    /// Draws from a call that failed whether the leader is there.
    fn missed(&self, leader: NodeId, error: &CallError) {
        tracing::debug!(leader, "{error}");
        let unreached = match error {
            CallError::Unreachable { .. } => true,
            // One whose answer only takes long answers pings.
            CallError::TimedOut { .. } => !self.reach.has_answered(leader, self.profile.silence()),
            // A refusal is an answer; and a connection that broke is made anew by the next call.
            CallError::Refused { .. } | CallError::TooLarge { .. } | CallError::Broken { .. } => {
                false
            }
        };
        if unreached {
            self.reach.lose(leader);
        }
    }

    /// Waits until a member has not answered anything for as long as a follower waits for a
    /// heartbeat, pings included.
    async fn falls_silent(&self, node: NodeId) {
        let begun = Instant::now();
        let limit = self.profile.silence();
        loop {
            let since = self.reach.last_answer(node).map_or(begun, |at| at.max(begun));
            let left = limit.saturating_sub(since.elapsed());
            if left.is_zero() {
                return;
            }
            if left <= limit / 2
                && let Some(_pinging) = self.reach.begin_ping(node)
                && self.ask(node, &Call::Ping, left).await.is_ok()
            {
                continue;
            }
            tokio::time::sleep(left.min(limit / 8)).await;
        }
    }

    /// Waits until this node learns that another one leads than `leader`.
    ///
    /// What it believes now does not count: it may have been told better.
    async fn another_leads(&self, leader: NodeId) {
        let mut metrics = self.raft().server_metrics();
        let before = metrics.borrow_and_update().current_leader;
        loop {
            let now = metrics.borrow_and_update().current_leader;
            if now != before && now.is_some_and(|now| now != leader) {
                return;
            }
            if metrics.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Returns how to ask the leader; `told` is who leads by another member's word.
    pub(crate) async fn way(&self, told: Option<NodeId>) -> Option<Way> {
        let known = told.or_else(|| self.leader());
        match known {
            Some(leader) if leader == self.node => return Some(Way::Here),
            Some(leader) if self.reach.lost() != Some(leader) => return Some(Way::There(leader)),
            // Raft goes on naming a leader that died: others may know a newer one.
            Some(_) | None => {}
        }
        let found = tokio::select! {
            biased;
            found = self.shared_guide() => found,
            () = self.leader_change(self.leader(), self.profile.silence()) => None,
        };
        // Without a better word the lost one is asked again; and this node may lead by now.
        found.or_else(|| told.or_else(|| self.leader()).map(|leader| self.way_to(leader)))
    }

    fn way_to(&self, leader: NodeId) -> Way {
        if leader == self.node { Way::Here } else { Way::There(leader) }
    }

    /// Looks for a leader as [`Core::guide`] does, one for all who look at the same time.
    async fn shared_guide(&self) -> Option<Way> {
        loop {
            match self.reach.begin_guide() {
                Guiding::Look(done) => {
                    let found = self.guide().await;
                    done.send_replace(Some(found));
                    return found;
                }
                Guiding::Wait(mut found) => {
                    // Who looked may have been given up: then it is looked anew.
                    if let Ok(found) = found.wait_for(Option::is_some).await {
                        return found.flatten();
                    }
                }
            }
        }
    }

    /// Asks other members who leads; the first answer of use counts.
    async fn guide(&self) -> Option<Way> {
        let limit = self.profile.silence() / 2;
        let asking = self
            .guides()
            .into_iter()
            .map(|node| async move { self.ask(node, &Call::Ping, limit).await });
        let mut asking: FuturesUnordered<_> = asking.collect();
        while let Some(answer) = asking.next().await {
            let Ok(Answer::Here { leader }) = answer else { continue };
            let is_news = leader > 0 && leader != self.node && self.reach.lost() != Some(leader);
            if is_news {
                return Some(Way::There(leader));
            }
        }
        None
    }

    /// Returns whom to ask who leads: the voters, and others in turn.
    fn guides(&self) -> Vec<NodeId> {
        let metrics = self.raft().server_metrics();
        let voters: Vec<NodeId> = metrics.borrow_watched().membership_config.voter_ids().collect();
        let (mut guides, mut others): (Vec<NodeId>, Vec<NodeId>) =
            self.book.others().into_iter().partition(|node| voters.contains(node));
        guides.truncate(GUIDES_MAX);
        let turn = self.reach.next_guide.fetch_add(GUIDES_MAX, Ordering::Relaxed);
        let begin = turn.checked_rem(others.len()).unwrap_or(0);
        others.rotate_left(begin);
        guides.extend(others.into_iter().take(GUIDES_MAX.saturating_sub(guides.len())));
        guides
    }

    /// Answers who asks whether this node is there.
    pub(crate) fn here(&self) -> Answer {
        Answer::Here { leader: self.leader().unwrap_or(0) }
    }

    /// Returns whether this node leads, or has heard a leader within the time of a failover.
    pub(crate) fn hears_leader(&self) -> bool {
        self.leads() || self.reach.heard_within(self.profile.failover)
    }

    /// Returns whether a leader with a quorum was at work a moment ago, as far as this node knows.
    pub(crate) fn cluster_works(&self) -> bool {
        if self.leads() {
            return self.leads_quorum();
        }
        self.reach.heard_within(self.profile.failover)
    }

    /// Returns why another member refuses this node, while one does.
    ///
    /// What is not renewed is over: who is refused and has no leader asks everybody each second,
    /// and who leads asks nobody, so that no answer would ever end it.
    pub(crate) fn refused(&self) -> Option<String> {
        let refused = lock(&self.refused);
        let lasting = refused.as_ref().filter(|(_, at)| at.elapsed() < REFUSAL_LASTS);
        lasting.map(|(text, _)| text.clone())
    }
}

/// Returns whether a call may be sent again although it may have been handled: a join counts wrong
/// secrets.
fn repeats(call: &Call) -> bool {
    !matches!(call, Call::Admit(_))
}
