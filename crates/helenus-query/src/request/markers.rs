//! Bind markers: what a statement expects, and the values that a request brings.

use std::borrow::Cow;
use std::collections::HashMap;

use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;

use super::BoundValues;
use crate::request::BoundValue;
use crate::response::ColumnSpec;

/// The markers of a statement, in the order in which they stand (Cassandra's `VariableSpecifications`).
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct Markers {
    /// Filled in as terms are resolved.
    specs: Vec<Option<ColumnSpec>>,
    /// Named markers have a name.
    names: Vec<Option<String>>,
    /// For each marker the place in the partition key that it alone gives, if the statement binds it by equality.
    partition_key_positions: Vec<Option<usize>>,
}

impl Markers {
    pub fn new(names: Vec<Option<String>>) -> Markers {
        let count = names.len();
        Markers {
            names,
            specs: vec![None; count],
            partition_key_positions: vec![None; count],
        }
    }

    /// Says what marker `index` stands for. A named marker keeps its own name in the specification.
    pub fn set(&mut self, index: usize, mut spec: ColumnSpec) {
        if let Some(Some(name)) = self.names.get(index) {
            spec.name = name.as_str().into();
        }
        if let Some(slot) = self.specs.get_mut(index) {
            *slot = Some(spec);
        }
    }

    /// Says that marker `index` gives the value of the partition key column at `position`.
    pub fn set_partition_key(&mut self, index: usize, position: usize) {
        if let Some(slot) = self.partition_key_positions.get_mut(index) {
            *slot = Some(position);
        }
    }

    pub fn len(&self) -> usize {
        self.specs.len()
    }

    pub fn is_empty(&self) -> bool {
        self.specs.is_empty()
    }

    /// What each marker expects; all are resolved once a statement is planned.
    pub fn specs(&self) -> Vec<ColumnSpec> {
        self.specs.iter().flatten().cloned().collect()
    }

    /// The types of the markers.
    pub fn types(&self) -> impl Iterator<Item = &CqlType> {
        self.specs.iter().flatten().map(|spec| &spec.ty)
    }

    /// For each partition key column the marker that gives it, if markers give all of them; else empty.
    pub fn partition_key_indexes(&self, partition_key_count: usize) -> Vec<u16> {
        let index_of = |position| {
            let index = self
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

    /// The values of a request in the order of the markers; borrowed where they come in that order.
    pub fn bind<'v>(&self, values: &'v BoundValues) -> Result<Cow<'v, [BoundValue]>, CqlError> {
        match values {
            BoundValues::None if self.specs.is_empty() => Ok(Cow::Borrowed(&[])),
            BoundValues::None => Err(wrong_count(self.specs.len(), 0)),
            BoundValues::Positional(values) if values.len() == self.specs.len() => Ok(Cow::Borrowed(values)),
            BoundValues::Positional(values) => Err(wrong_count(self.specs.len(), values.len())),
            BoundValues::Named(values) => {
                // Of a name that is given twice the first value counts.
                let by_name: HashMap<&str, &BoundValue> = values
                    .iter()
                    .rev()
                    .map(|(name, value)| (name.as_str(), value))
                    .collect();
                let of_spec = |spec: &ColumnSpec| by_name.get(&*spec.name).map(|value| (*value).clone());
                let bound: Vec<BoundValue> = self.specs.iter().flatten().filter_map(of_spec).collect();
                match bound.len() == self.specs.len() {
                    true => Ok(Cow::Owned(bound)),
                    false => Err(wrong_count(self.specs.len(), bound.len())),
                }
            }
        }
    }
}

fn wrong_count(expected: usize, got: usize) -> CqlError {
    CqlError::invalid(format!(
        "there were {expected} markers(?) in CQL but {got} bound variables"
    ))
}
