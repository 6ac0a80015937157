//! A server's page of metrics, in Prometheus' text format.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// Gauges of Helenus that are recorded by default.
const HELENUS: &[&str] = &[
    "helenus_store_memtable_bytes",
    "helenus_store_data_bytes",
    "helenus_store_sorted_runs",
    "helenus_store_compactions_running",
    "helenus_store_flushes_total",
    "helenus_store_back_pressure_total",
    "helenus_block_cache_hits_total",
    "helenus_block_cache_misses_total",
    "helenus_row_cache_hits_total",
    "helenus_row_cache_misses_total",
    "helenus_log_written_bytes_total",
    "helenus_log_syncs_total",
    "helenus_request_in_flight_bytes",
];

/// Reader of chosen metrics of a page.
#[derive(Clone, Debug)]
pub struct Scraper {
    url: String,
    names: Vec<String>,
    agent: ureq::Agent,
}

/// Chosen metrics of a page, with its size and the time that it took.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    pub bytes: usize,
    pub took: Duration,
    /// Chosen metrics by name.
    pub gauges: BTreeMap<String, f64>,
}

impl Scraper {
    /// Creates a reader of the metrics `names` at `url`. Without names, it reads a choice of Helenus's metrics.
    pub fn new(url: &str, names: &[String]) -> Self {
        let names = match names {
            [] => HELENUS.iter().map(|&name| name.to_owned()).collect(),
            _ => names.to_vec(),
        };
        let agent = ureq::Agent::config_builder()
            .timeout_global(Some(Duration::from_secs(5)))
            .build()
            .into();
        Self {
            url: url.to_owned(),
            names,
            agent,
        }
    }

    /// Fetches the page. Blocks for at most 5 seconds.
    pub fn scrape(&self) -> Result<Page> {
        let begun = Instant::now();
        let text = self
            .agent
            .get(&self.url)
            .call()
            .and_then(|mut response| response.body_mut().read_to_string())
            .with_context(|| format!("can't read {}", self.url))?;
        let took = begun.elapsed();
        Ok(Page {
            bytes: text.len(),
            took,
            gauges: parse(&text, &self.names),
        })
    }
}

/// Returns the values of the named metrics, each of which is the sum of its series.
fn parse(text: &str, names: &[String]) -> BTreeMap<String, f64> {
    let mut values = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split([' ', '{']).next().unwrap_or_default();
        let Some(name) = names.iter().find(|known| *known == name) else {
            continue;
        };
        // A timestamp may follow the value.
        let rest = line
            .rsplit_once('}')
            .map_or(&line[name.len()..], |(_, rest)| rest);
        let value = rest
            .split_ascii_whitespace()
            .next()
            .and_then(|value| value.parse::<f64>().ok());
        if let Some(value) = value.filter(|value| value.is_finite()) {
            *values.entry(name.clone()).or_default() += value;
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_of_a_metric_add_up_and_others_are_left_out() {
        let page = "# HELP a_bytes of a\n# TYPE a_bytes gauge\na_bytes{kind=\"x y\"} 3\na_bytes{kind=\"}\"} 4.5 1700000000\n\
                    a_bytes_more 9\nb 1e3\nc NaN\n";
        let names = ["a_bytes", "b", "c", "d"].map(str::to_owned);
        let expected = BTreeMap::from([("a_bytes".to_owned(), 7.5), ("b".to_owned(), 1000.0)]);
        assert_eq!(parse(page, &names), expected);
    }
}
