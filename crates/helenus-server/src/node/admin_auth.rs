//! Authorises admin commands over HTTP: from the node's own machine, or with the cluster's secret.
//!
//! From another machine, a command takes two steps. `GET /cluster/challenge` returns a word that this process has made and that is valid
//! for a few minutes. For the [`commands`](crate::http::commands) to a node, the path is `GET /node/challenge`. The command then has
//! the header `authorization: helenus CHALLENGE.MAC`. The MAC is that of the command and the challenge, with the secret as its key. Each
//! challenge is valid once: an attacker who reads the traffic can repeat the command neither here nor at another node.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, StatusCode, header};
use parking_lot::Mutex;

use crate::logs::rate_limit::LogRateLimiter;
use crate::rpc::secret::{Purpose, Secret};

const SCHEME: &str = "helenus ";
/// Time for which used challenges are remembered. It is longer than challenges are valid.
const REMEMBERED: Duration = Duration::from_secs(900);

const REFUSAL: &str = "commands are taken from this machine, or with the cluster's secret: nodetool takes it from HELENUS_CLUSTER_SECRET\n";

/// The HTTP status and the reason of a command that was refused or has failed.
pub(crate) type Refusal = (StatusCode, String);

/// Returns the header `authorization` of a command, such as `POST /cluster/drain`, for a challenge.
pub fn authorization(secret: &Secret, command: &str, challenge: &str) -> String {
    let mac = secret.sign(Purpose::Command, &signed(command, challenge));
    format!("{SCHEME}{challenge}.{mac}")
}

fn signed(command: &str, challenge: &str) -> String {
    format!("{command} {challenge}")
}

/// Decides which commands are accepted.
#[derive(Clone)]
pub(crate) struct AdminAuthenticator {
    secret: Secret,
    /// Key that signs the challenges of this process.
    own: Secret,
    used: Arc<Mutex<HashMap<String, Instant>>>,
    refusals: Arc<LogRateLimiter>,
}

impl AdminAuthenticator {
    pub fn new(secret: Secret) -> AdminAuthenticator {
        AdminAuthenticator {
            secret,
            own: Secret::random(),
            used: Arc::default(),
            refusals: Arc::default(),
        }
    }

    /// Returns a new challenge.
    pub fn challenge(&self) -> String {
        let proof = self.own.proof(Purpose::Command);
        proof.trim_start_matches(SCHEME).to_owned()
    }

    /// Refuses a command from a caller that is not authorised.
    ///
    /// # Errors
    /// The response to the caller.
    pub fn check(&self, command: &str, peer: SocketAddr, headers: &HeaderMap) -> Result<(), Refusal> {
        if self.allow(command, peer, headers) {
            return Ok(());
        }
        if let Some(suppressed) = self.refusals.take() {
            tracing::warn!(%peer, command, suppressed, "a command was refused");
        }
        Err((StatusCode::FORBIDDEN, REFUSAL.to_owned()))
    }

    /// Refuses a command from a caller that is not authorised, and logs an accepted one.
    ///
    /// # Errors
    /// The response to the caller.
    pub fn admit(&self, command: &str, peer: SocketAddr, headers: &HeaderMap) -> Result<(), Refusal> {
        self.check(command, peer, headers)?;
        tracing::info!(%peer, command, "a command is carried out");
        Ok(())
    }

    /// Returns true if the caller is authorised to send this command.
    fn allow(&self, command: &str, peer: SocketAddr, headers: &HeaderMap) -> bool {
        let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
        match text(header::AUTHORIZATION) {
            Some(answer) => self.verify_response(command, answer).is_some(),
            None => {
                // Excludes pages in a browser on this machine. Such a page sends its origin, or a host name of its own that resolves to
                // this machine.
                peer.ip().to_canonical().is_loopback()
                    && text(header::ORIGIN).is_none()
                    && text(header::HOST).is_some_and(is_this_machine)
            }
        }
    }

    fn verify_response(&self, command: &str, answer: &str) -> Option<()> {
        let (challenge, mac) = answer.strip_prefix(SCHEME)?.rsplit_once('.')?;
        let is_answered = self
            .secret
            .has_signed(Purpose::Command, &signed(command, challenge), mac);
        let is_own = self
            .own
            .accepts(Purpose::Command, &format!("{SCHEME}{challenge}"));
        if !is_answered || !is_own {
            return None;
        }
        let mut used = self.used.lock();
        used.retain(|_, at| at.elapsed() < REMEMBERED);
        match used.insert(challenge.to_owned(), Instant::now()) {
            None => Some(()),
            Some(_) => None,
        }
    }
}

/// Returns true if a header `host` names this machine by a name that no name server resolves.
fn is_this_machine(host: &str) -> bool {
    if let Ok(address) = host.parse::<SocketAddr>() {
        return address.ip().is_loopback();
    }
    let name = match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAIN: &str = "POST /cluster/drain";

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
            .collect()
    }

    #[test]
    fn a_challenge_is_answered_once() {
        let far = SocketAddr::from(([192, 0, 2, 1], 5));
        let (one, other) = (
            AdminAuthenticator::new(Secret::new("hush")),
            AdminAuthenticator::new(Secret::new("hush")),
        );
        let challenge = one.challenge();
        let answer = |secret: &str, command: &str| {
            let answer = authorization(&Secret::new(secret), command, &challenge);
            headers(&[("authorization", &answer)])
        };
        assert!(!one.allow(DRAIN, far, &headers(&[])));
        assert!(!one.allow(DRAIN, far, &answer("other", DRAIN)));
        assert!(!one.allow(DRAIN, far, &answer("hush", "POST /cluster/other")));
        assert!(
            !other.allow(DRAIN, far, &answer("hush", DRAIN)),
            "another process"
        );
        assert!(one.allow(DRAIN, far, &answer("hush", DRAIN)));
        assert!(!one.allow(DRAIN, far, &answer("hush", DRAIN)), "used up");
        assert!(!one.allow(DRAIN, far, &headers(&[("authorization", "helenus x")])));
    }

    #[test]
    fn a_browser_at_this_machine_may_not() {
        let here = SocketAddr::from(([127, 0, 0, 1], 5));
        let authenticator = AdminAuthenticator::new(Secret::new("hush"));
        let allow = |pairs: &[(&'static str, &str)]| authenticator.allow(DRAIN, here, &headers(pairs));
        for host in [
            "127.0.0.1:9180",
            "localhost",
            "LocalHost:9180",
            "[::1]:9180",
            "127.0.0.3",
        ] {
            assert!(allow(&[("host", host)]), "{host}");
            assert!(!allow(&[("host", host), ("origin", "http://example.org")]));
        }
        for host in [
            "example.org:9180",
            "127.0.0.1.example.org",
            "localhost.example.org",
            "192.0.2.1:9180",
            "",
        ] {
            assert!(!allow(&[("host", host)]), "{host}");
        }
        assert!(!allow(&[]));
    }
}
