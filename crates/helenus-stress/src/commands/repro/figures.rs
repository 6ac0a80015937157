//! Measured figures, formatted for printing beside published ones.

use super::{Done, Run};
use crate::results::{OperationResult, PublishedFigure};

/// Returns a measured figure with its published value.
pub fn figure(name: impl Into<String>, published: &str, measured: impl Into<String>) -> PublishedFigure {
    PublishedFigure {
        name: name.into(),
        published: published.to_owned(),
        measured: measured.into(),
        note: None,
    }
}

/// Returns the run of the step with this name.
pub fn step<'a>(done: &'a [Done], name: &str) -> Option<&'a Run> {
    done.iter().find(|done| done.name == name).map(|done| &done.run)
}

/// Returns an operation's figures. `None` if there was no such operation.
pub fn operation<'a>(run: &'a Run, name: &str) -> Option<&'a OperationResult> {
    run.result.operation(name)
}

/// Returns one of the server's figures.
pub fn server(run: &Run, name: &str) -> Option<f64> {
    let figure = run.result.server.iter().find(|figure| figure.name == name)?;
    Some(figure.value)
}

/// Returns a gauge of the server's metrics at the end of the run.
pub fn gauge(run: &Run, name: &str) -> Option<f64> {
    run.pages.as_ref()?.1.gauges.get(name).copied()
}

/// Returns the growth of a counter of the server's metrics over the run.
pub fn growth(run: &Run, name: &str) -> Option<f64> {
    let (first, last) = run.pages.as_ref()?;
    Some(last.gauges.get(name)? - first.gauges.get(name)?)
}

/// Formats an operation's rate and mean: `19,000/s at 1.30 ms`.
pub fn rate_and_mean(of: &OperationResult) -> String {
    format!("{:.0}/s at {}", of.rate_per_s, time(of.response.mean_us))
}

/// Formats microseconds: `1.30 ms`, `2.1 s`.
pub fn time(micros: f64) -> String {
    match micros {
        ..1e6 => format!("{:.2} ms", micros / 1e3),
        _ => format!("{:.1} s", micros / 1e6),
    }
}

/// Formats bytes: `9.2 KB`, `1.3 GB`.
pub fn bytes(bytes: f64) -> String {
    match bytes {
        ..1e6 => format!("{:.1} KB", bytes / 1e3),
        ..1e9 => format!("{:.1} MB", bytes / 1e6),
        _ => format!("{:.2} GB", bytes / 1e9),
    }
}

/// Formats a count: `48.2M`, `7.1k`.
pub fn count(number: f64) -> String {
    match number {
        ..1e4 => format!("{number:.0}"),
        ..1e6 => format!("{:.1}k", number / 1e3),
        _ => format!("{:.1}M", number / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_the_unit_that_suits_them() {
        assert_eq!((time(1300.0), time(2.1e6)), ("1.30 ms".into(), "2.1 s".into()));
        assert_eq!((bytes(9151.0), bytes(1.3e9)), ("9.2 KB".into(), "1.30 GB".into()));
        assert_eq!(
            (count(900.0), count(7100.0), count(48.2e6)),
            ("900".into(), "7100".into(), "48.2M".into())
        );
    }
}
