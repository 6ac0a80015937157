//! Statistical test that distinguishes a difference from noise.
//!
//! The test is the exact two-sided Mann-Whitney test on the figures of the rounds. Its p value is a share of all assignments of the ranks
//! to the two sides: those that separate the sides at least as much as was observed. The test assumes no distribution of the figures. A
//! difference is significant if the p value is below [`SIGNIFICANCE`]. With five rounds per side this means exactly that the two ranges do
//! not overlap.

/// Accepted probability of taking noise for a difference, for one figure.
pub const SIGNIFICANCE: f64 = 0.01;

/// Returns the two-sided p value of the exact Mann-Whitney test. 1 if a side is empty.
pub fn mann_whitney(a: &[f64], b: &[f64]) -> f64 {
    if a.is_empty() || b.is_empty() {
        return 1.0;
    }
    let ranks = doubled_midranks(a, b);
    let seen: usize = ranks[..a.len()].iter().sum();
    let ways = ways_by_rank_sum(&ranks, a.len());
    // Doubled rank sum that is expected if the sides are alike.
    let centre = a.len() * (ranks.len() + 1);
    let distance = seen.abs_diff(centre);
    let all: f64 = ways.iter().sum();
    let extreme: f64 = ways
        .iter()
        .enumerate()
        .filter(|(sum, _)| sum.abs_diff(centre) >= distance)
        .map(|(_, ways)| ways)
        .sum();
    extreme / all
}

/// Returns twice the rank of each figure of `a` and then of `b`, among all figures. Equal figures share the mean of their ranks, which is
/// whole when doubled.
fn doubled_midranks(a: &[f64], b: &[f64]) -> Vec<usize> {
    let all: Vec<f64> = a.iter().chain(b).copied().collect();
    let rank = |value: &f64| {
        let below = all.iter().filter(|other| other.total_cmp(value).is_lt()).count();
        let equal = all.iter().filter(|other| other.total_cmp(value).is_eq()).count();
        2 * below + equal + 1
    };
    all.iter().map(rank).collect()
}

/// Returns the number of choices of `count` ranks for each sum of their ranks.
fn ways_by_rank_sum(ranks: &[usize], count: usize) -> Vec<f64> {
    let most: usize = ranks.iter().sum();
    let mut ways = vec![vec![0.0; most + 1]; count + 1];
    ways[0][0] = 1.0;
    for &rank in ranks {
        for chosen in (1..=count).rev() {
            for sum in (rank..=most).rev() {
                ways[chosen][sum] += ways[chosen - 1][sum - rank];
            }
        }
    }
    ways.swap_remove(count)
}

/// Returns the median. `None` if there are no values.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

/// Returns the median of the distances from the median. `None` if there are no values.
pub fn median_absolute_deviation(values: &[f64]) -> Option<f64> {
    let centre = median(values)?;
    median(
        &values
            .iter()
            .map(|value| (value - centre).abs())
            .collect::<Vec<_>>(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_separate_rounds_differ_and_one_overlap_does_not() {
        let a = [1.0, 2.0, 3.0, 4.0, 5.0];
        assert!((mann_whitney(&a, &[6.0, 7.0, 8.0, 9.0, 10.0]) - 2.0 / 252.0).abs() < 1e-12);
        assert!((mann_whitney(&[6.0, 7.0, 8.0, 9.0, 10.0], &a) - 2.0 / 252.0).abs() < 1e-12);
        assert!(mann_whitney(&a, &[4.5, 7.0, 8.0, 9.0, 10.0]) > SIGNIFICANCE);
    }

    #[test]
    fn counting_every_choice_gives_the_same() {
        // 100 of the 210 ways to choose four of ten ranks are at least as far from the middle.
        let p = mann_whitney(&[1.0, 4.0, 5.0, 9.0], &[2.0, 3.0, 7.0, 8.0, 10.0, 12.0]);
        assert!((p - 100.0 / 210.0).abs() < 1e-12, "{p}");
    }

    #[test]
    fn equal_rounds_and_too_few_rounds_are_noise() {
        assert_eq!(mann_whitney(&[3.0; 5], &[3.0; 5]), 1.0);
        assert!(mann_whitney(&[1.0, 2.0, 3.0, 4.0], &[11.0, 12.0, 13.0, 14.0]) > SIGNIFICANCE);
        assert_eq!(mann_whitney(&[], &[1.0]), 1.0);
    }

    #[test]
    fn medians() {
        assert_eq!(median(&[5.0, 1.0, 3.0]), Some(3.0));
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(median(&[]), None);
        assert_eq!(median_absolute_deviation(&[1.0, 2.0, 3.0, 10.0, 11.0]), Some(2.0));
    }
}
