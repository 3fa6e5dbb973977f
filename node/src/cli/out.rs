//! The only place that prints: data to standard output, everything else to standard error.

use std::io::Write as _;

use comfy_table::{Table, presets};
use nexus_contract::{ApiError, ErrorCode};
use serde::Serialize;

/// Where a verb puts what it has to say.
#[derive(Debug)]
pub(crate) struct Out {
    json: bool,
}

impl Out {
    /// Makes it; with `json` answers and errors are JSON on standard output.
    pub(crate) fn new(json: bool) -> Self {
        Self { json }
    }

    /// Returns whether answers are JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Writes one line of data.
    pub(crate) fn line(&mut self, text: &str) {
        // A reader that has gone wants no more; there is nobody to tell.
        let mut stdout = std::io::stdout().lock();
        writeln!(stdout, "{text}").and_then(|()| stdout.flush()).ok();
    }

    /// Writes a value as JSON, in one document.
    pub(crate) fn value(&mut self, value: &impl Serialize) {
        match serde_json::to_string_pretty(value) {
            Ok(text) => self.line(&text),
            Err(error) => self.note(&format!("answer does not become JSON: {error}")),
        }
    }

    /// Writes a table; cells are cleaned of control characters, since text of others is in them.
    pub(crate) fn table(&mut self, header: &[&str], rows: Vec<Vec<String>>) {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header(header.iter().copied());
        for row in rows {
            table.add_row(row.iter().map(|cell| plain(cell)));
        }
        let text = table.to_string();
        for line in text.lines() {
            self.line(line.trim_end());
        }
    }

    /// Writes a remark that is not data.
    pub(crate) fn note(&mut self, text: &str) {
        writeln!(std::io::stderr().lock(), "{text}").ok();
    }

    /// Writes what to do next.
    pub(crate) fn hint(&mut self, text: &str) {
        self.note(&format!("hint: {text}"));
    }

    /// Writes what the user should know.
    pub(crate) fn warning(&mut self, text: &str) {
        self.note(&format!("warning: {text}"));
    }

    /// Writes why nothing was done, and what to do.
    pub(crate) fn refusal(&mut self, error: &ApiError) {
        if self.json {
            self.value(&error.to_json());
            return;
        }
        // These were written on this machine, and say themselves what to do.
        let local = matches!(
            error.code,
            ErrorCode::Internal | ErrorCode::BadRequest | ErrorCode::NodeUnreachable
        );
        if local {
            self.note(&format!("error: {}", error.message));
        } else {
            self.note(&format!("error: {} ({})", error.message, error.code));
        }
        if let Some(id) = &error.request_id {
            self.hint(&format!("call again with --request-id {id}: it has one effect"));
        } else if is_bare(error) {
            self.hint(error.code.advice());
        }
    }
}

/// Returns whether a refusal says what is wrong and not what to do. Most say both; advice behind
/// them would repeat it, or miss the point.
pub(super) fn is_bare(error: &ApiError) -> bool {
    let needs_more = matches!(
        error.code,
        ErrorCode::NotFound
            | ErrorCode::Conflict
            | ErrorCode::NotHere
            | ErrorCode::InviteEnded
            | ErrorCode::DiskFull
    );
    // What is not there is often said with what is.
    let says_more = error.code == ErrorCode::NotFound && !error.message.ends_with("does not exist");
    // What to do stands behind a semicolon.
    let says_how = error.code == ErrorCode::Conflict && error.message.contains("; ");
    needs_more && !says_more && !says_how
}

/// Returns a text without control characters, which could rewrite the terminal.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

/// Writes a time in the user's zone.
pub(crate) fn local_time(millis: u64) -> String {
    let stamp = i64::try_from(millis).ok().and_then(|m| jiff::Timestamp::from_millisecond(m).ok());
    match stamp {
        Some(stamp) => local(stamp),
        None => "an unknown time".to_owned(),
    }
}

/// Says of when a stale answer is: `as_of` is a time, or says why none is known.
pub(crate) fn knew(as_of: Option<&str>) -> String {
    let Some(as_of) = as_of else {
        return "this is the last that this node knows, and its age is not known".to_owned();
    };
    let shown = as_of.split(' ').map(local_text).collect::<Vec<_>>().join(" ");
    match as_of.parse::<jiff::Timestamp>() {
        Ok(_) => format!("this is what this node knew at {shown}"),
        Err(_words) => format!("this is the last that this node knows, and its age is {shown}"),
    }
}

/// Writes a time that the node gave in UTC in the user's zone; anything else as it is.
pub(crate) fn local_text(utc: &str) -> String {
    utc.parse::<jiff::Timestamp>().map_or_else(|_words| utc.to_owned(), local)
}

fn local(stamp: jiff::Timestamp) -> String {
    stamp
        .to_zoned_datetime(jiff::tz::TimeZone::system())
        .strftime("%Y-%m-%d %H:%M:%S %Z")
        .to_string()
}
