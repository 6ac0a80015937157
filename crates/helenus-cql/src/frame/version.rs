//! The protocol versions that are served.

use std::fmt;

/// A version of the native protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ProtocolVersion {
    V3 = 3,
    V4 = 4,
    V5 = 5,
    /// As v5; served to those who set the flag for what is not final.
    V6 = 6,
}

impl ProtocolVersion {
    pub const ALL: [ProtocolVersion; 4] = [
        ProtocolVersion::V3,
        ProtocolVersion::V4,
        ProtocolVersion::V5,
        ProtocolVersion::V6,
    ];

    /// Returns the version of that number, if it is served.
    pub fn from_number(number: u8) -> Option<ProtocolVersion> {
        match number {
            3 => Some(ProtocolVersion::V3),
            4 => Some(ProtocolVersion::V4),
            5 => Some(ProtocolVersion::V5),
            6 => Some(ProtocolVersion::V6),
            _ => None,
        }
    }

    pub fn number(self) -> u8 {
        self as u8
    }

    /// Returns the version to word a refusal of another one in: old clients read theirs and v3.
    pub fn of_refusal(number: u8) -> ProtocolVersion {
        match number {
            1 | 2 => ProtocolVersion::V3,
            _ => ProtocolVersion::V5,
        }
    }

    /// Returns true for versions of Cassandra, and those of DataStax Enterprise (65, 66), which drivers try from the newest on.
    pub fn is_offered_by_drivers(number: u8) -> bool {
        matches!(number, 1..=9 | 65 | 66)
    }

    /// Returns true if clients have to say that they know that it is not final.
    pub fn is_beta(self) -> bool {
        self >= ProtocolVersion::V6
    }

    /// Returns true if connections of this version are framed in segments after start-up.
    pub fn is_segmented(self) -> bool {
        self >= ProtocolVersion::V5
    }

    /// What a client of another version is told; drivers match on this text to find a version that both know.
    pub fn refusal(number: u8) -> String {
        let versions: Vec<String> = ProtocolVersion::ALL.iter().map(ToString::to_string).collect();
        format!(
            "Invalid or unsupported protocol version ({number}); supported versions are ({})",
            versions.join(", ")
        )
    }
}

impl fmt::Display for ProtocolVersion {
    /// As SUPPORTED and error messages write it: `4/v4`, `6/v6-beta`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let beta = if self.is_beta() { "-beta" } else { "" };
        write!(f, "{0}/v{0}{beta}", self.number())
    }
}
