//! The daemon and the one binary.
//!
//! `nexus up` reads `config`, builds the `app` and serves `api`; each call of a tool goes
//! through `service`, which turns it into a command for the log or a query of the state. All
//! other verbs of `cli` are clients of the node that runs on this machine.
//!
//! Reading order: `cli`, `config`, `app`, `api`, `service`.

mod api;
mod app;
mod cli;
mod config;
mod service;
mod telemetry;

pub use cli::main;
