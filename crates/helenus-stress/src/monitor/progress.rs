//! The progress of a load on stderr: a bar on a terminal, and otherwise a line every few seconds.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Minimum time between two lines, if there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// The state of a load after an interval.
#[derive(Clone, Copy, Debug, Default)]
pub struct State {
    pub elapsed: Duration,
    /// Successful operations per second in the interval.
    pub per_s: f64,
    /// Response times of the interval, in microseconds.
    pub p50_us: u64,
    pub p99_us: u64,
    /// Errors since the start.
    pub errors: u64,
    /// Lag of an open loop. `None` in a closed loop.
    pub lag: Option<Duration>,
    /// Amount done, in the unit of [`End`].
    pub done: u64,
}

/// End of a load, up to which progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// A time, in milliseconds.
    Time(u64),
    /// A number of operations or keys.
    Count(u64),
    /// The end is unknown.
    Open,
}

/// Display of a load's progress.
pub struct Progress {
    style: Style,
    end: End,
}

enum Style {
    Bar(ProgressBar),
    Lines { last: Option<Duration> },
    Quiet,
}

impl Progress {
    /// Creates the display of the progress of `what` until `end`.
    pub fn new(what: &str, end: End, quiet: bool) -> Self {
        let style = if quiet {
            Style::Quiet
        } else if std::io::stderr().is_terminal() {
            Style::Bar(bar(what, end))
        } else {
            Style::Lines { last: None }
        };
        Self { style, end }
    }

    /// Shows the load's state.
    pub fn show(&mut self, state: &State) {
        match &mut self.style {
            Style::Bar(bar) => {
                bar.set_position(position(self.end, state));
                bar.set_message(figures(state));
            }
            Style::Lines { last } if last.is_none_or(|last| state.elapsed >= last + LINE_EVERY) => {
                *last = Some(state.elapsed);
                eprintln!("{:>6.0} s  {}", state.elapsed.as_secs_f64(), figures(state));
            }
            Style::Lines { .. } | Style::Quiet => {}
        }
    }

    /// Removes the bar.
    pub fn finish(&self) {
        if let Style::Bar(bar) = &self.style {
            bar.finish_and_clear();
        }
    }
}

fn position(end: End, state: &State) -> u64 {
    match end {
        End::Time(_) | End::Open => state.elapsed.as_millis() as u64,
        End::Count(_) => state.done,
    }
}

fn bar(what: &str, end: End) -> ProgressBar {
    let (length, template) = match end {
        End::Time(length) | End::Count(length) => {
            (Some(length), "{prefix} {elapsed} [{bar:24}] {percent:>3}%  {msg}")
        }
        End::Open => (None, "{prefix} {elapsed} {spinner}  {msg}"),
    };
    let style = ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("━╸─");
    let bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::stderr_with_hz(4)).with_style(style);
    bar.set_prefix(what.to_owned());
    bar
}

fn figures(state: &State) -> String {
    let lag = state.lag.map_or(String::new(), |lag| {
        format!("  lag {}", milliseconds(lag.as_micros() as u64))
    });
    format!(
        "{:>9} ops/s  p50 {}  p99 {}  errors {}{lag}",
        format!("{:.0}", state.per_s),
        milliseconds(state.p50_us),
        milliseconds(state.p99_us),
        state.errors,
    )
}

fn milliseconds(micros: u64) -> String {
    match micros {
        0..10_000 => format!("{:.2} ms", micros as f64 / 1e3),
        10_000..10_000_000 => format!("{:.0} ms", micros as f64 / 1e3),
        _ => format!("{:.1} s", micros as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_all_that_matters() {
        let state = State {
            per_s: 12_345.6,
            p50_us: 180,
            p99_us: 25_000,
            errors: 3,
            lag: Some(Duration::from_secs(12)),
            ..State::default()
        };
        assert_eq!(
            figures(&state),
            "    12346 ops/s  p50 0.18 ms  p99 25 ms  errors 3  lag 12.0 s"
        );
        assert!(
            !figures(&State::default()).contains("lag"),
            "a closed loop has none"
        );
    }

    #[test]
    fn a_bar_goes_by_time_or_by_count() {
        let state = State {
            elapsed: Duration::from_secs(3),
            done: 7,
            ..State::default()
        };
        assert_eq!(position(End::Time(10_000), &state), 3_000);
        assert_eq!(position(End::Count(10), &state), 7);
    }
}
