//! What the maintenance of the chat must refuse.

use nexus_contract::ErrorCode::InvalidArguments;
use serde_json::json;

use super::table::{Stage, Table};

/// The tools that are held here.
pub(crate) const TOOLS: &[&str] = &["host_maintenance"];

#[tokio::test(flavor = "multi_thread")]
async fn maintenance_is_refused_in_words() {
    let mut stage = Stage::new().await;
    let missing = &["count: is missing; give an integer, at least 1, to prune"];
    let nothing = &["count: is 0; give an integer, at least 1, to prune"];
    let own = [Table::of("host_maintenance")
        .row("no count", json!({"action": "prune"}), InvalidArguments, missing)
        .row("null", json!({"action": "prune", "count": null}), InvalidArguments, missing)
        .row("nothing", json!({"action": "prune", "count": 0}), InvalidArguments, nothing)];
    stage.hold(TOOLS, own).await;
}
