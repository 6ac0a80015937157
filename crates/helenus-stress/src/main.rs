//! The helenus-stress binary.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use helenus_stress::report;

#[derive(Parser, Debug)]
#[command(
    name = "helenus-stress",
    version,
    about = "A load generator for any CQL endpoint"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Make one page for the browser from the folders of one run, several, or a comparison
    Report(report::ReportArgs),
}

fn main() -> ExitCode {
    let ended = match Cli::parse().command {
        Command::Report(args) => report::run(&args),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("helenus-stress: {error:#}");
            ExitCode::FAILURE
        }
    }
}
