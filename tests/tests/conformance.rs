//! The conformance suite of MCP against `/mcp` of a follower of three nodes, for both revisions.
//!
//! The follower is the binary that users run but for the suite's fixtures. What fails is listed by
//! name, with its reason, in `tests/clients/conformance-REVISION.yaml`: the suite fails when
//! anything else does, and when something on the list does not. Skipped, with a line that says
//! why, where the suite is not installed or the binary is not built.

use std::path::Path;
use std::time::Duration;

use nexus_tests::command::{self, Running};
use nexus_tests::process::{Node, Setup};
use nexus_tests::sdks::Sdks;

/// How long one revision may take.
const SUITE: Duration = Duration::from_secs(240);

#[tokio::test(flavor = "multi_thread")]
async fn the_conformance_suite_passes_but_for_what_is_listed() {
    let found = Sdks::find().and_then(|sdks| Ok((sdks, command::conformance_binary()?)));
    let (sdks, binary) = match found {
        Ok(found) => found,
        Err(why) => {
            eprintln!("skipped: the conformance suite, {why}");
            return;
        }
    };
    let leader = Node::found("lead").await;
    let setup = Setup { binary: Some(binary), ..Setup::default() };
    let mut follower = Node::with("follow", setup);
    follower.join_at(&leader, &["--voter"]).await;
    let third = Node::join("third", &leader, &["--voter"]).await;
    let folder = tempfile::tempdir_in(command::scratch()).unwrap();
    for revision in ["2025-11-25", "2026-07-28"] {
        let list = format!("clients/conformance-{revision}.yaml");
        let list = Path::new(env!("CARGO_MANIFEST_DIR")).join(list);
        let output = folder.path().join(revision);
        let suite = match sdks.conformance(follower.http(), revision, &list, &output) {
            Ok(suite) => suite,
            Err(why) => {
                eprintln!("skipped: the conformance suite, {why}");
                return;
            }
        };
        let ended = Running::start(suite).end(SUITE).await;
        assert!(ended.status.success(), "{revision}: {ended}");
    }
    drop(third);
}
