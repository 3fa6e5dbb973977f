//! How members are, noted in the state by the leader (traps.md 20): so that every node shows the
//! same, mail counts only the hours in which its reader's machine was awake, and what waits for all
//! members stops waiting for one that has been gone for 30 days, whoever led meanwhile.
//!
//! Up is noted at once, down after ten seconds in which the member did not acknowledge, and never
//! within ten seconds of having been noted as up: a link that comes and goes costs two entries each
//! time, and a cluster in which nothing changes none. Nobody says yet that it goes to sleep; one
//! that is noted as asleep stays so until it is heard.

use std::collections::BTreeMap;
use std::time::Duration;

use nexus_domain::command::ConversationCommand;
use nexus_domain::command::presence::{NodeChange, NodeState};
use nexus_domain::conversations::Noted;
use nexus_domain::{Actor, Command, NodeId};

use super::runner::UP_WITHIN;
use crate::core::{Core, Sighting};
use crate::propose::Request;
use crate::store::lock;

/// How long a member is silent, or was noted as up, before it is noted as down.
const DOWN_AFTER: Duration = UP_WITHIN;

/// What the leader has seen of a member.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// Whether it acknowledged within [`UP_WITHIN`].
    up: bool,
    /// Whether this leader ever heard it: then its silence is as old as that already.
    heard: bool,
    /// For how long `up` is as it is.
    since: Duration,
}

impl From<Sighting> for Seen {
    fn from(sighting: Sighting) -> Self {
        let Sighting { up, heard, since, .. } = sighting;
        Self { up, heard, since: since.elapsed() }
    }
}

/// Returns what is to be noted of a member, if it is anything else than what was.
fn next(seen: Seen, noted: Option<Noted>, tick: u64) -> Option<NodeState> {
    let state = noted.map_or(NodeState::Up, |noted| noted.state);
    let silent = !seen.up && (seen.heard || seen.since >= DOWN_AFTER);
    let stands = noted
        .is_none_or(|noted| u128::from(tick.saturating_sub(noted.since)) >= DOWN_AFTER.as_millis());
    match state {
        NodeState::Up => (silent && stands).then_some(NodeState::Down),
        NodeState::Asleep | NodeState::Down => seen.up.then_some(NodeState::Up),
    }
}

/// Returns everything that is to be noted of the members. Of one that has not been seen yet it is
/// not known.
fn changes(
    members: impl IntoIterator<Item = NodeId>,
    seen: &BTreeMap<NodeId, Seen>,
    noted: &BTreeMap<NodeId, Noted>,
    tick: u64,
) -> Vec<NodeChange> {
    let change = |node: NodeId| {
        let state = next(*seen.get(&node)?, noted.get(&node).copied(), tick)?;
        Some(NodeChange { node, state })
    };
    members.into_iter().filter_map(change).collect()
}

impl Core {
    /// Notes in the state how members are, when it is not what stands there.
    pub(super) async fn note_nodes(&self) {
        let (tick, _) = self.stamp();
        let known = self.state.view(|view| {
            let members = nexus_domain::cluster::members(view)?;
            Ok((members, nexus_domain::conversations::nodes(view)?))
        });
        // The planner's look at the same state right behind this one tells of the fault.
        let Ok((members, noted)) = known else { return };
        let noted = noted.into_iter().map(|noted| (noted.node, noted)).collect();
        let seen = lock(&self.sightings).clone();
        let seen = seen.into_iter().map(|(node, sighting)| (node, sighting.into())).collect();
        // One that never started is joining, and neither up nor down.
        let started = members.into_iter().filter(|member| member.boot > 0).map(|member| member.id);
        let changes = changes(started, &seen, &noted, tick);
        if changes.is_empty() {
            return;
        }
        let command = ConversationCommand::Nodes { changes: changes.clone() };
        let command = Command::Conversation(command);
        let proposed = self.propose(Request { actor: Actor::Node, id: None, command }).await;
        match proposed {
            Ok(_) => tracing::info!(?changes, "membership: states noted"),
            Err(error) => tracing::debug!(?changes, "membership: states not noted: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UP: NodeState = NodeState::Up;
    const ASLEEP: NodeState = NodeState::Asleep;
    const DOWN: NodeState = NodeState::Down;

    fn seen(up: bool, heard: bool, millis: u64) -> Seen {
        Seen { up, heard, since: Duration::from_millis(millis) }
    }

    #[test]
    fn silence_is_noted_after_ten_seconds_and_a_return_at_once() {
        let noted = |state, since| Some(Noted { node: 2, state, since });
        for (what, seen, noted, expected) in [
            ("there", seen(true, true, 0), None, None),
            ("noted as there", seen(true, true, 99_999), noted(UP, 0), None),
            // The silence of one that was heard is ten seconds old when it is seen.
            ("fell silent", seen(false, true, 0), None, Some(DOWN)),
            ("fell silent before", seen(false, true, 60_000), noted(DOWN, 0), None),
            ("not heard by a new leader", seen(false, false, 9_999), None, None),
            ("not heard for long by a new leader", seen(false, false, 10_000), None, Some(DOWN)),
            ("noted before by another leader", seen(false, false, 0), noted(DOWN, 0), None),
            ("heard again", seen(true, true, 0), noted(DOWN, 19_999), Some(UP)),
            ("has just started", seen(false, true, 60_000), noted(UP, 10_001), None),
            ("started and fell silent", seen(false, true, 60_000), noted(UP, 10_000), Some(DOWN)),
            ("sleeps", seen(false, true, 60_000), noted(ASLEEP, 0), None),
            ("woke", seen(true, true, 0), noted(ASLEEP, 0), Some(UP)),
        ] {
            assert_eq!(next(seen, noted, 20_000), expected, "{what}");
        }
    }

    #[test]
    fn only_members_that_were_seen_are_noted() {
        let sightings = [(1, seen(true, true, 0)), (2, seen(false, true, 0))];
        let sightings = sightings.into_iter().chain([(9, seen(false, true, 0))]).collect();
        let noted = BTreeMap::from([(1, Noted { node: 1, state: DOWN, since: 0 })]);
        let expected =
            [NodeChange { node: 1, state: UP }, NodeChange { node: 2, state: DOWN }].to_vec();
        assert_eq!(changes([1, 2, 3], &sightings, &noted, 20_000), expected);
    }
}
