//! The figures of the charts, computed from two readings of `/metrics`.
//!
//! The name of a figure says what it is:
//!
//! - `rate.NAME`: a counter's increase per second;
//! - `gauge.NAME`: a gauge's value;
//! - `latency.NAME.p50` and other percentiles, in milliseconds, of the requests between the readings;
//! - `hits.NAME`: the share of hits in per cent.
//!
//! A label's value ends the name: `rate.helenus_request_errors_total.overloaded`. Metrics with several labels are left out, because their
//! number depends on the schema.

use std::collections::BTreeMap;
use std::time::Instant;

/// Caches that count hits and misses: `helenus_NAME_hits_total` and `helenus_NAME_misses_total`.
const CACHES: [&str; 3] = ["row_cache", "block_cache", "disk_cache"];
const PERCENTILES: [(&str, f64); 3] = [("p50", 0.5), ("p99", 0.99), ("p999", 0.999)];

/// A reading of the metrics, with the values by `NAME.LABEL`.
#[derive(Debug, Default)]
struct Reading {
    counters: BTreeMap<String, f64>,
    gauges: BTreeMap<String, f64>,
    /// Upper bounds of buckets in seconds, with the number of requests up to each bound.
    histograms: BTreeMap<String, Vec<(f64, f64)>>,
}

/// Computes figures from successive readings.
#[derive(Debug, Default)]
pub(super) struct Sampler {
    before: Option<(Instant, Reading)>,
}

impl Sampler {
    /// Returns the figures of the time since the last reading. The first reading gives figures of gauges only.
    pub fn figures(&mut self, text: &str) -> BTreeMap<String, f64> {
        let (now, reading) = (Instant::now(), Reading::parse(text));
        let mut figures = BTreeMap::new();
        for (name, value) in &reading.gauges {
            figures.insert(format!("gauge.{name}"), *value);
        }
        if let Some((at, before)) = &self.before {
            let elapsed_s = now.duration_since(*at).as_secs_f64();
            if elapsed_s > 0.0 {
                reading.add_since(before, elapsed_s, &mut figures);
            }
        }
        self.before = Some((now, reading));
        figures
    }
}

impl Reading {
    /// Parses Prometheus' text format. Invalid lines are skipped.
    fn parse(text: &str) -> Reading {
        let mut reading = Reading::default();
        let mut kind = "";
        for line in text.lines() {
            if let Some(declared) = line.strip_prefix("# TYPE ") {
                kind = declared.rsplit(' ').next().unwrap_or_default();
            } else if !line.starts_with('#') {
                reading.add_line(kind, line);
            }
        }
        reading
    }

    fn add_line(&mut self, kind: &str, line: &str) -> Option<()> {
        let (series, value) = line.rsplit_once(' ')?;
        let value: f64 = value.parse().ok()?;
        let (name, labels) = match series.split_once('{') {
            Some((name, labels)) => (name, labels.strip_suffix('}')?),
            None => (series, ""),
        };
        let labels: Vec<(&str, &str)> = labels.split(',').filter_map(label).collect();
        let others: Vec<&str> = labels
            .iter()
            .filter(|(name, _)| *name != "le")
            .map(|(_, value)| *value)
            .collect();
        let key = |name: &str| match others.as_slice() {
            [] => Some(name.to_owned()),
            [one] => Some(format!("{name}.{one}")),
            _ => None,
        };
        match kind {
            "counter" => _ = self.counters.insert(key(name)?, value),
            "gauge" => _ = self.gauges.insert(key(name)?, value),
            "histogram" => {
                let name = name.strip_suffix("_bucket")?;
                let (_, bound) = labels.iter().find(|(name, _)| *name == "le")?;
                let bound = if *bound == "+Inf" {
                    f64::INFINITY
                } else {
                    bound.parse().ok()?
                };
                self.histograms
                    .entry(key(name)?)
                    .or_default()
                    .push((bound, value));
            }
            _ => {}
        }
        Some(())
    }

    fn add_since(&self, before: &Reading, elapsed_s: f64, figures: &mut BTreeMap<String, f64>) {
        // A counter that is missing in the earlier reading began at 0.
        let increase = |name: &String, value: f64| {
            (value - before.counters.get(name).copied().unwrap_or_default()).max(0.0)
        };
        for (name, value) in &self.counters {
            figures.insert(format!("rate.{name}"), increase(name, *value) / elapsed_s);
        }
        for cache in CACHES {
            let (hits, misses) = (
                format!("helenus_{cache}_hits_total"),
                format!("helenus_{cache}_misses_total"),
            );
            if let (Some(hit), Some(missed)) = (self.counters.get(&hits), self.counters.get(&misses)) {
                let (hit, missed) = (increase(&hits, *hit), increase(&misses, *missed));
                if hit + missed > 0.0 {
                    figures.insert(format!("hits.{cache}"), 100.0 * hit / (hit + missed));
                }
            }
        }
        for (name, buckets) in &self.histograms {
            let earlier = before.histograms.get(name).map_or(&[][..], Vec::as_slice);
            let counts: Vec<(f64, f64)> = buckets
                .iter()
                .map(|(bound, count)| {
                    let earlier = earlier.iter().find(|(known, _)| known == bound);
                    (
                        *bound,
                        (count - earlier.map_or(0.0, |(_, count)| *count)).max(0.0),
                    )
                })
                .collect();
            let total = counts.last().map_or(0.0, |(_, count)| *count);
            figures.insert(format!("rate.{name}"), total / elapsed_s);
            for (percentile, share) in PERCENTILES {
                if let Some(seconds) = quantile(&counts, share) {
                    figures.insert(format!("latency.{name}.{percentile}"), seconds * 1e3);
                }
            }
        }
    }
}

/// Returns a label's name and value. Values with commas or quotes are not supported; no metric shown here has them.
fn label(text: &str) -> Option<(&str, &str)> {
    let (name, value) = text.split_once('=')?;
    Some((name, value.strip_prefix('"')?.strip_suffix('"')?))
}

/// Returns the bound below which the given share of the requests lies, as Prometheus' `histogram_quantile` does. It interpolates between
/// the bounds of a bucket, and returns the lower bound of the last bucket. `None` if there are no requests.
pub(super) fn quantile(buckets: &[(f64, f64)], share: f64) -> Option<f64> {
    let total = buckets
        .last()
        .map(|(_, count)| *count)
        .filter(|count| *count > 0.0)?;
    let rank = share * total;
    let (mut low, mut below) = (0.0, 0.0);
    for (bound, count) in buckets {
        if *count >= rank {
            if bound.is_infinite() || *count <= below {
                return Some(low);
            }
            return Some(low + (bound - low) * (rank - below) / (count - below));
        }
        (low, below) = (*bound, *count);
    }
    None
}
