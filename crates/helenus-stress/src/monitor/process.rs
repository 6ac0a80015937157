//! CPU time and memory of processes on this machine, from `/proc`.

use std::fs;
use std::time::Duration;

/// Sum of the CPU time and resident memory of a server's processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub cpu: Duration,
    pub rss_bytes: u64,
}

/// Returns the total usage of `pids`. `None` if one of them cannot be read.
pub fn usage(pids: &[u32]) -> Option<Usage> {
    let mut all = Usage::default();
    for pid in pids {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        all.cpu += cpu_of_stat(&stat)?;
        all.rss_bytes += rss_of_status(&status)?;
    }
    (!pids.is_empty()).then_some(all)
}

/// Returns user and system time. Linux reports them in hundredths of a second.
fn cpu_of_stat(stat: &str) -> Option<Duration> {
    // The command's name is in parentheses, and may itself contain parentheses and spaces.
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split_ascii_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(Duration::from_millis((user + system) * 10))
}

fn rss_of_status(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_behind_any_name() {
        let stat = "42 (a) b (c) S 1 42 42 0 -1 4194560 1 2 3 4 150 50 0 0 20 0 9 0 100 1000 20";
        assert_eq!(cpu_of_stat(stat), Some(Duration::from_secs(2)));
        assert_eq!(rss_of_status("Name:\tx\nVmRSS:\t   12 kB\n"), Some(12 * 1024));
    }

    #[test]
    fn this_process_has_memory_and_no_process_has_none() {
        assert!(usage(&[std::process::id()]).is_some_and(|usage| usage.rss_bytes > 1024 * 1024));
        assert_eq!(usage(&[]), None);
        assert_eq!(usage(&[u32::MAX]), None);
    }
}
