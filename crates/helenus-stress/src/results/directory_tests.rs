use super::super::{IntervalOperation, LatencySummary, new_latency_histogram, samples};
use super::*;

#[test]
fn a_run_reads_back_as_it_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("a/b");
    let mut histogram = new_latency_histogram();
    (1..=100).for_each(|value| histogram.saturating_record(value));
    let mut writer = RunWriter::create(&directory, SystemTime::now()).unwrap();
    let mut intervals = Vec::new();
    for second in 1..=3 {
        let interval = Interval {
            elapsed_s: f64::from(second),
            operations: BTreeMap::from([(
                "read".to_owned(),
                IntervalOperation {
                    ops: 100,
                    max_us: 100,
                    ..IntervalOperation::default()
                },
            )]),
            ..Interval::default()
        };
        let histograms = [IntervalHistograms {
            operation: "read",
            response: &histogram,
            service: &histogram,
        }];
        writer.push(interval.clone(), &histograms).unwrap();
        intervals.push(interval);
    }
    let result = samples::run("helenus", 1.0);
    writer.finish(&result).unwrap();

    let Loaded::Run(run) = Loaded::read(&directory).unwrap() else {
        panic!("a run")
    };
    assert_eq!(run.result, result);
    assert_eq!(run.intervals, intervals);
    assert_eq!(run.histograms["read.response"].len(), 300);
    assert_eq!(LatencySummary::from(&run.histograms["read.service"]).p50_us, 50);
}

#[test]
fn both_load_models_survive_json() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("load.json");
    for load in [
        super::super::LoadModel::Open { rate_per_s: 12.5 },
        super::super::LoadModel::Closed {
            threads: 8,
            in_flight_per_thread: 50,
        },
    ] {
        write_json(&path, &load).unwrap();
        assert_eq!(read_json::<super::super::LoadModel>(&path).unwrap(), load);
    }
}

#[test]
fn a_run_that_was_cut_short_still_reads() {
    let folder = tempfile::tempdir().unwrap();
    write_json(&folder.path().join(RUN_FILE), &samples::run("x", 1.0)).unwrap();
    let run = LoadedRun::read(folder.path()).unwrap();
    assert!(run.intervals.is_empty() && run.histograms.is_empty());
}

#[test]
fn what_is_wrong_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let words = |folder: &Path| format!("{:#}", Loaded::read(folder).unwrap_err());
    assert!(words(folder.path()).contains("neither run.json nor compare.json"));
    let mut result = samples::run("x", 1.0);
    result.format = 99;
    write_json(&folder.path().join(RUN_FILE), &result).unwrap();
    assert!(words(folder.path()).contains("format 99"));
    result.format = FORMAT;
    write_json(&folder.path().join(RUN_FILE), &result).unwrap();
    fs::write(folder.path().join(HISTOGRAMS_FILE), "Tag=x,0.0,1.0,2.0,!!!\n").unwrap();
    assert!(words(folder.path()).contains(HISTOGRAMS_FILE));
}
