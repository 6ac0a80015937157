//! How a table's clustering columns become bytes.

use bytes::Bytes;
use helenus_cql::types::CqlType;

use super::bounds::{ClusteringRange, TupleBound};
use crate::error::KeyError;

/// The order of a clustering column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    Asc,
    Desc,
}

/// A table's clustering columns; no more is needed to write and read its keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyLayout {
    pub clustering: Vec<(CqlType, Order)>,
}

/// An encoded clustering (or a prefix of one).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedClustering {
    pub bytes: Bytes,
    /// True if decoding gives back the very bytes that were encoded. False for values that equal another form of
    /// themselves (the decimal `1.0`): then the row should carry [`crate::row::ExactClustering`].
    pub canonical: bool,
}

impl KeyLayout {
    pub fn new(clustering: Vec<(CqlType, Order)>) -> KeyLayout {
        KeyLayout { clustering }
    }

    /// Encodes serialized clustering values: all of them, or a prefix.
    ///
    /// # Errors
    /// [`KeyError`] if there are too many, or one isn't a value of its column's type.
    pub fn encode_clustering<B: AsRef<[u8]>>(
        &self,
        _components: &[B],
    ) -> Result<EncodedClustering, KeyError> {
        unimplemented!()
    }

    /// The serialized values of an encoded clustering, in canonical form.
    ///
    /// # Errors
    /// [`KeyError::Corrupt`] if no encoder writes such bytes.
    pub fn decode_clustering(&self, _encoded: &[u8]) -> Result<Vec<Bytes>, KeyError> {
        unimplemented!()
    }

    /// The rows whose clustering starts with these values (all rows, if none).
    ///
    /// # Errors
    /// As [`KeyLayout::encode_clustering`].
    pub fn prefix_range<B: AsRef<[u8]>>(&self, _prefix: &[B]) -> Result<ClusteringRange, KeyError> {
        unimplemented!()
    }

    /// The rows between two bounds in *clustering order*, as `org.apache.cassandra.db.Slice`: each bound is a prefix of clustering
    /// values and whether the rows that start with it are included; `None` is open.
    ///
    /// # Errors
    /// As [`KeyLayout::encode_clustering`].
    pub fn slice<B: AsRef<[u8]>>(
        &self,
        _start: Option<(&[B], bool)>,
        _end: Option<(&[B], bool)>,
    ) -> Result<ClusteringRange, KeyError> {
        unimplemented!()
    }

    /// The rows that start with `prefix` and whose following columns, compared as a tuple in *CQL's order of values* (whatever
    /// the columns' clustering order), are above `lower` and below `upper`. With columns of mixed order the rows lie in
    /// several ranges; they come ascending and apart.
    ///
    /// # Errors
    /// As [`KeyLayout::encode_clustering`].
    pub fn tuple_ranges<B: AsRef<[u8]>>(
        &self,
        _prefix: &[B],
        _lower: Option<&TupleBound>,
        _upper: Option<&TupleBound>,
    ) -> Result<Vec<ClusteringRange>, KeyError> {
        unimplemented!()
    }
}
