//! TLS of the transport: who is believed, and how this node shows itself.
//!
//! Version 1.3 alone, no early data, no resumption: each connection proves its keys anew, so
//! that what was decided about a key takes effect with the next one.

use std::fmt;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use nexus_rt::Clock;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ResolvesClientCert, Resumption, verify_server_cert_signed_by_trust_anchor};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ClientHello, NoServerSessionStorage, ParsedCertificate, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::time_provider::TimeProvider;
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError, RootCertStore,
    SignatureScheme,
};

use super::StartError;
use crate::identity::{Fingerprint, NodeIdentity, Subject, lenient_time};
use crate::transport::{Directory, NodeId};

/// The protocol of members.
pub(super) const ALPN: &[u8] = b"nexus/1";
/// The protocol of machines that are not members yet.
pub(super) const ALPN_JOIN: &[u8] = b"nexus-join/1";
/// TLS wants a name; ours is in the certificate's URI, so one constant serves all.
pub(super) const SERVER_NAME: &str = "nexus";

/// What stands around our own words when an error has passed through rustls.
const WRAPPED: (&str, &str) = ("OtherError(", "))");

/// What is needed to make TLS configurations for members.
#[derive(Clone)]
pub(super) struct Tls {
    provider: Arc<CryptoProvider>,
    time: Arc<dyn TimeProvider>,
    credentials: Arc<Credentials>,
    trust: Trust,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls(..)")
    }
}

impl Tls {
    pub(super) fn new(
        identity: &NodeIdentity,
        clock: Arc<dyn Clock>,
        directory: Arc<dyn Directory>,
    ) -> Result<Self, StartError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let algorithms = provider.signature_verification_algorithms;
        let key = certified(identity, &directory.roots(), &provider)?;
        Ok(Self {
            provider,
            time: Arc::new(ClockTime(clock)),
            credentials: Arc::new(Credentials { current: RwLock::new(key) }),
            trust: Trust { directory, algorithms },
        })
    }

    /// Shows another certificate from the next connection on.
    pub(super) fn renew(&self, identity: &NodeIdentity) -> Result<(), StartError> {
        let key = certified(identity, &self.trust.directory.roots(), &self.provider)?;
        *self.credentials.current.write().unwrap_or_else(PoisonError::into_inner) = key;
        Ok(())
    }

    /// Returns the configuration of the accepting side, for both protocols.
    ///
    /// Client certificates are offered and not demanded, since a joiner has none; the accept loop
    /// closes a member's connection that came without.
    pub(super) fn server(&self) -> Result<QuicServerConfig, StartError> {
        let verifier = ClientVerifier { trust: self.trust.clone() };
        let builder = rustls::ServerConfig::builder_with_details(
            Arc::clone(&self.provider),
            Arc::clone(&self.time),
        );
        let mut config = builder
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(StartError::tls)?
            .with_client_cert_verifier(Arc::new(verifier))
            .with_cert_resolver(Arc::<Credentials>::clone(&self.credentials));
        config.alpn_protocols = vec![ALPN.to_vec(), ALPN_JOIN.to_vec()];
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        QuicServerConfig::try_from(config).map_err(StartError::tls)
    }

    /// Returns the configuration to dial one node: its certificate must bear that id.
    pub(super) fn client(
        &self,
        node: NodeId,
    ) -> Result<(QuicClientConfig, Arc<OnceLock<NodeId>>), StartError> {
        let other = Arc::new(OnceLock::new());
        let (trust, noted) = (self.trust.clone(), Arc::clone(&other));
        let verifier = ServerVerifier { trust, expected: node, other: noted };
        let credentials = Arc::<Credentials>::clone(&self.credentials);
        let builder = client_builder(&self.provider, &self.time, Arc::new(verifier))?;
        Ok((finish_client(builder.with_client_cert_resolver(credentials), ALPN)?, other))
    }
}

/// The authority of a stranger, if one answered.
pub(super) type Foreign = RwLock<Option<Fingerprint>>;

/// Returns the configuration to dial a cluster that only the fingerprint of its authority is
/// known of, and the place where a different authority is noted.
pub(super) fn joining_client(
    authority: Fingerprint,
    clock: Arc<dyn Clock>,
) -> Result<(QuicClientConfig, Arc<Foreign>), StartError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let time: Arc<dyn TimeProvider> = Arc::new(ClockTime(clock));
    let algorithms = provider.signature_verification_algorithms;
    let foreign = Arc::new(RwLock::new(None));
    let verifier = JoinVerifier { authority, algorithms, foreign: Arc::clone(&foreign) };
    let builder = client_builder(&provider, &time, Arc::new(verifier))?;
    Ok((finish_client(builder.with_no_client_auth(), ALPN_JOIN)?, foreign))
}

/// Returns the words of an error without what rustls puts around them.
pub(super) fn plain_text(text: &str) -> String {
    let (before, after) = WRAPPED;
    let inner = text.split_once(before).and_then(|(_, rest)| rest.strip_suffix(after));
    inner.unwrap_or(text).to_owned()
}

type ClientBuilder = rustls::ConfigBuilder<rustls::ClientConfig, rustls::client::WantsClientCert>;

fn client_builder(
    provider: &Arc<CryptoProvider>,
    time: &Arc<dyn TimeProvider>,
    verifier: Arc<dyn ServerCertVerifier>,
) -> Result<ClientBuilder, StartError> {
    let builder =
        rustls::ClientConfig::builder_with_details(Arc::clone(provider), Arc::clone(time))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(StartError::tls)?;
    Ok(builder.dangerous().with_custom_certificate_verifier(verifier))
}

fn finish_client(
    mut config: rustls::ClientConfig,
    protocol: &[u8],
) -> Result<QuicClientConfig, StartError> {
    config.alpn_protocols = vec![protocol.to_vec()];
    config.resumption = Resumption::disabled();
    config.enable_early_data = false;
    QuicClientConfig::try_from(config).map_err(StartError::tls)
}

/// Returns what this node shows: its chain, and the authorities behind it, which a joiner compares
/// with its code.
fn certified(
    identity: &NodeIdentity,
    roots: &[CertificateDer<'static>],
    provider: &CryptoProvider,
) -> Result<Arc<CertifiedKey>, StartError> {
    let key = provider
        .key_provider
        .load_private_key(identity.key().private_der())
        .map_err(StartError::tls)?;
    let mut chain = identity.chain().to_vec();
    for root in roots {
        if !chain.contains(root) {
            chain.push(root.clone());
        }
    }
    Ok(Arc::new(CertifiedKey::new(chain, key)))
}

/// The certificate that this node shows, replaceable while it runs.
#[derive(Debug)]
struct Credentials {
    current: RwLock<Arc<CertifiedKey>>,
}

impl Credentials {
    fn now(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ResolvesServerCert for Credentials {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.now())
    }
}

impl ResolvesClientCert for Credentials {
    fn resolve(&self, _hints: &[&[u8]], _schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(self.now())
    }

    fn has_certs(&self) -> bool {
        true
    }
}

/// Our clock as rustls asks for it.
#[derive(Debug)]
struct ClockTime(Arc<dyn Clock>);

impl TimeProvider for ClockTime {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_millis(self.0.wall_millis())))
    }
}

/// Which certificates are believed: those of the accepted authorities, for our cluster.
#[derive(Clone)]
struct Trust {
    directory: Arc<dyn Directory>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Trust(..)")
    }
}

impl Trust {
    fn check(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<Subject, Error> {
        let subject = Subject::read(certificate).map_err(|error| refuse(error.to_string()))?;
        let cluster = self.directory.hello().cluster;
        if subject.cluster != cluster {
            return Err(refuse(format!(
                "node {} has a certificate of cluster {}, this is cluster {cluster}",
                subject.node, subject.cluster
            )));
        }
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(self.directory.roots());
        check_chain(&subject, certificate, intermediates, &roots, now, &self.algorithms)?;
        Ok(subject)
    }
}

fn check_chain(
    subject: &Subject,
    certificate: &CertificateDer<'_>,
    intermediates: &[CertificateDer<'_>],
    roots: &RootCertStore,
    now: UnixTime,
    algorithms: &WebPkiSupportedAlgorithms,
) -> Result<(), Error> {
    let parsed = ParsedCertificate::try_from(certificate)?;
    // The check of a server's certificate serves both ways: ours carry both usages.
    verify_server_cert_signed_by_trust_anchor(
        &parsed,
        roots,
        intermediates,
        lenient_time(subject, now),
        algorithms.all,
    )
    .map_err(|error| {
        let Subject { node, cluster, .. } = subject;
        let is_foreign = matches!(
            error,
            Error::InvalidCertificate(
                CertificateError::UnknownIssuer | CertificateError::BadSignature
            )
        );
        let is_over = matches!(
            error,
            Error::InvalidCertificate(
                CertificateError::Expired | CertificateError::ExpiredContext { .. }
            )
        );
        refuse(if is_foreign {
            format!("certificate of node {node} is not signed by an authority of cluster {cluster}")
        } else if is_over {
            format!(
                "certificate of node {node} ended more than 90 days ago and was not renewed, or a \
                 clock is wrong: set the clock, or remove the node and join again"
            )
        } else {
            format!("certificate of node {node} is not acceptable: {error}")
        })
    })
}

fn refuse(text: String) -> Error {
    Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(Words(text)))))
}

/// Words that read the same as `Debug` and as `Display`, since rustls prints errors by `Debug`.
#[derive(thiserror::Error)]
#[error("{0}")]
struct Words(String);

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// No configuration of ours allows TLS 1.2, so nothing signed for it is believed.
fn refuse_old() -> Result<HandshakeSignatureValid, Error> {
    Err(refuse("TLS 1.2 is not spoken here".to_owned()))
}

#[derive(Debug)]
struct ServerVerifier {
    trust: Trust,
    expected: NodeId,
    /// Who answered instead.
    other: Arc<OnceLock<NodeId>>,
}

impl ServerCertVerifier for ServerVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let subject = self.trust.check(end_entity, intermediates, now)?;
        if subject.node != self.expected {
            self.other.get_or_init(|| subject.node);
            return Err(refuse(format!(
                "node {} answered where node {} was dialled",
                subject.node, self.expected
            )));
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        refuse_old()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.trust.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.trust.algorithms.supported_schemes()
    }
}

#[derive(Debug)]
struct ClientVerifier {
    trust: Trust,
}

impl ClientCertVerifier for ClientVerifier {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.trust.check(end_entity, intermediates, now)?;
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        refuse_old()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.trust.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.trust.algorithms.supported_schemes()
    }
}

/// Believes whoever the authority of the invite code has certified as a member.
#[derive(Debug)]
struct JoinVerifier {
    authority: Fingerprint,
    algorithms: WebPkiSupportedAlgorithms,
    foreign: Arc<Foreign>,
}

impl ServerCertVerifier for JoinVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let subject = Subject::read(end_entity).map_err(|error| refuse(error.to_string()))?;
        let is_root = |certificate: &&CertificateDer<'_>| {
            Fingerprint::of_certificate(certificate).is_ok_and(|found| found == self.authority)
        };
        let Some(root) = intermediates.iter().find(is_root) else {
            let shown = intermediates.last().unwrap_or(end_entity);
            let shown = Fingerprint::of_certificate(shown).ok();
            *self.foreign.write().unwrap_or_else(PoisonError::into_inner) = shown;
            return Err(refuse(format!(
                "node {} of cluster {} is not of the cluster that the invite code names",
                subject.node, subject.cluster
            )));
        };
        let mut roots = RootCertStore::empty();
        roots.add(root.clone().into_owned())?;
        check_chain(&subject, end_entity, intermediates, &roots, now, &self.algorithms)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        refuse_old()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
