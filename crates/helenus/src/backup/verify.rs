//! `helenus backup verify`: whether backups can be restored.

use std::process::ExitCode;

use helenus_query::engine::backups::check_backup;
use helenus_tablet::{BackupLocation, BackupProblem, VerifiedBackups};

use super::runtime;
use crate::nodetool::output::file_size;

/// Verifies; fails if a file is damaged or missing, or if there is no backup.
pub(super) fn run(location: &BackupLocation, name: Option<&str>) -> anyhow::Result<ExitCode> {
    let verified = runtime()?.block_on(async { anyhow::Ok(location.verify(name, check_backup).await?) })?;
    print!("{}", report(&verified));
    match verified.problems.is_empty() && !verified.backups.is_empty() {
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
    report
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
        };
        assert_eq!(
            report(&verified),
            "tablets/0/compacted/1.sst: it is missing (backups: b)\n3 files, 2 KiB were read\nCan be restored: a\n\
             Can't be restored whole: b\n"
        );
        assert_eq!(report(&VerifiedBackups::default()), "There are no backups\n");
    }
}
