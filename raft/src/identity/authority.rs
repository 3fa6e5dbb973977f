//! The certificate authority of a cluster: it signs which key is which node.
//!
//! Its key lies on signers only. A certificate is issued for exactly the (id, key) that the
//! replicated state holds; that is for the caller to see to.

use std::path::Path;
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, SanType, SerialNumber,
    SubjectPublicKeyInfo,
};
use ring::rand::{SecureRandom as _, SystemRandom};
use rustls::pki_types::CertificateDer;

use super::file::{self, FileError};
use super::pin::{Fingerprint, SubjectError, node_uri};

const KEY_FILE: &str = "authority.key";
const CERTIFICATE_FILE: &str = "authority.crt";

/// Length of a cluster id, so that names and messages stay short.
const CLUSTER_BYTES_MAX: usize = 64;
/// Certificates of nodes last a year and are renewed at half of it.
const NODE_LIFE: Duration = Duration::from_secs(365 * 24 * 3600);
/// The authority outlives any cluster; it is replaced by rotation, not by expiry.
const AUTHORITY_LIFE: Duration = Duration::from_secs(50 * 365 * 24 * 3600);
/// Certificates begin a day early: the clocks of two machines differ.
const NODE_EARLY: Duration = Duration::from_secs(24 * 3600);
/// The authority begins earlier than any certificate that it may issue at its birth.
const AUTHORITY_EARLY: Duration = Duration::from_secs(2 * 24 * 3600);

/// Why the authority could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The cluster id cannot stand in a certificate's name.
    #[error("cluster id {0:?} cannot stand in a certificate, use 1 to 64 of a-z, 0-9, - and _")]
    ClusterId(String),
    /// The public key cannot be certified.
    #[error("public key cannot be certified: {0}")]
    PublicKey(String),
    /// The library could not make the key or the certificate.
    #[error("cannot make {what}: {cause}")]
    Make {
        /// What was to be made.
        what: &'static str,
        /// What the library said.
        cause: String,
    },
    /// The authority's own certificate is damaged.
    #[error("the authority's certificate is damaged")]
    Certificate(#[from] SubjectError),
}

/// The certificate authority of one cluster, with its key.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    key_pem: String,
    certificate: CertificateDer<'static>,
    fingerprint: Fingerprint,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").field("fingerprint", &self.fingerprint).finish_non_exhaustive()
    }
}

impl Authority {
    /// Makes a new authority with a fresh key.
    ///
    /// # Errors
    ///
    /// [`AuthorityError`] when the cluster id is no plain name or no key can be made.
    pub fn generate(cluster: &str, wall_millis: u64) -> Result<Self, AuthorityError> {
        check_cluster(cluster)?;
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(make("a key"))?;
        let mut params = CertificateParams::default();
        params.distinguished_name = common_name(&format!("nexus cluster {cluster}"));
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.serial_number = Some(serial()?);
        set_life(&mut params, wall_millis, AUTHORITY_EARLY, AUTHORITY_LIFE);
        let certificate = params.self_signed(&key).map_err(make("the authority"))?;
        Self::assemble(key, certificate.der().clone())
    }

    /// Loads the authority from a folder.
    ///
    /// # Errors
    ///
    /// [`AuthorityError`] when a file is missing or damaged, or key and certificate differ.
    pub fn load(folder: &Path) -> Result<Self, AuthorityError> {
        let key_path = folder.join(KEY_FILE);
        let pem = file::read(&key_path)?;
        let key = KeyPair::from_pem(&pem).map_err(|error| FileError::content(&key_path, error))?;
        let certificate_path = folder.join(CERTIFICATE_FILE);
        let chain = file::read_certificates(&certificate_path)?;
        let certificate = chain
            .into_iter()
            .next()
            .ok_or_else(|| FileError::content(&certificate_path, "holds no certificate"))?;
        let public = rcgen::PublicKeyData::subject_public_key_info(&key);
        if Fingerprint::of_certificate(&certificate)? != Fingerprint::of(&public) {
            return Err(FileError::content(&certificate_path, "belongs to another key").into());
        }
        Self::assemble(key, certificate)
    }

    /// Tells whether a folder holds an authority's key.
    #[must_use]
    pub fn is_in(folder: &Path) -> bool {
        folder.join(KEY_FILE).exists()
    }

    /// Saves key and certificate, readable by the owner only.
    ///
    /// # Errors
    ///
    /// [`AuthorityError::File`] when a file cannot be written.
    pub fn save(&self, folder: &Path) -> Result<(), AuthorityError> {
        // The certificate first: a key without it would look like a whole authority.
        let chain = [self.certificate.clone()];
        file::write(&folder.join(CERTIFICATE_FILE), &file::certificates_pem(&chain))?;
        file::write(&folder.join(KEY_FILE), &self.key_pem)?;
        Ok(())
    }

    /// Certifies that `public_key` (SPKI DER) is node `node` of `cluster`, for a year.
    ///
    /// # Errors
    ///
    /// [`AuthorityError`] when the key or the cluster id cannot be certified.
    pub fn issue(
        &self,
        node: u64,
        cluster: &str,
        public_key: &[u8],
        wall_millis: u64,
    ) -> Result<CertificateDer<'static>, AuthorityError> {
        check_cluster(cluster)?;
        let public = SubjectPublicKeyInfo::from_der(public_key)
            .map_err(|error| AuthorityError::PublicKey(error.to_string()))?;
        let mut params = CertificateParams::default();
        params.distinguished_name = common_name(&format!("nexus node {node}"));
        let uri = node_uri(cluster, node).try_into().map_err(make("the node's name"))?;
        params.subject_alt_names = vec![SanType::URI(uri)];
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        params.use_authority_key_identifier_extension = true;
        params.serial_number = Some(serial()?);
        set_life(&mut params, wall_millis, NODE_EARLY, NODE_LIFE);
        let certificate =
            params.signed_by(&public, &self.issuer).map_err(make("the certificate"))?;
        Ok(certificate.der().clone())
    }

    /// Returns the authority's own certificate: the root that members accept.
    #[must_use]
    pub fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// Returns the fingerprint of the authority's key, as it stands in invite codes.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    fn assemble(
        key: KeyPair,
        certificate: CertificateDer<'static>,
    ) -> Result<Self, AuthorityError> {
        let fingerprint = Fingerprint::of_certificate(&certificate)?;
        let key_pem = key.serialize_pem();
        let issuer = Issuer::from_ca_cert_der(&certificate, key).map_err(make("the issuer"))?;
        Ok(Self { issuer, key_pem, certificate, fingerprint })
    }
}

fn check_cluster(cluster: &str) -> Result<(), AuthorityError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if cluster.is_empty() || cluster.len() > CLUSTER_BYTES_MAX || !cluster.bytes().all(plain) {
        return Err(AuthorityError::ClusterId(cluster.to_owned()));
    }
    Ok(())
}

fn common_name(text: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, text);
    name
}

fn serial() -> Result<SerialNumber, AuthorityError> {
    let mut bytes = [0; 16];
    SystemRandom::new().fill(&mut bytes).map_err(make("a serial number"))?;
    // A serial number is positive and does not begin with a zero byte.
    let [first, ..] = &mut bytes;
    *first = (*first & 0x7f) | 0x40;
    Ok(SerialNumber::from_slice(&bytes))
}

fn set_life(params: &mut CertificateParams, wall_millis: u64, early: Duration, life: Duration) {
    // Whole seconds: certificates hold no finer time.
    let now = Duration::from_secs(wall_millis / 1000);
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    params.not_before = epoch + now.saturating_sub(early);
    params.not_after = epoch + now.saturating_add(life);
}

fn make<E: ToString>(what: &'static str) -> impl FnOnce(E) -> AuthorityError {
    move |error| AuthorityError::Make { what, cause: error.to_string() }
}
