//! `--hdr PREFIX`: writes latency distributions as text, in the format of HdrHistogram's plotters.

use std::fmt::Write;
use std::fs;

use anyhow::{Context, Result};

use crate::results::LatencyHistogram;

/// Writes one operation's response times to `PREFIX-OPERATION.txt`.
pub fn write(prefix: &str, operation: &str, histogram: &LatencyHistogram) -> Result<()> {
    let path = format!("{prefix}-{operation}.txt");
    fs::write(&path, distribution(histogram)?).with_context(|| format!("can't write {path}"))
}

/// Returns the percentiles in milliseconds, one per line.
fn distribution(histogram: &LatencyHistogram) -> Result<String> {
    let mut text = format!(
        "{:>12} {:>14} {:>10} {:>14}\n\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    );
    let mut count = 0;
    for step in histogram.iter_quantiles(5) {
        count += step.count_since_last_iteration();
        let quantile = step.quantile_iterated_to();
        let value = step.value_iterated_to().min(histogram.max()) as f64 / 1e3;
        write!(text, "{value:>12.3} {quantile:>14.12} {count:>10}")?;
        match quantile < 1.0 {
            true => writeln!(text, " {:>14.2}", 1.0 / (1.0 - quantile))?,
            false => writeln!(text)?,
        }
    }
    writeln!(
        text,
        "#[Mean    = {:>12.3}, StdDeviation   = {:>12.3}]",
        histogram.mean() / 1e3,
        histogram.stdev() / 1e3
    )?;
    writeln!(
        text,
        "#[Max     = {:>12.3}, Total count    = {:>12}]",
        histogram.max() as f64 / 1e3,
        histogram.len()
    )?;
    writeln!(text, "#[Buckets = {:>12}, SubBuckets     = {:>12}]", 22, 2048)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::new_latency_histogram;

    #[test]
    fn a_distribution_ends_with_its_largest_value() {
        let mut histogram = new_latency_histogram();
        (1..=1000).for_each(|micros| histogram.saturating_record(micros * 10));
        let text = distribution(&histogram).unwrap();
        let last = text.lines().rfind(|line| !line.starts_with('#')).unwrap();
        let fields: Vec<&str> = last.split_whitespace().collect();
        assert!(fields[0].starts_with("10.0"), "within a thousandth: {last}");
        assert_eq!(fields[1..], ["1.000000000000", "1000"]);
        assert!(text.contains("Total count    =         1000"), "{text}");
    }
}
