//! Encryption of client connections, and the expiry of certificates of all kinds. Encryption between nodes is in `rpc/tls.rs`.

mod clients;
mod expiry;

pub(crate) use clients::Stream;
pub use clients::{ClientTls, ClientTlsFiles};
pub use expiry::Expiry;
