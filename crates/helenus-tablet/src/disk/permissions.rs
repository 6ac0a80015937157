//! Restricts the files and folders of a store to their owner. New files get their permissions from the process's umask. Files of older
//! versions are changed when the store is opened.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Permission bits of group and others.
const OTHERS: u32 = 0o077;
/// Names of the files and folders in a store's folder.
const OWN: [&str; 8] = [
    "FORMAT",
    "INVENTORY",
    "LOCK",
    "host_id",
    "host_id.place",
    "log",
    "meta",
    "tablets",
];

/// Removes the permissions of group and others from a store's files. The folder itself is changed only if it holds no other files. Failures
/// are logged.
pub(crate) fn restrict_to_owner(root: &Path) {
    let mut walk = PermissionWalk::default();
    for name in OWN {
        walk.restrict_all(&root.join(name));
    }
    let is_own = |entry: io::Result<fs::DirEntry>| {
        entry.is_ok_and(|entry| OWN.iter().any(|own| entry.file_name() == *own))
    };
    if fs::read_dir(root).is_ok_and(|mut entries| entries.all(is_own)) {
        walk.restrict_to_owner(root);
    }
    let (folder, count) = (root.display(), walk.changed);
    if let Some(error) = walk.failed {
        tracing::warn!(%folder, %error, "cannot restrict the permissions of the store to its owner");
    }
    if count > 0 {
        tracing::info!(%folder, count, "restricted the permissions of the store's files and folders to their owner");
    }
}

#[derive(Default)]
struct PermissionWalk {
    changed: u64,
    failed: Option<io::Error>,
}

impl PermissionWalk {
    fn restrict_all(&mut self, path: &Path) {
        if !self.restrict_to_owner(path) {
            return;
        }
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            self.restrict_all(&entry.path());
        }
    }

    /// Restricts one file or folder. Returns true if it is a folder.
    fn restrict_to_owner(&mut self, path: &Path) -> bool {
        let found = match fs::symlink_metadata(path) {
            Ok(found) if !found.is_symlink() => found,
            _ => return false,
        };
        let mode = found.permissions().mode();
        if mode & OTHERS != 0 {
            match fs::set_permissions(path, Permissions::from_mode(mode & !OTHERS)) {
                Ok(()) => self.changed += 1,
                Err(error) => self.failed = Some(error),
            }
        }
        found.is_dir()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_folders_at_any_depth_become_their_owners() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("tablets/1");
        fs::create_dir_all(&inner).unwrap();
        let file = inner.join("1.sst");
        fs::write(&file, []).unwrap();
        for (path, mode) in [(&inner, 0o755), (&file, 0o644)] {
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        }
        restrict_to_owner(folder.path());
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&inner), mode(&file)), (0o700, 0o600));
    }
}
