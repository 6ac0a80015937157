//! `helenus-stress report`: turns result folders into one page for a browser, which loads nothing from the network.
//!
//! Rust chooses the content ([`sections`], [`summary`]) and writes the tables. `assets/report.js` draws the charts with uPlot.

mod chart;
mod dot_plot;
mod page;
mod percentiles;
mod sections;
mod series;
mod summary;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::results::directory::REPORT_FILE;
use crate::results::{Comparison, Loaded, LoadedRun};
use page::Page;
use series::RunSeries;

/// Arguments of `helenus-stress report`.
#[derive(clap::Args, Debug)]
pub struct ReportArgs {
    /// Folders of runs (several are drawn in the same charts), or the folder of one comparison
    #[arg(required = true, value_name = "DIR")]
    pub directories: Vec<PathBuf>,
    /// File of the page [default: report.html in the folder if there is one, else in the current folder]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Writes the page, and prints its path.
pub fn run(args: &ReportArgs) -> Result<()> {
    let output = match (&args.output, args.directories.as_slice()) {
        (Some(output), _) => output.clone(),
        (None, [directory]) => directory.join(REPORT_FILE),
        (None, _) => PathBuf::from(REPORT_FILE),
    };
    write(&args.directories, &output)?;
    println!("{}", output.display());
    Ok(())
}

/// Writes the page of one run, of several, or of a comparison.
pub fn write(directories: &[PathBuf], output: &Path) -> Result<()> {
    let page = render(directories)?;
    fs::write(output, page).with_context(|| format!("can't write {}", output.display()))
}

fn render(directories: &[PathBuf]) -> Result<String> {
    let mut runs = Vec::new();
    for directory in directories {
        match Loaded::read(directory)? {
            Loaded::Run(run) => runs.push(*run),
            Loaded::Comparison(comparison) if directories.len() == 1 => {
                return render_comparison(directory, &comparison);
            }
            Loaded::Comparison(_) => {
                bail!(
                    "{} is a comparison: it makes a page of its own",
                    directory.display()
                )
            }
        }
    }
    let run_series: Vec<RunSeries<'_>> = runs
        .iter()
        .zip(labels(&runs))
        .map(|(run, label)| RunSeries::new(label, vec![run]))
        .collect();
    Page::of_runs(&run_series).to_html()
}

/// Returns the page of a comparison. Intervals and histograms come from the folders of the rounds, which may be missing.
fn render_comparison(directory: &Path, comparison: &Comparison) -> Result<String> {
    let side = |of: fn(&crate::results::Round) -> &PathBuf| -> Result<Vec<LoadedRun>> {
        let folders = comparison.rounds.iter().map(|round| directory.join(of(round)));
        folders
            .filter(|folder| folder.exists())
            .map(|folder| LoadedRun::read(&folder))
            .collect()
    };
    let (a, b) = (
        side(|round| &round.directory_a)?,
        side(|round| &round.directory_b)?,
    );
    let run_series = [
        RunSeries::new(comparison.label_a.clone(), a.iter().collect()),
        RunSeries::new(comparison.label_b.clone(), b.iter().collect()),
    ];
    Page::of_comparison(comparison, &run_series).to_html()
}

/// Returns the name of each run: its label, with its folder if several runs have the same label.
fn labels(runs: &[LoadedRun]) -> Vec<String> {
    let shared = |label: &str| runs.iter().filter(|run| run.result.label == label).count() > 1;
    runs.iter()
        .map(|run| {
            let label = &run.result.label;
            let folder = run.directory.file_name().unwrap_or(run.directory.as_os_str());
            if shared(label) {
                format!("{label} ({})", folder.display())
            } else {
                label.clone()
            }
        })
        .collect()
}

#[cfg(test)]
mod tests;
