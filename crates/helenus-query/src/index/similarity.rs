//! Similarity of vectors, by the measure that an index declares.

use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;

use super::kinds::registered;
use crate::schema::{Column, Index};

/// Maximum absolute value of a component that can be indexed or searched for.
const COMPONENT_MAX: f32 = 1e17;

/// The measure of an index on vectors (its option `similarity_function`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SimilarityFunction {
    Cosine,
    DotProduct,
    Euclidean,
}

impl SimilarityFunction {
    /// Returns the index's measure.
    pub fn of(index: &Index) -> SimilarityFunction {
        let name = index.options.get("similarity_function");
        match name.map(|name| name.to_ascii_lowercase()).as_deref() {
            Some("dot_product") => SimilarityFunction::DotProduct,
            Some("euclidean") => SimilarityFunction::Euclidean,
            _ => SimilarityFunction::Cosine,
        }
    }

    /// Returns the similarity of two vectors. A greater number means nearer.
    pub fn score(self, wanted: &[f32], stored: &[f32]) -> f32 {
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f32>();
        match self {
            SimilarityFunction::Cosine => {
                let norm = (dot(wanted, wanted) * dot(stored, stored)).sqrt();
                (1.0 + dot(wanted, stored) / norm) / 2.0
            }
            SimilarityFunction::DotProduct => (1.0 + dot(wanted, stored)) / 2.0,
            SimilarityFunction::Euclidean => {
                let squares = wanted.iter().zip(stored).map(|(x, y)| (x - y) * (x - y));
                1.0 / (1.0 + squares.sum::<f32>())
            }
        }
    }

    /// Refuses a vector that cannot be compared: one that is not finite, or has no direction if the measure is cosine.
    ///
    /// # Errors
    /// The errors are those of Cassandra's `VectorMemtableIndex`.
    pub fn check(self, vector: &[f32]) -> Result<(), CqlError> {
        for (at, component) in vector.iter().enumerate() {
            let fault = match component {
                component if !component.is_finite() => "non-finite",
                component if component.abs() > COMPONENT_MAX => "Out-of-bounds",
                _ => continue,
            };
            return Err(CqlError::invalid(format!(
                "{fault} value at vector[{at}]={component}"
            )));
        }
        if self == SimilarityFunction::Cosine && vector.iter().all(|component| *component == 0.0) {
            return Err(CqlError::invalid(
                "Zero vectors cannot be indexed or queried with cosine similarity",
            ));
        }
        Ok(())
    }
}

/// Refuses a value that the column's index on vectors cannot hold.
pub(crate) fn check_indexed(index: &Index, column: &Column, value: &[u8]) -> Result<(), CqlError> {
    match column.ty {
        CqlType::Vector { .. } if registered(index).ranks_vectors => {
            SimilarityFunction::of(index).check(&floats(value))
        }
        _ => Ok(()),
    }
}

/// Returns the components of a serialized vector of floats.
pub(crate) fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes
        .as_chunks::<4>()
        .0
        .iter()
        .map(|chunk| f32::from_be_bytes(*chunk))
        .collect()
}
