//! Who is away, noted in the state by the leader (traps.md 3): so that what waits for all members
//! stops waiting for one that has been gone for 30 days, whoever led meanwhile.

use std::collections::BTreeMap;
use std::time::Duration;

use nexus_domain::command::ClusterCommand;
use nexus_domain::{Actor, Command, NodeId};

use crate::core::Core;
use crate::propose::Request;
use crate::store::lock;

/// After this long without a word a member is noted as away: two entries for a laptop's night, none
/// for its lunch.
const AWAY_AFTER: Duration = Duration::from_secs(60 * 60);

/// What the leader has seen of a member: whether it is heard, and for how long that is so.
type Seen = (bool, Duration);

/// Returns whom to note next, and whether as away: who has been silent for long enough, or is heard
/// again. `members` tells whether each is noted as away already.
fn next_note(
    members: &BTreeMap<NodeId, bool>,
    seen: &BTreeMap<NodeId, Seen>,
) -> Option<(NodeId, bool)> {
    members.iter().find_map(|(node, noted)| {
        let (up, since) = seen.get(node)?;
        let away = !up && *since >= AWAY_AFTER;
        // One that is silent only since a moment stays as it was noted.
        let changed = if *noted { *up } else { away };
        changed.then_some((*node, away))
    })
}

impl Core {
    /// Notes in the state that a member is away, or is heard again; one at a time.
    pub(super) async fn note_presence(&self) {
        let known = self.state.view(|view| {
            let away = nexus_domain::cluster::away(view)?;
            let members = nexus_domain::cluster::members(view)?.into_iter();
            let noted = |id| away.iter().any(|(node, _)| *node == id);
            Ok(members.map(|member| (member.id, noted(member.id))).collect())
        });
        // The planner's look at the same state right behind this one tells of the fault.
        let Ok(members) = known else { return };
        let sightings = lock(&self.sightings).clone();
        let seen = sightings
            .into_iter()
            .map(|(node, sighting)| (node, (sighting.up, sighting.since.elapsed())))
            .collect();
        let Some((node, away)) = next_note(&members, &seen) else { return };
        let command = Command::Cluster(ClusterCommand::Presence { node, away });
        let noted = self.propose(Request { actor: Actor::Node, id: None, command }).await;
        match noted {
            Ok(_) => tracing::info!(node, away, "membership: presence noted"),
            Err(error) => tracing::debug!(node, away, "membership: presence not noted: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_noted_after_an_hour_and_at_once_when_they_return() {
        let (long, short) = (AWAY_AFTER, AWAY_AFTER.checked_sub(Duration::from_millis(1)).unwrap());
        let members = |noted: &[(NodeId, bool)]| noted.iter().copied().collect();
        let seen = |seen: &[(NodeId, Seen)]| seen.iter().copied().collect();
        for (what, noted, sighted, expected) in [
            ("nobody seen yet", members(&[(1, false), (2, true)]), seen(&[]), None),
            ("all there", members(&[(1, false)]), seen(&[(1, (true, long))]), None),
            ("silent for a while", members(&[(2, false)]), seen(&[(2, (false, short))]), None),
            (
                "silent for an hour",
                members(&[(1, false), (2, false)]),
                seen(&[(1, (true, long)), (2, (false, long))]),
                Some((2, true)),
            ),
            ("noted already", members(&[(2, true)]), seen(&[(2, (false, long))]), None),
            (
                "silent for a new leader",
                members(&[(2, true)]),
                seen(&[(2, (false, Duration::ZERO))]),
                None,
            ),
            (
                "heard again",
                members(&[(2, true)]),
                seen(&[(2, (true, Duration::ZERO))]),
                Some((2, false)),
            ),
            ("no member any more", members(&[]), seen(&[(2, (false, long))]), None),
        ] {
            assert_eq!(next_note(&noted, &sighted), expected, "{what}");
        }
    }
}
