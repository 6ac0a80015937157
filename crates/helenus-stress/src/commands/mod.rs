//! The subcommands.

mod assemble;
mod compare;
mod execute;
mod fql;
mod hdr;
mod list;
mod plan;
mod print;
mod repro;
mod session;

use std::process::ExitCode;

use anyhow::Result;
use tokio::runtime::Runtime;

use crate::cli::Command;
use crate::cli::options::LoadArgs;
use crate::report;
use crate::results::RunKind;
use session::Session;

/// The end of a command, by its worst problem. The numbers are the exit status of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ended {
    Well = 0,
    /// Operations failed.
    WithErrors = 3,
    /// An open loop missed its rate.
    RateMissed = 4,
    /// Values were missing or corrupt.
    Unverified = 5,
}

/// Runs a command. Returns the exit status.
pub fn run(command: Command) -> ExitCode {
    let ended = match command {
        Command::List => list::list(),
        Command::Info { workload } => list::info(&workload),
        Command::Fields => list::fields(),
        Command::Populate(args) => load(RunKind::Populate, &args),
        Command::Run(args) => load(RunKind::Run, &args),
        Command::Verify(args) => load(RunKind::Verify, &args),
        Command::Compare(args) => compare::compare(&args),
        Command::Repro(args) => repro::repro(&args),
        Command::Fql(args) => fql::run(&args),
        Command::Report(args) => report::run(&args).map(|()| Ended::Well),
    };
    match ended {
        Ok(ended) => ExitCode::from(ended as u8),
        Err(error) => {
            eprintln!("helenus-stress: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn load(kind: RunKind, args: &LoadArgs) -> Result<Ended> {
    let runtime = Runtime::new()?;
    let session = Session::open(&runtime, args, kind)?;
    let run = execute::execute(&session, kind, |_| {})?;
    print::run(&run)?;
    Ok(run.ended)
}
