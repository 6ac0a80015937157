//! Names of an SSTable's files: `nb-1-big-Data.db`, `oa-3fzj_0s2f_5g8hc2a9kwfrq3mntx-big-Data.db` (`io.sstable.Descriptor`, `Component`,
//! `SequenceBasedSSTableId`, `UUIDBasedSSTableId`).

use std::fmt;

use crate::error::{ErrorKind, SstableError};
use crate::version::Version;

pub const DATA: &str = "Data.db";
pub const STATISTICS: &str = "Statistics.db";
pub const COMPRESSION_INFO: &str = "CompressionInfo.db";
pub const CRC: &str = "CRC.db";
pub const DIGEST: &str = "Digest.crc32";
pub const TOC: &str = "TOC.txt";

/// Letters of the groups of an id that is a UUID.
const UUID_GROUPS: [usize; 3] = [4, 4, 18];

/// The id of an SSTable within its table.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SstableId {
    /// A sequence number, which is unique on one node.
    Sequence(u64),
    /// A time UUID in base 36, as the file name has it (`uuid_sstable_identifiers_enabled`).
    Uuid(String),
}

impl SstableId {
    /// Returns the id of a part of a file name. `None` if the part is none.
    fn parse(part: &str) -> Option<SstableId> {
        if part.bytes().all(|byte| byte.is_ascii_digit()) {
            return part.parse().ok().map(SstableId::Sequence);
        }
        let is_base_36 = |group: &str| {
            group
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase())
        };
        let lengths = part.split('_').map(str::len);
        (lengths.eq(UUID_GROUPS) && part.split('_').all(is_base_36)).then(|| SstableId::Uuid(part.to_owned()))
    }
}

impl fmt::Display for SstableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SstableId::Sequence(number) => number.fmt(f),
            SstableId::Uuid(text) => text.fmt(f),
        }
    }
}

/// The version and the id of an SSTable, which its files' names begin with.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Descriptor {
    pub version: Version,
    pub id: SstableId,
}

impl Descriptor {
    /// Returns the name of a component's file.
    pub fn file_name(&self, component: &str) -> String {
        format!("{self}-{component}")
    }
}

impl fmt::Display for Descriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = self.version;
        write!(f, "{}-{}-{}", version.name(), self.id, version.format().name())
    }
}

/// The SSTable and the component that a file name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileName {
    pub descriptor: Descriptor,
    /// Name of the component, for example `Data.db`.
    pub component: String,
}

/// Parses a file name. `None` if the file belongs to no SSTable.
///
/// # Errors
/// If the file belongs to an SSTable of a version or format that this crate can't read.
pub fn parse_file_name(name: &str) -> Option<Result<FileName, SstableError>> {
    let unsupported = |found: String| {
        let known: Vec<String> = Version::ALL.iter().map(ToString::to_string).collect();
        let problem = format!(
            "{found} can't be read; the known versions are {}",
            known.join(", ")
        );
        Some(Err(SstableError::new(
            ErrorKind::Unsupported,
            name,
            None,
            problem,
        )))
    };
    let mut parts = name.splitn(4, '-');
    let current = (parts.next()?, parts.next()?, parts.next()?, parts.next());
    if let (version, id, format @ ("big" | "bti"), Some(component)) = current
        && let Some(id) = SstableId::parse(id)
    {
        return match Version::from_names(format, version) {
            Some(version) => Some(Ok(FileName {
                descriptor: Descriptor { version, id },
                component: component.to_owned(),
            })),
            None => unsupported(format!("version {version} of format {format}")),
        };
    }
    if !name.ends_with("-Data.db") {
        return None;
    }
    // Before 2.2, names began with the keyspace and the table: ks-table-ka-1-Data.db.
    let old = name
        .rsplit('-')
        .nth(2)
        .filter(|version| version.len() == 2 && version.bytes().all(|byte| byte.is_ascii_lowercase()));
    match old {
        Some(version) => unsupported(format!("version {version} of Cassandra before 2.2")),
        None => unsupported("an SSTable with an unknown form of name".to_owned()),
    }
}

#[cfg(test)]
#[path = "file_name_tests.rs"]
mod tests;
