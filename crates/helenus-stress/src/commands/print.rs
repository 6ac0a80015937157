//! The final table of a run.

use std::io::Write;

use anyhow::Result;

use super::execute::Run;

/// Prints a run's figures to stdout.
pub fn run(run: &Run) -> Result<()> {
    let result = &run.result;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", result.title())?;
    for operation in &result.operations {
        writeln!(
            out,
            "{:<14} {:>10} {:>10.0}/s mean {:.0} p50 {} p99 {} p99.9 {} max {} µs, errors {}",
            operation.name,
            operation.count,
            operation.rate_per_s,
            operation.response.mean_us,
            operation.response.p50_us,
            operation.response.p99_us,
            operation.response.p99_9_us,
            operation.response.max_us,
            operation.error_count(),
        )?;
    }
    for (operation, error) in result
        .operations
        .iter()
        .flat_map(|operation| operation.errors.iter().map(move |error| (operation, error)))
    {
        let code = error
            .code
            .map_or(String::new(), |code| format!(" (0x{code:04X})"));
        let example = error.example.as_deref().unwrap_or_default();
        writeln!(
            out,
            "{} × {}{code} of {}: {example}",
            error.count, error.name, operation.name
        )?;
    }
    for figure in &result.server {
        writeln!(out, "{}: {:.1} {}", figure.name, figure.value, figure.unit)?;
    }
    for figure in &result.published {
        writeln!(
            out,
            "{}: published {}, measured {}",
            figure.name, figure.published, figure.measured
        )?;
    }
    for note in &result.notes {
        writeln!(out, "{note}")?;
    }
    writeln!(out, "Results: {}", run.directory.display())?;
    Ok(())
}
