use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;

use super::history::{COLUMNS_MAX, History};

fn figures(pairs: &[(&str, f64)]) -> BTreeMap<String, f64> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), *value))
        .collect()
}

#[test]
fn figures_that_start_later_have_no_history() {
    let mut history = History::new(Duration::from_secs(5));
    history.add(100, figures(&[("a", 1.0)]));
    history.add(105, figures(&[("b", 2.0)]));
    let report = history.report(60);
    assert_eq!(report["times"], json!([100, 105]));
    assert_eq!(report["columns"], json!({ "a": [1.0, null], "b": [null, 2.0] }));
}

#[test]
fn long_times_are_means_and_highest_latencies() {
    let mut history = History::new(Duration::from_secs(5));
    for n in 0..720 {
        history.add(
            n * 5,
            figures(&[("rate", (n % 2) as f64), ("latency.x", (n % 2) as f64)]),
        );
    }
    let report = history.report(3600);
    assert_eq!(report["interval_s"], 10);
    assert_eq!(report["times"].as_array().unwrap().len(), 360);
    assert_eq!(report["columns"]["rate"][0], 0.5);
    assert_eq!(report["columns"]["latency.x"][0], 1.0);
}

#[test]
fn the_history_is_bounded() {
    let mut history = History::new(Duration::from_secs(3600));
    for n in 0..20 {
        history.add(n * 3600, (0..300).map(|c| (format!("{n}.{c}"), 1.0)).collect());
    }
    let report = history.report(i64::MAX);
    assert_eq!(report["times"].as_array().unwrap().len(), 6);
    assert_eq!(report["columns"].as_object().unwrap().len(), COLUMNS_MAX);
}
