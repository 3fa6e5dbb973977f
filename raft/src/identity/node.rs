//! The key that is a node, and its certificate.
//!
//! The key is made before a node has an id and stays for its life. It never leaves the machine:
//! a join sends the public half and a proof that the private one is here.

use std::fmt;
use std::path::Path;

use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PublicKeyData as _, SigningKey as _};
use ring::hmac;
use ring::signature::{ECDSA_P256_SHA256_ASN1, UnparsedPublicKey};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use x509_parser::prelude::FromDer as _;
use x509_parser::x509::SubjectPublicKeyInfo;

use super::file::{self, FileError};
use super::pin::{Subject, SubjectError};

const KEY_FILE: &str = "node.key";
const CERTIFICATE_FILE: &str = "node.crt";

/// What a proof of possession signs ahead of the channel binding, so that the signature can stand
/// for nothing else.
const JOIN_PROOF_LABEL: &[u8] = b"nexus join proof v1\0";

/// Why a node's identity could not be made, loaded or saved.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// No key could be made or used.
    #[error("node key: {0}")]
    Key(String),
    /// The certificate does not name a node.
    #[error("node certificate is not usable")]
    Certificate(#[from] SubjectError),
    /// The certificate belongs to another key.
    #[error("node certificate belongs to another key than the one in {KEY_FILE}")]
    OtherKey,
}

/// The private key of a node.
pub struct NodeKey {
    pair: KeyPair,
}

impl fmt::Debug for NodeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NodeKey(..)")
    }
}

impl NodeKey {
    /// Makes a fresh key.
    ///
    /// # Errors
    ///
    /// [`IdentityError::Key`] when the operating system gives no randomness.
    pub fn generate() -> Result<Self, IdentityError> {
        let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(key_error)?;
        Ok(Self { pair })
    }

    /// Loads the key from a folder.
    ///
    /// # Errors
    ///
    /// [`IdentityError::File`] when the file is missing ([`FileError::is_missing`]) or damaged.
    pub fn load(folder: &Path) -> Result<Self, IdentityError> {
        let path = folder.join(KEY_FILE);
        let text = file::read(&path)?;
        let pair = KeyPair::from_pem(&text).map_err(|error| FileError::content(&path, error))?;
        if !pair.is_compatible(&PKCS_ECDSA_P256_SHA256) {
            return Err(FileError::content(&path, "is not an ECDSA P-256 key").into());
        }
        Ok(Self { pair })
    }

    /// Saves the key, readable by the owner only.
    ///
    /// # Errors
    ///
    /// [`IdentityError::File`] when the file cannot be written.
    pub fn save(&self, folder: &Path) -> Result<(), IdentityError> {
        Ok(file::write(&folder.join(KEY_FILE), &self.pair.serialize_pem())?)
    }

    /// Returns the public key as SPKI DER: what membership records for the node.
    #[must_use]
    pub fn public_key(&self) -> Vec<u8> {
        self.pair.subject_public_key_info()
    }

    /// Signs a channel binding: proof that the holder of this key speaks on that connection.
    ///
    /// # Errors
    ///
    /// [`IdentityError::Key`] when signing fails.
    pub fn prove_join(&self, binding: &[u8; 32]) -> Result<Vec<u8>, IdentityError> {
        self.pair.sign(&labelled(JOIN_PROOF_LABEL, binding)).map_err(key_error)
    }

    /// Returns a copy: the private half is copied too.
    ///
    /// # Errors
    ///
    /// [`IdentityError::Key`] when the key cannot be read back, which does not happen.
    pub fn duplicate(&self) -> Result<Self, IdentityError> {
        let der = PrivatePkcs8KeyDer::from(self.pair.serialized_der().to_vec());
        let pair = KeyPair::from_pkcs8_der_and_sign_algo(&der, &PKCS_ECDSA_P256_SHA256)
            .map_err(key_error)?;
        Ok(Self { pair })
    }

    /// Derives a secret of this machine for one purpose, the same after each start.
    pub(crate) fn derive(&self, purpose: &[u8]) -> [u8; 32] {
        let key = hmac::Key::new(hmac::HMAC_SHA256, self.pair.serialized_der());
        let mut secret = [0; 32];
        secret.copy_from_slice(hmac::sign(&key, purpose).as_ref());
        secret
    }

    pub(crate) fn private_der(&self) -> PrivateKeyDer<'static> {
        PrivatePkcs8KeyDer::from(self.pair.serialized_der().to_vec()).into()
    }
}

/// Checks a proof made by [`NodeKey::prove_join`] against the public key (SPKI DER).
#[must_use]
pub fn join_proof_is_valid(public_key: &[u8], binding: &[u8; 32], proof: &[u8]) -> bool {
    verifies(public_key, &labelled(JOIN_PROOF_LABEL, binding), proof)
}

fn verifies(public_key: &[u8], message: &[u8], signature: &[u8]) -> bool {
    let Ok((rest, info)) = SubjectPublicKeyInfo::from_der(public_key) else { return false };
    if !rest.is_empty() {
        return false;
    }
    let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, &info.subject_public_key.data);
    key.verify(message, signature).is_ok()
}

fn labelled(label: &[u8], message: &[u8]) -> Vec<u8> {
    [label, message].concat()
}

/// A node's key with its certificate and what the certificate says.
#[derive(Debug)]
pub struct NodeIdentity {
    key: NodeKey,
    chain: Vec<CertificateDer<'static>>,
    subject: Subject,
}

impl NodeIdentity {
    /// Joins a key and its certificate chain: the node's own first. The transport adds the accepted
    /// authorities when it shows the chain.
    ///
    /// # Errors
    ///
    /// [`IdentityError`] when the chain is empty, names no node, or belongs to another key.
    pub fn new(key: NodeKey, chain: Vec<CertificateDer<'static>>) -> Result<Self, IdentityError> {
        let subject = Subject::read(chain.first().ok_or(SubjectError::NoName)?)?;
        if subject.spki != key.public_key() {
            return Err(IdentityError::OtherKey);
        }
        Ok(Self { key, chain, subject })
    }

    /// Loads key and certificate from a folder.
    ///
    /// # Errors
    ///
    /// [`IdentityError`] when a file is missing or damaged, or the two do not belong together.
    pub fn load(folder: &Path) -> Result<Self, IdentityError> {
        let key = NodeKey::load(folder)?;
        Self::new(key, file::read_certificates(&folder.join(CERTIFICATE_FILE))?)
    }

    /// Saves key and certificate.
    ///
    /// # Errors
    ///
    /// [`IdentityError::File`] when a file cannot be written.
    pub fn save(&self, folder: &Path) -> Result<(), IdentityError> {
        self.key.save(folder)?;
        self.save_certificate(folder)
    }

    /// Saves the certificate alone: a renewed one, over the one before.
    ///
    /// # Errors
    ///
    /// [`IdentityError::File`] when the file cannot be written.
    pub(crate) fn save_certificate(&self, folder: &Path) -> Result<(), IdentityError> {
        let text = file::certificates_pem(&self.chain);
        Ok(file::write(&folder.join(CERTIFICATE_FILE), &text)?)
    }

    /// Returns a copy, with the private half of the key.
    ///
    /// # Errors
    ///
    /// [`IdentityError::Key`] when the key cannot be read back, which does not happen.
    pub fn duplicate(&self) -> Result<Self, IdentityError> {
        Self::new(self.key.duplicate()?, self.chain.clone())
    }

    /// Returns the node's key.
    #[must_use]
    pub fn key(&self) -> &NodeKey {
        &self.key
    }

    /// Returns the chain: the node's certificate first.
    #[must_use]
    pub fn chain(&self) -> &[CertificateDer<'static>] {
        &self.chain
    }

    /// Returns what the certificate says.
    #[must_use]
    pub fn subject(&self) -> &Subject {
        &self.subject
    }
}

fn key_error(error: impl ToString) -> IdentityError {
    IdentityError::Key(error.to_string())
}
