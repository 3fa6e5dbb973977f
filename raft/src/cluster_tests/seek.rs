//! Members that lost each other ask a third one where they are.

use std::sync::Arc;
use std::time::Duration;

use nexus_domain::command::Role;
use nexus_rt::{Jobs, SystemClock};
use tempfile::TempDir;
use tokio::time::Instant;

use super::{LIMIT, wait_for};
use crate::rpc::message::{Answer, Call};
use crate::transport::Directory as _;
use crate::{Cluster, Config, OpenError, Start, Timing};

/// A node over QUIC, with its folder.
struct Place {
    cluster: Cluster,
    config: Config,
    folder: TempDir,
}

async fn open(folder: TempDir, name: &str, start: Start) -> Place {
    let jobs = Jobs::new();
    let config = Config {
        data: folder.path().to_owned(),
        name: name.to_owned(),
        host: name.to_owned(),
        bind: ([127, 0, 0, 1], 0).into(),
        advertise: Vec::new(),
        timing: Some(Timing::Wired),
        software: "test".to_owned(),
        clock: Arc::new(SystemClock),
        jobs,
    };
    // In one process the last holders of a folder's old databases may need a moment to let go.
    let deadline = Instant::now() + LIMIT;
    loop {
        match Cluster::open(config.clone(), start.clone()).await {
            Ok(cluster) => return Place { cluster, config, folder },
            Err(OpenError::Store(error)) if error.to_string().contains("lock hold") => {
                assert!(Instant::now() < deadline, "{error}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(error) => panic!("{name}: {error:?}"),
        }
    }
}

impl Place {
    async fn join(&self, name: &str) -> Self {
        let code = self.cluster.invite(Role::Learner, LIMIT).await.unwrap().code;
        let seeds = vec![self.cluster.address()];
        let folder = tempfile::tempdir().unwrap();
        let joined = open(folder, name, Start::Join { code, seeds }).await;
        let own = joined.cluster.node();
        let described = || {
            let row =
                joined.cluster.core.state.view(|view| nexus_domain::cluster::member(view, own));
            row.unwrap().map(|row| row.addresses)
        };
        let there =
            |addresses: &Option<Vec<String>>| addresses.as_ref().is_some_and(|it| !it.is_empty());
        wait_for("a described member", described, there).await;
        joined
    }

    /// Stops the node.
    async fn stop(self) -> TempDir {
        self.cluster.shutdown().await;
        let _late = self.config.jobs.shutdown(Duration::from_secs(5)).await;
        self.folder
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_whose_addresses_changed_find_each_other_through_a_third() {
    let voter = open(tempfile::tempdir().unwrap(), "voter", Start::Found).await;
    assert!(voter.cluster.ready(LIMIT).await);
    let one = voter.join("one").await;
    let two = voter.join("two").await;
    let third = voter.join("third").await;
    // All know all before the addresses change.
    for place in [&one, &two, &third] {
        let others = || place.cluster.core.book.others().len();
        wait_for("three others", others, |others| *others == 3).await;
    }
    // Without a leader nothing is written: the log tells nobody of the new addresses.
    drop(voter.stop().await);
    let before = [one.cluster.address(), two.cluster.address()];
    let (one, two) = (one.stop().await, two.stop().await);
    let one = open(one, "one", Start::Resume).await;
    let two = open(two, "two", Start::Resume).await;
    assert_ne!([one.cluster.address(), two.cluster.address()], before);

    for (place, other) in [(&one, &two), (&two, &one)] {
        let (core, node) = (&place.cluster.core, other.cluster.node());
        let known = || core.book.addresses(node);
        wait_for("the other's new address", known, |it| it.contains(&other.cluster.address()))
            .await;
        let deadline = Instant::now() + LIMIT;
        loop {
            match core.ask(node, &Call::Ping, Duration::from_secs(1)).await {
                Ok(Answer::Here { .. }) => break,
                other => assert!(Instant::now() < deadline, "{other:?}"),
            }
        }
    }
    drop(third);
}
