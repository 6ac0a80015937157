//! Memory that the process may use (that of the machine, or of its control groups), and memory that it uses.

use std::path::{Path, PathBuf};

/// Assumed bytes of memory if the system does not report them.
const MEMORY_BYTES_DEFAULT: u64 = 4 << 30;

/// Returns the bytes of memory of this machine, or of the control group that confines the process.
pub fn machine_memory_bytes() -> u64 {
    memory_bytes(Path::new("/"))
}

/// Returns the bytes of memory that the process uses: its resident set. `None` if the system does not report them.
pub fn resident_memory_bytes() -> Option<u64> {
    resident_bytes(&std::fs::read_to_string("/proc/self/status").ok()?)
}

/// Returns the bytes of the resident set from the text of `/proc/self/status`.
fn resident_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

/// Returns the smallest limit in bytes: the machine's memory, or the limit of a control group of the process or of one of its parents.
fn memory_bytes(root: &Path) -> u64 {
    let total = std::fs::read_to_string(root.join("proc/meminfo"))
        .ok()
        .and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
            line.split_whitespace().nth(1)?.parse::<u64>().ok()
        })
        .map_or(MEMORY_BYTES_DEFAULT, |kib| kib * 1024);
    let groups = std::fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let limits = groups
        .lines()
        .filter_map(|line| limit_files(root, line))
        .flatten()
        .filter_map(|file| std::fs::read_to_string(file).ok()?.trim().parse::<u64>().ok());
    // A limit of 0 is no real limit, so it is ignored.
    limits.filter(|limit| *limit > 0).fold(total, u64::min)
}

/// Returns the files with the memory limits of a control group and of its parents. `line` is a line of `/proc/self/cgroup`: `0::/path` is
/// of version 2, `4:memory:/path` of version 1. `None` for other controllers.
///
/// In a container, the path is often the one outside of it, while the group itself is mounted as the root. So the limit of the root is
/// included.
fn limit_files(root: &Path, line: &str) -> Option<Vec<PathBuf>> {
    let mut fields = line.splitn(3, ':');
    let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
    let (mount, file) = match controllers {
        "" => ("sys/fs/cgroup", "memory.max"),
        of if of.split(',').any(|one| one == "memory") => ("sys/fs/cgroup/memory", "memory.limit_in_bytes"),
        _ => return None,
    };
    let mount = root.join(mount);
    let group = Path::new(path.trim_start_matches('/'));
    let is_plain = group
        .components()
        .all(|part| matches!(part, std::path::Component::Normal(_)));
    let groups = group.ancestors().filter(|_| is_plain);
    let mut files: Vec<PathBuf> = groups.map(|group| mount.join(group).join(file)).collect();
    files.push(mount.join(file));
    Some(files)
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
