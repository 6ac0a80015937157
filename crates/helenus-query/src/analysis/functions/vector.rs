//! Similarity of vectors (Cassandra's `VectorFcts`): 1 for equal vectors, and less for distant ones.

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;

use super::NativeFunction;

fn floats(bytes: &[u8]) -> Vec<f32> {
    let (chunks, _) = bytes.as_chunks::<4>();
    chunks.iter().map(|chunk| f32::from_be_bytes(*chunk)).collect()
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let norms = f64::from(dot(a, a)) * f64::from(dot(b, b));
    let cosine = (f64::from(dot(a, b)) / norms.sqrt()) as f32;
    (1.0 + cosine) / 2.0
}

/// Adds the sums of groups of eight numbers to `before`. Each group is summed first, as by Lucene's `VectorUtilSupport`, because sums of
/// floats depend on the order.
fn sum_of_eights(terms: &[[f32; 8]], before: f32) -> f32 {
    let eights = terms.iter().map(|eight| eight.iter().sum::<f32>());
    eights.fold(before, |sum, eight| sum + eight)
}

fn euclidean(a: &[f32], b: &[f32]) -> f32 {
    let squares: Vec<f32> = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).collect();
    let (eights, rest) = squares.as_chunks::<8>();
    let square_distance = rest
        .iter()
        .fold(sum_of_eights(eights, 0.0), |sum, square| sum + square);
    1.0 / (1.0 + square_distance)
}

fn dot_product(a: &[f32], b: &[f32]) -> f32 {
    let products: Vec<f32> = a.iter().zip(b).map(|(a, b)| a * b).collect();
    let (rest, eights) = products.as_rchunks::<8>();
    (1.0 + sum_of_eights(eights, rest.iter().sum())) / 2.0
}

/// Returns `similarity_cosine`, `similarity_euclidean` or `similarity_dot_product` of two float vectors of one dimension.
///
/// # Errors
/// `All arguments must have the same vector dimensions`.
pub fn similarity(name: &str, types: &[CqlType]) -> Result<NativeFunction, CqlError> {
    let [first, second] = types else {
        return Err(CqlError::Server(
            "similarity of other than two vectors".to_owned(),
        ));
    };
    if !matches!((first, second), (CqlType::Vector { .. }, CqlType::Vector { .. })) {
        return Err(CqlError::invalid(format!(
            "Function system.{name} requires a float vector argument, but found a list"
        )));
    }
    if first != second {
        return Err(CqlError::invalid(
            "All arguments must have the same vector dimensions",
        ));
    }
    let compare = match name {
        "similarity_cosine" => cosine,
        "similarity_euclidean" => euclidean,
        _ => dot_product,
    };
    let refuses_zeros = name == "similarity_cosine";
    let types = [first.clone(), first.clone()];
    Ok(NativeFunction::strict(
        name,
        types,
        CqlType::FLOAT,
        move |args, _| {
            let [a, b] = args else { return Ok(None) };
            let (a, b) = (floats(a), floats(b));
            let is_zero = |vector: &[f32]| vector.iter().all(|value| *value == 0.0);
            if refuses_zeros && (is_zero(&a) || is_zero(&b)) {
                return Err(CqlError::invalid(
                    "Function system.similarity_cosine doesn't support all-zero vectors.",
                ));
            }
            Ok(Some(Bytes::copy_from_slice(&compare(&a, &b).to_be_bytes())))
        },
    ))
}
