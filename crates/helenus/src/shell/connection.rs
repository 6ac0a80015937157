//! Options of a connection, which all commands that speak CQL have.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use rustls::ClientConfig;

use super::client::Login;
use super::tls::{OwnCertificate, client_config};

/// Log-in and encryption.
#[derive(Args, Debug)]
pub struct ConnectionArgs {
    /// The user to log in as, if the server requires it
    #[arg(short, long)]
    pub(crate) username: Option<String>,
    /// The password; read from the terminal if it is needed and not given
    #[arg(short, long, env = "HELENUS_PASSWORD", hide_env_values = true)]
    pub(crate) password: Option<String>,
    /// Encrypt the connection, and verify the server's certificate
    #[arg(long, alias = "ssl")]
    pub(crate) tls: bool,
    /// The authority that signed the server's certificate, as a PEM file [default: those that the system trusts]
    #[arg(long, value_name = "FILE", requires = "tls")]
    pub(crate) tls_authority: Option<PathBuf>,
    /// The client's own certificate for servers that require one (cqlsh's usercert), as a PEM file
    #[arg(
        long,
        value_name = "FILE",
        requires = "tls",
        requires = "tls_key",
        alias = "usercert"
    )]
    pub(crate) tls_certificate: Option<PathBuf>,
    /// The key of that certificate (cqlsh's userkey), as a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_certificate", alias = "userkey")]
    pub(crate) tls_key: Option<PathBuf>,
}

impl ConnectionArgs {
    pub fn login(&self) -> Login {
        Login {
            username: self.username.clone(),
            password: self.password.clone(),
        }
    }

    /// Returns the configuration of TLS. `None` if the connection isn't encrypted.
    pub fn encryption(&self) -> Result<Option<Arc<ClientConfig>>> {
        if !self.tls {
            return Ok(None);
        }
        client_config(self.tls_authority.as_deref(), self.own_certificate()).map(Some)
    }

    fn own_certificate(&self) -> Option<OwnCertificate<'_>> {
        Some(OwnCertificate {
            certificate: self.tls_certificate.as_deref()?,
            key: self.tls_key.as_deref()?,
        })
    }
}

/// Defines the log-in and the encryption of one side, for commands that connect to two clusters.
macro_rules! connection_args {
    ($name:ident, $doc:literal, $username:ident, $password:ident, $variable:literal, $tls:ident, $authority:ident, $certificate:ident, $key:ident) => {
        #[doc = $doc]
        #[derive(clap::Args, Debug)]
        pub struct $name {
            /// The user to log in as, if the cluster requires it
            #[arg(long, value_name = "USER")]
            $username: Option<String>,
            /// The password; read from the terminal if it is needed and not given
            #[arg(long, value_name = "PASSWORD", env = $variable, hide_env_values = true)]
            $password: Option<String>,
            /// Encrypt the connection, and verify the server's certificate
            #[arg(long)]
            $tls: bool,
            /// The authority that signed the server's certificate, as a PEM file [default: those that the system trusts]
            #[arg(long, value_name = "FILE")]
            $authority: Option<std::path::PathBuf>,
            /// The client's own certificate, as a PEM file
            #[arg(long, value_name = "FILE")]
            $certificate: Option<std::path::PathBuf>,
            /// The key of that certificate, as a PEM file
            #[arg(long, value_name = "FILE")]
            $key: Option<std::path::PathBuf>,
        }

        impl $name {
            /// Returns the options in the form of those of one server.
            pub fn connection(&self) -> $crate::shell::ConnectionArgs {
                $crate::shell::ConnectionArgs {
                    username: self.$username.clone(),
                    password: self.$password.clone(),
                    tls: self.$tls,
                    tls_authority: self.$authority.clone(),
                    tls_certificate: self.$certificate.clone(),
                    tls_key: self.$key.clone(),
                }
            }
        }
    };
}
pub(crate) use connection_args;

/// Returns the address, with Cassandra's port if it has none.
pub fn with_port(host: &str) -> String {
    let has_port = match host.strip_prefix('[') {
        Some(v6) => v6.contains("]:"),
        None => host.matches(':').count() == 1,
    };
    match has_port {
        true => host.to_owned(),
        false if host.contains(':') && !host.starts_with('[') => format!("[{host}]:9042"),
        false => format!("{host}:9042"),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_port_is_optional() {
        assert_eq!(super::with_port("db1"), "db1:9042");
        assert_eq!(super::with_port("db1:9043"), "db1:9043");
        assert_eq!(super::with_port("::1"), "[::1]:9042");
        assert_eq!(super::with_port("[::1]:9043"), "[::1]:9043");
    }
}
