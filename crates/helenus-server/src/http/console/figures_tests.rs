use super::figures::{Sampler, quantile};

const BEFORE: &str = r#"
# HELP helenus_log_syncs_total Syncs.
# TYPE helenus_log_syncs_total counter
helenus_log_syncs_total 10
# TYPE helenus_connections gauge
helenus_connections 3
# TYPE helenus_by_table gauge
helenus_by_table{keyspace="a",table="b"} 3
# TYPE helenus_row_cache_hits_total counter
helenus_row_cache_hits_total 0
# TYPE helenus_row_cache_misses_total counter
helenus_row_cache_misses_total 0
# TYPE helenus_request_duration_seconds histogram
helenus_request_duration_seconds_bucket{kind="query",le="0.001"} 5
helenus_request_duration_seconds_bucket{kind="query",le="+Inf"} 5
helenus_request_duration_seconds_sum{kind="query"} 0.1
helenus_request_duration_seconds_count{kind="query"} 5
"#;

#[test]
fn figures_are_differences_of_readings() {
    let mut sampler = Sampler::default();
    let first = sampler.figures(BEFORE);
    assert_eq!(
        first.into_iter().collect::<Vec<_>>(),
        [("gauge.helenus_connections".to_owned(), 3.0)]
    );
    let after = BEFORE
        .replace("hits_total 0", "hits_total 3")
        .replace("misses_total 0", "misses_total 1")
        .replace("0.001\"} 5", "0.001\"} 15")
        .replace("+Inf\"} 5", "+Inf\"} 15");
    let figures = sampler.figures(&after);
    assert_eq!(figures["rate.helenus_log_syncs_total"], 0.0);
    assert_eq!(figures["hits.row_cache"], 75.0);
    assert!(figures["rate.helenus_request_duration_seconds.query"] > 0.0);
    let p50 = figures["latency.helenus_request_duration_seconds.query.p50"];
    assert!((p50 - 0.5).abs() < 1e-9, "{p50}");
    assert!(!figures.keys().any(|name| name.contains("by_table")));
}

#[test]
fn quantiles_lie_in_their_buckets() {
    let buckets = [(1.0, 50.0), (2.0, 100.0), (f64::INFINITY, 101.0)];
    assert_eq!(quantile(&buckets, 50.0 / 101.0), Some(1.0));
    assert_eq!(quantile(&buckets, 75.0 / 101.0), Some(1.5));
    assert_eq!(quantile(&buckets, 1.0), Some(2.0), "what is above the last bound");
    assert_eq!(quantile(&[(1.0, 0.0)], 0.5), None);
    assert_eq!(quantile(&[], 0.5), None);
}
