//! Replacement of a small file.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// Writes a file under another name and renames it, so that a crash leaves no partial file.
///
/// # Errors
/// The error of the file system.
pub fn replace_file(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut aside = path.as_os_str().to_owned();
    aside.push(".new");
    let mut file = File::create(&aside)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&aside, path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}
