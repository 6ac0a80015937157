//! The columns of a result or a prepared statement (spec v5, sections 4.2.5.2 and 4.2.5.4; Cassandra's `ResultSet.ResultMetadata` and
//! `PreparedMetadata`).

use std::sync::{Arc, OnceLock};

use bytes::{BufMut, Bytes, BytesMut};
use md5::{Digest, Md5};

use super::primitive::{Reader, len_i32, put_bytes, put_short_bytes, put_string};
use super::type_option::{decode_type, encode_type};
use super::version::ProtocolVersion;
use crate::error::CqlError;
use crate::types::CqlType;

const GLOBAL_TABLES_SPEC: i32 = 0x0001;
const HAS_MORE_PAGES: i32 = 0x0002;
const NO_METADATA: i32 = 0x0004;
const METADATA_CHANGED: i32 = 0x0008;

/// A column of a result, or a marker of a prepared statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSpec {
    pub keyspace: Arc<str>,
    pub table: Arc<str>,
    pub name: Arc<str>,
    pub ty: CqlType,
}

impl ColumnSpec {
    pub fn new(
        keyspace: impl Into<Arc<str>>,
        table: impl Into<Arc<str>>,
        name: impl Into<Arc<str>>,
        ty: CqlType,
    ) -> ColumnSpec {
        ColumnSpec {
            keyspace: keyspace.into(),
            table: table.into(),
            name: name.into(),
            ty,
        }
    }
}

/// Returns the common keyspace and table of all columns. `None` if there are no columns or they differ.
fn common_table(columns: &[ColumnSpec]) -> Option<(&str, &str)> {
    let first = columns.first()?;
    let agree = |column: &ColumnSpec| column.keyspace == first.keyspace && column.table == first.table;
    columns
        .iter()
        .all(agree)
        .then_some((&*first.keyspace, &*first.table))
}

fn encode_columns(columns: &[ColumnSpec], version: ProtocolVersion, out: &mut BytesMut) {
    let common = common_table(columns);
    if let Some((keyspace, table)) = common {
        put_string(out, keyspace);
        put_string(out, table);
    }
    for column in columns {
        if common.is_none() {
            put_string(out, &column.keyspace);
            put_string(out, &column.table);
        }
        put_string(out, &column.name);
        encode_type(&column.ty, version, out);
    }
}

fn decode_columns(reader: &mut Reader, count: usize, global: bool) -> Result<Vec<ColumnSpec>, CqlError> {
    let table = |reader: &mut Reader| -> Result<(Arc<str>, Arc<str>), CqlError> {
        Ok((reader.string()?.into(), reader.string()?.into()))
    };
    let common = if global { Some(table(reader)?) } else { None };
    let mut columns = Vec::new();
    for _ in 0..count {
        let (keyspace, table) = match &common {
            Some(common) => common.clone(),
            None => table(reader)?,
        };
        let name = reader.string()?.into();
        columns.push(ColumnSpec {
            keyspace,
            table,
            name,
            ty: decode_type(reader)?,
        });
    }
    Ok(columns)
}

/// The columns of a result, shared by the pages and the executions of a statement.
#[derive(Clone, Debug, Default)]
pub struct ResultMetadata {
    /// The columns, which must not change after the first call of [`ResultMetadata::id`].
    pub columns: Vec<ColumnSpec>,
    id: OnceLock<[u8; 16]>,
}

impl PartialEq for ResultMetadata {
    fn eq(&self, other: &ResultMetadata) -> bool {
        self.columns == other.columns
    }
}

impl Eq for ResultMetadata {}

/// The part of the metadata that belongs to one page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageMetadata {
    /// True if the columns are omitted because the client requested it.
    pub skip: bool,
    /// The position of the next page. `None` after the last page.
    pub paging_state: Option<Bytes>,
    /// The new id of the columns, sent to a v5 client if they differ from those that the client knows.
    pub new_metadata_id: Option<Bytes>,
}

impl PageMetadata {
    /// Decides which metadata of columns is sent to a client that executes a prepared statement (Cassandra's `ExecuteMessage`). `known_id` is
    /// the id of the columns that the client knows.
    ///
    /// A v5 client sends that id, and receives the metadata again if it has changed. An older client cannot. It knows the columns from when
    /// the statement was prepared, and its metadata may only be left out if they never changed.
    pub fn of_executed(
        current: &ResultMetadata,
        known_id: Option<&[u8]>,
        skip: bool,
        version: ProtocolVersion,
    ) -> PageMetadata {
        let id = current.id();
        let is_known = known_id == Some(&id[..]);
        let new_metadata_id =
            (version >= ProtocolVersion::V5 && !is_known).then(|| Bytes::copy_from_slice(&id));
        PageMetadata {
            skip: skip && is_known,
            new_metadata_id,
            ..PageMetadata::default()
        }
    }
}

impl ResultMetadata {
    pub fn new(columns: Vec<ColumnSpec>) -> ResultMetadata {
        ResultMetadata {
            columns,
            id: OnceLock::new(),
        }
    }

    /// Returns an id that changes when the columns do: the digest of their names and types. Without columns, it is the md5 of no bytes, as
    /// in Cassandra.
    pub fn id(&self) -> [u8; 16] {
        *self.id.get_or_init(|| {
            let mut digest = Md5::new();
            for column in &self.columns {
                for part in [&column.keyspace, &column.table, &column.name] {
                    digest.update(part.as_bytes());
                    digest.update([0]);
                }
                digest.update(column.ty.to_string());
                digest.update([0]);
            }
            digest.finalize().into()
        })
    }

    pub(crate) fn encode(&self, page: &PageMetadata, version: ProtocolVersion, out: &mut BytesMut) {
        let new_metadata_id = page
            .new_metadata_id
            .as_ref()
            .filter(|_| version >= ProtocolVersion::V5);
        // Changed metadata is sent even if the client requested to omit it.
        let skip = (page.skip && new_metadata_id.is_none()) || self.columns.is_empty();
        let flag = |present: bool, flag| if present { flag } else { 0 };
        let flags = flag(common_table(&self.columns).is_some(), GLOBAL_TABLES_SPEC)
            | flag(page.paging_state.is_some(), HAS_MORE_PAGES)
            | flag(skip, NO_METADATA)
            | flag(new_metadata_id.is_some(), METADATA_CHANGED);
        out.put_i32(flags);
        out.put_i32(len_i32(self.columns.len()));
        if let Some(paging_state) = &page.paging_state {
            put_bytes(out, Some(paging_state));
        }
        if let Some(id) = new_metadata_id {
            put_short_bytes(out, id);
        }
        if !skip {
            encode_columns(&self.columns, version, out);
        }
    }

    /// Reads metadata and the number of columns. If the metadata was omitted, the number is all that is known of the columns.
    pub(crate) fn decode(
        reader: &mut Reader,
        version: ProtocolVersion,
    ) -> Result<(ResultMetadata, PageMetadata, usize), CqlError> {
        let flags = reader.i32()?;
        let has = |flag| flags & flag != 0;
        let count = reader.i32()?;
        let count = usize::try_from(count)
            .map_err(|_| CqlError::Protocol(format!("Invalid count of columns {count}")))?;
        let mut page = PageMetadata {
            skip: has(NO_METADATA),
            ..PageMetadata::default()
        };
        if has(HAS_MORE_PAGES) {
            page.paging_state = reader.bytes()?;
        }
        if has(METADATA_CHANGED) && version >= ProtocolVersion::V5 {
            page.new_metadata_id = Some(reader.short_bytes()?);
        }
        let columns = if page.skip {
            Vec::new()
        } else {
            decode_columns(reader, count, has(GLOBAL_TABLES_SPEC))?
        };
        Ok((ResultMetadata::new(columns), page, count))
    }
}

/// The markers of a prepared statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PreparedMetadata {
    pub columns: Vec<ColumnSpec>,
    /// Indexes of the markers that form the partition key, in the key's order (v4 and later). Empty unless all of the key is bound.
    pub partition_key_indexes: Vec<u16>,
}

impl PreparedMetadata {
    pub(crate) fn encode(&self, version: ProtocolVersion, out: &mut BytesMut) {
        let global = common_table(&self.columns).is_some();
        out.put_i32(if global { GLOBAL_TABLES_SPEC } else { 0 });
        out.put_i32(len_i32(self.columns.len()));
        if version >= ProtocolVersion::V4 {
            out.put_i32(len_i32(self.partition_key_indexes.len()));
            for index in &self.partition_key_indexes {
                out.put_u16(*index);
            }
        }
        encode_columns(&self.columns, version, out);
    }

    pub(crate) fn decode(
        reader: &mut Reader,
        version: ProtocolVersion,
    ) -> Result<PreparedMetadata, CqlError> {
        let flags = reader.i32()?;
        let count = reader.long_count(4)?;
        let partition_key_indexes = match version {
            ProtocolVersion::V3 => Vec::new(),
            ProtocolVersion::V4 | ProtocolVersion::V5 | ProtocolVersion::V6 => {
                let count = reader.long_count(2)?;
                (0..count).map(|_| reader.u16()).collect::<Result<_, _>>()?
            }
        };
        let columns = decode_columns(reader, count, flags & GLOBAL_TABLES_SPEC != 0)?;
        Ok(PreparedMetadata {
            columns,
            partition_key_indexes,
        })
    }
}

#[cfg(test)]
#[path = "metadata_tests.rs"]
mod tests;
