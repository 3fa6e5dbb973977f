//! Renewing this node's certificate, long before its end.
//!
//! A certificate lasts a year and opens connections for 90 days more. From the half of its life on
//! the node asks a signer for the next one, every hour until it has it, and shows it from its next
//! connection on; the key stays. So a signer may be off for half a year, and a machine may sleep
//! for three quarters of one, before anything is missing. What fails is logged once a day, and
//! shown by `status` when the end is near: nobody is cut off without having been told.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::CertificateDer;

use crate::core::Core;
use crate::identity::NodeIdentity;
use crate::store::lock;
use crate::transport::quic::QuicTransport;

/// How often a node looks whether its certificate is due.
const LOOK_EVERY: Duration =
    if cfg!(test) { Duration::from_millis(100) } else { Duration::from_secs(60 * 60) };
/// A day; a failure is logged once in each.
const DAY_MILLIS: u64 = 24 * 60 * 60 * 1000;

/// How this node's certificate stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateLife {
    /// How many whole days it lasts, not counting those in which it is still let pass.
    pub days_left: u64,
    /// Why it was not renewed although that is due.
    pub trouble: Option<String>,
}

/// Runs until the node stops.
pub(crate) async fn run(
    core: Arc<Core>,
    quic: [QuicTransport; 2],
    data: PathBuf,
    mut identity: NodeIdentity,
) {
    let mut warned: Option<u64> = None;
    loop {
        let mut trouble = None;
        if identity.subject().due_for_renewal(core.clock.wall_millis()) {
            match core.renew_certificate(&identity, &quic, &data).await {
                Ok(renewed) => identity = renewed,
                Err(text) => trouble = Some(text),
            }
        }
        let ends_at = identity.subject().not_after.saturating_mul(1000);
        let days_left = ends_at.saturating_sub(core.clock.wall_millis()) / DAY_MILLIS;
        if let Some(text) = &trouble {
            let now = core.clock.boot_millis();
            if warned.is_none_or(|last| now.saturating_sub(last) >= DAY_MILLIS) {
                warned = Some(now);
                tracing::warn!(days_left, "certificate: is due, and cannot be renewed: {text}");
            }
        }
        *lock(&core.certificate) = CertificateLife { days_left, trouble };
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

impl Core {
    /// Has the next certificate made, saves it, and shows it from the next connection on.
    async fn renew_certificate(
        &self,
        old: &NodeIdentity,
        quic: &[QuicTransport],
        data: &std::path::Path,
    ) -> Result<NodeIdentity, String> {
        let members = self.state.view(|view| nexus_domain::cluster::members(view));
        let members = members.map_err(|fault| fault.to_string())?;
        let certificate = self.certificate_for(self.node, &members).await?;
        let renewed = successor(old, CertificateDer::from(certificate))?;
        let folder = data.to_owned();
        let save = move || renewed.save_certificate(&folder).map(|()| renewed);
        let renewed = self.jobs.blocking("save certificate", save).await;
        let renewed = renewed.map_err(|error| error.to_string())?;
        let renewed = renewed.map_err(|error| with_sources(&error))?;
        for quic in quic {
            quic.renew(&renewed).map_err(|error| error.to_string())?;
        }
        tracing::info!(ends = renewed.subject().not_after, "certificate: renewed");
        Ok(renewed)
    }
}

/// Joins the key to its next certificate, which must say the same of it, for longer.
fn successor(
    old: &NodeIdentity,
    certificate: CertificateDer<'static>,
) -> Result<NodeIdentity, String> {
    let key = old.key().duplicate().map_err(|error| error.to_string())?;
    let behind = old.chain().iter().skip(1).cloned();
    let chain = std::iter::once(certificate).chain(behind).collect();
    let renewed = NodeIdentity::new(key, chain).map_err(|error| with_sources(&error))?;
    let (before, after) = (old.subject(), renewed.subject());
    if (&before.cluster, before.node) != (&after.cluster, after.node) {
        return Err(format!("the signer named node {} of {}", after.node, after.cluster));
    }
    if after.not_after <= before.not_after {
        return Err("the signer's clock is behind: its certificate ends no later".to_owned());
    }
    Ok(renewed)
}

/// Returns an error's text with those of its sources.
fn with_sources(error: &dyn std::error::Error) -> String {
    let sources = std::iter::successors(error.source(), |error| error.source());
    sources.fold(error.to_string(), |text, source| format!("{text}: {source}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::{Authority, NodeKey};

    const NOW: u64 = 1_780_000_000_000;
    const DAY: u64 = 24 * 60 * 60 * 1000;

    #[test]
    fn only_a_later_certificate_of_the_same_node_and_key_is_taken() {
        let authority = Authority::generate("c1", NOW).unwrap();
        let key = NodeKey::generate().unwrap();
        let issue =
            |node, key: &NodeKey, at| authority.issue(node, "c1", &key.public_key(), at).unwrap();
        let chain = vec![issue(3, &key, NOW), authority.certificate().clone()];
        let old = NodeIdentity::new(key.duplicate().unwrap(), chain).unwrap();
        let renewed = successor(&old, issue(3, &key, NOW + 200 * DAY)).unwrap();
        assert_eq!(renewed.chain()[1..], old.chain()[1..]);
        assert_eq!(renewed.subject().not_after, old.subject().not_after + 200 * DAY / 1000);
        let refused = |certificate| successor(&old, certificate).unwrap_err();
        let other = refused(issue(4, &key, NOW + DAY));
        assert!(other.contains("node 4"), "{other}");
        let foreign = refused(issue(3, &NodeKey::generate().unwrap(), NOW + DAY));
        assert!(foreign.contains("another key"), "{foreign}");
        let early = refused(issue(3, &key, NOW - DAY));
        assert!(early.contains("clock"), "{early}");
    }
}
