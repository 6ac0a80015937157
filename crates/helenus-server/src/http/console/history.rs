//! The figures of the last hours, in memory.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use serde_json::{Value, json};

/// Time for which figures are kept.
const KEPT: Duration = Duration::from_secs(6 * 3600);
/// Maximum number of figures. With all of them the history takes 4.4 MB.
pub(super) const COLUMNS_MAX: usize = 256;
/// Maximum number of points of a chart.
const POINTS_MAX: usize = 360;

/// Figures by name at equal intervals. The oldest are dropped.
#[derive(Debug)]
pub(super) struct History {
    interval: Duration,
    /// Times of the figures, in seconds since 1970.
    times: VecDeque<i64>,
    /// Values of each figure, as many as `times`. NaN if the figure was missing.
    columns: BTreeMap<String, VecDeque<f32>>,
}

impl History {
    pub fn new(interval: Duration) -> History {
        History {
            interval,
            times: VecDeque::new(),
            columns: BTreeMap::new(),
        }
    }

    fn capacity(&self) -> usize {
        (KEPT.as_secs() / self.interval.as_secs().max(1)) as usize
    }

    /// Adds the present figures. New names are ignored once there are [`COLUMNS_MAX`].
    pub fn add(&mut self, at_s: i64, figures: BTreeMap<String, f64>) {
        let before = self.times.len();
        self.times.push_back(at_s);
        for (name, value) in figures {
            if self.columns.len() < COLUMNS_MAX || self.columns.contains_key(&name) {
                let column = self.columns.entry(name).or_default();
                column.resize(before, f32::NAN);
                column.push_back(value as f32);
            }
        }
        let len = self.times.len();
        self.columns
            .values_mut()
            .for_each(|column| column.resize(len, f32::NAN));
        if len > self.capacity() {
            self.times.pop_front();
            self.columns
                .values_mut()
                .for_each(|column| _ = column.pop_front());
        }
    }

    /// Returns the figures of the last `seconds`, in at most [`POINTS_MAX`] points. A point is the mean of its interval, or the maximum for
    /// latencies.
    pub fn report(&self, seconds: i64) -> Value {
        let latest = self.times.back().copied().unwrap_or_default();
        let first = self
            .times
            .partition_point(|at| *at <= latest.saturating_sub(seconds));
        let step = (self.times.len() - first).div_ceil(POINTS_MAX).max(1);
        // Rounding makes intervals begin at the same times in every report, as long as no old figures are dropped.
        let first = first.next_multiple_of(step).min(self.times.len());
        let times: Vec<i64> = self.times.iter().skip(first).step_by(step).copied().collect();
        let points = |(name, column): (&String, &VecDeque<f32>)| {
            let kept: Vec<f32> = column.iter().skip(first).copied().collect();
            let merge = if name.starts_with("latency.") {
                highest
            } else {
                mean
            };
            let points: Vec<Option<f64>> = kept.chunks(step).map(merge).collect();
            (name.clone(), json!(points))
        };
        let columns: serde_json::Map<String, Value> = self.columns.iter().map(points).collect();
        json!({
            "interval_s": self.interval.as_secs() * step as u64,
            "times": times,
            "columns": columns,
        })
    }
}

fn known(values: &[f32]) -> impl Iterator<Item = f64> + Clone + '_ {
    values
        .iter()
        .filter(|value| !value.is_nan())
        .map(|value| f64::from(*value))
}

fn mean(values: &[f32]) -> Option<f64> {
    let count = known(values).count();
    (count > 0).then(|| known(values).sum::<f64>() / count as f64)
}

fn highest(values: &[f32]) -> Option<f64> {
    known(values).reduce(f64::max)
}
