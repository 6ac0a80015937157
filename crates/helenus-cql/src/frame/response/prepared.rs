//! The result of PREPARE (spec v5, section 4.2.5.4).

use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use crate::error::CqlError;
use crate::frame::metadata::{PageMetadata, PreparedMetadata, ResultMetadata};
use crate::frame::primitive::{Reader, put_short_bytes};
use crate::frame::version::ProtocolVersion;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    pub id: Bytes,
    /// The id of the result metadata, sent in v5 only.
    pub result_metadata_id: Bytes,
    pub metadata: Arc<PreparedMetadata>,
    /// The columns of the rows that the statement will return. Empty if it returns none.
    pub result_metadata: Arc<ResultMetadata>,
}

impl Prepared {
    pub(crate) fn encode(&self, version: ProtocolVersion, out: &mut BytesMut) {
        put_short_bytes(out, &self.id);
        if version >= ProtocolVersion::V5 {
            put_short_bytes(out, &self.result_metadata_id);
        }
        self.metadata.encode(version, out);
        self.result_metadata
            .encode(&PageMetadata::default(), version, out);
    }

    pub(crate) fn decode(reader: &mut Reader, version: ProtocolVersion) -> Result<Prepared, CqlError> {
        let id = reader.short_bytes()?;
        let result_metadata_id = if version >= ProtocolVersion::V5 {
            reader.short_bytes()?
        } else {
            Bytes::new()
        };
        let metadata = Arc::new(PreparedMetadata::decode(reader, version)?);
        let (result_metadata, _, _) = ResultMetadata::decode(reader, version)?;
        Ok(Prepared {
            id,
            result_metadata_id,
            metadata,
            result_metadata: Arc::new(result_metadata),
        })
    }
}
