//! Which log may go, and when a snapshot is due (traps.md 18): values in, a value out.
//!
//! Log is kept for the slowest known member, up to [`KEEP_BYTES_MAX`] and up to [`KEEP_TICKS`], and
//! goes only as far as a snapshot on this disk reaches. So a member that was away for longer gets a
//! snapshot instead, and log that no snapshot covers stays, whatever its age: less than
//! [`SNAPSHOT_LOG_BYTES`] of it, and one transfer saved.

use std::time::Duration;

/// Log bytes behind the newest snapshot that make another one due.
pub(crate) const SNAPSHOT_LOG_BYTES: u64 = if cfg!(test) { 1 << 20 } else { 64 << 20 };
/// The least time between two snapshots, and between two tries to make one.
pub(crate) const SNAPSHOT_PAUSE: Duration =
    if cfg!(test) { Duration::from_millis(300) } else { Duration::from_secs(60) };
/// Log that is kept for members at most.
pub(crate) const KEEP_BYTES_MAX: u64 = 512 << 20;
/// For how long log is kept for members: seven days of the cluster's life.
pub(crate) const KEEP_TICKS: u64 = 7 * 24 * 60 * 60 * 1000;
/// Entries that are purged at once at least: each purge is a range tombstone.
const PURGE_ENTRIES_MIN: u64 = 1000;

/// What is known when somebody asks which log may go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    /// The index up to which entries are gone.
    pub(crate) purged: u64,
    /// The index of the newest snapshot on this disk; 0: none.
    pub(crate) newest: u64,
    /// That of the snapshot before it: from there a follower keeps its log, since it does not know
    /// how far the others are, and may have to lead them.
    pub(crate) before: u64,
    /// Up to where the slowest member has the log; `None` when this node does not lead.
    pub(crate) slowest: Option<u64>,
    /// The last entry behind which the log is as long as it may be.
    pub(crate) beyond: u64,
    /// The last entry that is older than log may be.
    pub(crate) aged: u64,
}

/// Returns up to where the log may be purged, if that is worth it.
pub(crate) fn purge_upto(known: &Known) -> Option<u64> {
    let needed = known.slowest.unwrap_or(known.before);
    let upto = needed.max(known.beyond).max(known.aged).min(known.newest);
    (upto >= known.purged.saturating_add(PURGE_ENTRIES_MIN)).then_some(upto)
}

/// Returns whether a snapshot is due: so many bytes lie behind the newest one that exists, and it,
/// or the last try, is so long ago (`None`: neither was since the start).
///
/// A try that came to nothing leaves the bytes where they are, so it is made again; a restart is
/// neither, so a node that starts every minute has its snapshots all the same.
pub(crate) fn snapshot_due(bytes_behind: u64, quiet: Option<Duration>) -> bool {
    bytes_behind >= SNAPSHOT_LOG_BYTES && quiet.is_none_or(|quiet| quiet >= SNAPSHOT_PAUSE)
}

/// Returns the last index of `(after, upto]` whose entry has a tick below `limit`, by halving;
/// `after` when there is none. `tick_at` tells the tick of an entry; one without says nothing, and
/// counts as young.
///
/// # Errors
/// What `tick_at` says.
pub(crate) fn last_older<E>(
    after: u64,
    upto: u64,
    limit: u64,
    tick_at: impl Fn(u64) -> Result<Option<u64>, E>,
) -> Result<u64, E> {
    let (mut old, mut young) = (after, upto.saturating_add(1));
    while young.saturating_sub(old) > 1 {
        let middle = old.midpoint(young);
        if tick_at(middle)?.is_some_and(|tick| tick < limit) {
            old = middle;
        } else {
            young = middle;
        }
    }
    Ok(old)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// A leader whose members all have everything, with a snapshot at 9,000.
    const LEADER: Known = Known {
        purged: 1_000,
        newest: 9_000,
        before: 5_000,
        slowest: Some(12_000),
        beyond: 0,
        aged: 0,
    };

    #[test]
    fn log_is_kept_for_those_who_need_it_and_within_its_bounds() {
        let cases: &[(&str, Known, Option<u64>)] = &[
            ("all have it: up to the snapshot", LEADER, Some(9_000)),
            ("one sleeps: from where it is", Known { slowest: Some(4_000), ..LEADER }, Some(4_000)),
            ("one was never heard of: all", Known { slowest: Some(0), ..LEADER }, None),
            (
                "a follower knows nobody: from the snapshot before",
                Known { slowest: None, ..LEADER },
                Some(5_000),
            ),
            (
                "one sleeps, and the log is too long: what is beyond goes",
                Known { slowest: Some(1_500), beyond: 7_000, ..LEADER },
                Some(7_000),
            ),
            (
                "one sleeps for more than seven days: what is older goes",
                Known { slowest: Some(1_500), aged: 6_000, ..LEADER },
                Some(6_000),
            ),
            (
                "both bounds: the one that takes more",
                Known { slowest: Some(1_500), beyond: 7_000, aged: 8_000, ..LEADER },
                Some(8_000),
            ),
            (
                "a follower's old log goes as well",
                Known { slowest: None, aged: 8_500, ..LEADER },
                Some(8_500),
            ),
            (
                "never beyond the snapshot, however old or long",
                Known { slowest: Some(1_500), beyond: 20_000, aged: 30_000, ..LEADER },
                Some(9_000),
            ),
            ("no snapshot: nothing", Known { newest: 0, aged: 30_000, ..LEADER }, None),
            ("too little to be worth it", Known { slowest: Some(1_999), ..LEADER }, None),
            ("just enough", Known { slowest: Some(2_000), ..LEADER }, Some(2_000)),
            ("all is gone already", Known { purged: 9_000, ..LEADER }, None),
        ];
        for (what, known, expected) in cases {
            assert_eq!(purge_upto(known), *expected, "{what}");
        }
    }

    #[test]
    fn a_snapshot_is_due_by_bytes_and_not_more_often_than_the_pause() {
        let (enough, little) = (SNAPSHOT_LOG_BYTES, SNAPSHOT_LOG_BYTES - 1);
        let soon = SNAPSHOT_PAUSE.checked_sub(Duration::from_millis(1));
        for (what, bytes, quiet, expected) in [
            ("right after a start", enough, None, true),
            ("little log", little, None, false),
            ("little log, long ago", little, Some(SNAPSHOT_PAUSE * 100), false),
            ("one was made or tried just now", enough, soon, false),
            ("the pause is over", enough, Some(SNAPSHOT_PAUSE), true),
        ] {
            assert_eq!(snapshot_due(bytes, quiet), expected, "{what}");
        }
    }

    #[test]
    fn the_age_of_log_is_found_by_its_ticks() {
        // One entry every ten ticks; each fourth has no tick and says that of the next.
        let tick_at = |index: u64| -> Result<Option<u64>, Infallible> {
            Ok(Some(10 * if index.is_multiple_of(4) { index + 1 } else { index }))
        };
        for after in 0..40 {
            for upto in after..40 {
                for limit in (0..420).step_by(7) {
                    let found = last_older(after, upto, limit, tick_at).unwrap();
                    let older = |index: &u64| tick_at(*index).unwrap().unwrap() < limit;
                    let expected = (after + 1..=upto).rev().find(older).unwrap_or(after);
                    assert_eq!(found, expected, "of ({after}, {upto}], limit {limit}");
                }
            }
        }
        // Nothing is known of the times in the middle: what is said to be old is old.
        let gap = |index: u64| -> Result<Option<u64>, Infallible> {
            Ok((!(10..30).contains(&index)).then_some(index))
        };
        assert_eq!(last_older(0, 40, 35, gap), Ok(9));
        let refuses = |_index| Err("torn");
        assert_eq!(last_older(0, 9, 5, refuses), Err("torn"));
        assert_eq!(last_older(9, 9, 5, refuses), Ok(9));
    }
}
