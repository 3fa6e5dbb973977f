//! Timing profiles, and what follows from them.
//!
//! A follower waits `lease (= election max) + random(election min..max)` after the last heartbeat,
//! then come two rounds of calls with an fsync: `bound` is what a failover takes at worst.

use std::time::Duration;

use nexus_domain::command::Timing;

/// The numbers of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Profile {
    pub(crate) heartbeat_millis: u64,
    pub(crate) election_min_millis: u64,
    pub(crate) election_max_millis: u64,
    /// How long a failover takes at worst.
    pub(crate) failover: Duration,
}

/// Returns the numbers of a profile.
pub(crate) const fn profile(timing: Timing) -> Profile {
    match timing {
        Timing::Wired => Profile {
            heartbeat_millis: 100,
            election_min_millis: 400,
            election_max_millis: 600,
            failover: Duration::from_millis(1500),
        },
        Timing::Wifi => Profile {
            heartbeat_millis: 250,
            election_min_millis: 1000,
            election_max_millis: 1500,
            failover: Duration::from_millis(3000),
        },
        Timing::Relaxed => Profile {
            heartbeat_millis: 500,
            election_min_millis: 1500,
            election_max_millis: 2500,
            failover: Duration::from_millis(5000),
        },
    }
}

impl Profile {
    /// How long reads wait for a quorum, and writes for a leader, before they say that there is
    /// none.
    pub(crate) fn patience(&self) -> Duration {
        self.failover.saturating_add(Duration::from_secs(1))
    }

    /// How long a leader may give no sign of life before another way to it is looked for.
    ///
    /// As long as a follower waits for a heartbeat: less than a failover takes, by the time that
    /// finding a relay needs.
    pub(crate) fn silence(&self) -> Duration {
        Duration::from_millis(self.election_max_millis)
    }

    /// How long one question to the leader may take: time to miss it, find a relay, and ask again.
    pub(crate) fn round(&self) -> Duration {
        self.silence().saturating_add(Duration::from_millis(1500))
    }

    /// Returns openraft's configuration.
    ///
    /// # Errors
    /// When openraft finds the numbers contradictory: a mistake in this file.
    pub(crate) fn config(&self, cluster: &str) -> Result<openraft::Config, openraft::ConfigError> {
        let defaults = openraft::Config::default();
        openraft::Config {
            cluster_name: cluster.to_owned(),
            heartbeat_interval: self.heartbeat_millis,
            election_timeout_min: self.election_min_millis,
            election_timeout_max: self.election_max_millis,
            enable_pre_vote: Some(true),
            // Two election periods: without it a partial partition can keep everybody from
            // electing.
            quorum_loss_probe_interval: Some(self.election_max_millis.saturating_mul(2)),
            // A restarted leader elects itself anew instead of going on with an old commit index.
            enable_leader_restore: Some(false),
            // Snapshots and purging are triggered by `upkeep`.
            snapshot_policy: openraft::SnapshotPolicy::Never,
            max_in_snapshot_log_to_keep: u64::MAX,
            // Snapshots have a limit per chunk of their own.
            install_snapshot_timeout: 60_000,
            // Four times the bound of waiting proposals: a stalled apply never blocks heartbeats.
            state_machine_channel_size: Some(4 * crate::propose::WAITING_MAX),
            ..defaults
        }
        .validate()
    }
}
