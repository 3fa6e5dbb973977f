//! Ids that callers give: of instances, of conversations, of calls, of projects and documents.
//!
//! Checked here for everybody who takes one, so that the command line refuses what the node would.

use crate::limits::{ID_CHARS_MAX, PROJECT_ID_CHARS_MAX};
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

/// Checks the id of a project or document, which is a part of paths and of addresses.
///
/// # Errors
/// As [`instance`].
pub fn project(field: &str, id: &str) -> Result<(), Violation> {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let fits = u32::try_from(id.len()).is_ok_and(|bytes| bytes <= PROJECT_ID_CHARS_MAX);
    let is = if id.is_empty() {
        "is empty".to_owned()
    } else if !fits {
        format!("has {} bytes", id.len())
    } else if let Some(bad) = id.chars().find(|letter| !allowed(*letter)) {
        format!("has {bad:?} in it")
    } else if matches!(id, "." | "..") {
        format!("is {id:?}, which is a folder in a path")
    } else {
        return Ok(());
    };
    let right = format!("give 1 to {PROJECT_ID_CHARS_MAX} of A-Z a-z 0-9 . _ -");
    Err(Violation::new(field, format!("{is}; {right}")))
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
        for good in ["web_shop", "a.b-C", "...", &"x".repeat(128)] {
            assert_eq!(project("newId", good), Ok(()));
        }
        for (bad, is) in [
            ("", "is empty"),
            ("a/b", "has '/' in it"),
            ("a\\b", "has '\\\\' in it"),
            ("ä", "has 'ä' in it"),
            ("..", "is \"..\", which is a folder in a path"),
            (".", "is \".\", which is a folder in a path"),
            (&"x".repeat(129), "has 129 bytes"),
        ] {
            let right = "give 1 to 128 of A-Z a-z 0-9 . _ -";
            assert_eq!(wrong(project("newId", bad)), format!("newId: {is}; {right}"));
        }
        for good in ["1", "s-1/c-1", "ü x"] {
            assert_eq!(request("requestId", good), Ok(()));
        }
        for bad in ["", " ", "a\0", "a\nb", &"x".repeat(201)] {
            let text = wrong(request("requestId", bad));
            assert!(text.contains("give 1 to 200 bytes of one line"), "{text}");
        }
    }
}
