//! TLS between the load generator and the server.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

/// Returns the TLS configuration. The server's certificate must be signed by an authority of the file, or of the system if there is none.
pub fn client_config(authority: Option<&Path>) -> Result<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    match authority {
        Some(path) => {
            let unreadable = || format!("can't read certificates from {}", path.display());
            let found = CertificateDer::pem_file_iter(path).with_context(unreadable)?;
            roots.add_parsable_certificates(found.collect::<Result<Vec<_>, _>>().with_context(unreadable)?);
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    ensure!(
        !roots.is_empty(),
        "the system has no trusted certificate authorities: give --tls-authority"
    );
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}
