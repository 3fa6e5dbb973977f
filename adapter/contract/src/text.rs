//! Texts that people and models write: what each of them must be, wherever it is given.
//!
//! A text that shows nothing is a slip, so it is refused. Control characters can rewrite a terminal
//! or end a line of a log, and no text needs them; they are refused, not taken out, because a text
//! is kept as it was written or not at all.

use crate::validate::Violation;

/// Why a text is none of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// What is wrong with it.
    pub is: String,
    /// What would be right, to stand behind a noun.
    pub right: &'static str,
}

/// Checks a text of one or more lines; an empty one is for its length to refuse.
///
/// # Errors
/// It is only white space, or has a control character other than a line break or a tab.
pub fn check(text: &str) -> Result<(), Rule> {
    let breaks = |letter: char| matches!(letter, '\n' | '\r' | '\t');
    if let Some(bad) = text.chars().find(|letter| letter.is_control() && !breaks(*letter)) {
        return Err(Rule {
            is: format!("has the control character U+{:04X} in it", u32::from(bad)),
            right: "without control characters other than line breaks and tabs",
        });
    }
    if !text.is_empty() && text.chars().all(is_blank) {
        return Err(Rule { is: "is only white space".to_owned(), right: "that says something" });
    }
    Ok(())
}

/// Checks a text of one line.
///
/// # Errors
/// As [`check`], and for a line break or a tab.
pub fn check_line(text: &str) -> Result<(), Rule> {
    check(text)?;
    if text.contains(char::is_control) {
        return Err(Rule {
            is: "has a line break or a tab in it".to_owned(),
            right: "of one line",
        });
    }
    Ok(())
}

/// Checks the text of a field that is a part of one line: of a list, a notice, a path.
///
/// # Errors
/// As [`check_line`], with the field.
pub fn line(field: &str, text: &str) -> Result<(), Violation> {
    check_line(text)
        .map_err(|rule| Violation::new(field, format!("{}; give a text {}", rule.is, rule.right)))
}

/// Checks a text whose bound is in bytes, as it is kept.
///
/// # Errors
/// It has more.
pub fn bytes(field: &str, text: &str, bytes_max: u32) -> Result<(), Violation> {
    if u32::try_from(text.len()).is_ok_and(|bytes| bytes <= bytes_max) {
        return Ok(());
    }
    let what = format!("has {} bytes; give at most {bytes_max} bytes", text.len());
    Err(Violation::new(field, what))
}

/// Returns whether a character shows nothing and moves nothing but the place of the next one.
fn is_blank(letter: char) -> bool {
    letter.is_whitespace() || matches!(letter, '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_say_something_without_control_characters() {
        for good in ["", "x", " x ", "a\nb\r\n\tc", "ü", "👍", "a\u{200d}b", "\u{202e}x"] {
            assert_eq!(check(good), Ok(()), "{good:?}");
        }
        for blank in [" ", "\n", " \t\r\n", "\u{a0}\u{2003}", "\u{200b}", "\u{feff}"] {
            assert_eq!(check(blank).unwrap_err().is, "is only white space", "{blank:?}");
        }
        for (bad, name) in [
            ("a\0", "U+0000"),
            ("\u{1b}[31m", "U+001B"),
            ("x\u{7f}", "U+007F"),
            ("\u{85}", "U+0085"),
        ] {
            assert!(check(bad).unwrap_err().is.contains(name), "{bad:?}");
        }
        assert_eq!(check_line("one line"), Ok(()));
        assert!(check_line("two\nlines").is_err() && check_line(" ").is_err());
    }
}
