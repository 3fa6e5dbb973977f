//! What a certificate says about its holder, and fingerprints of public keys.

use std::fmt;
use std::time::Duration;

use rustls::pki_types::{CertificateDer, UnixTime};
use sha2::{Digest as _, Sha256};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::invite::base32;

/// How far the clock may be behind the start of a certificate: laptops wake with a wrong time.
const EARLY_MAX: Duration = Duration::from_secs(24 * 3600);

/// How long past its end a certificate still opens a connection, so that a machine that slept
/// through its renewal can ask for one; membership still decides whether it is admitted.
const LATE_MAX: Duration = Duration::from_secs(90 * 24 * 3600);

/// The scheme of the name in a node's certificate.
const SCHEME: &str = "nexus://";

/// Why a certificate does not name a node.
#[derive(Debug, thiserror::Error)]
pub enum SubjectError {
    /// The bytes are no X.509 certificate.
    #[error("certificate cannot be read: {0}")]
    Unreadable(String),
    /// The certificate has no name of our form.
    #[error("certificate names no node, expected one name nexus://<cluster>/<node id>")]
    NoName,
    /// The certificate has more than one name of our form.
    #[error("certificate names more than one node")]
    TwoNames,
}

/// SHA-256 of a public key in its SPKI form.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fingerprint(pub [u8; 32]);

impl Fingerprint {
    /// Returns the fingerprint of a public key given as SPKI DER.
    #[must_use]
    pub fn of(spki: &[u8]) -> Self {
        Self(Sha256::digest(spki).into())
    }

    /// Returns the fingerprint of the key in a certificate.
    ///
    /// # Errors
    ///
    /// [`SubjectError::Unreadable`] when the bytes are no certificate.
    pub fn of_certificate(certificate: &CertificateDer<'_>) -> Result<Self, SubjectError> {
        Ok(Self::of(parse(certificate)?.tbs_certificate.subject_pki.raw))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&base32(&self.0))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

/// What the certificate of a node says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The cluster that the node belongs to.
    pub cluster: String,
    /// The node's id.
    pub node: u64,
    /// The node's public key, SPKI DER.
    pub spki: Vec<u8>,
    /// Start of validity, seconds since 1970.
    pub not_before: u64,
    /// End of validity, seconds since 1970.
    pub not_after: u64,
}

impl Subject {
    /// Reads the certificate of a node; signatures are not checked here.
    ///
    /// # Errors
    ///
    /// [`SubjectError`] when it is no certificate or does not name exactly one node.
    pub fn read(certificate: &CertificateDer<'_>) -> Result<Self, SubjectError> {
        let parsed = parse(certificate)?;
        let (cluster, node) = name(&parsed)?;
        let validity = parsed.validity();
        Ok(Self {
            cluster,
            node,
            spki: parsed.tbs_certificate.subject_pki.raw.to_vec(),
            not_before: u64::try_from(validity.not_before.timestamp()).unwrap_or(0),
            not_after: u64::try_from(validity.not_after.timestamp()).unwrap_or(0),
        })
    }

    /// Tells whether half of the certificate's life is over: time to ask for a new one.
    #[must_use]
    pub fn due_for_renewal(&self, wall_millis: u64) -> bool {
        let half = self.not_before.midpoint(self.not_after);
        wall_millis / 1000 >= half
    }
}

/// Returns the name that a node's certificate bears.
pub(super) fn node_uri(cluster: &str, node: u64) -> String {
    format!("{SCHEME}{cluster}/{node}")
}

/// Returns the time to check a certificate with, if `now` is near enough to its validity.
///
/// Within the tolerance the nearest valid moment stands for `now`, so that the strict check that
/// follows sees a valid certificate; outside it `now` itself is returned and the check fails.
pub(crate) fn lenient_time(subject: &Subject, now: UnixTime) -> UnixTime {
    let seconds = now.as_secs();
    let early = subject.not_before.saturating_sub(EARLY_MAX.as_secs());
    let late = subject.not_after.saturating_add(LATE_MAX.as_secs());
    if subject.not_before > subject.not_after || seconds < early || seconds > late {
        return now;
    }
    let nearest = seconds.clamp(subject.not_before, subject.not_after);
    UnixTime::since_unix_epoch(Duration::from_secs(nearest))
}

fn parse<'a>(certificate: &'a CertificateDer<'_>) -> Result<X509Certificate<'a>, SubjectError> {
    let (rest, parsed) = X509Certificate::from_der(certificate)
        .map_err(|error| SubjectError::Unreadable(error.to_string()))?;
    if rest.is_empty() {
        Ok(parsed)
    } else {
        Err(SubjectError::Unreadable("bytes follow its end".to_owned()))
    }
}

fn name(certificate: &X509Certificate<'_>) -> Result<(String, u64), SubjectError> {
    let names = certificate
        .subject_alternative_name()
        .map_err(|error| SubjectError::Unreadable(error.to_string()))?;
    let mut found = None;
    for name in names.iter().flat_map(|extension| &extension.value.general_names) {
        let GeneralName::URI(uri) = name else { continue };
        let Some(rest) = uri.strip_prefix(SCHEME) else { continue };
        let (cluster, node) = rest.split_once('/').ok_or(SubjectError::NoName)?;
        // Only the canonical form counts, or one node would have several names.
        let id = node.parse::<u64>().map_err(|_error| SubjectError::NoName)?;
        if cluster.is_empty() || id.to_string() != node {
            return Err(SubjectError::NoName);
        }
        if found.replace((cluster.to_owned(), id)).is_some() {
            return Err(SubjectError::TwoNames);
        }
    }
    found.ok_or(SubjectError::NoName)
}
