//! TLS between nodes. Each side shows a certificate that the cluster's own authority has signed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use sha2::{Digest, Sha256};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::secret::hex;
use crate::tls::Expiry;

/// The name that every node's certificate must have among its alternative names. It is the same for all nodes, because nodes and their
/// addresses change.
const NAME: &str = "helenus";
/// Name of the protocol between nodes in the TLS handshake.
const PROTOCOL_NAME: &[u8] = b"helenus/1";

/// Paths of the certificates, as PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The node's own certificate, and its key.
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// The authority that has signed the certificates of all nodes.
    pub authority: PathBuf,
}

/// The certificates that both sides of a connection show and check.
#[derive(Clone)]
pub struct Tls {
    acceptor: TlsAcceptor,
    connector: TlsConnector,
    authorities: Vec<String>,
    expiry: Expiry,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// A file cannot be read, or its content is invalid. The text names the file.
    pub fn load(files: &TlsFiles) -> Result<Tls, String> {
        // The call fails if a provider is installed already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let authorities = certificates(&files.authority)?;
        let digest = |certificate: &CertificateDer| hex(&Sha256::digest(certificate));
        let own = OwnCertificate::load(files)?;
        Ok(Tls {
            acceptor: own.acceptor(files, &authorities)?,
            connector: own.connector(files, &authorities)?,
            authorities: authorities.iter().map(digest).collect(),
            expiry: Expiry::of(&read(&files.certificate)?),
        })
    }

    /// Returns the expiry time of the node's certificate.
    pub fn expiry(&self) -> Expiry {
        self.expiry.clone()
    }

    /// Returns digests of the authorities whose certificates are trusted.
    pub fn authorities(&self) -> Vec<String> {
        self.authorities.clone()
    }

    pub(super) fn acceptor(&self) -> &TlsAcceptor {
        &self.acceptor
    }

    pub(super) fn connector(&self) -> &TlsConnector {
        &self.connector
    }

    /// Returns the name that the certificate of the other node must have.
    pub(super) fn name() -> ServerName<'static> {
        // The conversion does not fail, because the name is a valid DNS name.
        ServerName::try_from(NAME).unwrap_or_else(|_| unreachable!())
    }
}

/// The node's certificate with its intermediate certificates, and its key.
struct OwnCertificate {
    certificates: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    provider: Arc<CryptoProvider>,
}

impl OwnCertificate {
    fn load(files: &TlsFiles) -> Result<OwnCertificate, String> {
        let key = PrivateKeyDer::from_pem_file(&files.key)
            .map_err(|error| format!("cannot read a key from {}: {error}", files.key.display()))?;
        Ok(OwnCertificate {
            certificates: certificates(&files.certificate)?,
            key,
            provider: Arc::new(rustls::crypto::ring::default_provider()),
        })
    }

    fn acceptor(
        &self,
        files: &TlsFiles,
        authorities: &[CertificateDer<'static>],
    ) -> Result<TlsAcceptor, String> {
        let roots = Arc::new(roots(authorities, &files.authority)?);
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, self.provider.clone())
            .build()
            .map_err(|error| format!("{}: {error}", files.authority.display()))?;
        let mut config = ServerConfig::builder_with_provider(self.provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_client_cert_verifier(verifier)
            .with_single_cert(self.certificates.clone(), self.key.clone_key())
            .map_err(|error| mismatch(files, &error))?;
        config.alpn_protocols = vec![PROTOCOL_NAME.to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    fn connector(
        &self,
        files: &TlsFiles,
        authorities: &[CertificateDer<'static>],
    ) -> Result<TlsConnector, String> {
        let mut config = ClientConfig::builder_with_provider(self.provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots(authorities, &files.authority)?)
            .with_client_auth_cert(self.certificates.clone(), self.key.clone_key())
            .map_err(|error| mismatch(files, &error))?;
        config.alpn_protocols = vec![PROTOCOL_NAME.to_vec()];
        Ok(TlsConnector::from(Arc::new(config)))
    }
}

fn mismatch(files: &TlsFiles, error: &rustls::Error) -> String {
    let (certificate, key) = (files.certificate.display(), files.key.display());
    format!("{certificate} and {key} don't go together: {error}")
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let bytes = read(path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let found = found.map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    match found.is_empty() {
        true => Err(format!("{} holds no certificate", path.display())),
        false => Ok(found),
    }
}

fn roots(authorities: &[CertificateDer<'static>], path: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        let added = roots.add(authority.clone());
        added.map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(roots)
}
