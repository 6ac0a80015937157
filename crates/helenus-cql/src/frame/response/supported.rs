//! SUPPORTED: the answer to OPTIONS.

use bytes::BytesMut;

use crate::error::CqlError;
use crate::frame::primitive::{Reader, put_string_multimap};
use crate::frame::version::ProtocolVersion;

/// What STARTUP may ask for, and the values that it may give.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Supported {
    pub options: Vec<(String, Vec<String>)>,
}

impl Supported {
    /// What this implementation supports, for that version of CQL.
    pub fn served(cql_version: &str) -> Supported {
        let option = |name: &str, values: &[&str]| {
            (
                name.to_owned(),
                values.iter().map(|&value| value.to_owned()).collect(),
            )
        };
        let versions = ProtocolVersion::ALL.iter().map(ToString::to_string).collect();
        Supported {
            options: vec![
                ("PROTOCOL_VERSIONS".to_owned(), versions),
                option("COMPRESSION", &["snappy", "lz4"]),
                option("CQL_VERSION", &[cql_version]),
            ],
        }
    }

    /// Returns the same with an extension of the protocol, which STARTUP may ask for by its name, and what it says of itself.
    pub fn with_extension(mut self, name: &str, value: &str) -> Supported {
        self.options.push((name.to_owned(), vec![value.to_owned()]));
        self
    }

    pub(crate) fn decode(reader: &mut Reader) -> Result<Supported, CqlError> {
        Ok(Supported {
            options: reader.string_multimap()?,
        })
    }

    pub(crate) fn encode(&self, out: &mut BytesMut) {
        put_string_multimap(out, &self.options);
    }
}
