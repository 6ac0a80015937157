use std::fs;

use super::*;

fn operation(ops: u64) -> IntervalOperation {
    IntervalOperation {
        ops,
        errors: 1,
        p50_us: 200,
        p99_us: 900,
        p99_9_us: 4000,
        max_us: 5000,
    }
}

fn first() -> Interval {
    Interval {
        elapsed_s: 1.001,
        operations: BTreeMap::from([("read".to_owned(), operation(10))]),
        ..Interval::default()
    }
}

fn second() -> Interval {
    Interval {
        elapsed_s: 2.0,
        lag_ms: Some(3.25),
        operations: BTreeMap::from([
            ("read".to_owned(), operation(11)),
            ("range_read".to_owned(), operation(4)),
        ]),
        server: ServerSample {
            cpu_cores: Some(1.5),
            rss_bytes: Some(1 << 30),
            gauges: BTreeMap::from([("cache_ops".to_owned(), 0.75)]),
        },
    }
}

#[test]
fn the_file_is_readable_after_every_row() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("intervals.csv");
    let mut writer = IntervalsWriter::create(&path).unwrap();
    assert_eq!(read_intervals(&path).unwrap(), []);
    writer.push(first()).unwrap();
    assert_eq!(read_intervals(&path).unwrap(), [first()]);
    writer.push(second()).unwrap();
    // An operation that had no column in an earlier interval counts as zero there.
    let mut widened = first();
    widened
        .operations
        .insert("range_read".to_owned(), IntervalOperation::default());
    assert_eq!(read_intervals(&path).unwrap(), [widened, second()]);
}

#[test]
fn columns_are_named_as_documented() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("intervals.csv");
    let mut writer = IntervalsWriter::create(&path).unwrap();
    let mut interval = second();
    interval.operations.remove("range_read");
    writer.push(interval).unwrap();
    let expected = "\
elapsed_s,lag_ms,read_ops,read_errors,read_p50_us,read_p99_us,read_p99_9_us,read_max_us,\
server_cpu_cores,server_rss_bytes,server_cache_ops
2.000,3.25,11,1,200,900,4000,5000,1.5,1073741824,0.75
";
    assert_eq!(fs::read_to_string(&path).unwrap(), expected);
}

#[test]
fn an_unknown_column_and_a_word_for_a_number_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("intervals.csv");
    fs::write(&path, "elapsed_s,surprise\n1,2\n").unwrap();
    assert!(
        read_intervals(&path)
            .unwrap_err()
            .to_string()
            .contains("surprise")
    );
    fs::write(&path, "elapsed_s,read_ops\n1,many\n").unwrap();
    assert!(
        read_intervals(&path)
            .unwrap_err()
            .to_string()
            .contains("\"many\" in row 2")
    );
}
