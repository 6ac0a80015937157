//! The id of this host. It is made once, kept in the store's folder, and reported to drivers in `system.local`.
//!
//! The copy of a folder is another host and gets an id of its own. The file `host_id.place` has the inode and birth time of the file
//! `host_id`. A copy has another inode; a renamed folder keeps it.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::UNIX_EPOCH;

use anyhow::{Context, anyhow};
use uuid::Uuid;

use crate::replace_file::replace_file;

/// Returns the id in the folder's file `host_id`. A new id is written if there is none, or if the folder is a copy.
///
/// # Errors
/// Fails if the file cannot be read or written, or has another content.
pub fn load(folder: &Path) -> anyhow::Result<Uuid> {
    let path = folder.join("host_id");
    match std::fs::read_to_string(&path) {
        Ok(text) => {
            let id = Uuid::parse_str(text.trim())
                .map_err(|error| anyhow!("corrupt file {}: not a UUID: {error}", path.display()))?;
            bound(folder, id)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => create(folder),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Returns the id if it was written in this folder. Returns a new one if the folder is a copy.
fn bound(folder: &Path, id: Uuid) -> anyhow::Result<Uuid> {
    let path = folder.join("host_id.place");
    match std::fs::read_to_string(&path) {
        Ok(text) if text.trim() == place(folder)? => Ok(id),
        Ok(_) => {
            let own = create(folder)?;
            tracing::warn!(folder = %folder.display(), former = %id, host_id = %own,
                "this folder is a copy, or was moved to another disk: from now on it is a store of its own, with another host id");
            Ok(own)
        }
        // Older versions wrote no `host_id.place`.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            bind(folder)?;
            Ok(id)
        }
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Returns the inode and birth time of the file with the id.
fn place(folder: &Path) -> anyhow::Result<String> {
    let path = folder.join("host_id");
    let file = std::fs::metadata(&path).with_context(|| format!("cannot read {}", path.display()))?;
    // The birth time is missing on some file systems.
    let born = file
        .created()
        .ok()
        .and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    Ok(format!("{} {}", file.ino(), born.unwrap_or_default().as_nanos()))
}

/// Writes a new id. If the process is killed between the two files, the id looks like that of a copy, and the next start makes a new one.
fn create(folder: &Path) -> anyhow::Result<Uuid> {
    let id = Uuid::new_v4();
    std::fs::create_dir_all(folder)
        .and_then(|()| write(folder, "host_id", &id.to_string()))
        .with_context(|| format!("cannot write {}", folder.join("host_id").display()))?;
    bind(folder)?;
    Ok(id)
}

fn bind(folder: &Path) -> anyhow::Result<()> {
    write(folder, "host_id.place", &place(folder)?)
        .with_context(|| format!("cannot write {}", folder.join("host_id.place").display()))
}

fn write(folder: &Path, name: &str, line: &str) -> std::io::Result<()> {
    replace_file(&folder.join(name), format!("{line}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_another_host_and_a_folder_that_was_renamed_is_not() {
        let disk = tempfile::tempdir().unwrap();
        let [store, renamed, copy] = ["store", "renamed", "copy"].map(|name| disk.path().join(name));
        let id = load(&store).unwrap();
        assert_eq!(load(&store).unwrap(), id);
        std::fs::rename(&store, &renamed).unwrap();
        assert_eq!(load(&renamed).unwrap(), id);
        std::fs::create_dir(&copy).unwrap();
        for name in ["host_id", "host_id.place"] {
            std::fs::copy(renamed.join(name), copy.join(name)).unwrap();
        }
        let own = load(&copy).unwrap();
        assert_ne!(own, id);
        assert_eq!(load(&copy).unwrap(), own);
        assert_eq!(load(&renamed).unwrap(), id);
    }

    #[test]
    fn the_folder_of_an_older_version_keeps_its_id() {
        let folder = tempfile::tempdir().unwrap();
        let id = load(folder.path()).unwrap();
        std::fs::remove_file(folder.path().join("host_id.place")).unwrap();
        assert_eq!(load(folder.path()).unwrap(), id);
        assert!(folder.path().join("host_id.place").exists());
    }
}
