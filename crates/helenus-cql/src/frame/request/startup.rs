//! STARTUP: begins a connection.

use bytes::BytesMut;

use crate::error::CqlError;
use crate::frame::primitive::{Reader, put_string_map};

/// The options of a connection, in the order sent. See [`Startup::get`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Startup {
    pub options: Vec<(String, String)>,
}

impl Startup {
    pub const CQL_VERSION: &'static str = "CQL_VERSION";
    pub const COMPRESSION: &'static str = "COMPRESSION";
    pub const THROW_ON_OVERLOAD: &'static str = "THROW_ON_OVERLOAD";
    /// ScyllaDB's extension: responses name the node to which a prepared statement should have been sent.
    pub const TABLETS_ROUTING_V1: &'static str = "TABLETS_ROUTING_V1";
    /// ScyllaDB's extension: the client knows the error of a partition's exceeded rate limit.
    pub const SCYLLA_RATE_LIMIT_ERROR: &'static str = "SCYLLA_RATE_LIMIT_ERROR";
    pub const DRIVER_NAME: &'static str = "DRIVER_NAME";
    pub const DRIVER_VERSION: &'static str = "DRIVER_VERSION";

    /// Returns the option of that name, ignoring case. `None` if it was not sent.
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self
            .options
            .iter()
            .rev()
            .find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn decode(reader: &mut Reader) -> Result<Startup, CqlError> {
        Ok(Startup {
            options: reader.string_map()?,
        })
    }

    pub(crate) fn encode(&self, out: &mut BytesMut) {
        put_string_map(out, &self.options);
    }
}
