//! Every tool of the contract, served or not: what it takes, what it refuses, what it answers.
//!
//! The bad arguments are made from each tool's own schema and one right call that gives every
//! field, so a new field is tested when it is there; a test holds that none is left out.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod inputs;
mod results;
mod rules;

use nexus_contract::{ToolSpec, catalog};

fn spec(name: &str) -> &'static ToolSpec {
    let found = catalog::whole().iter().find(|tool| tool.name == name);
    found.unwrap_or_else(|| panic!("no tool {name}"))
}
