//! TLS between the shell and the server.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// The shell's own certificate, with its chain, and its key, as PEM files.
#[derive(Clone, Copy)]
pub struct OwnCertificate<'a> {
    pub certificate: &'a Path,
    pub key: &'a Path,
}

impl OwnCertificate<'_> {
    fn read(&self) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)> {
        let chain = certificates(self.certificate)?;
        let key = PrivateKeyDer::from_pem_file(self.key)
            .with_context(|| format!("no private key in {}", self.key.display()))?;
        Ok((chain, key))
    }
}

/// Returns the certificates of a PEM file. Fails if there is none.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let read =
        CertificateDer::pem_file_iter(path).with_context(|| format!("can't read {}", path.display()))?;
    let none = || format!("no certificate in {}", path.display());
    let certificates = read.collect::<Result<Vec<_>, _>>().with_context(none)?;
    if certificates.is_empty() {
        bail!(none());
    }
    Ok(certificates)
}

/// Returns the TLS configuration. `authority` is the file of the authorities that may have signed the server's certificate. `None` means
/// those that the system trusts. `own` is `None` if the server requires no certificate.
pub fn client_config(authority: Option<&Path>, own: Option<OwnCertificate<'_>>) -> Result<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    match authority {
        Some(path) => {
            for certificate in certificates(path)? {
                roots.add(certificate)?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    if roots.is_empty() {
        bail!("the system has no trusted certificate authorities: give --tls-authority");
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots);
    Ok(Arc::new(match own {
        Some(own) => {
            let (chain, key) = own.read()?;
            config.with_client_auth_cert(chain, key).with_context(|| {
                let (key, certificate) = (own.key.display(), own.certificate.display());
                format!("{key} is not the key of {certificate}")
            })?
        }
        None => config.with_no_client_auth(),
    }))
}

/// A plain or encrypted connection to a server.
pub enum Stream {
    Plain(TcpStream),
    Encrypted(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Stream {
    /// Encrypts a connection to a host.
    pub fn encrypt(socket: TcpStream, host: &str, config: Arc<ClientConfig>) -> Result<Stream> {
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(host.clone())
            .map_err(|_| anyhow!("{host} is not a valid server name for TLS"))?;
        let mut stream = StreamOwned::new(ClientConnection::new(config, name)?, socket);
        stream
            .conn
            .complete_io(&mut stream.sock)
            .with_context(|| format!("can't encrypt the connection to {host}"))?;
        Ok(Stream::Encrypted(Box::new(stream)))
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => socket.read(into),
            Stream::Encrypted(stream) => stream.read(into),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => socket.write(bytes),
            Stream::Encrypted(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Plain(socket) => socket.flush(),
            Stream::Encrypted(stream) => stream.flush(),
        }
    }
}
