//! The versions of the formats, and the differences between them (`io.sstable.format.Version`, `big.BigFormat.BigVersion`,
//! `bti.BtiFormat.BtiVersion`).

use std::fmt;

/// A version that can be read. Later ones are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Version {
    /// `big`, 3.0.18 and 3.11.4: correct minimum and maximum of the clusterings.
    Md,
    /// `big`, 3.0.25 and 3.11.11: the id of the host that wrote the file.
    Me,
    /// `big`, 4.0: chunks stored uncompressed, pending repair, checksums of the metadata.
    Na,
    /// `big`, 4.0 and 4.1: the id of the host that wrote the file.
    Nb,
    /// `big`, 5.0: deletion times of 32 bits without sign, key range, covered clusterings.
    Oa,
    /// `bti`, 5.0. Its indexes (Partitions.db, Rows.db) differ from those of `oa`. Its Data.db and Statistics.db do not: both formats
    /// write them with the same classes (`SortedTablePartitionWriter`, `StatsMetadata`).
    Da,
}

/// A family of versions, as a file name contains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    Big,
    Bti,
}

impl Format {
    pub fn name(self) -> &'static str {
        match self {
            Format::Big => "big",
            Format::Bti => "bti",
        }
    }
}

impl Version {
    pub const ALL: [Version; 6] = [
        Version::Md,
        Version::Me,
        Version::Na,
        Version::Nb,
        Version::Oa,
        Version::Da,
    ];

    /// Returns the version of a file name's format and version. `None` if this crate can't read it.
    pub fn from_names(format: &str, version: &str) -> Option<Version> {
        Version::ALL
            .into_iter()
            .find(|known| known.format().name() == format && known.name() == version)
    }

    pub fn name(self) -> &'static str {
        match self {
            Version::Md => "md",
            Version::Me => "me",
            Version::Na => "na",
            Version::Nb => "nb",
            Version::Oa => "oa",
            Version::Da => "da",
        }
    }

    pub fn format(self) -> Format {
        match self {
            Version::Da => Format::Bti,
            _ => Format::Big,
        }
    }

    /// Returns true if CompressionInfo.db has `max_compressed_length`. Chunks of that length or more are stored uncompressed.
    pub fn has_max_compressed_length(self) -> bool {
        self >= Version::Na
    }

    /// Returns true if the parts of Statistics.db have checksums.
    pub fn has_metadata_checksum(self) -> bool {
        self >= Version::Na
    }

    pub fn has_pending_repair(self) -> bool {
        self >= Version::Na
    }

    pub fn has_is_transient(self) -> bool {
        self >= Version::Na
    }

    /// Returns true if the metadata has the id of the host. `me` has it, and `na`, which is older than `me`, has not.
    pub fn has_originating_host_id(self) -> bool {
        self == Version::Me || self >= Version::Nb
    }

    /// Returns true if local deletion times have 32 bits without sign, and a live partition deletion has one byte.
    pub fn has_uint_deletion_time(self) -> bool {
        self >= Version::Oa
    }

    /// Returns true if the metadata has the covered slice of clusterings instead of lists of minima and maxima.
    pub fn has_improved_min_max(self) -> bool {
        self >= Version::Oa
    }

    /// Returns true if the metadata has the mark of partition deletions, the first and the last key, and the covered share of the tokens.
    pub fn has_key_range(self) -> bool {
        self >= Version::Oa
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.format().name(), self.name())
    }
}
