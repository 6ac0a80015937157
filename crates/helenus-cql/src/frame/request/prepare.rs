//! PREPARE: parses a statement once, to be executed many times.

use bytes::{BufMut, BytesMut};

use crate::error::CqlError;
use crate::frame::primitive::{Reader, put_long_string, put_string};
use crate::frame::version::ProtocolVersion;

const WITH_KEYSPACE: u32 = 0x01;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prepare {
    pub query: String,
    /// The keyspace in which names are resolved, instead of the connection's (v5).
    pub keyspace: Option<String>,
}

impl Prepare {
    pub(crate) fn decode(reader: &mut Reader, version: ProtocolVersion) -> Result<Prepare, CqlError> {
        let query = reader.long_string()?;
        let flags = match version {
            ProtocolVersion::V3 | ProtocolVersion::V4 => 0,
            ProtocolVersion::V5 | ProtocolVersion::V6 => reader.u32()?,
        };
        let keyspace = if flags & WITH_KEYSPACE != 0 {
            Some(reader.string()?)
        } else {
            None
        };
        Ok(Prepare { query, keyspace })
    }

    pub(crate) fn encode(&self, version: ProtocolVersion, out: &mut BytesMut) {
        put_long_string(out, &self.query);
        if version < ProtocolVersion::V5 {
            return;
        }
        match &self.keyspace {
            Some(keyspace) => {
                out.put_u32(WITH_KEYSPACE);
                put_string(out, keyspace);
            }
            None => out.put_u32(0),
        }
    }
}
