//! The credentials that a node needs to call another one. The cluster document shows them, so that a node without them notices before it
//! joins.

use serde::{Deserialize, Serialize};

/// Digests of a node's secret and certificates. Neither can be derived from them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credentials {
    /// A digest of the secret, specific to this store.
    pub secret: String,
    /// Digests of the authorities whose certificates the node trusts. Empty if connections are not encrypted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub authorities: Vec<String>,
}

impl Credentials {
    /// Returns the reason for which a node with the credentials `theirs` and one with these could not communicate. `None` if they can. One
    /// authority in common is enough, so that authorities can be replaced one node after the other.
    pub(crate) fn differ(&self, theirs: Option<&Credentials>) -> Option<&'static str> {
        let Some(theirs) = theirs else {
            return Some(
                "it is of a version that knows no identities of stores; stop the nodes of that version first",
            );
        };
        let encrypts = |credentials: &Credentials| !credentials.authorities.is_empty();
        let in_common = |authority| theirs.authorities.contains(authority);
        if self.secret != theirs.secret {
            return Some("it has another cluster_secret");
        }
        match (encrypts(self), encrypts(theirs)) {
            (false, false) => None,
            (false, true) => Some(
                "it speaks TLS, and rpc_tls_certificate, rpc_tls_key and rpc_tls_authority are not set here",
            ),
            (true, false) => Some("it does not speak TLS, and rpc_tls_certificate is set here"),
            (true, true) if self.authorities.iter().any(in_common) => None,
            (true, true) => Some("it trusts the certificates of another authority (rpc_tls_authority)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credentials(secret: &str, authorities: &[&str]) -> Credentials {
        Credentials {
            secret: secret.into(),
            authorities: authorities.iter().map(|&authority| authority.into()).collect(),
        }
    }

    #[test]
    fn nodes_with_common_secret_and_authority_connect() {
        let plain = credentials("s", &[]);
        let old = credentials("s", &["a"]);
        let both = credentials("s", &["a", "b"]);
        let new = credentials("s", &["b"]);
        for (one, other) in [(&plain, &plain), (&old, &both), (&both, &new)] {
            assert_eq!(one.differ(Some(other)), None);
            assert_eq!(other.differ(Some(one)), None);
        }
        let differs = |one: &Credentials, other| one.differ(other).unwrap_or("");
        let guess = credentials("t", &[]);
        assert!(differs(&plain, Some(&guess)).contains("cluster_secret"));
        assert!(differs(&plain, Some(&old)).contains("not set here"));
        assert!(differs(&old, Some(&plain)).contains("does not speak TLS"));
        assert!(differs(&old, Some(&new)).contains("another authority"));
        assert!(differs(&plain, None).contains("version"));
    }
}
