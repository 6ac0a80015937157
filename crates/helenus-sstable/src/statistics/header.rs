//! The serialization header: types and columns of the rows in Data.db (`db.SerializationHeader.Component`).

use std::sync::Arc;

use bytes::Bytes;

use super::encoding::EncodingStats;
use crate::column_type::ColumnType;
use crate::cursor::Cursor;
use crate::error::{ErrorKind, SstableError};
use crate::file_name::STATISTICS;
use crate::version::Version;

/// The kind of a column in the header. Key columns have no names there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ColumnKind {
    Static,
    Regular,
}

/// A column that cells belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name in UTF-8. Only tables of Thrift have names of other bytes.
    pub name: Bytes,
    pub kind: ColumnKind,
    pub column_type: ColumnType,
    /// True if the column has many cells, each with a path: a collection or user type that isn't frozen.
    pub is_complex: bool,
    /// Length of all values that aren't empty. `None` if values have their length before them.
    pub(crate) value_len: Option<usize>,
}

/// Types and columns of an SSTable.
///
/// The header has columns in the order of the rows: those with one cell before those with many, and then by name. The schema is not in it:
/// key columns lack their names, and columns without any data may be absent.
#[derive(Clone, Debug)]
pub struct SerializationHeader {
    pub version: Version,
    pub encoding: EncodingStats,
    /// The type of the partition key: a `CompositeType` if it has several columns.
    pub key_type: ColumnType,
    pub clustering_types: Vec<ColumnType>,
    pub static_columns: Vec<Arc<Column>>,
    pub regular_columns: Vec<Arc<Column>>,
}

impl SerializationHeader {
    /// Decodes the bytes of the header, without its checksum.
    ///
    /// # Errors
    /// If the bytes are corrupt, or a type is unknown.
    pub fn decode(version: Version, bytes: &Bytes) -> Result<SerializationHeader, SstableError> {
        SerializationHeader::decode_at(version, bytes, 0)
    }

    pub(super) fn decode_at(
        version: Version,
        bytes: &Bytes,
        start: u64,
    ) -> Result<SerializationHeader, SstableError> {
        let mut cursor = Cursor::new(bytes, STATISTICS, start);
        let header = decode(version, bytes, &mut cursor).map_err(SstableError::within_item)?;
        if !cursor.is_empty() {
            let len = cursor.remaining();
            return Err(cursor.corrupt(format!(
                "{len} bytes follow the serialization header; none are expected"
            )));
        }
        Ok(header)
    }

    pub(crate) fn columns(&self, kind: ColumnKind) -> &[Arc<Column>] {
        match kind {
            ColumnKind::Static => &self.static_columns,
            ColumnKind::Regular => &self.regular_columns,
        }
    }

    /// Marks columns as frozen. Cassandra 3.0 leaves out `FrozenType` around user types in the header, and all of its user types are frozen
    /// (CASSANDRA-15035, `SSTableHeaderFix`). In `md` and `me`, only the schema says whether such a column has one cell or many.
    pub fn freeze_columns(&mut self, is_frozen: impl Fn(&Column) -> bool) {
        for column in self.static_columns.iter_mut().chain(&mut self.regular_columns) {
            if column.is_complex && is_frozen(column) {
                let column_type = column.column_type.clone().frozen();
                let frozen = Column::new(column.name.clone(), column.kind, column_type);
                *column = Arc::new(frozen);
            }
        }
    }
}

impl Column {
    fn new(name: Bytes, kind: ColumnKind, column_type: ColumnType) -> Column {
        Column {
            name,
            kind,
            is_complex: column_type.is_complex(),
            value_len: column_type.value_len(),
            column_type,
        }
    }
}

fn decode(
    version: Version,
    bytes: &Bytes,
    cursor: &mut Cursor<'_>,
) -> Result<SerializationHeader, SstableError> {
    let encoding = EncodingStats::decode(version, cursor)?;
    let key_type = column_type(cursor, "type of the partition key")?.frozen();
    let mut clustering_types = Vec::new();
    // Counts aren't trusted: the lists grow by what is really there.
    for _ in 0..cursor.vint("number of clustering columns")? {
        clustering_types.push(column_type(cursor, "type of a clustering column")?.frozen());
    }
    Ok(SerializationHeader {
        version,
        encoding,
        key_type,
        clustering_types,
        static_columns: columns(bytes, cursor, ColumnKind::Static)?,
        regular_columns: columns(bytes, cursor, ColumnKind::Regular)?,
    })
}

fn columns(
    bytes: &Bytes,
    cursor: &mut Cursor<'_>,
    kind: ColumnKind,
) -> Result<Vec<Arc<Column>>, SstableError> {
    let mut columns = Vec::new();
    for _ in 0..cursor.vint("number of columns")? {
        let name = bytes.slice_ref(cursor.vint_bytes("name of a column")?);
        let column_type = column_type(cursor, "type of a column")?;
        columns.push(Arc::new(Column::new(name, kind, column_type)));
    }
    Ok(columns)
}

/// Reads the name of a class (`AbstractTypeSerializer`).
pub(super) fn column_type(cursor: &mut Cursor<'_>, field: &'static str) -> Result<ColumnType, SstableError> {
    let place = cursor.clone();
    let class = std::str::from_utf8(cursor.vint_bytes(field)?)
        .map_err(|_| place.corrupt(format!("{field}: a class name in UTF-8 is expected")))?;
    ColumnType::parse(class).ok_or_else(|| {
        let problem = format!("{field}: the class '{class}' is unknown; the types of CQL can be read");
        place.error(ErrorKind::Unsupported, problem)
    })
}
