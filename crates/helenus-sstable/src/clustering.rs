//! Clustering values, and bounds of ranges (`db.ClusteringPrefix.Serializer`, `db.Clustering.Serializer`,
//! `db.ClusteringBoundOrBoundary.Serializer`).
//!
//! Every 32 values have a vint before them with two bits for each: the lower one if the value is empty, the higher one if it is null.

use bytes::Bytes;

use crate::column_type::ColumnType;
use crate::cursor::Cursor;
use crate::error::SstableError;

/// Values that share one vint of marks.
const BATCH: usize = 32;

/// The kind of a bound. A boundary ends one range and starts the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BoundKind {
    ExclusiveEnd,
    InclusiveStart,
    ExclusiveEndInclusiveStart,
    InclusiveEndExclusiveStart,
    InclusiveEnd,
    ExclusiveStart,
}

impl BoundKind {
    /// Returns the kind of its number, the ordinal of `ClusteringPrefix.Kind`. `None` for rows (3 and 4) and other numbers.
    pub(crate) fn from_ordinal(ordinal: u8) -> Option<BoundKind> {
        Some(match ordinal {
            0 => BoundKind::ExclusiveEnd,
            1 => BoundKind::InclusiveStart,
            2 => BoundKind::ExclusiveEndInclusiveStart,
            5 => BoundKind::InclusiveEndExclusiveStart,
            6 => BoundKind::InclusiveEnd,
            7 => BoundKind::ExclusiveStart,
            _ => return None,
        })
    }

    /// Returns true if the bound ends a range.
    pub fn is_end(self) -> bool {
        !matches!(self, BoundKind::InclusiveStart | BoundKind::ExclusiveStart)
    }

    /// Returns true if the bound starts a range.
    pub fn is_start(self) -> bool {
        !matches!(self, BoundKind::InclusiveEnd | BoundKind::ExclusiveEnd)
    }
}

/// A bound of a range of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    pub kind: BoundKind,
    /// Values of the first clustering columns. Empty for the bound before or after all rows.
    pub prefix: Vec<Option<Bytes>>,
}

/// Reads the values of clustering columns. `None` is a null, which only rows and bounds of compact tables have. `source` holds the cursor's
/// bytes.
pub(crate) fn read_values(
    source: &Bytes,
    cursor: &mut Cursor<'_>,
    types: &[ColumnType],
) -> Result<Vec<Option<Bytes>>, SstableError> {
    let mut values = Vec::with_capacity(types.len());
    for batch in types.chunks(BATCH) {
        let marks = cursor.vint("marks of clustering values")?;
        for (position, column_type) in batch.iter().enumerate() {
            let bits = marks >> (position * 2);
            values.push(match bits & 3 {
                0 => {
                    let value = read_value(cursor, column_type.value_len(), "clustering value")?;
                    Some(source.slice_ref(value))
                }
                1 => Some(Bytes::new()),
                _ => None,
            });
        }
    }
    Ok(values)
}

/// Reads a value that isn't empty (`AbstractType.readValue`). `len` is the length of all values, and `None` if it varies.
pub(crate) fn read_value<'a>(
    cursor: &mut Cursor<'a>,
    len: Option<usize>,
    field: &'static str,
) -> Result<&'a [u8], SstableError> {
    match len {
        Some(len) => cursor.take(len, field),
        None => cursor.vint_bytes(field),
    }
}

/// Reads the kind and the types of a bound's values.
fn read_bound_start<'t>(
    cursor: &mut Cursor<'_>,
    types: &'t [ColumnType],
) -> Result<(BoundKind, &'t [ColumnType]), SstableError> {
    let place = cursor.clone();
    let ordinal = cursor.u8("kind of a bound")?;
    let kind = BoundKind::from_ordinal(ordinal).ok_or_else(|| {
        place.corrupt(format!(
            "a bound has the kind {ordinal}; 0 to 2 or 5 to 7 are expected"
        ))
    })?;
    let size = cursor.u16("size of a bound")?;
    let types = types.get(..usize::from(size)).ok_or_else(|| {
        let columns = types.len();
        place.corrupt(format!(
            "a bound has {size} values for {columns} clustering columns"
        ))
    })?;
    Ok((kind, types))
}

pub(crate) fn read_bound(
    source: &Bytes,
    cursor: &mut Cursor<'_>,
    types: &[ColumnType],
) -> Result<Bound, SstableError> {
    let (kind, types) = read_bound_start(cursor, types)?;
    let prefix = read_values(source, cursor, types)?;
    Ok(Bound { kind, prefix })
}
