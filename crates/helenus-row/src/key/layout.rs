//! The encoding of a table's clustering columns.

use std::ops::Range;

use bytes::Bytes;
use helenus_cql::types::CqlType;

use super::bounds::{ClusteringRange, TupleBound, successor, tidy};
use super::component::{MaskedReader, decode_component, encode_component};
use crate::error::KeyError;

/// The order of a clustering column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    Asc,
    Desc,
}

/// A table's clustering columns, which are all that is needed to write and read the table's keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyLayout {
    pub clustering: Vec<(CqlType, Order)>,
}

/// An encoded clustering (or a prefix of one).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedClustering {
    pub bytes: Bytes,
    /// True if decoding returns exactly the bytes that were encoded. False for values that have several equal forms (the decimal `1.0`):
    /// then the row should carry [`crate::row::ExactClustering`].
    pub canonical: bool,
}

/// Maximum number of trailing 0xff bytes for which a successor can be decoded. Longer runs are in values that are compared by bytes, whose
/// encoding does not end with 0xff.
const STRIPPED_MAX: usize = 32;

impl KeyLayout {
    pub fn new(clustering: Vec<(CqlType, Order)>) -> KeyLayout {
        KeyLayout { clustering }
    }

    /// Encodes serialized clustering values: all of them, or a prefix.
    ///
    /// # Errors
    /// [`KeyError`] if there are too many, or one isn't a value of its column's type.
    pub fn encode_clustering<B: AsRef<[u8]>>(&self, components: &[B]) -> Result<EncodedClustering, KeyError> {
        let mut bytes = Vec::new();
        let canonical = self.append(0, components, &mut bytes)?;
        Ok(EncodedClustering {
            bytes: bytes.into(),
            canonical,
        })
    }

    /// Appends the values of the columns from `first` on.
    fn append<B: AsRef<[u8]>>(
        &self,
        first: usize,
        components: &[B],
        out: &mut Vec<u8>,
    ) -> Result<bool, KeyError> {
        if first + components.len() > self.clustering.len() {
            return Err(KeyError::TooManyComponents {
                given: first + components.len(),
                columns: self.clustering.len(),
            });
        }
        let mut canonical = true;
        for ((ty, order), value) in self.clustering.iter().skip(first).zip(components) {
            let start = out.len();
            canonical &= encode_component(ty, value.as_ref(), out)?;
            if *order == Order::Desc {
                out.iter_mut().skip(start).for_each(|byte| *byte = !*byte);
            }
        }
        Ok(canonical)
    }

    /// Returns the serialized values of an encoded clustering, in canonical form. A prefix has fewer values than the table has clustering
    /// columns.
    ///
    /// # Errors
    /// [`KeyError::Corrupt`] if no encoder writes such bytes.
    pub fn decode_clustering(&self, encoded: &[u8]) -> Result<Vec<Bytes>, KeyError> {
        match self.decode_leading(encoded, self.clustering.len())? {
            (values, []) => Ok(values),
            _ => Err(KeyError::Corrupt("bytes after the last clustering column")),
        }
    }

    /// Returns the serialized values of the encoded clustering, or prefix of one, whose [`successor`] these bytes are. `None` if there is
    /// none.
    pub fn decode_successor(&self, bytes: &[u8]) -> Option<Vec<Bytes>> {
        let (last, before) = bytes.split_last()?;
        let mut encoded = before.to_vec();
        encoded.push(last.checked_sub(1)?);
        // The successor has lost the last bytes that were 0xff.
        for _ in 0..=STRIPPED_MAX {
            if let Ok(values) = self.decode_clustering(&encoded) {
                return Some(values);
            }
            encoded.push(0xff);
        }
        None
    }

    /// Returns the serialized values of the first columns, in canonical form, and the bytes behind them.
    ///
    /// # Errors
    /// As [`KeyLayout::decode_clustering`].
    pub fn decode_leading<'e>(
        &self,
        encoded: &'e [u8],
        columns: usize,
    ) -> Result<(Vec<Bytes>, &'e [u8]), KeyError> {
        let mut values = Vec::with_capacity(encoded.len());
        let mut parts = Vec::with_capacity(columns);
        let rest = self.append_leading(encoded, columns, &mut values, &mut parts)?;
        let values = Bytes::from(values);
        let values = parts.into_iter().map(|part| values.slice(part)).collect();
        Ok((values, rest))
    }

    /// Appends the serialized values of the first columns, in canonical form, and the place of each within `values`. Returns the bytes
    /// behind them. Unlike [`KeyLayout::decode_leading`], this method lets the caller use the memory again.
    ///
    /// # Errors
    /// As [`KeyLayout::decode_clustering`].
    pub fn append_leading<'e>(
        &self,
        encoded: &'e [u8],
        columns: usize,
        values: &mut Vec<u8>,
        parts: &mut Vec<Range<usize>>,
    ) -> Result<&'e [u8], KeyError> {
        let mut reader = MaskedReader::new(encoded);
        for (ty, order) in self.clustering.iter().take(columns) {
            if reader.is_empty() {
                break;
            }
            reader.set_complemented(*order == Order::Desc);
            let start = values.len();
            decode_component(ty, &mut reader, values)?;
            parts.push(start..values.len());
        }
        Ok(reader.rest())
    }

    /// Returns the rows whose clustering starts with these values. All rows if `prefix` is empty.
    ///
    /// # Errors
    /// As [`KeyLayout::encode_clustering`].
    pub fn prefix_range<B: AsRef<[u8]>>(&self, prefix: &[B]) -> Result<ClusteringRange, KeyError> {
        Ok(ClusteringRange::with_prefix(
            self.encode_clustering(prefix)?.bytes,
        ))
    }

    /// Returns the rows between two bounds in *clustering order*, as `org.apache.cassandra.db.Slice`. Each bound is a prefix of clustering
    /// values, with true if the rows that start with the prefix are included. `None` is an open bound.
    ///
    /// # Errors
    /// As [`KeyLayout::encode_clustering`].
    pub fn slice<B: AsRef<[u8]>>(
        &self,
        start: Option<(&[B], bool)>,
        end: Option<(&[B], bool)>,
    ) -> Result<ClusteringRange, KeyError> {
        let nothing = || ClusteringRange {
            start: Bytes::new(),
            end: Some(Bytes::new()),
        };
        let start = match start {
            None => Bytes::new(),
            Some((prefix, inclusive)) => {
                let rows = self.prefix_range(prefix)?;
                match (inclusive, rows.end) {
                    (true, _) => rows.start,
                    (false, Some(after)) => after,
                    (false, None) => return Ok(nothing()),
                }
            }
        };
        let end = match end {
            None => None,
            Some((prefix, inclusive)) => {
                let rows = self.prefix_range(prefix)?;
                if inclusive { rows.end } else { Some(rows.start) }
            }
        };
        Ok(ClusteringRange { start, end })
    }

    /// Returns the rows that start with `prefix` and whose following columns are above `lower` and below `upper`. These columns are
    /// compared as a tuple in *CQL's order of values*, whatever the columns' clustering order. With columns of mixed order the rows lie in
    /// several ranges, which are ascending and do not touch.
    ///
    /// # Errors
    /// As [`KeyLayout::encode_clustering`].
    pub fn tuple_ranges<B: AsRef<[u8]>>(
        &self,
        prefix: &[B],
        lower: Option<&TupleBound>,
        upper: Option<&TupleBound>,
    ) -> Result<Vec<ClusteringRange>, KeyError> {
        let side = |bound: Option<&TupleBound>, above: bool| match bound {
            None => Ok(vec![self.prefix_range(prefix)?]),
            Some(bound) => self.side_ranges(prefix, bound, above),
        };
        let (lower, upper) = (side(lower, true)?, side(upper, false)?);
        let both = lower
            .iter()
            .flat_map(|a| upper.iter().map(|b| a.intersect(b)))
            .collect();
        Ok(tidy(both))
    }

    /// Returns the rows on one side of a bound. For each column, one range has equal values before the column and values beyond the bound
    /// in it. An inclusive bound adds the range of its own values.
    fn side_ranges<B: AsRef<[u8]>>(
        &self,
        prefix: &[B],
        bound: &TupleBound,
        above: bool,
    ) -> Result<Vec<ClusteringRange>, KeyError> {
        let mut ranges = Vec::with_capacity(bound.values.len() + 1);
        let mut equal = Vec::new();
        self.append(0, prefix, &mut equal)?;
        for (at, value) in bound.values.iter().enumerate() {
            let column = prefix.len() + at;
            let around = successor(&equal);
            let around_start = Bytes::copy_from_slice(&equal);
            self.append(column, std::slice::from_ref(value), &mut equal)?;
            let ascending = self
                .clustering
                .get(column)
                .is_some_and(|(_, order)| *order == Order::Asc);
            if above == ascending {
                // No key can follow a prefix that has only 0xff bytes.
                if let Some(start) = successor(&equal) {
                    ranges.push(ClusteringRange { start, end: around });
                }
            } else {
                ranges.push(ClusteringRange {
                    start: around_start,
                    end: Some(Bytes::copy_from_slice(&equal)),
                });
            }
        }
        if bound.inclusive {
            ranges.push(ClusteringRange::with_prefix(equal.into()));
        }
        Ok(tidy(ranges))
    }
}
