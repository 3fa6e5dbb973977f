//! Names that people type: their form, and the number behind a taken one.

use alloc::string::String;

use crate::rejection::Rejection;
use crate::store::Fault;

/// Checks a conversation's name or a member's: 1 to 48 characters of `A-Z a-z 0-9 . _ @ # -`.
pub(crate) fn check(field: &str, name: &str, chars_max: usize) -> Result<(), Rejection> {
    if (1..=chars_max).contains(&name.len()) && name.chars().all(is_allowed) {
        Ok(())
    } else {
        Err(Rejection::invalid(field, "must have 1 to 48 characters of A-Z a-z 0-9 . _ @ # -"))
    }
}

/// Returns a name made of any text: characters that a name cannot have become `-`.
#[must_use]
pub fn clean(text: &str) -> String {
    text.chars().map(|letter| if is_allowed(letter) { letter } else { '-' }).collect()
}

/// Returns whether a name may have this character.
pub(crate) fn is_allowed(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '@' | '#' | '-')
}

/// Returns the first name that is not taken: the wanted one, then `base` + mark + 2, 3, …, cut so
/// that the number fits; `None` when all numbers up to the bound are taken.
pub(crate) fn free(
    wanted: &str,
    base: &str,
    mark: char,
    chars_max: usize,
    mut taken: impl FnMut(&str) -> Result<bool, Fault>,
) -> Result<Option<String>, Fault> {
    let first: String = wanted.chars().take(chars_max).collect();
    if !taken(&first)? {
        return Ok(Some(first));
    }
    for number in 2..=crate::limits::NAME_TRIES_MAX {
        let suffix = alloc::format!("{mark}{number}");
        let room = chars_max.saturating_sub(suffix.len());
        let mut name: String = base.chars().take(room).collect();
        name.push_str(&suffix);
        if !taken(&name)? {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// Returns a name without the number that was put behind it.
pub(crate) fn base(name: &str, mark: char) -> &str {
    match name.rsplit_once(mark) {
        Some((base, number))
            if !base.is_empty()
                && !number.is_empty()
                && number.bytes().all(|digit| digit.is_ascii_digit()) =>
        {
            base
        }
        _ => name,
    }
}
