//! All rules, one after the other.

mod data;
mod docs;
mod manifests;
mod modules;
mod text;

use crate::{Finding, Tree};

/// The widest line. What rustfmt is told too, but it leaves comments and strings alone.
pub(crate) const COLUMNS_MAX: usize = 100;

/// Returns what is not in order, by path and line.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let rules: [fn(&Tree) -> Vec<Finding>; 11] = [
        text::sizes,
        text::leftovers,
        text::ignored_tests,
        text::foreign_words,
        text::no_std_domain,
        text::compiler_settings,
        modules::unreached,
        data::unread,
        manifests::check,
        docs::modules,
        docs::pages_and_limits,
    ];
    let mut findings: Vec<Finding> = rules.iter().flat_map(|rule| rule(tree)).collect();
    findings.sort();
    findings
}
