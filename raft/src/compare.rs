//! Whether all members have the same state: the leader compares the digests that each keeps
//! (traps.md 22).
//!
//! Every minute it picks an index that all members in reach have applied, at a multiple of 64, and
//! asks each for its digests there. An index that was compared is not asked for again, so an idle
//! cluster makes no calls. When most agree, those that differ are told what most have; each looks
//! into its own state before it believes that, and stops. Without a majority nobody stops, and
//! `status` names them all.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use minicbor::{Decode, Encode};
use nexus_domain::digest::{self, Digests};
use nexus_domain::limits::DIGEST_STRIDE;
use nexus_domain::{Fault, NodeId};

use crate::core::Core;
use crate::machine::gauge;
use crate::rpc::message::{Answer, Call, WireDigests};
use crate::store::lock;
use crate::transport::{Lane, Transport as _};
use crate::wire::{decode, encode};

/// How often the leader compares.
const COMPARE_EVERY: Duration =
    if cfg!(test) { Duration::from_millis(200) } else { Duration::from_secs(60) };
/// How long a member may take to answer, its own wait included.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
/// How long a member waits until it has applied the index: it has the entries, and hears with the
/// next heartbeat that they are committed.
const APPLY_LIMIT: Duration = Duration::from_secs(3);
/// A member that is further behind is left for the next time: it would pull the common index back
/// to what the others keep no digests of any more.
const BEHIND_ENTRIES_MAX: u64 = 4_096;

/// That states differ where they must be equal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Difference {
    /// The index at which digests were compared.
    #[n(0)]
    pub index: u64,
    /// Whether most of those that were compared have one state.
    #[n(1)]
    pub majority: bool,
    /// Who has another state than most; without a majority all that were compared.
    #[n(2)]
    pub members: Vec<NodeId>,
}

/// What digests at one index say.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    /// All are equal.
    Same,
    /// Most are these, and some are not.
    Odd { most: Digests, odd: BTreeSet<NodeId> },
    /// They differ, and none has a majority.
    Split,
}

/// Judges the digests of members at one index; a majority is more than half of them.
fn judge(shown: &BTreeMap<NodeId, Digests>) -> Verdict {
    let mut groups: Vec<(Digests, BTreeSet<NodeId>)> = Vec::new();
    for (node, digests) in shown {
        match groups.iter_mut().find(|(other, _)| other == digests) {
            Some((_, nodes)) => {
                nodes.insert(*node);
            }
            None => groups.push((*digests, BTreeSet::from([*node]))),
        }
    }
    if groups.len() <= 1 {
        return Verdict::Same;
    }
    let most = groups.iter().find(|(_, nodes)| nodes.len().saturating_mul(2) > shown.len());
    let Some((most, agreeing)) = most else { return Verdict::Split };
    let odd = shown.keys().filter(|node| !agreeing.contains(node)).copied().collect();
    Verdict::Odd { most: *most, odd }
}

/// Returns the last multiple of 64 that all these indexes have reached, of those who are not too
/// far behind the first, this node's own.
fn common_index(own: u64, others: impl Iterator<Item = u64>) -> u64 {
    let near = others.filter(|other| own.saturating_sub(*other) <= BEHIND_ENTRIES_MAX);
    let least = near.fold(own, u64::min);
    least.saturating_sub(least.checked_rem(DIGEST_STRIDE).unwrap_or(0))
}

/// What the leader remembers between two comparisons.
#[derive(Debug, Default)]
struct Compared {
    /// The index that digests were shown of.
    index: u64,
    /// What each member showed there, and in which of its boots.
    shown: BTreeMap<NodeId, (u64, Digests)>,
    /// Who differed from most when it was compared last, and where. It stays so when it stops,
    /// until it is removed or compared equal.
    odd: BTreeMap<NodeId, u64>,
}

/// Runs until the node stops.
pub(crate) async fn run(core: Arc<Core>) {
    let mut compared = Compared::default();
    loop {
        tokio::time::sleep(COMPARE_EVERY).await;
        if !core.leads() {
            compared = Compared::default();
            core.show_difference(None);
            continue;
        }
        if let Err(fault) = core.compare(&mut compared).await {
            tracing::error!("digests: {fault}");
        }
    }
}

impl Core {
    /// Compares what is new, and shows what came of it.
    async fn compare(self: &Arc<Self>, compared: &mut Compared) -> Result<(), Fault> {
        let (own, rows) =
            self.state.view(|view| Ok((view.applied()?, nexus_domain::cluster::members(view)?)))?;
        let boots: BTreeMap<NodeId, u64> = rows.iter().map(|row| (row.id, row.boot)).collect();
        let reach = self.members_in_reach();
        compared.renew(common_index(own, reach.values().copied()), &boots);
        if compared.index == 0 {
            return Ok(());
        }
        self.ask_for_digests(compared, &boots, &reach).await?;
        let shown = compared.shown.iter().map(|(node, (_, digests))| (*node, *digests)).collect();
        let verdict = judge(&shown);
        let split = self.take_verdict(compared, &verdict, &reach).await;
        self.show_difference(split.or_else(|| compared.odd_ones()));
        Ok(())
    }

    /// Returns up to where each other member that answers has the log.
    fn members_in_reach(&self) -> BTreeMap<NodeId, u64> {
        let up: Vec<NodeId> = lock(&self.sightings)
            .iter()
            .filter(|(node, sighting)| **node != self.node && sighting.up)
            .map(|(node, _)| *node)
            .collect();
        up.into_iter().filter_map(|node| Some((node, self.matched(node)?))).collect()
    }

    /// Fills in the digests of this node and of those that have not shown theirs.
    async fn ask_for_digests(
        &self,
        compared: &mut Compared,
        boots: &BTreeMap<NodeId, u64>,
        reach: &BTreeMap<NodeId, u64>,
    ) -> Result<(), Fault> {
        let index = compared.index;
        let boot_of = |node: NodeId| boots.get(&node).copied();
        if let Some(digests) = self.state.view(|view| digest::kept(view, index))?
            && let Some(boot) = boot_of(self.node)
        {
            compared.shown.insert(self.node, (boot, digests));
        }
        let asked = compared.to_ask(reach).into_iter().filter_map(|node| {
            let boot = boot_of(node)?;
            Some(async move { (node, boot, self.ask_digest(node, index, None).await) })
        });
        for (node, boot, answer) in futures::future::join_all(asked).await {
            if let Some(digests) = answer {
                compared.shown.insert(node, (boot, digests));
            }
        }
        Ok(())
    }

    /// Asks a member for its digests at an index, or tells it what most have there.
    async fn ask_digest(
        &self,
        node: NodeId,
        index: u64,
        majority: Option<Digests>,
    ) -> Option<Digests> {
        let call = encode(&Call::Digest { index, majority: majority.map(Into::into) });
        let answer = self.link.call(node, Lane::Rpc, call, ANSWER_LIMIT).await;
        let answer =
            answer.map_err(|error| error.to_string()).and_then(|bytes| decode::<Answer>(&bytes));
        match answer {
            Ok(Answer::Digest { kept }) => kept.map(Into::into),
            Ok(_) => None,
            Err(error) => {
                tracing::debug!(node, index, "digest: not shown: {error}");
                None
            }
        }
    }

    /// Notes who differs, and tells them; returns the difference that no majority settles.
    async fn take_verdict(
        &self,
        compared: &mut Compared,
        verdict: &Verdict,
        reach: &BTreeMap<NodeId, u64>,
    ) -> Option<Difference> {
        let index = compared.index;
        let (most, odd) = match verdict {
            Verdict::Same => {
                compared.note(&BTreeSet::new());
                return None;
            }
            Verdict::Split => {
                let members: Vec<NodeId> = compared.shown.keys().copied().collect();
                tracing::error!(?members, index, "states differ, and no majority has one of them");
                return Some(Difference { index, majority: false, members });
            }
            Verdict::Odd { most, odd } => (*most, odd),
        };
        compared.note(odd);
        tracing::error!(members = ?odd, index, "states differ from that of most members");
        for node in odd.iter().filter(|node| reach.contains_key(node)) {
            // It stops, and may have no time to answer.
            let _shown = self.ask_digest(*node, index, Some(most)).await;
        }
        if odd.contains(&self.node) {
            self.stop_if_odd(index, most);
        }
        None
    }

    /// Answers the leader: what this node keeps of an index, once it has applied it. What most are
    /// said to have is held against it.
    pub(crate) async fn answer_digest(
        &self,
        from: NodeId,
        index: u64,
        majority: Option<WireDigests>,
    ) -> Answer {
        self.wait_applied(index, APPLY_LIMIT).await;
        let kept = match self.state.view(|view| digest::kept(view, index)) {
            Ok(kept) => kept,
            Err(fault) => return Answer::Failed { text: fault.to_string(), again: true },
        };
        if let Some(majority) = majority
            && self.leader() == Some(from)
        {
            self.stop_if_odd(index, majority.into());
        }
        Answer::Digest { kept: kept.map(Into::into) }
    }

    /// Stops this node when its own digests at an index are not those that most have. A claim that
    /// does not meet a difference here stops nobody.
    fn stop_if_odd(&self, index: u64, most: Digests) {
        let kept = self.state.view(|view| digest::kept(view, index));
        match odd_text(index, kept.ok().flatten(), most) {
            Some(text) => {
                tracing::error!("state: {text}");
                self.progress.stop(text);
            }
            None => tracing::warn!(index, "digests: said to differ, and do not"),
        }
    }

    /// Shows a difference in the status and as a metric, or that there is none.
    fn show_difference(&self, difference: Option<Difference>) {
        let count = difference.as_ref().map_or(0, |difference| difference.members.len());
        metrics::gauge!("nexus_members_differing").set(gauge(u64::try_from(count).unwrap_or(0)));
        *lock(&self.difference) = difference;
    }
}

impl Compared {
    /// Goes over to a newer index, and forgets what was shown by nodes that are no members any more
    /// or have started anew since.
    fn renew(&mut self, index: u64, boots: &BTreeMap<NodeId, u64>) {
        if index > self.index {
            self.index = index;
            self.shown.clear();
        }
        self.shown.retain(|node, (boot, _)| boots.get(node) == Some(boot));
        self.odd.retain(|node, _| boots.contains_key(node));
    }

    /// Returns who has the index and has not shown its digests there.
    fn to_ask(&self, reach: &BTreeMap<NodeId, u64>) -> Vec<NodeId> {
        let has_it = reach.iter().filter(|(_, matched)| **matched >= self.index);
        has_it.map(|(node, _)| *node).filter(|node| !self.shown.contains_key(node)).collect()
    }

    /// Takes note of who differs from most, and forgets those that were compared equal.
    fn note(&mut self, odd: &BTreeSet<NodeId>) {
        self.odd.retain(|node, _| !self.shown.contains_key(node));
        self.odd.extend(odd.iter().map(|node| (*node, self.index)));
    }

    /// Returns the difference of those who have another state than most.
    fn odd_ones(&self) -> Option<Difference> {
        let index = self.odd.values().copied().max()?;
        Some(Difference { index, majority: true, members: self.odd.keys().copied().collect() })
    }
}

/// Returns why a node stops whose digests at an index are `kept`, when most have others.
fn odd_text(index: u64, kept: Option<Digests>, most: Digests) -> Option<String> {
    let kept = kept?;
    let what = match (kept.content == most.content, kept.books == most.books) {
        (true, true) => return None,
        (false, true) => "content",
        (true, false) => "books",
        (false, false) => "content and books",
    };
    Some(format!(
        "the state of this node differs from that of most members at entry {index} ({what}); \
         replace this member: remove it from another node with `nexus node remove`, then join \
         again with an empty folder, and keep the old one for a report"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digests(content: u8, books: u8) -> Digests {
        Digests { content: [content; 32], books: [books; 32] }
    }

    fn shown(all: &[(NodeId, u8)]) -> BTreeMap<NodeId, Digests> {
        all.iter().map(|(node, content)| (*node, digests(*content, 0))).collect()
    }

    #[test]
    fn the_odd_one_out_is_who_has_no_majority() {
        let odd = |most: u8, odd: &[NodeId]| Verdict::Odd {
            most: digests(most, 0),
            odd: odd.iter().copied().collect(),
        };
        for (what, all, expected) in [
            ("nobody", shown(&[]), Verdict::Same),
            ("one alone", shown(&[(1, 7)]), Verdict::Same),
            ("two alike", shown(&[(1, 7), (2, 7)]), Verdict::Same),
            ("two that differ", shown(&[(1, 7), (2, 8)]), Verdict::Split),
            ("one of three", shown(&[(1, 7), (2, 8), (3, 7)]), odd(7, &[2])),
            ("the first of three", shown(&[(1, 8), (2, 7), (3, 7)]), odd(7, &[1])),
            ("three ways", shown(&[(1, 7), (2, 8), (3, 9)]), Verdict::Split),
            ("half and half", shown(&[(1, 7), (2, 7), (3, 8), (4, 8)]), Verdict::Split),
            ("half is no majority", shown(&[(1, 7), (2, 7), (3, 8), (4, 9)]), Verdict::Split),
            (
                "two odd ones of five, each in its way",
                shown(&[(1, 7), (2, 8), (3, 7), (4, 9), (5, 7)]),
                odd(7, &[2, 4]),
            ),
        ] {
            assert_eq!(judge(&all), expected, "{what}");
        }
        let books = BTreeMap::from([(1, digests(7, 1)), (2, digests(7, 2)), (3, digests(7, 1))]);
        let expected = Verdict::Odd { most: digests(7, 1), odd: BTreeSet::from([2]) };
        assert_eq!(judge(&books), expected, "books count like content");
    }

    #[test]
    fn the_common_index_is_one_that_all_in_reach_have() {
        for (own, others, expected) in [
            (63, vec![], 0),
            (64, vec![], 64),
            (200, vec![], 192),
            (200, vec![130, 199], 128),
            (200, vec![10], 0),
            // One that is far behind does not hold the others up.
            (10_000, vec![9_999, 100], 9_984),
            // One that is ahead of what is applied here changes nothing.
            (200, vec![500], 192),
        ] {
            let found = common_index(own, others.iter().copied());
            assert_eq!(found, expected, "{own} {others:?}");
        }
    }

    #[test]
    fn what_was_compared_is_not_asked_for_again() {
        let boots = BTreeMap::from([(1, 4), (2, 9), (3, 5)]);
        let reach = BTreeMap::from([(2, 130), (3, 120)]);
        let mut compared = Compared::default();
        compared.renew(128, &boots);
        assert_eq!(compared.to_ask(&reach), [2], "3 does not have that entry yet");
        compared.shown = BTreeMap::from([(1, (4, digests(7, 0))), (2, (9, digests(7, 0)))]);
        let reach = BTreeMap::from([(2, 130), (3, 130)]);
        compared.renew(128, &boots);
        assert_eq!(compared.to_ask(&reach), [3]);
        compared.shown.insert(3, (5, digests(8, 0)));
        compared.note(&BTreeSet::from([3]));
        assert_eq!(compared.to_ask(&reach), [0_u64; 0], "nothing is new");
        let odd = |members: &[NodeId], index| {
            Some(Difference { index, majority: true, members: members.to_vec() })
        };
        assert_eq!(compared.odd_ones(), odd(&[3], 128));
        // One that has started anew shows its state again, at the same index.
        compared.renew(128, &BTreeMap::from([(1, 4), (2, 10), (3, 5)]));
        assert_eq!(compared.to_ask(&reach), [2]);
        // At the next index all are asked. Who is not compared there stays named.
        compared.renew(192, &boots);
        let reach = BTreeMap::from([(2, 200)]);
        assert_eq!(compared.to_ask(&reach), [2]);
        compared.shown = BTreeMap::from([(1, (4, digests(1, 0))), (2, (9, digests(1, 0)))]);
        compared.note(&BTreeSet::new());
        assert_eq!(compared.odd_ones(), odd(&[3], 128));
        // It was compared equal, or removed.
        let mut removed = BTreeMap::clone(&boots);
        removed.remove(&3);
        compared.renew(192, &removed);
        assert_eq!(compared.odd_ones(), None);
    }

    #[test]
    fn only_a_difference_that_is_seen_here_stops_a_node() {
        let most = digests(7, 1);
        assert_eq!(odd_text(128, None, most), None, "nothing is kept of that index");
        assert_eq!(odd_text(128, Some(most), most), None);
        for (kept, named) in [
            (digests(8, 1), "(content)"),
            (digests(7, 2), "(books)"),
            (digests(8, 2), "(content and books)"),
        ] {
            let text = odd_text(128, Some(kept), most).unwrap();
            assert!(text.contains("entry 128") && text.contains(named), "{text}");
            assert!(text.contains("replace this member"), "{text}");
        }
    }
}
