//! How far the slowest member that is up has come, for whoever brings much (traps.md 21): the log
//! is one queue, and what fills it faster than a member takes it keeps that member from all else.

use crate::cluster::Cluster;
use crate::status::{MemberState, MemberStatus, Status};

/// Who of the members that are up lacks most of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slowest {
    /// Its name.
    pub name: String,
    /// Bytes of entries that it lacks: up to half a MiB too many, never too few.
    pub bytes: u64,
}

impl Cluster {
    /// Returns who of the members that are up lacks most of the log, as the leader sees it; `None`
    /// when no leader answers.
    pub async fn slowest(&self) -> Option<Slowest> {
        let status = self.core.status().await;
        let (member, index) = slowest(&status)?;
        let bytes = self.core.log.bytes_behind(index);
        Some(Slowest { name: member.name.clone(), bytes })
    }
}

/// Returns who is slowest, and up to which index it has the log for certain.
fn slowest(status: &Status) -> Option<(&MemberStatus, u64)> {
    if status.stale {
        return None;
    }
    let up = status.members.iter().filter(|member| member.state == MemberState::Up);
    let member = up.max_by_key(|member| member.lag)?;
    // What it lags behind is the end of the leader's log, which no status tells and which is never
    // before what is applied there.
    Some((member, status.applied.saturating_sub(member.lag)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::MemberRole;

    fn member(name: &str, state: MemberState, lag: u64) -> MemberStatus {
        MemberStatus {
            id: 1,
            name: name.into(),
            role: MemberRole::Voter,
            state,
            addresses: Vec::new(),
            version: String::new(),
            lag,
            since: 0,
        }
    }

    #[test]
    fn who_is_away_holds_nobody_up() {
        let mut status = Status {
            applied: 100,
            members: vec![
                member("leads", MemberState::Up, 0),
                member("slow", MemberState::Up, 30),
                member("quick", MemberState::Up, 2),
                member("asleep", MemberState::Asleep, 99),
                member("down", MemberState::Down, 98),
                member("new", MemberState::Joining, 97),
            ],
            ..Status::default()
        };
        let found = slowest(&status).map(|(member, index)| (member.name.as_str(), index));
        assert_eq!(found, Some(("slow", 70)));
        status.stale = true;
        assert_eq!(slowest(&status), None);
    }
}
