//! Times as people read them, out of milliseconds since 1970: always UTC, the same on every node.
//!
//! The state keeps numbers; this is for what is read: ids, and texts of refusals.

use alloc::format;
use alloc::string::String;

/// The last second of the year 9999: later ones are shown as this one.
const SECONDS_MAX: u64 = 253_402_300_799;

/// A time, split as a calendar and a clock show it.
struct Moment {
    date: (u64, u64, u64),
    hour: u64,
    minute: u64,
    second: u64,
}

/// Returns a time as 14 digits: `20260102030405`.
pub(crate) fn digits(at_millis: u64) -> String {
    let Moment { date: (year, month, day), hour, minute, second } = moment(at_millis);
    format!("{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}")
}

/// Returns a time as JSON shows it (RFC 3339): `2026-01-02T03:04:05.678Z`.
pub(crate) fn text(at_millis: u64) -> String {
    let Moment { date: (year, month, day), hour, minute, second } = moment(at_millis);
    let millis = at_millis % 1_000;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

fn moment(at_millis: u64) -> Moment {
    let seconds = (at_millis / 1_000).min(SECONDS_MAX);
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    Moment { date: civil(days), hour: rest / 3_600, minute: rest / 60 % 60, second: rest % 60 }
}

/// Returns the date of a day since 1970, counted in years that begin in March, so that the odd day
/// of a leap year is the last one.
fn civil(days: u64) -> (u64, u64, u64) {
    // From the first of March of the year 0; 400 years have 146,097 days.
    let days = days.saturating_add(719_468);
    let (era, of_era) = (days / 146_097, days % 146_097);
    // Every fourth year is longer, every hundredth is not, every four-hundredth is.
    let even = of_era
        .saturating_add(of_era / 36_524)
        .saturating_sub(of_era / 1_460)
        .saturating_sub(of_era / 146_096);
    let year_of_era = even / 365;
    let before = year_of_era
        .saturating_mul(365)
        .saturating_add(year_of_era / 4)
        .saturating_sub(year_of_era / 100);
    let of_year = of_era.saturating_sub(before);
    let shifted = of_year.saturating_mul(5).saturating_add(2) / 153;
    let day =
        of_year.saturating_sub(shifted.saturating_mul(153).saturating_add(2) / 5).saturating_add(1);
    let month = if shifted < 10 { shifted.saturating_add(3) } else { shifted.saturating_sub(9) };
    let year = era.saturating_mul(400).saturating_add(year_of_era);
    (year.saturating_add(u64::from(month <= 2)), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_the_calendars() {
        // Seconds and dates as `date -u` gives them.
        for (seconds, expected) in [
            (0, "19700101000000"),
            (951_782_399, "20000228235959"),
            (951_782_400, "20000229000000"),
            (951_868_800, "20000301000000"),
            (1_709_164_800, "20240229000000"),
            (1_735_689_599, "20241231235959"),
            (4_107_542_399, "21000228235959"),
            (4_107_542_400, "21000301000000"),
            (SECONDS_MAX, "99991231235959"),
            (u64::MAX / 1_000, "99991231235959"),
        ] {
            assert_eq!(digits(seconds * 1_000), expected);
        }
    }

    #[test]
    fn every_day_follows_the_one_before() {
        let mut last = civil(0);
        for day in 1..150_000 {
            let next = civil(day);
            let (year, month, of_month) = last;
            let follows = next == (year, month, of_month + 1)
                || (next == (year, month + 1, 1) && of_month >= 28)
                || (next == (year + 1, 1, 1) && (month, of_month) == (12, 31));
            assert!(follows, "{next:?} after {last:?}");
            last = next;
        }
    }

    #[test]
    fn times_have_milliseconds_and_a_zone() {
        // As the nodes' services write them with a library.
        for (millis, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (1_764_561_600_007, "2025-12-01T04:00:00.007Z"),
            (951_868_799_999, "2000-02-29T23:59:59.999Z"),
        ] {
            assert_eq!(text(millis), expected);
        }
        assert!(text(u64::MAX).starts_with("9999-12-31T23:59:59."));
    }
}
