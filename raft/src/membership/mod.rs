//! Who belongs to the cluster and who votes.
//!
//! The domain's state says who was admitted (rows, keys, wishes); Raft's membership says who
//! replicates and who votes. The planner brings the second after the first, one change at a time:
//! `plan.rs` decides (pure, golden scripts), `runner.rs` does, on the leader only. `join.rs` admits
//! machines (traps.md 16); `nodes.rs` notes how members are. Sleep, demotion and recovery are later
//! steps of the same planner.

pub(crate) mod join;
mod nodes;
pub mod plan;
pub(crate) mod runner;
