//! Location of the log's topic, and settings of the connections to its brokers.

use std::path::PathBuf;
use std::sync::Arc;

use rskafka::client::{Credentials, SaslConfig};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::error::StoreError;

const SCHEME: &str = "kafka://";

/// Location of a topic: `kafka://broker1:9092,broker2:9092/TOPIC`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicUrl {
    /// Addresses of some of the brokers. The other brokers are discovered through them.
    pub brokers: Vec<String>,
    pub topic: String,
}

impl TopicUrl {
    /// Parses a URL. `None` if it has another scheme.
    pub fn parse(text: &str) -> Option<Result<TopicUrl, StoreError>> {
        let rest = text.strip_prefix(SCHEME)?;
        let bad = |why: &str| {
            Some(Err(StoreError::InvalidConfig(format!(
                "log_store = \"{text}\": {why}; allowed is kafka://broker1:9092,broker2:9092/TOPIC"
            ))))
        };
        let Some((brokers, topic)) = rest.split_once('/') else {
            return bad("the topic is missing");
        };
        let brokers: Vec<String> = brokers.split(',').map(str::to_owned).collect();
        let has_port = |broker: &String| {
            let address = broker.rsplit_once(':');
            address.is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
        };
        if !brokers.iter().all(has_port) {
            return bad("a broker is a host and a port");
        }
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if topic.is_empty() || topic.len() > 249 || !topic.bytes().all(legal) || topic == "." || topic == ".."
        {
            return bad("a topic's name has 1 to 249 letters, digits, dots, underscores and dashes");
        }
        let topic = topic.to_owned();
        Some(Ok(TopicUrl { brokers, topic }))
    }
}

impl std::fmt::Display for TopicUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{SCHEME}{}/{}", self.brokers.join(","), self.topic)
    }
}

/// Mechanism by which clients authenticate to the brokers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SaslMechanism {
    Plain,
    ScramSha256,
    ScramSha512,
}

/// Connections to the brokers, and requirements of the topic.
#[derive(Clone)]
pub struct TopicConfig {
    /// True if connections use TLS.
    pub tls: bool,
    /// PEM file with the certificate authorities of the brokers. `None` for the system's authorities.
    pub tls_authority: Option<PathBuf>,
    pub sasl_mechanism: SaslMechanism,
    /// User name. `None` if clients do not authenticate.
    pub user: Option<String>,
    pub password: Option<String>,
    /// Minimum number of replicas of the topic. A new topic is created with this number.
    pub replicas_min: u16,
    /// Number of partitions of a new topic.
    pub partitions: u32,
}

impl Default for TopicConfig {
    fn default() -> Self {
        TopicConfig {
            tls: false,
            tls_authority: None,
            sasl_mechanism: SaslMechanism::ScramSha512,
            user: None,
            password: None,
            replicas_min: 3,
            partitions: 48,
        }
    }
}

impl TopicConfig {
    pub(crate) fn sasl_client(&self) -> Option<SaslConfig> {
        let user = self.user.clone()?;
        let credentials = Credentials::new(user, self.password.clone().unwrap_or_default());
        Some(match self.sasl_mechanism {
            SaslMechanism::Plain => SaslConfig::Plain(credentials),
            SaslMechanism::ScramSha256 => SaslConfig::ScramSha256(credentials),
            SaslMechanism::ScramSha512 => SaslConfig::ScramSha512(credentials),
        })
    }

    pub(crate) fn tls_client(&self) -> Result<Option<Arc<rustls::ClientConfig>>, StoreError> {
        if !self.tls {
            return Ok(None);
        }
        let mut roots = rustls::RootCertStore::empty();
        let bad = |why: String| StoreError::InvalidConfig(format!("log_store_tls_authority: {why}"));
        match &self.tls_authority {
            Some(path) => {
                let read = CertificateDer::pem_file_iter(path);
                for found in read.map_err(|error| bad(format!("{}: {error}", path.display())))? {
                    let found = found.map_err(|error| bad(format!("{}: {error}", path.display())))?;
                    roots.add(found).map_err(|error| bad(error.to_string()))?;
                }
            }
            None => {
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            }
        }
        if roots.is_empty() {
            return Err(bad("there is no certificate of an authority".into()));
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| bad(error.to_string()))?;
        Ok(Some(Arc::new(
            config.with_root_certificates(roots).with_no_client_auth(),
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let url = TopicUrl::parse("kafka://one:9092,[::1]:9093/the.log")
            .unwrap()
            .unwrap();
        assert_eq!(url.brokers, ["one:9092", "[::1]:9093"]);
        assert_eq!(url.topic, "the.log");
        assert_eq!(url.to_string(), "kafka://one:9092,[::1]:9093/the.log");
        assert!(TopicUrl::parse("s3://bucket").is_none());
        for wrong in [
            "kafka://one:9092",
            "kafka://one/log",
            "kafka://one:9092,/log",
            "kafka://one:9092/a/b",
        ] {
            assert!(TopicUrl::parse(wrong).unwrap().is_err(), "{wrong}");
        }
    }
}
