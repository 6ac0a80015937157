//! CPU time and memory of processes on this machine, from `/proc`.

use std::fs;
use std::time::Duration;

/// Sum of the CPU time and resident memory of a server's processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Time in user space and in the kernel.
    pub cpu: Duration,
    /// The part of `cpu` in the kernel.
    pub kernel: Duration,
    pub rss_bytes: u64,
}

/// Returns the total usage of `pids`. `None` if one of them cannot be read.
pub fn usage(pids: &[u32]) -> Option<Usage> {
    let mut all = Usage::default();
    for pid in pids {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let (user, kernel) = cpu_of_stat(&stat)?;
        all.cpu += user + kernel;
        all.kernel += kernel;
        all.rss_bytes += rss_of_status(&status)?;
    }
    (!pids.is_empty()).then_some(all)
}

/// Returns the time in user space and in the kernel. Linux reports them in hundredths of a second.
fn cpu_of_stat(stat: &str) -> Option<(Duration, Duration)> {
    // The command's name is in parentheses, and may itself contain parentheses and spaces.
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split_ascii_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u64>().ok();
    let (user, kernel) = (next()?, next()?);
    let time = |ticks: u64| Duration::from_millis(ticks * 10);
    Some((time(user), time(kernel)))
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
        let (user, kernel) = (Duration::from_millis(1500), Duration::from_millis(500));
        assert_eq!(cpu_of_stat(stat), Some((user, kernel)));
        assert_eq!(rss_of_status("Name:\tx\nVmRSS:\t   12 kB\n"), Some(12 * 1024));
    }

    #[test]
    fn this_process_has_memory_and_no_process_has_none() {
        assert!(usage(&[std::process::id()]).is_some_and(|usage| usage.rss_bytes > 1024 * 1024));
        assert_eq!(usage(&[]), None);
        assert_eq!(usage(&[u32::MAX]), None);
    }
}
