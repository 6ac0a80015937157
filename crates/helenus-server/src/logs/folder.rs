//! Folders of the audit log and the full query log. They must not be inside the folder of the store.

use std::path::{Path, PathBuf};

/// Refuses a log's folder inside the folder of the store. Files there belong to the store alone.
///
/// # Errors
/// The folder of the store, and what to do.
pub(crate) fn check_apart(folder: &Path, store: Option<&Path>) -> Result<(), String> {
    let Some(store) = store else { return Ok(()) };
    if !resolved(folder).starts_with(resolved(store)) {
        return Ok(());
    }
    Err(format!(
        "the folder lies within that of the store, {}: name another one",
        store.display()
    ))
}

/// Returns the absolute path of a folder that may not exist yet. Symbolic links are resolved in the part that exists.
fn resolved(folder: &Path) -> PathBuf {
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    for existing in folder.ancestors() {
        if let (Ok(real), Ok(rest)) = (existing.canonicalize(), folder.strip_prefix(existing)) {
            return real.join(rest);
        }
    }
    folder
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_within_the_store_are_refused() {
        let place = tempfile::tempdir().unwrap();
        let (store, link) = (place.path().join("store"), place.path().join("link"));
        std::fs::create_dir(&store).unwrap();
        std::os::unix::fs::symlink(&store, &link).unwrap();
        for inside in [store.clone(), store.join("audit"), link.join("audit/deep")] {
            assert!(
                check_apart(&inside, Some(&store)).is_err(),
                "{}",
                inside.display()
            );
            assert!(check_apart(&inside, None).is_ok());
        }
        for outside in [place.path().join("audit"), place.path().join("store-audit")] {
            assert!(
                check_apart(&outside, Some(&store)).is_ok(),
                "{}",
                outside.display()
            );
        }
    }
}
