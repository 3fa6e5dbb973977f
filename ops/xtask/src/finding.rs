//! What tidy has to say about a place.

use std::fmt;

/// One broken rule at one place, with the way out.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Finding {
    /// The file, from the root of the checkout.
    pub path: String,
    /// The line, from 1; 1 also where the whole file is meant.
    pub line: usize,
    /// What is wrong.
    pub wrong: String,
    /// What to do instead.
    pub instead: String,
}

impl Finding {
    /// Makes a finding.
    pub fn new(
        path: &str,
        line: usize,
        wrong: impl Into<String>,
        instead: impl Into<String>,
    ) -> Self {
        Self { path: path.to_owned(), line, wrong: wrong.into(), instead: instead.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.path, self.line, self.wrong, self.instead)
    }
}
