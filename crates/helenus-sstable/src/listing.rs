//! The SSTables of a table's folder, from the names of its files and from TOC.txt (`io.sstable.format.TOCComponent`).

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{ErrorKind, SstableError};
use crate::file_name::{self, DATA, Descriptor, STATISTICS, TOC, parse_file_name};
use crate::folder::Folder;

/// Maximum length of TOC.txt, of which every line names a component.
const TOC_BYTES_MAX: u64 = 1 << 20;

/// One SSTable of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub descriptor: Descriptor,
    /// Components that exist.
    pub components: BTreeSet<String>,
    /// Components that TOC.txt names, or that reading needs, and that don't exist. Empty if the SSTable is complete.
    pub missing: BTreeSet<String>,
    /// Bytes of Data.db. 0 if it is missing.
    pub data_bytes: u64,
}

/// The content of a table's folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// SSTables in a version that can be read, ordered by version and id.
    pub sstables: Vec<Listed>,
    /// SSTables that can't be read because of their version, one error for each Data.db.
    pub refused: Vec<SstableError>,
    /// Logs of unfinished compactions or flushes. While there are any, some of the SSTables may be obsolete or incomplete. Snapshots have
    /// none.
    pub transaction_logs: Vec<String>,
}

impl Listed {
    /// Returns an error if a component is missing.
    ///
    /// # Errors
    /// If a component is missing.
    pub fn check_complete(&self) -> Result<(), SstableError> {
        if self.missing.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = self.missing.iter().map(String::as_str).collect();
        let problem = format!(
            "the SSTable is incomplete, because these components are missing: {}",
            names.join(", ")
        );
        Err(SstableError::new(
            ErrorKind::Missing,
            self.descriptor.to_string(),
            None,
            problem,
        ))
    }
}

/// Lists the SSTables of a folder.
///
/// # Errors
/// If the storage fails.
pub fn list(folder: &dyn Folder) -> Result<Listing, SstableError> {
    let mut names = folder
        .names()
        .map_err(|error| SstableError::io(&folder.display_name(""), &error))?;
    names.sort();
    let mut listing = Listing::default();
    let mut tables: BTreeMap<Descriptor, BTreeSet<String>> = BTreeMap::new();
    for name in names {
        match parse_file_name(&name) {
            Some(Ok(parsed)) => {
                tables
                    .entry(parsed.descriptor)
                    .or_default()
                    .insert(parsed.component);
            }
            Some(Err(error)) if name.ends_with(DATA) => listing.refused.push(error),
            Some(Err(_)) => {}
            None if is_transaction_log(&name) => listing.transaction_logs.push(name),
            None => {}
        }
    }
    for (descriptor, components) in tables {
        listing.sstables.push(listed(folder, descriptor, components)?);
    }
    Ok(listing)
}

/// Returns true for names such as `nb_txn_compaction_<uuid>.log` (`db.lifecycle.LogFile`).
fn is_transaction_log(name: &str) -> bool {
    name.ends_with(".log") && name.contains("_txn_")
}

fn listed(
    folder: &dyn Folder,
    descriptor: Descriptor,
    components: BTreeSet<String>,
) -> Result<Listed, SstableError> {
    let mut expected: BTreeSet<String> = [DATA, STATISTICS].map(str::to_owned).into();
    if components.contains(TOC) {
        let name = descriptor.file_name(TOC);
        expected.extend(toc_components(&read_small(folder, &name, TOC_BYTES_MAX)?));
    }
    let mut data_bytes = 0;
    if components.contains(DATA) {
        let name = descriptor.file_name(DATA);
        let file = folder.open(&name);
        let file = file.map_err(|error| SstableError::io(&folder.display_name(&name), &error))?;
        data_bytes = file.size();
    }
    Ok(Listed {
        missing: expected.difference(&components).cloned().collect(),
        descriptor,
        components,
        data_bytes,
    })
}

/// Returns the components that TOC.txt names, one a line.
fn toc_components(toc: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(toc)
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && *line != file_name::TOC)
        .map(str::to_owned)
        .collect()
}

/// Reads a whole file of at most `bytes_max` bytes.
pub(crate) fn read_small(folder: &dyn Folder, name: &str, bytes_max: u64) -> Result<Vec<u8>, SstableError> {
    let failed = |error| SstableError::io(&folder.display_name(name), &error);
    let mut file = folder.open(name).map_err(failed)?;
    let size = file.size();
    let Some(len) = usize::try_from(size).ok().filter(|_| size <= bytes_max) else {
        let problem = format!("the file has {size} bytes; the limit is {bytes_max}");
        let shown = folder.display_name(name);
        return Err(SstableError::new(ErrorKind::Limit, shown, None, problem));
    };
    let mut content = vec![0; len];
    file.read_exact_at(0, &mut content).map_err(failed)?;
    Ok(content)
}

#[cfg(test)]
#[path = "listing_tests.rs"]
mod tests;
