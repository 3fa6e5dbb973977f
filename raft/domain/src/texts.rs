//! What texts may be, wherever they stand.

use alloc::format;

use crate::limits;
use crate::rejection::Rejection;

/// Returns whether a text has at most so many characters; those of a long one are not all counted.
pub(crate) fn has_at_most(text: &str, chars_max: usize) -> bool {
    text.len() <= chars_max || text.chars().nth(chars_max).is_none()
}

/// Checks the text of a message, in a chat or between two.
pub(crate) fn check_message(text: &str) -> Result<(), Rejection> {
    if !text.is_empty() && has_at_most(text, limits::TEXT_CHARS_MAX) {
        return Ok(());
    }
    Err(Rejection::invalid("text", "must have 1 to 32,000 characters"))
}

/// Checks a name or title: one line, not empty.
pub(crate) fn check_line(field: &str, text: &str, chars_max: usize) -> Result<(), Rejection> {
    if !text.is_empty() && has_at_most(text, chars_max) && is_plain(text) {
        return Ok(());
    }
    let rule = format!("must have 1 to {chars_max} characters, no control characters among them");
    Err(Rejection::invalid(field, rule))
}

/// Returns whether a text has no control characters, which are the same for ever in Unicode.
pub(crate) fn is_plain(text: &str) -> bool {
    !text.chars().any(char::is_control)
}
