//! The protocol versions that are served.

use std::fmt;

/// A version of the native protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ProtocolVersion {
    V3 = 3,
    V4 = 4,
    V5 = 5,
}

impl ProtocolVersion {
    pub const ALL: [ProtocolVersion; 3] = [ProtocolVersion::V3, ProtocolVersion::V4, ProtocolVersion::V5];

    /// The version of that number, if it is served.
    pub fn from_number(number: u8) -> Option<ProtocolVersion> {
        match number {
            3 => Some(ProtocolVersion::V3),
            4 => Some(ProtocolVersion::V4),
            5 => Some(ProtocolVersion::V5),
            _ => None,
        }
    }

    pub fn number(self) -> u8 {
        self as u8
    }

    /// The served version nearest to that number: the one to word a refusal in.
    pub fn nearest(number: u8) -> ProtocolVersion {
        match number {
            0..=3 => ProtocolVersion::V3,
            4 => ProtocolVersion::V4,
            _ => ProtocolVersion::V5,
        }
    }

    /// True if connections of this version are framed in segments after start-up.
    pub fn is_segmented(self) -> bool {
        self >= ProtocolVersion::V5
    }

    /// What a client of another version is told; drivers match on this text to find a version that both know.
    pub fn refusal(number: u8) -> String {
        format!(
            "Invalid or unsupported protocol version ({number}); the lowest supported version is {} and the greatest is {}",
            ProtocolVersion::V3.number(),
            ProtocolVersion::V5.number()
        )
    }
}

impl fmt::Display for ProtocolVersion {
    /// As SUPPORTED and error messages write it: `4/v4`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{0}/v{0}", self.number())
    }
}
