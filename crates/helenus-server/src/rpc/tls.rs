//! TLS between nodes. Each side shows a certificate that the cluster's own authority has signed.

use std::path::{Path, PathBuf};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use sha2::{Digest, Sha256};
use tonic::transport::{Certificate, ClientTlsConfig, Identity, ServerTlsConfig};

use super::secret::hex;
use crate::tls::Expiry;

/// The name that every node's certificate must have among its alternative names. It is the same for all nodes, because nodes and their
/// addresses change.
pub const NAME_DEFAULT: &str = "helenus";

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
    identity: Identity,
    authority: Certificate,
    authorities: Vec<String>,
    expiry: Expiry,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// A file cannot be read. The text names the file.
    pub fn load(files: &TlsFiles) -> Result<Tls, String> {
        // The call fails if a provider is installed already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let read = |path: &Path| {
            std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
        };
        let authority = read(&files.authority)?;
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&authority).collect();
        let certificates =
            certificates.map_err(|error| format!("cannot read {}: {error}", files.authority.display()))?;
        if certificates.is_empty() {
            return Err(format!("{} holds no certificate", files.authority.display()));
        }
        let certificate = read(&files.certificate)?;
        Ok(Tls {
            expiry: Expiry::of(&certificate),
            identity: Identity::from_pem(certificate, read(&files.key)?),
            authorities: certificates
                .iter()
                .map(|certificate| hex(&Sha256::digest(certificate)))
                .collect(),
            authority: Certificate::from_pem(authority),
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

    pub(super) fn server(&self) -> ServerTlsConfig {
        ServerTlsConfig::new()
            .identity(self.identity.clone())
            .client_ca_root(self.authority.clone())
    }

    pub(super) fn client(&self) -> ClientTlsConfig {
        ClientTlsConfig::new()
            .identity(self.identity.clone())
            .ca_certificate(self.authority.clone())
            .domain_name(NAME_DEFAULT)
    }
}
