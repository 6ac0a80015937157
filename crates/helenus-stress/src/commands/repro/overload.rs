//! F: ten times the sustainable rate. There is no published report; this is the project's own test of overload.

use super::figures::{bytes, figure, server, step, time};
use super::{Done, Experiment, Rate, Run, Scale, Step};
use crate::results::directory::INTERVALS_FILE;
use crate::results::interval::read_intervals;
use crate::results::{Interval, OperationResult, PublishedFigure, RunKind};

pub const EXPERIMENT: Experiment = Experiment {
    letter: "F",
    name: "overload",
    steps,
    figures,
};

/// Seconds of each phase at scale 1.
const PHASE_S: f64 = 60.0;
/// Fraction of the sustainable rate before and after the surge.
const EASY: f64 = 0.5;
const SURGE: f64 = 10.0;
/// Maximum multiple of the earlier latency that counts as recovered.
const BACK: f64 = 2.0;
/// Seconds after the surge within which the latency should recover.
const BACK_WITHIN_S: f64 = 5.0;
/// Consecutive seconds below the limit that count as recovered. A single slow second later has other causes.
const BACK_IN_A_ROW: usize = 3;

fn steps(scale: &Scale) -> Vec<Step> {
    let seconds = scale.seconds(PHASE_S);
    let step = |name: &str, kind, line: String| Step::new(name, "overload", kind, line);
    let at = |name, factor, rest: &str, seconds: f64| Step {
        rate: Some(Rate {
            of: "sustainable",
            factor,
        }),
        goes_on: true,
        ..step(name, RunKind::Run, format!("surge {rest} -d {seconds}"))
    };
    vec![
        step("load", RunKind::Populate, "surge -t 4 -c 4".into()),
        step("warm-up", RunKind::Run, format!("surge -t 8 -c 8 -d {seconds}")),
        step(
            "sustainable",
            RunKind::Run,
            format!("surge -t 8 -c 8 -d {seconds}"),
        ),
        at("before", EASY, "-t 8 -c 64", seconds),
        Step {
            sheds: true,
            ..at("surge", SURGE, "-t 16 -c 1000", seconds)
        },
        at("after", EASY, "-t 8 -c 64", seconds.max(2.0 * BACK_WITHIN_S)),
        Step {
            goes_on: true,
            ..step("verify", RunKind::Verify, "surge -t 4 -c 4".into())
        },
    ]
}

fn figures(done: &[Done], step_name: &str, run: &Run) -> Vec<PublishedFigure> {
    match step_name {
        "sustainable" => vec![figure(
            "sustainable, 64 in flight",
            "-",
            format!("{:.0}/s", all_per_s(run)),
        )],
        "before" => vec![figure(
            "slices at half of it",
            "-",
            slice(run).map_or_else(String::new, percentiles),
        )],
        "surge" => surge(run),
        "after" => after(done, run),
        "verify" => verified(run),
        _ => Vec::new(),
    }
}

fn slice(run: &Run) -> Option<&OperationResult> {
    run.result.operation("slice")
}

fn all_per_s(run: &Run) -> f64 {
    run.result.operations.iter().map(|of| of.rate_per_s).sum()
}

fn percentiles(of: &OperationResult) -> String {
    let at = |micros: u64| time(micros as f64);
    format!(
        "p50 {}, p99 {}, at most {}",
        at(of.response.p50_us),
        at(of.response.p99_us),
        at(of.response.max_us)
    )
}

fn surge(run: &Run) -> Vec<PublishedFigure> {
    let of_overload = |code: Option<u32>| code == Some(super::OVERLOADED);
    let errors = || run.result.operations.iter().flat_map(|of| &of.errors);
    let refused: u64 = errors()
        .filter(|error| of_overload(error.code))
        .map(|error| error.count)
        .sum();
    let others: u64 = errors()
        .filter(|error| !of_overload(error.code))
        .map(|error| error.count)
        .sum();
    let pacing = run.result.pacing;
    let requested = pacing.map_or(String::new(), |pacing| {
        format!(
            "{:.0}/s, answered {:.0}/s",
            pacing.target_per_s, pacing.achieved_per_s
        )
    });
    let mut figures = vec![
        figure("requested in the surge", "10 times", requested),
        figure("done in the surge", "-", format!("{:.0}/s", all_per_s(run))),
        figure("answered with OVERLOADED", "-", refused.to_string()),
        figure("other errors", "0", others.to_string()),
    ];
    for of in &run.result.operations {
        figures.push(figure(
            format!("{}s in the surge, when done", of.name),
            "-",
            percentiles_of_service(of),
        ));
    }
    let memory = server(run, "memory at the start").zip(server(run, "memory at most"));
    figures.extend(memory.map(|(start, most)| {
        let grown = format!("{} at most, {} before", bytes(most), bytes(start));
        figure("memory in the surge", "bounded", grown)
    }));
    figures
}

/// Formats percentiles of service times. They count from sending, so that delays in the loader are left out.
fn percentiles_of_service(of: &OperationResult) -> String {
    let at = |micros: u64| time(micros as f64);
    format!(
        "p50 {}, p99 {}, at most {}",
        at(of.service.p50_us),
        at(of.service.p99_us),
        at(of.service.max_us)
    )
}

fn after(done: &[Done], run: &Run) -> Vec<PublishedFigure> {
    let before = step(done, "before").and_then(slice);
    let intervals = read_intervals(&run.directory.join(INTERVALS_FILE));
    let (Some(before), Some(after), Ok(intervals)) = (before, slice(run), intervals) else {
        return Vec::new();
    };
    let limit = before.response.p50_us as f64 * BACK;
    let back = match back_after_s(&intervals, limit) {
        Some(seconds) => format!("within {seconds:.0} s"),
        None => "not in this run".to_owned(),
    };
    vec![
        figure("slices after the surge", "-", percentiles(after)),
        figure(
            "their median at most twice that before",
            &format!("after {BACK_WITHIN_S:.0} s"),
            back,
        ),
    ]
}

/// Returns the seconds until the median of slices is below the limit for [`BACK_IN_A_ROW`] intervals. Near the end, the remaining intervals
/// are enough. `None` if the latency does not recover.
fn back_after_s(intervals: &[Interval], limit_us: f64) -> Option<f64> {
    let is_under = |interval: &Interval| {
        let slices = interval.operations.get("slice");
        slices.is_some_and(|of| of.ops > 0 && of.p50_us as f64 <= limit_us)
    };
    let is_back = |from: &usize| intervals.iter().skip(*from).take(BACK_IN_A_ROW).all(is_under);
    let from = (0..intervals.len()).find(is_back)?;
    // The time of an interval is its end.
    intervals.get(from).map(|interval| interval.elapsed_s)
}

fn verified(run: &Run) -> Vec<PublishedFigure> {
    let Some(reads) = run.result.reads else {
        return Vec::new();
    };
    vec![figure(
        "acknowledged rows and populated keys: missing, corrupt",
        "0, 0",
        format!(
            "{}, {} of {}",
            reads.missing,
            reads.corrupt,
            reads.hits + reads.missing
        ),
    )]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::IntervalOperation;

    #[test]
    fn latency_is_back_when_it_stays_low_for_a_while() {
        let seconds = |medians: &[u64]| -> Vec<Interval> {
            let interval = |(at, &p50_us): (usize, &u64)| Interval {
                elapsed_s: at as f64 + 1.0,
                operations: [(
                    "slice".to_owned(),
                    IntervalOperation {
                        ops: u64::from(p50_us > 0),
                        p50_us,
                        ..IntervalOperation::default()
                    },
                )]
                .into(),
                ..Interval::default()
            };
            medians.iter().enumerate().map(interval).collect()
        };
        assert_eq!(back_after_s(&seconds(&[900, 90, 400, 80, 80]), 100.0), Some(4.0));
        assert_eq!(back_after_s(&seconds(&[90, 90]), 100.0), Some(1.0));
        let later = [900, 90, 90, 90, 900, 90];
        assert_eq!(
            back_after_s(&seconds(&later), 100.0),
            Some(2.0),
            "one slow second is not the surge's"
        );
        assert_eq!(back_after_s(&seconds(&[900, 90, 90, 900, 900]), 100.0), None);
        assert_eq!(back_after_s(&seconds(&[90, 900]), 100.0), None);
        assert_eq!(
            back_after_s(&seconds(&[0, 90]), 100.0),
            Some(2.0),
            "nothing done is not back"
        );
    }
}
