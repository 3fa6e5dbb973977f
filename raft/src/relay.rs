//! Passing on what a member asks of a leader that it does not reach (traps.md 19, decision 28).
//!
//! A relay forwards to the node that it believes to lead and to nobody else, so it is no hop and
//! there are no loops: who gets a relayed request and does not lead says so. Nobody has to trust a
//! relay with who speaks. A proposal bears the signature of its origin over the cluster, the
//! origin, the leader's challenge and its own bytes, and the leader stamps the node whose key that
//! is. The challenge changes every hour, long before the state forgets a request id, so that what
//! a relay kept and sends again is a repeat with one effect, or refused.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "whatever was not expected here is answered in one way, whichever it is"
)]

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use nexus_domain::NodeId;

use crate::core::Core;
use crate::identity::relayed_is_valid;
use crate::membership::join::PASS_LIMIT;
use crate::propose::WRITE_LIMIT;
use crate::reach::{Missed, Way};
use crate::rpc::message::{Answer, Ask, Call, SignedProposal};
use crate::store::lock;

/// How long a challenge is the newest; the one before it is still good, so a signature is good
/// for at most twice this. Request ids that clients give are kept for 24 hours.
const CHALLENGE_LIFE_MILLIS: u64 = 60 * 60 * 1000;
/// How many ways a question tries: the leader, a relay, and what a wrong guess was answered with.
const WAYS_MAX: usize = 4;
/// How often one proposal is signed: without the leader's challenge, with it, and once more in
/// case another member has become the leader meanwhile.
const SIGNED_MAX: usize = 3;

/// What a leader demands of the signatures on relayed proposals.
#[derive(Debug, Default)]
pub(crate) struct Challenges {
    newest: Option<[u8; 16]>,
    before: Option<[u8; 16]>,
    since_boot_millis: u64,
}

impl Challenges {
    /// Returns the newest challenge, making one when it is time.
    fn newest(&mut self, boot_millis: u64) -> [u8; 16] {
        let age = boot_millis.saturating_sub(self.since_boot_millis);
        if let Some(newest) = self.newest.filter(|_| age < CHALLENGE_LIFE_MILLIS) {
            return newest;
        }
        let fresh = nexus_rt::unique_bytes();
        self.before = self.newest.filter(|_| age < CHALLENGE_LIFE_MILLIS.saturating_mul(2));
        self.newest = Some(fresh);
        self.since_boot_millis = boot_millis;
        fresh
    }

    /// Returns whether a signature may answer this challenge.
    fn accepts(&mut self, challenge: &[u8], boot_millis: u64) -> bool {
        let newest = self.newest(boot_millis);
        newest == challenge || self.before.is_some_and(|before| before == challenge)
    }
}

/// Returns what the origin of a relayed proposal signs.
fn statement(cluster: &str, origin: NodeId, challenge: &[u8], proposal: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(proposal.len().saturating_add(128));
    for part in [cluster.as_bytes(), challenge] {
        // Lengths in front: no other parts make the same bytes.
        bytes.extend_from_slice(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        bytes.extend_from_slice(part);
    }
    bytes.extend_from_slice(&origin.to_be_bytes());
    bytes.extend_from_slice(proposal);
    bytes
}

impl Ask {
    /// Returns the call that reaches the leader directly.
    fn direct(self) -> Call {
        match self {
            Self::Propose(signed) => Call::Propose(signed.proposal),
            Self::ReadIndex => Call::ReadIndex,
            Self::Status => Call::Status,
            Self::Admit(request) => Call::Admit(request),
        }
    }

    /// Returns the call by which a member passes it on for `origin`.
    ///
    /// Only a proposal needs to say whose it is: anybody may ask the rest.
    fn passed_on(self, origin: NodeId) -> Call {
        match self {
            Self::Propose(proposal) => Call::Relayed { origin, proposal },
            other @ (Self::ReadIndex | Self::Status | Self::Admit(_)) => other.direct(),
        }
    }

    /// Returns how long the leader may take.
    fn limit(&self, core: &Core) -> Duration {
        match self {
            Self::Propose(_) => WRITE_LIMIT,
            Self::ReadIndex | Self::Status => core.profile.round(),
            Self::Admit(_) => PASS_LIMIT,
        }
    }

    /// Returns whether it may be asked again although it may have been handled: a join counts
    /// wrong secrets.
    fn repeats(&self) -> bool {
        !matches!(self, Self::Admit(_))
    }
}

impl Core {
    /// Asks the leader, directly or through a member that reaches it.
    ///
    /// # Errors
    /// Why no leader answered; also when this node leads itself.
    pub(crate) async fn ask_leader(&self, ask: &Ask) -> Result<Answer, String> {
        let limit = ask.limit(self);
        let mut told = None;
        let mut last = "no leader is known".to_owned();
        for _ in 0..WAYS_MAX {
            let answer = match self.way(told.take()).await {
                None => return Err(last),
                Some(Way::Here) => return Err("this node leads itself".to_owned()),
                Some(Way::Direct(leader)) => {
                    self.ask_toward(leader, leader, &ask.clone().direct(), limit).await
                }
                Some(Way::Relay { by, leader }) => {
                    let call = Call::Relay(ask.clone());
                    let answer = self.ask_toward(by, leader, &call, limit).await;
                    match &answer {
                        Ok(Answer::NotRelayed { text, busy: false }) => {
                            self.reach.relay_failed(by, text);
                        }
                        Ok(Answer::NotRelayed { .. } | Answer::NotLeader { .. }) | Err(_) => {}
                        Ok(_) => self.reach.relayed(),
                    }
                    answer
                }
            };
            match answer {
                Ok(Answer::NotLeader { leader, maybe_written }) => {
                    told = (leader > 0 && leader != self.node).then_some(leader);
                    last = "the leader has just changed".to_owned();
                    if maybe_written && !ask.repeats() {
                        return Err(last);
                    }
                }
                Ok(Answer::NotRelayed { text, busy: false }) => last = text,
                Ok(Answer::NotRelayed { text, .. } | Answer::Failed { text, .. }) => {
                    return Err(text);
                }
                Ok(answer) => return Ok(answer),
                Err(Missed { sent, text }) => {
                    last = text;
                    if sent && !ask.repeats() {
                        return Err(last);
                    }
                }
            }
        }
        Err(last)
    }

    /// Has a member pass a proposal on to the leader.
    ///
    /// # Errors
    /// What was missed, and whether it may have been written.
    pub(crate) async fn propose_through(
        &self,
        by: NodeId,
        leader: NodeId,
        proposal: &Bytes,
        limit: Duration,
    ) -> Result<Answer, Missed> {
        for _ in 0..SIGNED_MAX {
            let challenge = lock(&self.reach.challenge).clone();
            let statement = self.statement(self.node, &challenge, proposal);
            let signature = self.key.sign_relayed(&statement);
            let signature =
                signature.map_err(|error| Missed { sent: false, text: error.to_string() })?;
            let proposal = proposal.clone();
            let signed = SignedProposal { proposal, challenge, signature };
            let call = Call::Relay(Ask::Propose(signed));
            match self.ask_toward(by, leader, &call, limit).await? {
                Answer::Challenge(challenge) => *lock(&self.reach.challenge) = challenge,
                Answer::NotRelayed { text, busy } => {
                    if !busy {
                        self.reach.relay_failed(by, &text);
                    }
                    return Err(Missed { sent: false, text });
                }
                answer @ Answer::NotLeader { .. } => return Ok(answer),
                answer => {
                    self.reach.relayed();
                    return Ok(answer);
                }
            }
        }
        let text = "the leader's challenge has changed each time".to_owned();
        self.reach.relay_failed(by, &text);
        Err(Missed { sent: false, text })
    }

    pub(crate) fn statement(&self, origin: NodeId, challenge: &[u8], proposal: &[u8]) -> Vec<u8> {
        statement(&self.book.myself().cluster, origin, challenge, proposal)
    }

    /// Passes on what `origin` asks of the leader, or does it when this node leads.
    pub(crate) async fn relay(self: &Arc<Self>, origin: NodeId, ask: Ask) -> Answer {
        let not_relayed = |text: &str| Answer::NotRelayed { text: text.to_owned(), busy: false };
        let Ok(_place) = self.reach.places.try_acquire() else {
            let text = "passes on too much already; ask it again in a moment".to_owned();
            return Answer::NotRelayed { text, busy: true };
        };
        let leader = match self.leader() {
            None => return not_relayed("knows no leader to pass it on to"),
            Some(leader) if leader == origin => {
                return not_relayed("takes the node that asks for the leader");
            }
            // The asker has come to the leader itself: its own certificate speaks for it.
            Some(leader) if leader == self.node => {
                return Box::pin(self.member_call(origin, ask.direct())).await;
            }
            Some(leader) => leader,
        };
        metrics::counter!("nexus_relayed_total").increment(1);
        let limit = ask.limit(self);
        match self.ask_toward(leader, leader, &ask.passed_on(origin), limit).await {
            Ok(answer) => answer,
            Err(Missed { sent: true, text }) => {
                tracing::debug!(origin, leader, "relay: {text}");
                Answer::NotLeader { leader: 0, maybe_written: true }
            }
            Err(Missed { sent: false, text }) => Answer::NotRelayed { text, busy: false },
        }
    }

    /// The leader's part: takes a proposal of `origin` that `by` passes on.
    pub(crate) async fn relayed(
        &self,
        by: NodeId,
        origin: NodeId,
        signed: &SignedProposal,
    ) -> Answer {
        if !self.leads() {
            return Answer::NotLeader { leader: self.leader().unwrap_or(0), maybe_written: false };
        }
        let challenge = {
            let mut challenges = lock(&self.reach.challenges);
            let now = self.clock.boot_millis();
            (!challenges.accepts(&signed.challenge, now)).then(|| challenges.newest(now))
        };
        if let Some(challenge) = challenge {
            return Answer::Challenge(challenge.to_vec());
        }
        let Some(key) = self.book.public_key(origin) else {
            return Answer::NotRelayed {
                text: format!(
                    "node {origin} is no member of this cluster (removed, or not known here yet)"
                ),
                busy: false,
            };
        };
        let statement = self.statement(origin, &signed.challenge, &signed.proposal);
        if !relayed_is_valid(&key, &statement, &signed.signature) {
            tracing::warn!(by, origin, "relay: a proposal that its origin has not signed: refused");
            return Answer::NotRelayed {
                text: format!(
                    "the proposal is not signed by node {origin}, in whose name node {by} passed \
                     it on; it must be passed on as it came"
                ),
                busy: false,
            };
        }
        self.forwarded(origin, &signed.proposal).await
    }
}

#[cfg(test)]
mod tests {
    use super::{CHALLENGE_LIFE_MILLIS, Challenges, statement};

    #[test]
    fn a_challenge_is_good_for_two_lives_and_not_longer() {
        let mut challenges = Challenges::default();
        let first = challenges.newest(10);
        assert_eq!(challenges.newest(10 + CHALLENGE_LIFE_MILLIS - 1), first);
        assert!(!challenges.accepts(&[], 20), "an empty challenge was accepted");
        let second = challenges.newest(10 + CHALLENGE_LIFE_MILLIS);
        assert_ne!(second, first);
        let late = 10 + CHALLENGE_LIFE_MILLIS * 2;
        assert!(challenges.accepts(&first, late - 1));
        assert!(challenges.accepts(&second, late));
        assert!(!challenges.accepts(&first, late));
        // After a long sleep none of before is good.
        assert!(!challenges.accepts(&second, late * 100));
    }

    #[test]
    fn no_two_statements_have_the_same_bytes() {
        let all = [
            statement("ab", 1, b"c", b"d"),
            statement("a", 1, b"bc", b"d"),
            statement("ab", 2, b"c", b"d"),
            statement("ab", 1, b"", b"cd"),
            statement("ab", 1, b"c", b"e"),
        ];
        for (index, one) in all.iter().enumerate() {
            assert!(all.iter().skip(index + 1).all(|other| other != one), "{index}");
        }
    }
}
