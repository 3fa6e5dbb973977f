//! Times as JSON shows them: RFC 3339, UTC, milliseconds.

/// Writes milliseconds since 1970.
pub(crate) fn text(millis: u64) -> String {
    let stamp = i64::try_from(millis).ok().and_then(|m| jiff::Timestamp::from_millisecond(m).ok());
    format!("{:.3}", stamp.unwrap_or(jiff::Timestamp::MAX))
}

/// Reads what [`text`] wrote.
pub(crate) fn millis(text: &str) -> Option<u64> {
    let stamp: jiff::Timestamp = text.parse().ok()?;
    u64::try_from(stamp.as_millisecond()).ok()
}

/// Says until when a stale answer is known to have been true; where no time is known, that in
/// words, with the time of the node's last entry.
pub(crate) fn as_of(known: Option<u64>, last_entry: Option<u64>) -> String {
    if let Some(millis) = known {
        return text(millis);
    }
    let last = last_entry.map_or_else(|| "unknown time".to_owned(), text);
    format!("not known since this node's start; its last entry is of {last}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_answer_has_a_time_or_says_why_not() {
        assert_eq!(as_of(Some(7), Some(9)), "1970-01-01T00:00:00.007Z");
        let words = "not known since this node's start; its last entry is of ";
        assert_eq!(as_of(None, Some(9)), format!("{words}1970-01-01T00:00:00.009Z"));
        assert_eq!(as_of(None, None), format!("{words}unknown time"));
    }

    #[test]
    fn times_have_milliseconds_and_a_zone() {
        assert_eq!(text(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(text(1_764_561_600_007), "2025-12-01T04:00:00.007Z");
        assert!(text(u64::MAX).ends_with('Z'));
    }

    #[test]
    fn what_was_written_is_read() {
        for number in [0, 1, 1_764_561_600_007] {
            assert_eq!(millis(&text(number)), Some(number));
        }
        for wrong in ["", "2026-13-01T00:00:00.000Z", "1969-12-31T23:59:59.999Z", "yesterday"] {
            assert_eq!(millis(wrong), None, "{wrong}");
        }
    }
}
