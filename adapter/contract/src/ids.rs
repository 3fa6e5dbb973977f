//! Ids that callers give: of instances, of conversations, of calls.
//!
//! Checked here for everybody who takes one, so that the command line refuses what the node would.

use crate::limits::ID_CHARS_MAX;
use crate::text;
use crate::validate::Violation;

/// What an id of a caller is made of.
const ALLOWED: &str = "A-Z a-z 0-9 . _ @ # + = ~ -";

/// Checks the id of an instance.
///
/// # Errors
/// The field, what is wrong, and what would be right.
pub fn instance(field: &str, id: &str) -> Result<(), Violation> {
    if id.contains(':') {
        let what = format!(
            "has a : in it, which only conversations have; give 1 to {ID_CHARS_MAX} of {ALLOWED}"
        );
        return Err(Violation::new(field, what));
    }
    plain(field, id)
}

/// Checks the id of a conversation, as its client gives it.
///
/// # Errors
/// As [`instance`].
pub fn session(field: &str, id: &str) -> Result<(), Violation> {
    plain(field, id)
}

/// Checks the id of a call.
///
/// # Errors
/// As [`instance`].
pub fn request(field: &str, id: &str) -> Result<(), Violation> {
    let right = format!("give 1 to {ID_CHARS_MAX} bytes of one line, or leave it out");
    if id.is_empty() {
        return Err(Violation::new(field, format!("is empty; {right}")));
    }
    if !fits(id) {
        return Err(Violation::new(field, format!("has {} bytes; {right}", id.len())));
    }
    text::check_line(id).map_err(|rule| Violation::new(field, format!("{}; {right}", rule.is)))
}

fn plain(field: &str, id: &str) -> Result<(), Violation> {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || "._:@#+=~-".contains(letter);
    let is = if id.is_empty() {
        "is empty".to_owned()
    } else if !fits(id) {
        format!("has {} bytes", id.len())
    } else if let Some(bad) = id.chars().find(|letter| !allowed(*letter)) {
        format!("has {bad:?} in it")
    } else {
        return Ok(());
    };
    Err(Violation::new(field, format!("{is}; give 1 to {ID_CHARS_MAX} of {ALLOWED}")))
}

fn fits(id: &str) -> bool {
    u32::try_from(id.len()).is_ok_and(|bytes| bytes <= ID_CHARS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(outcome: Result<(), Violation>) -> String {
        outcome.unwrap_err().to_string()
    }

    #[test]
    fn ids_are_plain_and_short() {
        for good in ["a", "cli-user", "mcp-desk-0a1b-claude-code-n7", "a.b_c@d#e+f=g~h"] {
            assert_eq!(instance("id", good), Ok(()));
        }
        assert_eq!(session("id", "codex:0-1"), Ok(()));
        assert_eq!(wrong(instance("id", "")), format!("id: is empty; give 1 to 200 of {ALLOWED}"));
        assert!(
            wrong(instance("id", "a b")).starts_with("id: has ' ' in it; give 1 to 200 of A-Z")
        );
        assert!(wrong(instance("id", "a:b c")).starts_with("id: has a : in it, which only"));
        assert!(wrong(instance("id", &"x".repeat(201))).starts_with("id: has 201 bytes; give 1"));
        assert!(wrong(session("caller.sessionId", "ä")).starts_with("caller.sessionId: has 'ä'"));
        for good in ["1", "s-1/c-1", "ü x"] {
            assert_eq!(request("requestId", good), Ok(()));
        }
        for bad in ["", " ", "a\0", "a\nb", &"x".repeat(201)] {
            let text = wrong(request("requestId", bad));
            assert!(text.contains("give 1 to 200 bytes of one line"), "{text}");
        }
    }
}
