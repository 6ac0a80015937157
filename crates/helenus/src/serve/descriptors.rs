//! File descriptors: as many as the process may have, and some of them for the store whatever clients do.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// More than this is of no use, and a system may refuse it.
const WANTED: u64 = 1 << 20;
/// What the store, its log and HTTP take at most; of a low limit they have half.
const RESERVED: u64 = 2048;

/// Raises the soft limit as far as it goes; gives the limit, if there is one.
pub fn raise() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let current = current?;
    let wanted = maximum.unwrap_or(WANTED).min(WANTED);
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

/// How many connections of clients leave enough of the limit for all else.
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
