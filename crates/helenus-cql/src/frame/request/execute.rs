//! EXECUTE: runs a prepared statement.

use bytes::{Bytes, BytesMut};

use crate::error::CqlError;
use crate::frame::primitive::{Reader, put_short_bytes};
use crate::frame::query_parameters::QueryParameters;
use crate::frame::version::ProtocolVersion;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Execute {
    pub id: Bytes,
    /// The id of the result metadata that the client has (v5).
    pub result_metadata_id: Option<Bytes>,
    pub parameters: QueryParameters,
}

impl Execute {
    /// Reads the body of an EXECUTE without a custom payload.
    ///
    /// # Errors
    /// [`CqlError::Protocol`] if the bytes are no such body.
    pub fn decode_body(body: Bytes, version: ProtocolVersion) -> Result<Execute, CqlError> {
        Execute::decode(&mut Reader::new(body), version)
    }

    pub(crate) fn decode(reader: &mut Reader, version: ProtocolVersion) -> Result<Execute, CqlError> {
        let id = reader.short_bytes()?;
        let result_metadata_id = match version {
            ProtocolVersion::V3 | ProtocolVersion::V4 => None,
            ProtocolVersion::V5 | ProtocolVersion::V6 => Some(reader.short_bytes()?),
        };
        Ok(Execute {
            id,
            result_metadata_id,
            parameters: QueryParameters::decode(reader, version)?,
        })
    }

    pub(crate) fn encode(&self, version: ProtocolVersion, out: &mut BytesMut) {
        put_short_bytes(out, &self.id);
        if version >= ProtocolVersion::V5 {
            put_short_bytes(out, self.result_metadata_id.as_deref().unwrap_or_default());
        }
        self.parameters.encode(version, out);
    }
}
