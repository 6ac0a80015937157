//! How much memory the process may take.

use std::path::Path;

use rustix::process::{Resource, getrlimit};

/// What is assumed where nothing tells.
const UNKNOWN: u64 = 4 << 30;

/// The memory of this machine, or less where the process is confined: by its control group or one above it, or by a limit of its own
/// (`ulimit -v`).
pub fn machine_memory_bytes() -> u64 {
    let own = getrlimit(Resource::As).current;
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let groups = control_group_limit(&groups, Path::new("/sys/fs/cgroup"));
    [machine(), groups, own]
        .into_iter()
        .flatten()
        .min()
        .unwrap_or(UNKNOWN)
}

fn machine() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

/// The least limit of the process's control groups (`NUMBER:CONTROLLERS:PATH` a line) and of those above them. In a container the path may
/// be that of the host, of which only the root is there.
fn control_group_limit(groups: &str, root: &Path) -> Option<u64> {
    let limits = groups.lines().filter_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let (root, file) = match controllers {
            "" => (root.to_owned(), "memory.max"),
            of_memory if of_memory.split(',').any(|one| one == "memory") => {
                (root.join("memory"), "memory.limit_in_bytes")
            }
            _ => return None,
        };
        let limit = |group: &Path| {
            let text = std::fs::read_to_string(root.join(group).join(file)).ok()?;
            text.trim().parse::<u64>().ok()
        };
        Path::new(path.trim_start_matches('/'))
            .ancestors()
            .filter_map(limit)
            .min()
    });
    limits.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_limit_of_the_groups_counts() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("memory.max", "max\n");
        write("system.slice/memory.max", "2000\n");
        write("system.slice/helenus.service/memory.max", "3000\n");
        write("memory/docker/memory.limit_in_bytes", "1000\n");
        let limit = |groups| control_group_limit(groups, root);
        assert_eq!(limit("0::/system.slice/helenus.service\n"), Some(2000));
        assert_eq!(limit("0::/"), None);
        assert_eq!(
            limit("4:cpu,memory:/docker\n1:cpuset:/docker\n0::/system.slice"),
            Some(1000)
        );
        write("memory.max", "500\n");
        assert_eq!(limit("0::/of/the/host"), Some(500));
    }

    #[test]
    fn a_machine_has_some_memory() {
        assert!(machine_memory_bytes() > 64 << 20);
    }
}
