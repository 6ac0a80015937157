//! The figures of a phase, and the table of medians.

use std::fmt;
use std::time::Duration;

use helenus_stress::monitor::process::Usage;
use helenus_stress::raw::{Outcome, Stall};

use crate::instructions::Instructions;
use crate::operation::Operation;
use crate::stalls;

/// One measurement: an operation at a pace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phase {
    pub operation: Operation,
    /// Requests per second. `None` is a closed loop.
    pub rate: Option<f64>,
    /// Operation that another client runs concurrently, one request after the other.
    pub beside: Option<Operation>,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut name = self.operation.name().to_owned();
        if let Some(rate) = self.rate {
            name += &format!(" @{rate:.0}");
        }
        if let Some(beside) = self.beside {
            name += &format!(" beside {}", beside.name());
        }
        f.pad(&name)
    }
}

/// The figures of one phase against one server.
#[derive(Clone, Debug)]
pub struct Figures {
    server: &'static str,
    phase: Phase,
    /// Figures in the order of [`COLUMNS`].
    values: [f64; COLUMNS.len()],
}

const COLUMNS: [&str; 15] = [
    "op/s",
    "p50 ms",
    "p99 ms",
    "p99.9 ms",
    "max ms",
    "CPU µs/op",
    "resident MiB",
    "mean ms",
    "stalled ms",
    "p99.9 aside",
    "max aside ms",
    "user µs/op",
    "kernel µs/op",
    "user instr",
    "kernel instr",
];
/// Number of the first columns, which are always printed.
const SPEED_COLUMNS: usize = 11;
/// Column of the CPU time.
const CPU_COLUMN: usize = 5;
/// Columns of the table of `--instructions`.
const COST_COLUMNS: [usize; 5] = [5, 11, 12, 13, 14];

impl Figures {
    /// Returns the figures of a phase. `usage` is the server's CPU time in the phase, and its memory at the end. `stalls` are the machine's
    /// stalls during the phase, and `None` if they could not be detected. `instructions` is `None` if they were not counted.
    pub fn new(
        server: &'static str,
        phase: Phase,
        outcome: &Outcome,
        usage: Usage,
        stalls: Option<&[Stall]>,
        instructions: Option<Instructions>,
    ) -> Figures {
        let histogram = &outcome.latency_us;
        let count = outcome.operations.max(1) as f64;
        let undisturbed = stalls.map(|stalls| outcome.slowest.undisturbed_by(stalls, histogram.len()));
        let aside = |share: f64| {
            undisturbed
                .as_ref()
                .and_then(|requests| requests.slower_than_all_but(share))
                .map_or(f64::NAN, ms)
        };
        let us = |time: Duration| time.as_secs_f64() * 1e6 / count;
        let each = |of: fn(Instructions) -> u64| {
            instructions.map_or(f64::NAN, |instructions| of(instructions) as f64 / count)
        };
        Figures {
            server,
            phase,
            values: [
                count / outcome.elapsed.as_secs_f64(),
                outcome.quantile_ms(0.5),
                outcome.quantile_ms(0.99),
                outcome.quantile_ms(0.999),
                histogram.max() as f64 / 1e3,
                us(usage.cpu),
                usage.rss_bytes as f64 / f64::from(1 << 20),
                histogram.mean() / 1e3,
                stalls.map_or(f64::NAN, |stalls| ms(stalls::total(stalls))),
                aside(0.001),
                aside(0.0),
                us(usage.cpu.saturating_sub(usage.kernel)),
                us(usage.kernel),
                each(|instructions| instructions.user),
                each(|instructions| instructions.kernel),
            ],
        }
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<9} {:<20}", self.server, self.phase)?;
        for (name, value) in COLUMNS.iter().zip(self.values).take(SPEED_COLUMNS) {
            write!(f, "  {name} {}", number(value))?;
        }
        Ok(())
    }
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn number(value: f64) -> String {
    if value.is_nan() {
        "-".to_owned()
    } else if value >= 100.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.2}")
    }
}

/// Prints the medians over the rounds, and the ratios of Helenus to the other servers.
pub fn print(figures: &[Figures], phases: &[Phase]) {
    println!(
        "\nmedians over the rounds; one server runs at a time, the other is stopped (SIGSTOP); @N: at N requests a second;\n\
         stalled: the machine's own standstills; aside: of what wasn't in flight during one (- if they can't be seen without CAP_SYS_NICE)"
    );
    let columns: Vec<usize> = (0..SPEED_COLUMNS).collect();
    print_columns(figures, phases, &columns);
}

/// Prints the medians of CPU time and instructions, in user space and in the kernel apart.
pub fn print_cost(figures: &[Figures], phases: &[Phase]) {
    println!("\nCPU time and instructions of the server for one operation, medians over the rounds");
    let is_counted = |figures: &Figures| {
        COST_COLUMNS
            .iter()
            .all(|column| !figures.values[*column].is_nan())
    };
    if !figures.iter().all(is_counted) {
        println!(
            "instructions could not be counted (-): `perf stat` has no hardware counters on this machine"
        );
    }
    print_columns(figures, phases, &COST_COLUMNS);
}

/// Prints the CPU time of writes that capture changes, over that of writes that capture none. Prints nothing if these were not measured.
pub fn print_capture(figures: &[Figures], phases: &[Phase]) {
    let cpu = |phase: Phase| Some(*medians(figures, "helenus", phase, &[CPU_COLUMN])?.first()?);
    for &phase in phases {
        if !matches!(phase.operation, Operation::CdcDelta | Operation::CdcPreimage) {
            continue;
        }
        let without = phases.iter().find(|other| {
            let is_like = other.rate.is_some() == phase.rate.is_some() && other.beside == phase.beside;
            other.operation == Operation::CdcNone && is_like
        });
        if let (Some(with), Some(without)) = (cpu(phase), without.and_then(|without| cpu(*without))) {
            println!("CPU of {phase} over cdc-none: {}", number(with / without));
        }
    }
}

fn print_columns(figures: &[Figures], phases: &[Phase], columns: &[usize]) {
    print!("{:<30}", "");
    columns
        .iter()
        .for_each(|column| print!("{:>14}", COLUMNS[*column]));
    println!();
    for &phase in phases {
        let of = |server| medians(figures, server, phase, columns);
        let helenus = of("helenus");
        for (server, values) in [
            ("helenus", &helenus),
            ("cassandra", &of("cassandra")),
            ("baseline", &of("baseline")),
        ] {
            let Some(values) = values else { continue };
            row(&format!("{server} {phase}"), values);
            if let Some(helenus) = helenus.as_ref().filter(|_| server != "helenus") {
                let ratios: Vec<f64> = helenus.iter().zip(values).map(|(a, b)| a / b).collect();
                row(&format!("  helenus over {server}"), &ratios);
            }
        }
    }
}

fn row(name: &str, values: &[f64]) {
    print!("{name:<30}");
    values.iter().for_each(|value| print!("{:>14}", number(*value)));
    println!();
}

fn medians(figures: &[Figures], server: &str, phase: Phase, columns: &[usize]) -> Option<Vec<f64>> {
    let rounds: Vec<&Figures> = figures
        .iter()
        .filter(|figures| figures.server == server && figures.phase == phase)
        .collect();
    if rounds.is_empty() {
        return None;
    }
    let median = |column: &usize| {
        let mut values: Vec<f64> = rounds
            .iter()
            .filter_map(|round| round.values.get(*column).copied())
            .collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or_default()
    };
    Some(columns.iter().map(median).collect())
}
