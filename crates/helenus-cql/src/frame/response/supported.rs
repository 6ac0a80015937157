//! SUPPORTED: the response to OPTIONS.

use bytes::BytesMut;

use crate::error::CqlError;
use crate::frame::primitive::{Reader, put_string_multimap};
use crate::frame::version::ProtocolVersion;

/// The options that STARTUP may have, and their supported values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Supported {
    pub options: Vec<(String, Vec<String>)>,
}

impl Supported {
    /// Returns the options that this implementation supports for a version of CQL.
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

    /// Adds an extension of the protocol, which STARTUP may request by its name. `value` holds the extension's parameters.
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
