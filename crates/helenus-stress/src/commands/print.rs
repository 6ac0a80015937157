//! Prints the final table of a run.

use std::io::Write;

use anyhow::Result;

use super::execute::Run;
use crate::results::table;

/// Prints a run's figures to stdout.
pub fn run(run: &Run) -> Result<()> {
    let mut out = std::io::stdout().lock();
    write!(out, "{}", table::run(&run.result))?;
    writeln!(out, "\nResults: {}", run.directory.display())?;
    Ok(())
}
