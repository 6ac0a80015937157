//! States that need an operator before they affect clients: failed backups, certificates about to expire, clocks that differ, and history
//! that is not kept. They are shown as metrics and as warnings in `/health` and the console. The node stays ready.

use std::sync::Arc;
use std::time::Duration;

use helenus_query::engine::Engine;
use metrics::gauge;

use crate::backups::BackupMonitor;
use crate::rpc::ClockSkew;
use crate::tls::Expiry;

const DAY_S: i64 = 24 * 3600;
/// Time before the expiry of a certificate at which the warning begins.
const EXPIRY_WARNING_S: i64 = 14 * DAY_S;
/// Minimum difference between clocks that causes a warning.
const SKEW_WARNING: Duration = Duration::from_secs(1);

/// The parts of a node that are watched.
#[derive(Clone, Default)]
pub struct Watched {
    /// `None` if no backups are scheduled.
    pub backups: Option<Arc<BackupMonitor>>,
    /// Certificates of the node, with the names of their uses.
    pub certificates: Vec<(&'static str, Expiry)>,
    /// `None` if the node is not part of a cluster.
    pub clock_skew: Option<Arc<ClockSkew>>,
}

impl Watched {
    /// Sets the gauges.
    pub fn record(&self) {
        if let Some(backups) = &self.backups {
            backups.record();
        }
        for (purpose, expiry) in &self.certificates {
            if let Some(at_s) = expiry.at_s() {
                gauge!("helenus_certificate_expiry_seconds", "use" => *purpose).set(at_s as f64);
            }
        }
        if let Some(skew) = &self.clock_skew {
            let us = skew.largest().map_or(0, |(_, us)| us);
            gauge!("helenus_clock_skew_seconds").set(us as f64 / 1e6);
        }
    }

    /// Returns the warnings for the operator. Empty if all is well.
    pub fn warnings(&self, engine: &Engine) -> Vec<String> {
        let now_s = engine.wall_clock_us() / 1_000_000;
        let certificates = self.certificates.iter();
        let expiries =
            certificates.filter_map(|(purpose, expiry)| expiry_warning(purpose, expiry.at_s()?, now_s));
        let mut warnings: Vec<String> = expiries.collect();
        let skew = self.clock_skew.as_ref().and_then(|skew| skew.largest());
        warnings.extend(skew.and_then(|(node, us)| skew_warning(&node, us)));
        warnings.extend(self.backups.as_ref().and_then(|backups| backups.warning()));
        if let Some(error) = engine.history_failure() {
            warnings.push(format!("history is not kept: {error}"));
        }
        warnings
    }
}

fn expiry_warning(purpose: &str, at_s: i64, now_s: i64) -> Option<String> {
    let left_s = at_s - now_s;
    match left_s {
        ..=0 => Some(format!("the certificate for {purpose} has expired")),
        1..EXPIRY_WARNING_S => {
            let days = (left_s + DAY_S - 1) / DAY_S;
            Some(format!(
                "the certificate for {purpose} expires within {days} days"
            ))
        }
        _ => None,
    }
}

fn skew_warning(node: &str, us: i64) -> Option<String> {
    if us.unsigned_abs() < SKEW_WARNING.as_micros() as u64 {
        return None;
    }
    let seconds = us.unsigned_abs() as f64 / 1e6;
    let side = if us > 0 { "ahead of" } else { "behind" };
    Some(format!(
        "the clock of node {node} is {seconds:.1} s {side} this node's"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_warned_of_two_weeks_before() {
        let warning = |left_s| expiry_warning("clients", 1_000 + left_s, 1_000);
        assert_eq!(warning(14 * DAY_S), None);
        assert_eq!(
            warning(3 * DAY_S + 5).unwrap(),
            "the certificate for clients expires within 4 days"
        );
        assert_eq!(warning(0).unwrap(), "the certificate for clients has expired");
    }

    #[test]
    fn clocks_are_warned_of_from_a_second_on() {
        assert_eq!(skew_warning("b", 999_999), None);
        assert_eq!(
            skew_warning("b", 1_500_000).unwrap(),
            "the clock of node b is 1.5 s ahead of this node's"
        );
        assert_eq!(
            skew_warning("b", -3_000_000).unwrap(),
            "the clock of node b is 3.0 s behind this node's"
        );
    }
}
