//! QUERY: executes a statement given as text.

use bytes::BytesMut;

use crate::error::CqlError;
use crate::frame::primitive::{Reader, put_long_string};
use crate::frame::query_parameters::QueryParameters;
use crate::frame::version::ProtocolVersion;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    pub query: String,
    pub parameters: QueryParameters,
}

impl Query {
    pub(crate) fn decode(reader: &mut Reader, version: ProtocolVersion) -> Result<Query, CqlError> {
        Ok(Query {
            query: reader.long_string()?,
            parameters: QueryParameters::decode(reader, version)?,
        })
    }

    pub(crate) fn encode(&self, version: ProtocolVersion, out: &mut BytesMut) {
        put_long_string(out, &self.query);
        self.parameters.encode(version, out);
    }
}
