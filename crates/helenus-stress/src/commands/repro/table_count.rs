//! G: the same load on 10, 1,000 and 10,000 tables in turn, so that drift is not mistaken for an effect of the tables.

use super::figures::{bytes, figure, server, time};
use super::{Done, Experiment, Run, Scale, Step};
use crate::results::{PublishedFigure, RunKind};

pub const EXPERIMENT: Experiment = Experiment {
    letter: "G",
    name: "table-count",
    steps,
    figures,
};

/// Numbers of tables with their keyspaces, and the loss of throughput that is allowed.
const TABLES: [(u64, &str, &str); 3] = [
    (10, "tables10", "-"),
    (1000, "tables1000", "within 2%"),
    (10_000, "tables10000", "within 5%"),
];
/// Number of measured rounds. An even number gives the last round the order of the first.
const ROUNDS: u32 = 8;
/// Seconds of each run at scale 1.
const RUN_S: f64 = 60.0;

fn steps(scale: &Scale) -> Vec<Step> {
    let seconds = scale.seconds(RUN_S);
    // The first round is a warm-up. Every other round is in reverse order, because each run pays for the flushes and compactions of the run
    // before.
    let in_turn = |round: u32| {
        let mut turns = TABLES.each_ref();
        if round % 2 == 1 {
            turns.reverse();
        }
        turns.map(|of| (round, of))
    };
    (0..=ROUNDS)
        .flat_map(in_turn)
        .map(|(round, &(tables, keyspace, _))| Step {
            goes_on: round > 0,
            ..Step::new(
                name(tables, round),
                keyspace,
                RunKind::Run,
                format!("many-tables --workload.tables={tables} -t 4 -c 16 -p 10M -r 0.2 -d {seconds}"),
            )
        })
        .collect()
}

fn name(tables: u64, round: u32) -> String {
    format!("tables-{tables}-round-{round}")
}

fn figures(done: &[Done], step_name: &str, run: &Run) -> Vec<PublishedFigure> {
    let is_last = |tables: u64| step_name == name(tables, ROUNDS);
    let mut figures = Vec::new();
    for (tables, _, wanted) in TABLES {
        if step_name == name(tables, 0) {
            figures.extend(of_first(tables, run));
        }
        if is_last(tables) {
            figures.extend(of_all(done, tables, wanted, run));
        }
    }
    figures
}

/// Returns figures of the first run: the cost of creating the tables.
fn of_first(tables: u64, run: &Run) -> Vec<PublishedFigure> {
    let mut figures = Vec::new();
    let mut add = |what: &str, wanted: &str, measured: Option<String>| {
        figures.extend(measured.map(|measured| figure(format!("{what}, {tables} tables"), wanted, measured)));
    };
    let figure_of = |name: &str| server(run, name);
    let wanted = if tables == 1000 { "20 s" } else { "-" };
    add(
        "making them",
        wanted,
        figure_of(&format!("making {tables} tables and indexes")).map(time),
    );
    let wanted = if tables == 1000 { "2 s" } else { "-" };
    add(
        "connecting, the schema read",
        wanted,
        figure_of("connecting, the schema read").map(time),
    );
    let grown = figure_of("memory that making them took");
    add(
        "memory a table",
        "16 KiB",
        grown.map(|grown| format!("{:.1} KiB", grown / tables as f64 / 1024.0)),
    );
    add(
        "page of metrics",
        "as with 10",
        figure_of("page of metrics").map(bytes),
    );
    figures
}

/// Returns the medians over all rounds, and their ratios to ten tables.
fn of_all(done: &[Done], tables: u64, wanted: &str, last: &Run) -> Vec<PublishedFigure> {
    let medians = |tables: u64, last: Option<&Run>| {
        let rounds: Vec<&Run> = (1..=ROUNDS)
            .filter_map(|round| super::figures::step(done, &name(tables, round)))
            .chain(last)
            .collect();
        let of =
            |figure: fn(&Run) -> Option<f64>| median(rounds.iter().filter_map(|run| figure(run)).collect());
        (of(per_s), of(cpu_us))
    };
    let (here, cpu) = medians(tables, Some(last));
    let mut figures = Vec::new();
    if let Some(here) = here {
        figures.push(figure(
            format!("operations a second, {tables} tables"),
            "-",
            format!("{here:.0}"),
        ));
    }
    if let Some(cpu) = cpu {
        figures.push(figure(
            format!("server's CPU an operation, {tables} tables"),
            "-",
            format!("{cpu:.2} µs"),
        ));
    }
    let (ten, ten_cpu) = medians(10, None);
    if tables != 10
        && let Some((here, ten)) = here.zip(ten)
    {
        let against = format!("throughput, {tables} tables against 10");
        figures.push(figure(against, wanted, percent(here / ten - 1.0)));
    }
    if tables != 10
        && let Some((cpu, ten_cpu)) = cpu.zip(ten_cpu)
    {
        let against = format!("CPU an operation, {tables} tables against 10");
        figures.push(figure(against, "-", percent(cpu / ten_cpu - 1.0)));
    }
    figures
}

fn per_s(run: &Run) -> Option<f64> {
    Some(run.result.operations.iter().map(|of| of.rate_per_s).sum())
}

fn cpu_us(run: &Run) -> Option<f64> {
    server(run, "CPU time an operation")
}

fn median(mut of: Vec<f64>) -> Option<f64> {
    of.sort_by(f64::total_cmp);
    of.get(of.len() / 2).copied()
}

fn percent(change: f64) -> String {
    format!("{:+.1}%", change * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_tables_comes_once_a_round() {
        let steps = steps(&Scale {
            factor: 0.01,
            duration: None,
        });
        assert_eq!(steps.len(), TABLES.len() * (ROUNDS as usize + 1));
        assert_eq!(steps[1].name, "tables-1000-round-0");
        assert_eq!(
            steps[3].name, "tables-10000-round-1",
            "every other round goes backwards"
        );
        let last = steps.last().map(|step| step.name.as_str());
        assert_eq!(
            last,
            Some("tables-10000-round-8"),
            "figures are made when all of a kind have run"
        );
        assert!(!steps[2].goes_on && steps[3].goes_on, "tables are made once");
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
    }
}
