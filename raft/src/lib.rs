//! The replicated log of nexus: openraft over QUIC on RocksDB, and the domain's state behind it.
//!
//! The only crate that names any of the three. Others see [`Cluster`]: propose a command and get
//! its answer once it is applied, read linearizably on any node, watch hints of what changed.
//!
//! In reading order: `types` (openraft's configuration), `wire` (our encodings), `store/` (log,
//! state, what is local), `machine` (applying), `snapshot/`, `transport/` and `identity/` (who
//! talks to whom), `rpc/` (Raft's messages over it), `propose`, `read`, `freshness`, `reach` and
//! `relay` (the way to the leader), `membership/`, `chores`, `compare`, `retention`, `upkeep` and
//! `renewal` (duties), `pace` (how far the slowest is), `open` and `cluster` (starting and the
//! handle).

mod book;
mod chores;
mod cluster;
#[cfg(test)]
mod cluster_tests;
mod compare;
mod core;
mod freshness;
pub mod identity;
mod link;
mod machine;
pub mod membership;
mod open;
mod pace;
mod propose;
mod reach;
mod read;
mod readiness;
mod renewal;
mod retention;
mod rpc;
mod selftest;
mod snapshot;
mod start;
mod status;
mod store;
mod timing;
pub mod transport;
mod types;
mod upkeep;
mod view_status;
mod wire;

pub use cluster::{Cluster, DigestAt, DigestReport, Invitation, Storage};
pub use compare::Difference;
pub use identity::{InviteCode, InviteError, InviteRole};
pub use machine::Hint;
pub use nexus_domain::command::{Role, Timing};
pub use open::{Config, Folder, OpenError, Start, give_up_join, inspect};
pub use pace::Slowest;
pub use propose::{Committed, ProposeError, Request};
pub use read::{Fresh, ReadError, Stale};
pub use renewal::CertificateLife;
pub use status::{MemberRole, MemberState, MemberStatus, Status};
pub use store::StoreError;
pub use store::state::View;
