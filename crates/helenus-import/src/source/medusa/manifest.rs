//! The files of a node's backup, from manifest.json.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use crate::error::ImportError;

/// The files of a backup of one node.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Manifest {
    /// Sizes of the files in bytes, by the path of their folder below the node's folder.
    pub(super) folders: BTreeMap<Vec<String>, BTreeMap<String, u64>>,
}

/// The files of a table.
#[derive(Deserialize)]
struct Section {
    objects: Vec<Object>,
}

#[derive(Deserialize)]
struct Object {
    /// The path in the bucket, with the storage's prefix.
    path: String,
    size: u64,
    /// Size before Medusa encrypted the file. `None` without encryption.
    source_size: Option<u64>,
    /// MD5 before Medusa encrypted the file. `None` without encryption.
    #[serde(rename = "source_MD5")]
    source_md5: Option<IgnoredAny>,
}

impl Manifest {
    /// Parses the content of the file at `path`, which belongs to the backup of the node `fqdn`.
    pub(super) fn parse(path: &str, content: &[u8], fqdn: &str) -> Result<Manifest, ImportError> {
        let sections: Vec<Section> = parse_json(path, content)?;
        let mut manifest = Manifest::default();
        for object in sections.into_iter().flat_map(|section| section.objects) {
            if object.source_size.is_some() || object.source_md5.is_some() {
                return Err(ImportError::Refused(format!(
                    "{path}: Medusa has encrypted {} (key_secret_base64). Fetch the backup with `medusa download`, which decrypts it, and \
                     import its folders",
                    object.path
                )));
            }
            let mut names = object.path.split('/').map(str::to_owned);
            // Above the node's folder is the prefix, which the source's path includes.
            let is_below = names.by_ref().any(|name| name == fqdn);
            let mut place: Vec<String> = names.collect();
            match (is_below, place.pop()) {
                (true, Some(name)) if !place.is_empty() => {
                    manifest
                        .folders
                        .entry(place)
                        .or_default()
                        .insert(name, object.size);
                }
                _ => {
                    return Err(ImportError::Refused(format!(
                        "{path}: the path {} has no folder {fqdn} with files of tables below. Give the folder of the node by its original name",
                        object.path
                    )));
                }
            }
        }
        Ok(manifest)
    }
}

/// Parses a file of JSON.
pub(super) fn parse_json<T: DeserializeOwned>(path: &str, content: &[u8]) -> Result<T, ImportError> {
    serde_json::from_slice(content).map_err(|error| {
        ImportError::Refused(format!(
            "{path}: the file isn't one of Medusa: {error}. Choose another backup, or repair this one"
        ))
    })
}
