//! Latency by percentile, on an axis on which each nine has the same length.

use super::chart::Line;
use crate::results::LatencyHistogram;

/// Places per nine on the axis.
const PLACES_PER_NINE: f64 = 40.0;

/// Returns the places of the axis, in nines, up to the slowest value of the largest histogram.
pub fn axis<'a>(histograms: impl Iterator<Item = &'a LatencyHistogram>) -> Vec<f64> {
    let most = histograms.map(LatencyHistogram::len).max().unwrap_or_default();
    if most == 0 {
        return Vec::new();
    }
    (0..=last_place(most))
        .map(|place| place as f64 / PLACES_PER_NINE)
        .collect()
}

/// Returns the histogram's latencies at these places, up to its maximum.
pub fn line(histogram: Option<&LatencyHistogram>, axis: &[f64]) -> Line {
    let Some(histogram) = histogram.filter(|histogram| !histogram.is_empty()) else {
        return Line::plain(axis.iter().map(|_| None));
    };
    let last = last_place(histogram.len());
    Line::plain(axis.iter().enumerate().map(|(place, nines)| {
        let quantile = 1.0 - 10f64.powf(-nines);
        let value = if place == last {
            histogram.max()
        } else {
            histogram.value_at_quantile(quantile)
        };
        (place <= last).then(|| value.min(histogram.max()).max(1) as f64)
    }))
}

/// Returns the index of the place of the slowest of `count` values.
fn last_place(count: u64) -> usize {
    ((count as f64).log10() * PLACES_PER_NINE).ceil() as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::new_latency_histogram;

    fn up_to(most: u64) -> LatencyHistogram {
        let mut histogram = new_latency_histogram();
        (1..=most).for_each(|value| histogram.saturating_record(value));
        histogram
    }

    #[test]
    fn each_nine_is_at_its_place_and_the_maximum_last() {
        let (large, small) = (up_to(1000), up_to(10));
        let axis = axis([&large, &small].into_iter());
        assert_eq!((axis.len(), axis[40], axis[80]), (121, 1.0, 2.0));
        let line = line(Some(&large), &axis);
        let at = |place: usize| line.middle[place].map(|number| number.0);
        assert_eq!(
            (at(0), at(40), at(80), at(120)),
            (Some(1.0), Some(900.0), Some(990.0), Some(1000.0))
        );
    }

    #[test]
    fn a_line_ends_where_its_histogram_does() {
        let (large, small) = (up_to(1000), up_to(10));
        let axis = axis([&large, &small].into_iter());
        let shown = line(Some(&small), &axis);
        assert_eq!(shown.middle[40].map(|number| number.0), Some(10.0));
        assert!(shown.middle[41..].iter().all(Option::is_none));
        assert!(line(None, &axis).is_empty());
        assert!(super::axis([&new_latency_histogram()].into_iter()).is_empty());
    }
}
