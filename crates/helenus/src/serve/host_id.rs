//! The id of this host: made once, kept in the store's folder, told to drivers in `system.local`.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, anyhow};
use uuid::Uuid;

/// The id in the folder's file `host_id`; a new one is written if there is none.
///
/// Errors: the file can't be read or written, or holds something else.
pub fn load(folder: &Path) -> anyhow::Result<Uuid> {
    let path = folder.join("host_id");
    match std::fs::read_to_string(&path) {
        Ok(text) => Uuid::parse_str(text.trim())
            .map_err(|error| anyhow!("corrupt file {}: not a UUID: {error}", path.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            create(folder, &path).with_context(|| format!("cannot write {}", path.display()))
        }
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Written aside and renamed, so that a crash leaves no half of it.
fn create(folder: &Path, path: &Path) -> std::io::Result<Uuid> {
    std::fs::create_dir_all(folder)?;
    let id = Uuid::new_v4();
    let aside = folder.join("host_id.new");
    let mut file = std::fs::File::create(&aside)?;
    writeln!(file, "{id}")?;
    file.sync_all()?;
    std::fs::rename(&aside, path)?;
    std::fs::File::open(folder)?.sync_all()?;
    Ok(id)
}
