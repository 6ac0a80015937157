//! The helenus binary.

mod shell;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser, Debug)]
#[command(
    name = "helenus",
    version,
    about = "A wide-column database for Cassandra's drivers and tools"
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Open a CQL prompt
    Shell(shell::ShellArgs),
}

fn main() -> anyhow::Result<ExitCode> {
    match Cli::parse().command {
        Some(Command::Shell(args)) => shell::run(args),
        None => Ok(ExitCode::SUCCESS),
    }
}
