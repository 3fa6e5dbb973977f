//! Ids of meetings: `20260102030405-release-plan-000k`.
//!
//! The time of the start, up to 30 characters of the topic, and the entry's index, which no other
//! meeting has: two in one second differ, on every node alike. Only `A-Z a-z 0-9 - _` stand in one.

use alloc::format;
use alloc::string::String;

use crate::{calendar, limits};

/// Makes a meeting's id.
pub(super) fn make(at_millis: u64, topic: &str, index: u64) -> String {
    format!("{}-{}-{}", calendar::digits(at_millis), slug(topic), number(index))
}

/// Returns an id that somebody gave, short enough to be shown.
pub(super) fn shown(id: &str) -> &str {
    id.get(..id.floor_char_boundary(limits::MEETING_ID_BYTES_MAX)).unwrap_or_default()
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
