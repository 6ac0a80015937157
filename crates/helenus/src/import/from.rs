//! The places of the sources: folders of the machine, and buckets.

use std::sync::Arc;

use anyhow::{Context, Result};
use helenus_import::source::SourceFolder;
use helenus_sstable::LocalFolder;
use helenus_tablet::StoreUrl;
use tokio::runtime::Runtime;

use super::bucket;
use crate::shell::interrupt::Interrupt;

/// Returns the folders that `--from` names. Those in buckets share a runtime.
pub fn folders(from: &[String], interrupt: &Interrupt) -> Result<Vec<Arc<dyn SourceFolder>>> {
    let mut runtime: Option<Arc<Runtime>> = None;
    let mut folders: Vec<Arc<dyn SourceFolder>> = Vec::new();
    for place in from {
        match StoreUrl::parse(place).with_context(|| format!("--from {place}"))? {
            StoreUrl::File(path) => folders.push(Arc::new(LocalFolder::new(path))),
            StoreUrl::Remote(url) => {
                let runtime = match &runtime {
                    Some(runtime) => runtime,
                    None => runtime.insert(bucket::runtime()?),
                };
                folders.push(Arc::new(bucket::folder(&url, runtime, interrupt)?));
            }
        }
    }
    Ok(folders)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_paths_or_urls() {
        let names = |from: &str| {
            let folders = folders(&[from.to_owned()], &Interrupt::default())?;
            Ok::<_, anyhow::Error>(folders[0].display_name("x"))
        };
        assert_eq!(names("/data").unwrap(), "/data/x");
        assert_eq!(names("file:///data").unwrap(), "/data/x");
        assert_eq!(
            names("memory://bucket/prefix").unwrap(),
            "memory://bucket/prefix/x"
        );
        let unknown = format!("{:#}", names("ftp://host/data").unwrap_err());
        assert!(
            unknown.contains("--from ftp://host/data") && unknown.contains("unknown scheme ftp"),
            "{unknown}"
        );
    }
}
