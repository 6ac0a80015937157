//! RESULT: the response to QUERY, PREPARE, EXECUTE and BATCH (spec v5, section 4.2.5).

use bytes::{BufMut, Bytes, BytesMut};

use super::prepared::Prepared;
use super::rows::Rows;
use super::schema_change::SchemaChange;
use crate::error::CqlError;
use crate::frame::primitive::{Reader, put_string};
use crate::frame::version::ProtocolVersion;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryResult {
    Void,
    Rows(Rows),
    SetKeyspace(String),
    Prepared(Prepared),
    SchemaChange(SchemaChange),
    /// The body of a RESULT that is encoded already, for the version in which it will be sent. Bodies that are read never become this.
    Encoded(Bytes),
}

const VOID: i32 = 1;
const ROWS: i32 = 2;
const SET_KEYSPACE: i32 = 3;
const PREPARED: i32 = 4;
const SCHEMA_CHANGE: i32 = 5;

impl QueryResult {
    pub(crate) fn encode(&self, version: ProtocolVersion, out: &mut BytesMut) {
        match self {
            QueryResult::Void => out.put_i32(VOID),
            QueryResult::Rows(rows) => {
                out.put_i32(ROWS);
                rows.encode(version, out);
            }
            QueryResult::SetKeyspace(keyspace) => {
                out.put_i32(SET_KEYSPACE);
                put_string(out, keyspace);
            }
            QueryResult::Prepared(prepared) => {
                out.put_i32(PREPARED);
                prepared.encode(version, out);
            }
            QueryResult::SchemaChange(change) => {
                out.put_i32(SCHEMA_CHANGE);
                change.encode(version, out);
            }
            QueryResult::Encoded(body) => out.put_slice(body),
        }
    }

    /// Returns the bytes of rows, or of an encoded body. 0 for other results, which are short.
    pub fn content_len(&self) -> usize {
        match self {
            QueryResult::Rows(rows) => rows.content.len_bytes(),
            QueryResult::Encoded(body) => body.len(),
            QueryResult::Void
            | QueryResult::SetKeyspace(_)
            | QueryResult::Prepared(_)
            | QueryResult::SchemaChange(_) => 0,
        }
    }

    pub(crate) fn decode(reader: &mut Reader, version: ProtocolVersion) -> Result<QueryResult, CqlError> {
        Ok(match reader.i32()? {
            VOID => QueryResult::Void,
            ROWS => QueryResult::Rows(Rows::decode(reader, version)?),
            SET_KEYSPACE => QueryResult::SetKeyspace(reader.string()?),
            PREPARED => QueryResult::Prepared(Prepared::decode(reader, version)?),
            SCHEMA_CHANGE => QueryResult::SchemaChange(SchemaChange::decode(reader)?),
            kind => return Err(CqlError::Protocol(format!("Unknown kind of result {kind}"))),
        })
    }
}
