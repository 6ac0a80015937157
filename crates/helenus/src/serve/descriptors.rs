//! File descriptors: raises the process's limit, and reserves a part for the store, so that clients cannot use all of them.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Highest limit to request. A higher one is of no use, and a system may refuse it.
const LIMIT_MAX: u64 = 1 << 20;
/// Descriptors reserved for the store, its log and HTTP. If the limit is low, half of it is reserved.
const RESERVED: u64 = 2048;

/// Raises the soft limit as far as possible. Returns the limit in effect, or `None` if there is none.
pub fn raise() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let current = current?;
    let wanted = maximum.unwrap_or(LIMIT_MAX).min(LIMIT_MAX);
    if current >= wanted {
        return Some(current);
    }
    let raised = Rlimit {
        current: Some(wanted),
        maximum,
    };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => Some(wanted),
        Err(error) => {
            tracing::warn!(%error, current, wanted, "the limit of open files can't be raised");
            Some(current)
        }
    }
}

/// Returns the maximum number of client connections that leaves enough descriptors for all else.
pub fn connections_max(wanted: usize, limit: Option<u64>) -> usize {
    let Some(limit) = limit else { return wanted };
    let left = limit - RESERVED.min(limit / 2);
    let most = usize::try_from(left).unwrap_or(usize::MAX).max(1);
    if wanted > most {
        tracing::warn!(
            connections_max = most,
            wanted,
            limit,
            "fewer connections than wanted: the limit of open files (ulimit -n) is low"
        );
    }
    wanted.min(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_store_keeps_its_share() {
        assert_eq!(connections_max(16_384, None), 16_384);
        assert_eq!(connections_max(16_384, Some(1 << 20)), 16_384);
        assert_eq!(connections_max(16_384, Some(10_000)), 7_952);
        assert_eq!(connections_max(16_384, Some(1024)), 512);
        assert_eq!(connections_max(100, Some(1024)), 100);
    }
}
