//! TLS for clients.

use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::BytesMut;
use helenus_cql::error::CqlError;
use helenus_cql::frame::{OutputEncoder, ProtocolVersion, Response};
use rustls::RootCertStore;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Where the certificates lie, as PEM files, and who is served (Cassandra's `client_encryption_options`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientTlsFiles {
    /// The node's certificate, those that it hangs on behind it.
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// Who has signed the certificates that clients must show; none must without it.
    pub authority: Option<PathBuf>,
    /// Clients without TLS are served too.
    pub is_optional: bool,
}

/// How clients' connections are encrypted.
#[derive(Clone)]
pub struct ClientTls {
    acceptor: TlsAcceptor,
    is_optional: bool,
}

impl std::fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientTls")
            .field("is_optional", &self.is_optional)
            .finish_non_exhaustive()
    }
}

impl ClientTls {
    /// Reads the files.
    ///
    /// # Errors
    /// With the file that can't be read, or is no certificate or no key of it.
    pub fn load(files: &ClientTlsFiles) -> Result<ClientTls, String> {
        let provider = Arc::new(ring::default_provider());
        let builder = rustls::ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let builder = match &files.authority {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let roots = Arc::new(roots(path)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider).build();
                let verifier = verifier.map_err(|error| format!("{}: {error}", path.display()))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let key = PrivateKeyDer::from_pem_file(&files.key)
            .map_err(|error| format!("cannot read a key from {}: {error}", files.key.display()))?;
        let config = builder
            .with_single_cert(certificates(&files.certificate)?, key)
            .map_err(|error| {
                let (certificate, key) = (files.certificate.display(), files.key.display());
                format!("{certificate} and {key} don't go together: {error}")
            })?;
        Ok(ClientTls {
            acceptor: TlsAcceptor::from(Arc::new(config)),
            is_optional: files.is_optional,
        })
    }

    /// Encrypts a connection whose client begins to.
    ///
    /// # Errors
    /// If it does not, or does it wrong.
    pub(crate) async fn accept(&self, socket: TcpStream) -> io::Result<Stream> {
        let mut first = [0];
        socket.peek(&mut first).await?;
        match first {
            [HANDSHAKE] => {
                let stream = self.acceptor.accept(socket).await?;
                Ok(Stream::Encrypted(Box::new(stream)))
            }
            _ if self.is_optional => Ok(Stream::Plain(socket)),
            [version] => {
                tell_to_encrypt(socket, version).await;
                Err(io::Error::other("it does not begin to encrypt"))
            }
        }
    }
}

/// The first byte of a TLS connection. No version of the native protocol begins so.
const HANDSHAKE: u8 = 0x16;

/// Tells a client that speaks CQL unencrypted what is wanted: a connection that just ends would puzzle people.
async fn tell_to_encrypt(mut socket: TcpStream, version: u8) {
    let Some(version) = ProtocolVersion::from_number(version & 0x7f) else {
        return;
    };
    let refused = CqlError::Protocol("This server wants clients to use TLS".to_owned());
    let mut out = BytesMut::new();
    OutputEncoder::unstarted().response(version, 0, &Response::Error(refused).into(), &mut out);
    // The client may be gone.
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

/// What a client's bytes come through.
pub(crate) enum Stream {
    Plain(TcpStream),
    Encrypted(Box<TlsStream<TcpStream>>),
}

impl Stream {
    /// Protocol and cipher suite, if it is encrypted.
    pub fn encryption(&self) -> Option<(String, String)> {
        let Stream::Encrypted(stream) = self else {
            return None;
        };
        let (_, connection) = stream.get_ref();
        let protocol = connection.protocol_version()?.as_str()?;
        let suite = connection.negotiated_cipher_suite()?.suite().as_str()?;
        // As Java names them.
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
