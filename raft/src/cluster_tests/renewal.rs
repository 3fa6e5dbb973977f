//! Certificates are renewed while the nodes run, and the renewed ones are shown.

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use super::*;
use crate::identity::Subject;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Returns the end of the certificate that a node has saved, in days since 1970.
fn ends(config: &Config) -> u64 {
    let text = std::fs::read(config.data.join("node.crt")).unwrap();
    let first = CertificateDer::pem_slice_iter(&text).next().unwrap().unwrap();
    Subject::read(&first).unwrap().not_after / DAY.as_secs()
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_outlive_their_first_certificates() {
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let clock = Arc::new(Turned::default());
    let one = Node::found(&folders[0], clock.clone()).await;
    one.register("mcp-a").await;
    let two = Node::join(&folders[1], "two", &one, Role::Learner).await;
    let both = || [ends(&one.config), ends(&two.config)];
    let first = both();
    // A learner that holds no key of the authority asks the one that does.
    clock.pass(DAY * 170);
    one.post("mcp-a", 1, 10).await;
    assert_eq!(both(), first, "renewed before half of its life");
    clock.pass(DAY * 30);
    let second = wait_for("renewed certificates", both, |ends| {
        ends.iter().zip(first).all(|(now, before)| *now >= before + 199)
    })
    .await;
    // The first ones would not be let pass any more; all connections are made anew.
    clock.pass(DAY * 300);
    let config = two.stop().await;
    let two = Node::start(config).await.unwrap();
    one.post("mcp-a", 1, 10).await;
    let applied = one.cluster.local_status().applied;
    assert!(two.cluster.wait_applied(applied, LIMIT).await, "{:?}", two.cluster.local_status());
    let both = || [ends(&one.config), ends(&two.config)];
    wait_for("certificates renewed again", both, |ends| {
        ends.iter().zip(second).all(|(now, before)| *now > before)
    })
    .await;
    assert_eq!(two.cluster.certificate().trouble, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_finds_no_signer_says_so() {
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let clock = Arc::new(Turned::default());
    let one = Node::found(&folders[0], clock.clone()).await;
    let two = Node::join(&folders[1], "two", &one, Role::Learner).await;
    let applied = one.cluster.local_status().applied;
    assert!(two.cluster.wait_applied(applied, LIMIT).await);
    assert_eq!(two.cluster.certificate().trouble, None);
    let before = ends(&two.config);
    one.stop().await;
    clock.pass(DAY * 300);
    let life = || two.cluster.certificate();
    let life = wait_for("trouble", life, |life| life.trouble.is_some()).await;
    assert_eq!(life.days_left, 64);
    let text = life.trouble.unwrap();
    assert!(text.contains("signer") && text.contains("one"), "{text}");
    assert_eq!(ends(&two.config), before);
}
