//! `helenus backup verify`: checks that backups can be restored.

use std::process::ExitCode;

use helenus_cql::value::timestamp;
use helenus_query::engine::backups::{check_backup, check_times};
use helenus_tablet::{BackupChecks, BackupLocation, BackupProblem, VerifiedBackups, VerifiedTimes};

use super::runtime;
use crate::nodetool::output::file_size;

/// Verifies backups. Fails if a file is damaged or missing, if a time between two backups cannot be restored, or if there is no backup.
pub(super) fn run(location: &BackupLocation, name: Option<&str>) -> anyhow::Result<ExitCode> {
    let checks = BackupChecks {
        backup: check_backup,
        times: check_times,
    };
    let verified = runtime()?.block_on(async { anyhow::Ok(location.verify(name, &checks).await?) })?;
    print!("{}", report(&verified));
    let are_times_good = verified.times.iter().all(|times| times.problem.is_none());
    match verified.problems.is_empty() && are_times_good && !verified.backups.is_empty() {
        true => Ok(ExitCode::SUCCESS),
        false => Ok(ExitCode::FAILURE),
    }
}

fn report(verified: &VerifiedBackups) -> String {
    let problems = verified.problems.iter().map(|problem| {
        let BackupProblem { path, what, backups } = problem;
        format!("{path}: {what} (backups: {})\n", backups.join(", "))
    });
    let mut report: String = problems.collect();
    if verified.backups.is_empty() && report.is_empty() {
        return "There are no backups\n".to_owned();
    }
    let is_bad = |name: &&String| {
        verified
            .problems
            .iter()
            .any(|problem| problem.backups.contains(name))
    };
    let (bad, good): (Vec<&String>, Vec<&String>) = verified.backups.iter().partition(is_bad);
    let names = |names: &[&String]| {
        names
            .iter()
            .map(|name| name.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    };
    report += &format!(
        "{} files, {} were read\n",
        verified.files,
        file_size(verified.bytes)
    );
    if !good.is_empty() {
        report += &format!("Can be restored: {}\n", names(&good));
    }
    if !bad.is_empty() {
        report += &format!("Can't be restored whole: {}\n", names(&bad));
    }
    report + &report_of_times(&verified.times)
}

/// Returns lines with the times that can be restored and those that cannot. Adjacent times that can be restored are one line.
fn report_of_times(times: &[VerifiedTimes]) -> String {
    let mut report = String::new();
    let text = |time_ms| timestamp::to_cql_text(time_ms);
    let mut good: Option<(i64, i64)> = None;
    let end = |good: &mut Option<(i64, i64)>| match good.take() {
        Some((from_ms, to_ms)) => format!(
            "Can be restored to any time from {} to {}\n",
            text(from_ms),
            text(to_ms)
        ),
        None => String::new(),
    };
    for times in times {
        let (from_ms, to_ms) = (times.from_ms, times.to_ms);
        match (&times.problem, good) {
            (None, Some((first_ms, last_ms))) if last_ms == from_ms => good = Some((first_ms, to_ms)),
            (None, _) => {
                report += &end(&mut good);
                good = Some((from_ms, to_ms));
            }
            (Some(problem), _) => {
                report += &end(&mut good);
                report += &format!(
                    "Can't be restored to all times from {} to {}: {problem}\n",
                    text(from_ms),
                    text(to_ms)
                );
            }
        }
    }
    report + &end(&mut good)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_names_files_and_the_backups_that_need_them() {
        let problem = BackupProblem {
            path: "tablets/0/compacted/1.sst".to_owned(),
            what: "it is missing".to_owned(),
            backups: vec!["b".to_owned()],
        };
        let verified = VerifiedBackups {
            backups: vec!["a".to_owned(), "b".to_owned()],
            files: 3,
            bytes: 2048,
            problems: vec![problem],
            times: Vec::new(),
        };
        assert_eq!(
            report(&verified),
            "tablets/0/compacted/1.sst: it is missing (backups: b)\n3 files, 2 KiB were read\nCan be restored: a\n\
             Can't be restored whole: b\n"
        );
        assert_eq!(report(&VerifiedBackups::default()), "There are no backups\n");
    }

    #[test]
    fn times_that_adjoin_are_one_line() {
        let times = |from_ms, to_ms, problem: Option<&str>| VerifiedTimes {
            from_ms,
            to_ms,
            problem: problem.map(str::to_owned),
        };
        let all = [
            times(0, 1000, None),
            times(1000, 2000, None),
            times(2000, 3000, Some("why")),
            times(3000, 4000, None),
        ];
        let report = report_of_times(&all);
        let lines: Vec<&str> = report.lines().collect();
        let [first, second, third] = lines[..] else {
            panic!("{report}")
        };
        assert!(
            first.starts_with("Can be restored to any time from 1970-01-01T00:00:00"),
            "{first}"
        );
        assert!(first.contains("to 1970-01-01T00:00:02"), "{first}");
        assert!(second.starts_with("Can't be restored to all times") && second.ends_with(": why"));
        assert!(third.starts_with("Can be restored to any time") && third.contains("00:00:03"));
    }
}
