//! Sums over the components of vectors, computed in lanes so that the compiler uses the machine's vector instructions.

use multiversion::multiversion;

/// Number of sums that are computed in parallel.
const LANES: usize = 16;

/// Returns the dot product, up to the length of the shorter vector.
#[multiversion(targets("x86_64+avx2"))]
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    sum(a, b, |x, y| x * y)
}

/// Returns the square of the Euclidean distance.
#[multiversion(targets("x86_64+avx2"))]
pub fn distance_squared(a: &[f32], b: &[f32]) -> f32 {
    sum(a, b, |x, y| (x - y) * (x - y))
}

/// Returns the dot product with a vector of signed bytes.
#[multiversion(targets("x86_64+avx2"))]
pub fn dot_bytes(a: &[f32], b: &[u8]) -> f32 {
    sum(a, b, |x, byte| x * f32::from(byte.cast_signed()))
}

#[allow(
    clippy::inline_always,
    reason = "only what is inlined is compiled for the caller's instructions"
)]
#[inline(always)]
fn sum<T: Copy>(a: &[f32], b: &[T], term: impl Fn(f32, T) -> f32) -> f32 {
    let (a, a_rest) = a.as_chunks::<LANES>();
    let (b, b_rest) = b.as_chunks::<LANES>();
    let mut lanes = [0.0; LANES];
    for (a, b) in a.iter().zip(b) {
        for ((lane, x), y) in lanes.iter_mut().zip(a).zip(b) {
            *lane += term(*x, *y);
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(x, y)| term(*x, *y)).sum();
    lanes.iter().sum::<f32>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_cover_all_components() {
        let a: Vec<f32> = (0_u8..37).map(f32::from).collect();
        let b = vec![2.0; 37];
        assert_eq!(dot(&a, &b), 2.0 * 666.0);
        assert_eq!(distance_squared(&a, &a), 0.0);
        assert_eq!(distance_squared(&[1.0, 2.0], &[4.0, 6.0]), 25.0);
        assert_eq!(dot_bytes(&[1.0, 2.0], &[3, 0xFF]), 1.0);
    }
}
