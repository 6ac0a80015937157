//! TLS for clients.

use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use bytes::BytesMut;
use helenus_cql::error::CqlError;
use helenus_cql::frame::{OutputEncoder, ProtocolVersion, Response};
use parking_lot::RwLock;
use rustls::RootCertStore;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::expiry::Expiry;
use crate::network::Connection;

/// Paths of the certificates, as PEM files, and the clients that are accepted (Cassandra's `client_encryption_options`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientTlsFiles {
    /// The node's certificate, followed by its intermediate certificates.
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// Certificates of the authorities that must have signed clients' certificates. `None` if clients need no certificate.
    pub authority: Option<PathBuf>,
    /// True if clients without TLS are served, too.
    pub is_optional: bool,
}

impl ClientTlsFiles {
    /// Returns the time of each file's last change. `None` if a file's time cannot be read.
    fn changed(&self) -> Vec<Option<SystemTime>> {
        let changed = |path: &PathBuf| std::fs::metadata(path).and_then(|found| found.modified()).ok();
        [&self.certificate, &self.key]
            .into_iter()
            .chain(&self.authority)
            .map(changed)
            .collect()
    }

    /// Reads the certificate's expiry time into `expiry`.
    fn read_expiry(&self, expiry: &Expiry) {
        expiry.read_again(&std::fs::read(&self.certificate).unwrap_or_default());
    }

    fn acceptor(&self) -> Result<TlsAcceptor, String> {
        let provider = Arc::new(ring::default_provider());
        let builder = rustls::ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let builder = match &self.authority {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let roots = Arc::new(roots(path)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider).build();
                let verifier = verifier.map_err(|error| format!("{}: {error}", path.display()))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let key = PrivateKeyDer::from_pem_file(&self.key)
            .map_err(|error| format!("cannot read a key from {}: {error}", self.key.display()))?;
        let config = builder
            .with_single_cert(certificates(&self.certificate)?, key)
            .map_err(|error| {
                let (certificate, key) = (self.certificate.display(), self.key.display());
                format!("{certificate} and {key} don't go together: {error}")
            })?;
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

/// Encryption of client connections.
#[derive(Clone)]
pub struct ClientTls {
    files: Arc<ClientTlsFiles>,
    acceptor: Arc<RwLock<TlsAcceptor>>,
    expiry: Expiry,
    /// Times of the files' last changes, from before they were read.
    changed: Vec<Option<SystemTime>>,
}

impl std::fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientTls")
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}

impl ClientTls {
    /// Reads the files.
    ///
    /// # Errors
    /// A file cannot be read, or has no certificate or no matching key. The text names the file.
    pub fn load(files: ClientTlsFiles) -> Result<ClientTls, String> {
        let changed = files.changed();
        let acceptor = files.acceptor()?;
        let expiry = Expiry::default();
        files.read_expiry(&expiry);
        Ok(ClientTls {
            files: Arc::new(files),
            acceptor: Arc::new(RwLock::new(acceptor)),
            expiry,
            changed,
        })
    }

    /// Returns the expiry time of the node's certificate for clients.
    pub fn expiry(&self) -> Expiry {
        self.expiry.clone()
    }

    /// Reads changed files again. The files are checked once in each interval and upon each notification of `reload` (Cassandra's `SSLFactory`
    /// checks every ten minutes). New connections use the new certificates. If the changed files cannot be read, the old certificates stay in use.
    pub async fn follow_files(mut self, interval: Duration, reload: Arc<Notify>) {
        loop {
            let _ = tokio::time::timeout(interval, reload.notified()).await;
            let files = self.files.clone();
            let Ok(changed) = helenus_tablet::threads::spawn_blocking(move || files.changed()).await else {
                return;
            };
            if changed == self.changed {
                continue;
            }
            self.changed = changed;
            let (files, expiry) = (self.files.clone(), self.expiry.clone());
            let read = move || files.acceptor().inspect(|_| files.read_expiry(&expiry));
            match helenus_tablet::threads::spawn_blocking(read).await {
                Ok(Ok(acceptor)) => {
                    *self.acceptor.write() = acceptor;
                    tracing::info!("the certificates for clients were read again");
                }
                Ok(Err(error)) => {
                    tracing::warn!(%error, "the changed certificates for clients are not used");
                }
                Err(_) => return,
            }
        }
    }

    /// Accepts a client's TLS connection. The connection stays unencrypted if the client does not use TLS and need not.
    ///
    /// # Errors
    /// The TLS handshake fails, or the client does not use TLS although it must.
    pub(crate) async fn accept(&self, mut socket: Connection) -> io::Result<Stream> {
        match socket.peek().await? {
            HANDSHAKE => {
                let acceptor = self.acceptor.read().clone();
                let stream = acceptor.accept(socket).await?;
                Ok(Stream::Encrypted(Box::new(stream)))
            }
            _ if self.files.is_optional => Ok(Stream::Plain(socket)),
            version => {
                require_encryption(socket, version).await;
                Err(io::Error::other("the client did not start a TLS handshake"))
            }
        }
    }
}

/// First byte of a TLS connection. No version of the native protocol begins with it.
const HANDSHAKE: u8 = 0x16;

/// Sends an error to a client that speaks unencrypted CQL. Without it, the client would not learn why the connection closes.
async fn require_encryption(mut socket: Connection, version: u8) {
    let Some(version) = ProtocolVersion::from_number(version & 0x7f) else {
        return;
    };
    let refused = CqlError::Protocol("This server wants clients to use TLS".to_owned());
    let mut out = BytesMut::new();
    OutputEncoder::unstarted().response(version, 0, &Response::Error(refused).into(), &mut out);
    // Errors are ignored, because the client may have disconnected.
    let _ = socket.write_all(&out).await;
    let _ = socket.shutdown().await;
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(path).and_then(|found| found.collect::<Result<Vec<_>, _>>());
    let found = read.map_err(|error| format!("cannot read certificates from {}: {error}", path.display()))?;
    match found.is_empty() {
        true => Err(format!("there is no certificate in {}", path.display())),
        false => Ok(found),
    }
}

fn roots(path: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        let added = roots.add(certificate);
        added.map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(roots)
}

/// A client's byte stream.
pub(crate) enum Stream {
    Plain(Connection),
    Encrypted(Box<TlsStream<Connection>>),
}

impl Stream {
    /// Returns the protocol and the cipher suite. `None` if the stream is not encrypted.
    pub fn encryption(&self) -> Option<(String, String)> {
        let Stream::Encrypted(stream) = self else {
            return None;
        };
        let (_, connection) = stream.get_ref();
        let protocol = connection.protocol_version()?.as_str()?;
        let suite = connection.negotiated_cipher_suite()?.suite().as_str()?;
        // Java's names are reported, as Cassandra does.
        let suite = suite.replace("TLS13_", "TLS_");
        Some((protocol.replace("v1_", "v1."), suite))
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(socket) => Pin::new(socket).poll_read(cx, into),
            Stream::Encrypted(stream) => Pin::new(stream).poll_read(cx, into),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(socket) => Pin::new(socket).poll_write(cx, bytes),
            Stream::Encrypted(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(socket) => Pin::new(socket).poll_flush(cx),
            Stream::Encrypted(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(socket) => Pin::new(socket).poll_shutdown(cx),
            Stream::Encrypted(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
