//! The supported protocol versions.

use std::fmt;

/// A version of the native protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ProtocolVersion {
    V3 = 3,
    V4 = 4,
    #[default]
    V5 = 5,
    /// The beta version, which works as v5. Clients must set the flag for beta versions.
    V6 = 6,
}

impl ProtocolVersion {
    pub const ALL: [ProtocolVersion; 4] = [
        ProtocolVersion::V3,
        ProtocolVersion::V4,
        ProtocolVersion::V5,
        ProtocolVersion::V6,
    ];

    /// Returns the version of that number. `None` if it is not supported.
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

    /// Returns the version in which the refusal of an unsupported version is sent. Clients of v1 and v2 can read v3.
    pub fn of_refusal(number: u8) -> ProtocolVersion {
        match number {
            1 | 2 => ProtocolVersion::V3,
            _ => ProtocolVersion::V5,
        }
    }

    /// Returns true for versions of Cassandra and of DataStax Enterprise (65, 66), which drivers try in turn, newest first.
    pub fn is_offered_by_drivers(number: u8) -> bool {
        matches!(number, 1..=9 | 65 | 66)
    }

    /// Returns true if the version is not final, so that clients must set a flag to use it.
    pub fn is_beta(self) -> bool {
        self >= ProtocolVersion::V6
    }

    /// Returns true if connections of this version use segments after start-up.
    pub fn is_segmented(self) -> bool {
        self >= ProtocolVersion::V5
    }

    /// Returns the error message for an unsupported version. Drivers match on this text to find a version that both sides support.
    pub fn refusal(number: u8) -> String {
        let versions: Vec<String> = ProtocolVersion::ALL.iter().map(ToString::to_string).collect();
        format!(
            "Invalid or unsupported protocol version ({number}); supported versions are ({})",
            versions.join(", ")
        )
    }
}

impl fmt::Display for ProtocolVersion {
    /// Writes the version as in SUPPORTED and error messages: `4/v4`, `6/v6-beta`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let beta = if self.is_beta() { "-beta" } else { "" };
        write!(f, "{0}/v{0}{beta}", self.number())
    }
}
