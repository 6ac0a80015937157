//! Limits attempts to log in, so that passwords cannot be guessed.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Number of failed attempts from one address within [`WINDOW`] after which further ones are refused.
const ATTEMPTS_MAX: u32 = 5;
const WINDOW: Duration = Duration::from_secs(60);
/// Maximum number of addresses that are remembered. Beyond it, attempts from new addresses are refused until a window ends.
const ADDRESSES_MAX: usize = 4096;

/// The attempts of the last minute that have not succeeded, by address.
#[derive(Debug, Default)]
pub(super) struct LoginLimit(Mutex<HashMap<IpAddr, (Instant, u32)>>);

impl LoginLimit {
    /// Counts an attempt before the password is checked. Returns false if the attempt must be refused.
    pub fn begin(&self, address: IpAddr, now: Instant) -> bool {
        let mut attempts = self.0.lock();
        attempts.retain(|_, (began, _)| now.duration_since(*began) < WINDOW);
        if attempts.len() >= ADDRESSES_MAX && !attempts.contains_key(&address) {
            return false;
        }
        let (_, count) = attempts.entry(address).or_insert((now, 0));
        *count += 1;
        *count <= ATTEMPTS_MAX
    }

    /// Forgets the failed attempts of an address that has logged in.
    pub fn succeeded(&self, address: IpAddr) {
        self.0.lock().remove(&address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sixth_failure_of_a_minute_is_refused() {
        let (limit, now) = (LoginLimit::default(), Instant::now());
        let (one, other) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        assert!((0..5).all(|_| limit.begin(one, now)));
        assert!(!limit.begin(one, now));
        assert!(limit.begin(other, now));
        assert!(limit.begin(one, now + WINDOW));
        limit.succeeded(one);
        assert!((0..5).all(|_| limit.begin(one, now + WINDOW)));
    }
}
