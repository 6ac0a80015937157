use std::time::SystemTime;

use super::*;
use crate::results::comparison::Side;
use crate::results::{
    Interval, IntervalOperation, LoadModel, Round, RunResult, RunWriter, samples, write_comparison,
};

fn write_run(directory: &Path, result: &RunResult) {
    let mut writer = RunWriter::create(directory, SystemTime::now()).unwrap();
    for second in 1..=3 {
        let operation = IntervalOperation {
            ops: 10,
            p99_us: 5,
            ..IntervalOperation::default()
        };
        let operations = result
            .operations
            .iter()
            .map(|of| (of.name.clone(), operation))
            .collect();
        let interval = Interval {
            elapsed_s: f64::from(second),
            operations,
            ..Interval::default()
        };
        writer.push(interval, &[]).unwrap();
    }
    writer.finish(result).unwrap();
}

#[test]
fn the_load_model_is_in_the_title() {
    let folder = tempfile::tempdir().unwrap();
    let mut result = samples::run("helenus", 1.0);
    write_run(folder.path(), &result);
    let page = render(&[folder.path().to_owned()]).unwrap();
    assert!(page.contains("<title>kv on helenus – Open loop at 1,001/s</title>"));
    assert!(!page.contains("Closed loop:"));
    result.load = LoadModel::Closed {
        threads: 8,
        in_flight_per_thread: 50,
    };
    write_run(folder.path(), &result);
    let page = render(&[folder.path().to_owned()]).unwrap();
    assert!(page.contains("<title>kv on helenus – Closed loop, 8 × 50 in flight</title>"));
    assert!(page.contains("service times under a load that throttles itself"));
}

#[test]
fn the_page_needs_nothing_from_the_network() {
    let folder = tempfile::tempdir().unwrap();
    write_run(folder.path(), &samples::run("helenus", 1.0));
    let page = render(&[folder.path().to_owned()]).unwrap();
    for loads in ["src=", "url(", "@import", "fetch(", "XMLHttpRequest"] {
        assert!(!page.contains(loads), "{loads}");
    }
    let links = page.matches("href=\"").count();
    assert_eq!(
        links,
        page.matches("href=\"#").count() + page.matches("href=\"data:,\"").count()
    );
}

#[test]
fn results_are_escaped_in_reports() {
    let folder = tempfile::tempdir().unwrap();
    let evil = "</script><script>alert('x')</script><img src=x onerror=alert(1)>\"'&";
    let mut result = samples::run(evil, 1.0);
    result.workload = evil.into();
    result.operations[0].name = "<b>read".into();
    result.operations[1].errors[0].example = Some(evil.into());
    result.notes = vec![evil.into()];
    result.command_line.push(evil.into());
    result.config.insert(evil.into(), evil.into());
    result.endpoint.cluster_name = evil.into();
    result.phases[0].name = evil.into();
    result.published[0].measured = evil.into();
    result.server[0].name = evil.into();
    write_run(folder.path(), &result);
    let page = render(&[folder.path().to_owned()]).unwrap();
    assert!(!page.contains("<img") && !page.contains("<b>read") && !page.contains("<script>alert"));
    assert!(page.contains("\\u003c/script>"), "inside the charts' data");
    assert_eq!(page.matches("</script>").count(), 4);
}

#[test]
fn runs_of_one_label_are_told_apart_by_their_folders() {
    let folder = tempfile::tempdir().unwrap();
    let folders = ["one", "two"].map(|name| folder.path().join(name));
    folders
        .iter()
        .for_each(|folder| write_run(folder, &samples::run("helenus", 1.0)));
    let page = render(&folders).unwrap();
    assert!(page.contains("kv: helenus (one), helenus (two)"));
}

#[test]
fn a_comparison_shows_its_figures_with_and_without_its_rounds() {
    let folder = tempfile::tempdir().unwrap();
    let rounds = |side: &str| {
        (1..=5)
            .map(|round| format!("{round}-{side}").into())
            .collect::<Vec<PathBuf>>()
    };
    let rounds: Vec<Round> = (rounds("a").into_iter().zip(rounds("b")))
        .map(|(directory_a, directory_b)| Round {
            first: Side::A,
            directory_a,
            directory_b,
        })
        .collect();
    let runs = |label, slower: f64| {
        (0..5)
            .map(|i| samples::run(label, slower + f64::from(i) / 100.0))
            .collect()
    };
    let (a, b): (Vec<_>, Vec<_>) = (runs("helenus", 1.0), runs("cassandra", 2.0));
    let comparison = Comparison::from_runs(vec!["helenus-stress".into()], rounds.clone(), &a, &b).unwrap();
    write_comparison(folder.path(), &comparison).unwrap();
    let page = render(&[folder.path().to_owned()]).unwrap();
    assert!(page.contains("helenus better") && page.contains("The folder holds no intervals."));
    for (round, (a, b)) in rounds.iter().zip(a.iter().zip(&b)) {
        write_run(&folder.path().join(&round.directory_a), a);
        write_run(&folder.path().join(&round.directory_b), b);
    }
    let page = render(&[folder.path().to_owned()]).unwrap();
    assert!(page.contains("\"band\":") && !page.contains("The folder holds no intervals."));
    let error = render(&[folder.path().to_owned(), folder.path().join("1-a")]).unwrap_err();
    assert!(error.to_string().contains("is a comparison"));
}

#[test]
fn page_is_written_to_requested_path() {
    let folder = tempfile::tempdir().unwrap();
    write_run(folder.path(), &samples::run("helenus", 1.0));
    let mut args = ReportArgs {
        directories: vec![folder.path().to_owned()],
        output: None,
    };
    run(&args).unwrap();
    assert!(folder.path().join("report.html").exists());
    args.output = Some(folder.path().join("other.html"));
    run(&args).unwrap();
    assert!(folder.path().join("other.html").exists());
}
