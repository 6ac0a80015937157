//! Bind markers: the values that a statement expects, and those that a request carries.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;

use super::BoundValues;
use crate::request::BoundValue;
use crate::response::ColumnSpec;

/// The markers of a statement, in the order of the text (Cassandra's `VariableSpecifications`).
///
/// Equal specifications are stored once: a list of ten thousand markers needs one, and four bytes for each marker.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct Markers {
    /// Index of each marker's specification in `specs`. [`UNRESOLVED`] until the marker's term is resolved.
    places: Vec<u32>,
    /// Distinct specifications.
    specs: Vec<ColumnSpec>,
    planning: Planning,
}

/// Index of a marker that is not resolved yet.
const UNRESOLVED: u32 = u32::MAX;

/// Data that is needed only while the statement is planned.
#[derive(Clone, Debug, Default)]
struct Planning {
    /// Name of each marker. `None` if the marker is `?`.
    names: Vec<Option<String>>,
    /// Index of each specification, by keyspace, table, name and type.
    known: HashMap<(Arc<str>, Arc<str>, Arc<str>, CqlType), u32>,
    /// Position of the partition key column whose whole value each marker gives. `None` if the statement does not compare the marker with
    /// such a column by equality.
    partition_key_positions: Vec<Option<usize>>,
}

impl Markers {
    pub fn new(names: Vec<Option<String>>) -> Markers {
        let count = names.len();
        Markers {
            places: vec![UNRESOLVED; count],
            specs: Vec::new(),
            planning: Planning {
                names,
                known: HashMap::new(),
                partition_key_positions: vec![None; count],
            },
        }
    }

    /// Sets the specification of marker `index`. A named marker keeps its own name there.
    pub fn set(&mut self, index: usize, mut spec: ColumnSpec) {
        if let Some(Some(name)) = self.planning.names.get(index) {
            spec.name = name.as_str().into();
        }
        let Some(slot) = self.places.get_mut(index) else {
            return;
        };
        let key = (
            spec.keyspace.clone(),
            spec.table.clone(),
            spec.name.clone(),
            spec.ty.clone(),
        );
        *slot = *self.planning.known.entry(key).or_insert_with(|| {
            self.specs.push(spec);
            u32::try_from(self.specs.len() - 1).unwrap_or(UNRESOLVED)
        });
    }

    /// Records that marker `index` gives the value of the partition key column at `position`.
    pub fn set_partition_key(&mut self, index: usize, position: usize) {
        if let Some(slot) = self.planning.partition_key_positions.get_mut(index) {
            *slot = Some(position);
        }
    }

    /// Releases the memory that only planning needs. [`Markers::set`] may not be called afterwards.
    pub fn finish(&mut self) {
        self.planning = Planning::default();
        self.specs.shrink_to_fit();
    }

    pub fn len(&self) -> usize {
        self.places.len()
    }

    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns the specifications in the order of the markers. All are resolved once a statement is planned.
    pub fn iter(&self) -> impl Iterator<Item = &ColumnSpec> {
        let spec = |place: &u32| self.specs.get(*place as usize);
        self.places.iter().filter_map(spec)
    }

    /// Copies the specifications, in the order of the markers.
    pub fn specs(&self) -> Vec<ColumnSpec> {
        self.iter().cloned().collect()
    }

    /// Returns the types of the markers.
    pub fn types(&self) -> impl Iterator<Item = &CqlType> {
        self.iter().map(|spec| &spec.ty)
    }

    /// Returns the marker of each partition key column. Empty unless markers give all of these columns.
    pub fn partition_key_indexes(&self, partition_key_count: usize) -> Vec<u16> {
        let index_of = |position| {
            let index = self
                .planning
                .partition_key_positions
                .iter()
                .rposition(|at| *at == Some(position))?;
            u16::try_from(index).ok()
        };
        (0..partition_key_count)
            .map(index_of)
            .collect::<Option<Vec<u16>>>()
            .unwrap_or_default()
    }

    /// Returns the values of a request in the order of the markers. They are borrowed if the request has them in that order.
    pub fn bind<'v>(&self, values: &'v BoundValues) -> Result<Cow<'v, [BoundValue]>, CqlError> {
        match values {
            BoundValues::None => self.bind_in_order(&[]).map(Cow::Borrowed),
            BoundValues::Positional(values) => self.bind_in_order(values).map(Cow::Borrowed),
            BoundValues::Named(values) => {
                // The first value counts if a name is given twice.
                let by_name: HashMap<&str, &BoundValue> = values
                    .iter()
                    .rev()
                    .map(|(name, value)| (name.as_str(), value))
                    .collect();
                let of_spec = |spec: &ColumnSpec| by_name.get(&*spec.name).map(|value| (*value).clone());
                let bound: Vec<BoundValue> = self.iter().filter_map(of_spec).collect();
                match bound.len() == self.len() {
                    true => Ok(Cow::Owned(bound)),
                    false => Err(wrong_count(self.len(), bound.len())),
                }
            }
        }
    }

    /// Returns the values, which must be as many as the markers.
    fn bind_in_order<'v>(&self, values: &'v [BoundValue]) -> Result<&'v [BoundValue], CqlError> {
        match values.len() == self.len() {
            true => Ok(values),
            false => Err(wrong_count(self.len(), values.len())),
        }
    }
}

fn wrong_count(expected: usize, got: usize) -> CqlError {
    CqlError::invalid(format!(
        "there were {expected} markers(?) in CQL but {got} bound variables"
    ))
}

#[cfg(test)]
#[path = "markers_tests.rs"]
mod tests;
