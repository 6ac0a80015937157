//! Packed vectors of entries: short vectors are stored as they are, others with one byte per component.
//!
//! The format is `0` and the components as `f32`. Or it is `1`, the scale and the squared length as `f32`, and a signed byte for each
//! component. The byte times the scale is the component, with an error of at most half the scale. All numbers are big-endian.
//!
//! The cell of an entry is one packed vector. Or it is a pair: `2`, and two packed vectors of the same length.

use bytes::{BufMut, Bytes, BytesMut};

use super::arithmetic::{distance_squared, dot, dot_bytes};
use crate::index::similarity::{SimilarityFunction, floats};

const WHOLE: u8 = 0;
const SCALED: u8 = 1;
const PAIR: u8 = 2;
/// Maximum number of components of vectors that are stored as they are. Bytes would save little there, and are too coarse to distinguish
/// such vectors.
const WHOLE_DIMENSION_MAX: usize = 16;
const BYTE_MAX: f32 = 127.0;

/// Returns the cell of an entry with two packed vectors of the same dimension.
pub fn pair(one: &[u8], other: &[u8]) -> Bytes {
    [&[PAIR], one, other].concat().into()
}

/// Returns the packed vectors of an entry's cell: one or two.
pub fn packed_vectors(cell: &[u8]) -> impl Iterator<Item = &[u8]> {
    let (one, other) = match cell.split_first() {
        Some((&PAIR, both)) => {
            let (one, other) = both.split_at(both.len() / 2);
            (one, Some(other))
        }
        _ => (cell, None),
    };
    std::iter::once(one).chain(other)
}

/// Packs a vector.
pub fn pack(vector: &[f32]) -> Bytes {
    let mut packed = BytesMut::with_capacity(9 + vector.len());
    if vector.len() <= WHOLE_DIMENSION_MAX {
        packed.put_u8(WHOLE);
        vector.iter().for_each(|component| packed.put_f32(*component));
        return packed.freeze();
    }
    let greatest = vector
        .iter()
        .fold(0.0_f32, |max, component| max.max(component.abs()));
    let scale = greatest / BYTE_MAX;
    packed.put_u8(SCALED);
    packed.put_f32(scale);
    packed.put_f32(dot(vector, vector));
    for component in vector {
        let steps = if scale > 0.0 {
            (component / scale).round()
        } else {
            0.0
        };
        #[allow(
            clippy::cast_possible_truncation,
            reason = "within the range of a byte, and saturating"
        )]
        packed.put_i8(steps as i8);
    }
    packed.freeze()
}

/// Returns the distance of a packed vector from `wanted`, in the reverse order of the similarity: less is nearer. Both are
/// [prepared](super::prepared). `None` if the packed vector is damaged or has another dimension.
pub fn distance(measure: SimilarityFunction, wanted: &[f32], packed: &[u8]) -> Option<f32> {
    let (kind, body) = packed.split_first()?;
    let is_euclidean = measure == SimilarityFunction::Euclidean;
    match *kind {
        WHOLE if body.len() == wanted.len() * 4 => {
            let vector = floats(body);
            Some(match is_euclidean {
                true => distance_squared(wanted, &vector),
                false => -dot(wanted, &vector),
            })
        }
        SCALED => {
            let (scale, body) = body.split_first_chunk::<4>()?;
            let (squared, bytes) = body.split_first_chunk::<4>()?;
            if bytes.len() != wanted.len() {
                return None;
            }
            let product = f32::from_be_bytes(*scale) * dot_bytes(wanted, bytes);
            Some(match is_euclidean {
                true => f32::from_be_bytes(*squared) - 2.0 * product,
                false => -product,
            })
        }
        _ => None,
    }
}

/// Unpacks a vector. The components are approximate.
pub fn unpack(packed: &[u8]) -> Option<Vec<f32>> {
    let (kind, body) = packed.split_first()?;
    match *kind {
        WHOLE => Some(floats(body)),
        SCALED => {
            let (scale, body) = body.split_first_chunk::<4>()?;
            let scale = f32::from_be_bytes(*scale);
            let bytes = body.get(4..)?;
            Some(
                bytes
                    .iter()
                    .map(|byte| f32::from(byte.cast_signed()) * scale)
                    .collect(),
            )
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::SmallRng;

    use super::*;
    use crate::index::posting_lists::gaussian::gaussian;

    fn vector(random: &mut SmallRng, dimension: usize) -> Vec<f32> {
        (0..dimension).map(|_| gaussian(random) * 3.0).collect()
    }

    #[test]
    fn components_come_back_to_half_a_step() {
        let mut random = SmallRng::seed_from_u64(5);
        for dimension in [1, 16, 17, 100] {
            let vector = vector(&mut random, dimension);
            let step = vector.iter().fold(0.0_f32, |max, x| max.max(x.abs())) / BYTE_MAX;
            let back = unpack(&pack(&vector)).unwrap();
            assert_eq!(back.len(), dimension);
            for (x, y) in vector.iter().zip(&back) {
                assert!((x - y).abs() <= step * 0.501, "{x} {y} {step}");
            }
        }
        assert_eq!(unpack(&pack(&[0.0; 20])).unwrap(), [0.0; 20]);
    }

    #[test]
    fn cells_of_two_vectors_are_divided() {
        let mut random = SmallRng::seed_from_u64(7);
        for dimension in [1, 16, 17, 100] {
            let packed = [(); 2].map(|()| pack(&vector(&mut random, dimension)));
            assert!(packed_vectors(&pair(&packed[0], &packed[1])).eq(packed.iter()));
            assert!(packed_vectors(&packed[0]).eq([&packed[0]]));
        }
    }

    #[test]
    fn distances_order_as_the_similarity_does() {
        let mut random = SmallRng::seed_from_u64(6);
        for measure in [SimilarityFunction::DotProduct, SimilarityFunction::Euclidean] {
            let wanted = vector(&mut random, 64);
            let mut near = wanted.clone();
            near[3] += 0.5;
            let far = vector(&mut random, 64);
            let of = |vector: &[f32]| distance(measure, &wanted, &pack(vector)).unwrap();
            assert_eq!(
                of(&near) < of(&far),
                measure.score(&wanted, &near) > measure.score(&wanted, &far)
            );
        }
    }

    #[test]
    fn damaged_vectors_have_no_distance() {
        let wanted = vec![1.0; 20];
        for packed in [&[][..], &[7, 1], &[SCALED, 0, 0], &[WHOLE, 1, 2, 3, 4]] {
            assert!(distance(SimilarityFunction::DotProduct, &wanted, packed).is_none());
        }
    }
}
