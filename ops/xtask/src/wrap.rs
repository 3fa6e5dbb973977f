//! Breaks comment lines that are too wide, which rustfmt leaves alone.

use crate::tidy::COLUMNS_MAX;

/// Returns the source with every too wide comment line broken at a blank.
///
/// What is cut off goes to the front of the next line of the same paragraph, or becomes a line of
/// its own. Code blocks, tables and lines with a link stay as they are, and so does all code.
#[must_use]
pub fn comments(source: &str) -> String {
    let mut result = String::with_capacity(source.len());
    let mut inside_code = false;
    let mut carried: Option<Carried> = None;
    for line in source.lines() {
        let mut line = line.to_owned();
        if let Some(rest) = carried.take() {
            if continues(&line, &rest) {
                line =
                    format!("{}{} {}", rest.prefix, rest.words, line[rest.prefix.len()..].trim());
            } else {
                carried = push_broken(&mut result, rest.line());
                while let Some(rest) = carried.take() {
                    carried = push_broken(&mut result, rest.line());
                }
            }
        }
        if comment(&line).is_some_and(|(_, text)| text.starts_with("```")) {
            inside_code = !inside_code;
        }
        let keep = inside_code || comment(&line).is_none_or(|(_, text)| text.starts_with('|'));
        if keep || line.contains("://") {
            push(&mut result, &line);
        } else {
            carried = push_broken(&mut result, line);
        }
    }
    while let Some(rest) = carried.take() {
        carried = push_broken(&mut result, rest.line());
    }
    if source.ends_with('\n') || source.is_empty() {
        return result;
    }
    result.trim_end_matches('\n').to_owned()
}

/// What did not fit on a line.
#[derive(Debug)]
struct Carried {
    /// The blanks and the marker that the next line begins with, up to its words.
    prefix: String,
    words: String,
}

impl Carried {
    fn line(&self) -> String {
        format!("{}{}", self.prefix, self.words)
    }
}

/// Splits a comment line into what is before its text (`    /// `) and its text.
fn comment(line: &str) -> Option<(&str, &str)> {
    let marker = line.trim_start();
    let marker = ["//! ", "/// ", "// "].into_iter().find(|start| marker.starts_with(start))?;
    let start = line.len() - line.trim_start().len() + marker.len();
    let text = line.get(start..)?;
    Some((line.get(..start)?, text))
}

/// How the lines that follow in the same paragraph begin: a list item's are set in.
fn following(prefix: &str, text: &str) -> String {
    let words = text.trim_start();
    let set_in = text.len() - words.len();
    let item = words.starts_with("- ") || words.starts_with("* ");
    let number = words.trim_start_matches(|c: char| c.is_ascii_digit());
    let number = if number.len() < words.len() && number.starts_with(". ") {
        words.len() - number.len() + 2
    } else {
        0
    };
    format!("{prefix}{}", " ".repeat(set_in + if item { 2 } else { number }))
}

/// Whether a line goes on with the paragraph that the carried words come from.
fn continues(line: &str, rest: &Carried) -> bool {
    line.strip_prefix(&rest.prefix).is_some_and(|text| {
        text.starts_with(|c: char| c.is_alphanumeric() || "`\"'([".contains(c))
            && following(&rest.prefix, text) == rest.prefix
    })
}

/// Writes as much of the line as fits, and returns the rest.
fn push_broken(result: &mut String, line: String) -> Option<Carried> {
    let Some((prefix, text)) = comment(&line) else {
        push(result, &line);
        return None;
    };
    let limit = line.char_indices().nth(COLUMNS_MAX).map(|(at, _)| at);
    // The words begin after the blanks of a list item: those are no place to break.
    let first_word = prefix.len() + text.len() - text.trim_start().len();
    let cut = limit
        .and_then(|limit| line.get(..=limit).or_else(|| line.get(..limit))?.rfind(' '))
        .filter(|cut| *cut > following(prefix, text).len().max(first_word));
    let Some(cut) = cut else {
        push(result, &line);
        return None;
    };
    push(result, line[..cut].trim_end());
    Some(Carried { prefix: following(prefix, text), words: line[cut..].trim().to_owned() })
}

fn push(result: &mut String, line: &str) {
    result.push_str(line);
    result.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(count: usize) -> String {
        vec!["word"; count].join(" ")
    }

    #[test]
    fn what_fits_stays() {
        let source = format!("//! {}\nlet x = \"{}\";\n", words(19), words(40));
        assert_eq!(comments(&source), source);
    }

    #[test]
    fn the_rest_moves_to_the_next_line_of_the_paragraph() {
        let source = format!("    /// {} end\n    /// goes on\n    fn f() {{}}\n", words(18));
        let expected = format!("    /// {}\n    /// end goes on\n    fn f() {{}}\n", words(18));
        assert_eq!(comments(&source), expected);
    }

    #[test]
    fn the_rest_becomes_a_line_where_the_paragraph_ends() {
        let source = format!("// {} end\n// - item\n", words(19));
        assert_eq!(comments(&source), format!("// {}\n// end\n// - item\n", words(19)));
        let source = format!("//! {} end\n//!\n//! next\n", words(19));
        assert_eq!(comments(&source), format!("//! {}\n//! end\n//!\n//! next\n", words(19)));
    }

    #[test]
    fn items_are_set_in_and_long_lines_break_often() {
        let source = format!("/// - {}\n", words(45));
        for line in comments(&source).lines() {
            assert!(line.chars().count() <= COLUMNS_MAX, "{line}");
        }
        let source = format!("/// 1. {} end\n", words(19));
        assert_eq!(comments(&source), format!("/// 1. {}\n///    word end\n", words(18)));
    }

    #[test]
    fn code_blocks_and_tables_and_links_stay() {
        let wide = words(30);
        let source = format!(
            "//! ```\n//! {wide}\n//! ```\n//! | {wide} |\n//! https://example.org {wide}\n"
        );
        assert_eq!(comments(&source), source);
    }
}
