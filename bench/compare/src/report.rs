//! The figures of a phase, and the table of medians.

use std::fmt;
use std::time::Duration;

use helenus_stress::raw::{Outcome, Stall};

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

const COLUMNS: [&str; 11] = [
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
];

impl Figures {
    /// Returns the figures of a phase. `stalls` are the machine's stalls during the phase, and `None` if they could not be detected.
    pub fn new(
        server: &'static str,
        phase: Phase,
        outcome: &Outcome,
        cpu: Duration,
        resident_bytes: u64,
        stalls: Option<&[Stall]>,
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
        Figures {
            server,
            phase,
            values: [
                count / outcome.elapsed.as_secs_f64(),
                outcome.quantile_ms(0.5),
                outcome.quantile_ms(0.99),
                outcome.quantile_ms(0.999),
                histogram.max() as f64 / 1e3,
                cpu.as_secs_f64() * 1e6 / count,
                resident_bytes as f64 / f64::from(1 << 20),
                histogram.mean() / 1e3,
                stalls.map_or(f64::NAN, |stalls| ms(stalls::total(stalls))),
                aside(0.001),
                aside(0.0),
            ],
        }
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<9} {:<20}", self.server, self.phase)?;
        for (name, value) in COLUMNS.iter().zip(self.values) {
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
    print!("{:<30}", "");
    COLUMNS.iter().for_each(|name| print!("{name:>14}"));
    println!();
    for &phase in phases {
        let of = |server| medians(figures, server, phase);
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

fn medians(figures: &[Figures], server: &str, phase: Phase) -> Option<Vec<f64>> {
    let rounds: Vec<&Figures> = figures
        .iter()
        .filter(|figures| figures.server == server && figures.phase == phase)
        .collect();
    if rounds.is_empty() {
        return None;
    }
    let median = |column: usize| {
        let mut values: Vec<f64> = rounds
            .iter()
            .filter_map(|round| round.values.get(column).copied())
            .collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or_default()
    };
    Some((0..COLUMNS.len()).map(median).collect())
}
