use super::*;

fn recorded(values: impl IntoIterator<Item = u64>) -> LatencyHistogram {
    let mut histogram = new_latency_histogram();
    values
        .into_iter()
        .for_each(|value| histogram.saturating_record(value));
    histogram
}

fn second(n: u64) -> Duration {
    Duration::from_secs(n)
}

#[test]
fn intervals_add_up_by_tag() {
    let mut log = Vec::new();
    let mut writer =
        HistogramLogWriter::begin(&mut log, SystemTime::UNIX_EPOCH + second(1_700_000_000)).unwrap();
    writer
        .append("read.response", second(0), second(1), &recorded(1..=500))
        .unwrap();
    writer
        .append("read.service", second(0), second(1), &recorded([7, 7, 7]))
        .unwrap();
    writer
        .append("read.response", second(1), second(1), &recorded(501..=1000))
        .unwrap();
    writer
        .append("write.response", second(1), second(1), &recorded([]))
        .unwrap();
    writer.flush().unwrap();
    let totals = read_totals(&log).unwrap();
    assert_eq!(
        totals.keys().collect::<Vec<_>>(),
        ["read.response", "read.service"]
    );
    assert_eq!(totals["read.response"], recorded(1..=1000));
    assert_eq!(totals["read.service"].len(), 3);
}

#[test]
fn the_head_is_what_the_java_tools_expect() {
    let mut log = Vec::new();
    let mut writer =
        HistogramLogWriter::begin(&mut log, SystemTime::UNIX_EPOCH + second(1_700_000_000)).unwrap();
    writer
        .append("read.response", second(2), second(1), &recorded([1000]))
        .unwrap();
    let log = String::from_utf8(log).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines[0], "#[Histogram log format version 1.3]");
    assert_eq!(lines[2], "#[StartTime: 1700000000.000 (seconds since epoch)]");
    assert_eq!(lines[3], "#[BaseTime: 1700000000.000 (seconds since epoch)]");
    assert!(
        lines[4].starts_with("Tag=read.response,2.000,1.000,1000.000,HISTFAAA"),
        "{}",
        lines[4]
    );
}

#[test]
fn a_tag_that_would_break_the_line_is_refused() {
    let mut writer = HistogramLogWriter::begin(Vec::new(), SystemTime::UNIX_EPOCH).unwrap();
    assert!(
        writer
            .append("a,b", second(0), second(1), &recorded([1]))
            .is_err()
    );
}

#[test]
fn damaged_logs_are_errors() {
    assert!(read_totals(b"Tag=x,0.0,1.0,2.0,!!!\n").is_err());
    assert!(read_totals(b"Tag=x,0.0,1.0,2.0,SElTVEZB\n").is_err());
    assert!(read_totals(b"Tag=x,0.0").is_err());
}

#[test]
fn a_summary_never_exceeds_the_maximum() {
    let summary = LatencySummary::from(&recorded([10, 20, 1_234_567]));
    assert_eq!(summary.max_us, recorded([1_234_567]).max());
    assert_eq!((summary.p50_us, summary.p99_99_us), (20, summary.max_us));
    assert_eq!(LatencySummary::from(&recorded([])), LatencySummary::default());
}
