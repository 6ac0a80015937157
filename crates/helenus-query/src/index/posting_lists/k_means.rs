//! Centroids for a list that has grown too long: k-means, which starts at distant points of the list.

use rand::Rng;
use rand::rngs::SmallRng;

use super::arithmetic::distance_squared;

const ITERATIONS: usize = 8;

/// Returns at most `count` centroids, each of which is the nearest one of some points. There are fewer if the points have fewer distinct
/// values.
pub fn k_means(points: &[Vec<f32>], count: usize, random: &mut SmallRng) -> Vec<Vec<f32>> {
    let mut centroids = seeds(points, count, random);
    for _ in 0..ITERATIONS {
        let dimension = points.first().map_or(0, Vec::len);
        let mut sums = vec![(vec![0.0_f32; dimension], 0_usize); centroids.len()];
        for point in points {
            if let Some((sum, members)) = sums.get_mut(nearest(point, &centroids)) {
                sum.iter_mut().zip(point).for_each(|(sum, x)| *sum += x);
                *members += 1;
            }
        }
        sums.retain(|(_, members)| *members > 0);
        #[allow(clippy::cast_precision_loss, reason = "small counts")]
        let mean = |(sum, members): (Vec<f32>, usize)| sum.iter().map(|x| x / members as f32).collect();
        let means: Vec<Vec<f32>> = sums.into_iter().map(mean).collect();
        if means == centroids {
            break;
        }
        centroids = means;
    }
    centroids
}

/// Returns the index of the nearest centroid.
pub fn nearest(point: &[f32], centroids: &[Vec<f32>]) -> usize {
    let distances = centroids.iter().map(|centroid| distance_squared(point, centroid));
    let least = distances.enumerate().min_by(|(_, a), (_, b)| a.total_cmp(b));
    least.map_or(0, |(place, _)| place)
}

/// Returns points to start with. Each is drawn with a probability proportional to the square of its distance from the earlier ones
/// (k-means++).
fn seeds(points: &[Vec<f32>], count: usize, random: &mut SmallRng) -> Vec<Vec<f32>> {
    let Some(first) = points.get(random.random_range(0..points.len().max(1))) else {
        return Vec::new();
    };
    let mut seeds = vec![first.clone()];
    let mut distances: Vec<f32> = points
        .iter()
        .map(|point| distance_squared(point, first))
        .collect();
    while seeds.len() < count {
        let total: f64 = distances.iter().map(|distance| f64::from(*distance)).sum();
        if total <= 0.0 {
            break;
        }
        let mut drawn = total * random.random::<f64>();
        let is_drawn = |distance: &f32| {
            drawn -= f64::from(*distance);
            drawn < 0.0
        };
        let place = distances.iter().position(is_drawn).unwrap_or(points.len() - 1);
        let Some(seed) = points.get(place) else { break };
        for (distance, point) in distances.iter_mut().zip(points) {
            *distance = distance.min(distance_squared(point, seed));
        }
        seeds.push(seed.clone());
    }
    seeds
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;
    use crate::index::posting_lists::gaussian::gaussian;

    #[test]
    fn groups_that_lie_apart_are_found() {
        let mut random = SmallRng::seed_from_u64(3);
        let mut points = Vec::new();
        for group in 0_u8..4 {
            for _ in 0..50 {
                points.push(vec![
                    f32::from(group) * 100.0 + gaussian(&mut random),
                    gaussian(&mut random),
                ]);
            }
        }
        let mut centroids = k_means(&points, 4, &mut random);
        centroids.sort_by(|a, b| a[0].total_cmp(&b[0]));
        assert_eq!(centroids.len(), 4);
        for (group, centroid) in (0_u8..).zip(&centroids) {
            assert!(
                (centroid[0] - f32::from(group) * 100.0).abs() < 1.0,
                "{centroid:?}"
            );
        }
    }

    #[test]
    fn points_that_are_alike_are_one_group() {
        let points = vec![vec![1.0, 2.0]; 10];
        assert_eq!(k_means(&points, 3, &mut SmallRng::seed_from_u64(1)), [[1.0, 2.0]]);
        assert!(k_means(&[], 3, &mut SmallRng::seed_from_u64(1)).is_empty());
    }
}
