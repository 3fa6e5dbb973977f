//! What families promise beyond single situations: what their commands and queries cost, however
//! much there is, and that no message is lost.
//!
//! Rows are counted, not times: the counts are the same on every machine.

#![expect(clippy::unwrap_used, reason = "a test stops where it fails, helpers included")]

#[path = "families/cluster.rs"]
mod cluster;
#[path = "families/mail.rs"]
mod mail;
#[path = "families/meetings.rs"]
mod meetings;
#[path = "families/projects.rs"]
mod projects;
#[path = "families/work.rs"]
mod work;
