use super::*;

/// Returns the root folder of a machine with 8 GiB that has these files.
fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let all = [("proc/meminfo", "MemFree: 1 kB\nMemTotal:        8388608 kB\n")];
    for (path, text) in all.iter().chain(files) {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    root
}

#[test]
fn unconfined_process_is_limited_by_machine() {
    assert_eq!(memory_bytes(machine(&[]).path()), 8 << 30);
    let unlimited = [
        ("proc/self/cgroup", "0::/user.slice\n"),
        ("sys/fs/cgroup/user.slice/memory.max", "max\n"),
    ];
    assert_eq!(memory_bytes(machine(&unlimited).path()), 8 << 30);
}

#[test]
fn the_own_group_and_its_parents_count() {
    let nested = [
        ("proc/self/cgroup", "0::/system.slice/helenus.service\n"),
        ("sys/fs/cgroup/system.slice/memory.max", "4294967296\n"),
        (
            "sys/fs/cgroup/system.slice/helenus.service/memory.max",
            "2147483648\n",
        ),
        ("sys/fs/cgroup/other.slice/memory.max", "1048576\n"),
    ];
    assert_eq!(memory_bytes(machine(&nested).path()), 2 << 30);
    let of_parent = [nested[0], nested[1]];
    assert_eq!(memory_bytes(machine(&of_parent).path()), 4 << 30);
}

#[test]
fn a_container_sees_its_group_as_the_root() {
    let second = [
        ("proc/self/cgroup", "0::/../outside\n"),
        ("sys/fs/cgroup/memory.max", "3221225472\n"),
    ];
    assert_eq!(memory_bytes(machine(&second).path()), 3 << 30);
}

#[test]
fn version_1_counts_as_well() {
    let first = [
        (
            "proc/self/cgroup",
            "9:cpu,cpuacct:/a\n4:memory:/docker/abc\n0::/\n",
        ),
        (
            "sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes",
            "1073741824\n",
        ),
        (
            "sys/fs/cgroup/memory/memory.limit_in_bytes",
            "9223372036854771712\n",
        ),
    ];
    assert_eq!(memory_bytes(machine(&first).path()), 1 << 30);
}

#[test]
fn the_resident_set_is_read_from_the_status_of_the_process() {
    let status = "Name:\thelenus\nVmPeak:\t  900 kB\nVmRSS:\t  512 kB\nRssAnon:\t  12 kB\n";
    assert_eq!(resident_bytes(status), Some(512 << 10));
    assert_eq!(resident_bytes("Name:\thelenus\n"), None);
    assert!(resident_memory_bytes().unwrap() > 0);
}
