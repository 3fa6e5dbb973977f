//! Ids of meetings: `20260102030405-release-plan-000k`.
//!
//! The time of the start, up to 30 characters of the topic, and the entry's index, which no other
//! meeting has: two in one second differ, on every node alike. Only `A-Z a-z 0-9 - _` stand in one.

use alloc::format;
use alloc::string::String;

use crate::limits;

/// The last second of the year 9999: later ones are shown as this one.
const SECONDS_MAX: u64 = 253_402_300_799;

/// Makes a meeting's id.
pub(super) fn make(at_millis: u64, topic: &str, index: u64) -> String {
    format!("{}-{}-{}", date(at_millis), slug(topic), number(index))
}

/// Returns an id that somebody gave, short enough to be shown.
pub(super) fn shown(id: &str) -> &str {
    id.get(..id.floor_char_boundary(limits::MEETING_ID_BYTES_MAX)).unwrap_or_default()
}

/// Returns a time as 14 digits, in UTC.
fn date(at_millis: u64) -> String {
    let seconds = (at_millis / 1_000).min(SECONDS_MAX);
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}")
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

/// Returns what of a topic can stand in an id: its words of ASCII letters and digits; of one that
/// has none, its bytes in base64.
fn slug(topic: &str) -> String {
    let mut slug = String::new();
    let words = topic.split(|letter: char| !letter.is_ascii_alphanumeric());
    for word in words.filter(|word| !word.is_empty()) {
        if !slug.is_empty() {
            slug.push('-');
        }
        slug.push_str(&word.to_ascii_lowercase());
    }
    if slug.is_empty() {
        slug = base64(topic.as_bytes());
    }
    slug.truncate(limits::MEETING_SLUG_CHARS_MAX);
    String::from(slug.trim_end_matches('-'))
}

/// Returns the first bytes in base64 for file names (RFC 4648, section 5), without padding.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut out = String::new();
    for chunk in bytes.chunks(3).take(limits::MEETING_SLUG_CHARS_MAX) {
        let part = |at: usize| u32::from(chunk.get(at).copied().unwrap_or_default());
        let bits = (part(0) << 16) | (part(1) << 8) | part(2);
        for place in 0..=chunk.len() {
            let shift = 18u32.saturating_sub(u32::try_from(place).unwrap_or(3).saturating_mul(6));
            let six = usize::try_from((bits >> shift) & 63).unwrap_or_default();
            out.push(LETTERS.get(six).copied().map_or('-', char::from));
        }
    }
    out
}

/// Returns a number with digits and letters, four places at least.
fn number(number: u64) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut rest = number;
    let mut backwards = String::new();
    while rest > 0 || backwards.len() < 4 {
        let digit = usize::try_from(rest % 36).unwrap_or_default();
        backwards.push(DIGITS.get(digit).copied().map_or('-', char::from));
        rest /= 36;
    }
    backwards.chars().rev().collect()
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
            assert_eq!(date(seconds * 1_000), expected);
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
    fn topics_become_parts_of_ids() {
        for (topic, expected) in [
            ("Release plan", "release-plan"),
            ("  ../etc/passwd?&#%  ", "etc-passwd"),
            ("Überblick 2", "berblick-2"),
            ("\u{8ba8}\u{8bba}", "6K6o6K66"),
            ("\u{e9}", "w6k"),
            ("!", "IQ"),
            ("exactly thirty characters long here", "exactly-thirty-characters-long"),
            ("a word cut where its dash is a bit", "a-word-cut-where-its-dash-is-a"),
        ] {
            assert_eq!(slug(topic), expected);
        }
        assert_eq!(slug(&"\u{8ba8}".repeat(200)).len(), 30);
        assert_eq!(slug(&"x".repeat(200)).len(), 30);
    }

    #[test]
    fn numbers_are_short_and_differ() {
        assert_eq!(number(0), "0000");
        assert_eq!(number(35), "000z");
        assert_eq!(number(36 * 36 * 36 * 36 - 1), "zzzz");
        assert_eq!(number(36 * 36 * 36 * 36), "10000");
        assert_eq!(number(u64::MAX), "3w5e11264sgsf");
        let longest = make(u64::MAX, &"x".repeat(200), u64::MAX);
        assert!(longest.len() <= limits::MEETING_ID_BYTES_MAX, "{longest}");
    }
}
