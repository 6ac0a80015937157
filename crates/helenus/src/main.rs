//! The helenus binary. Without a command it serves.

mod adopt;
mod migrate;
mod nodetool;
mod serve;
mod shell;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use rustix::fs::Mode;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[derive(Parser, Debug)]
#[command(
    name = "helenus",
    version,
    about = "A wide-column database for Cassandra's drivers and tools",
    after_help = "Without a command: serve, on 127.0.0.1:9042, with the data in ./helenus-data"
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Run a node
    Serve(Box<serve::ServeArgs>),
    /// Look at a cluster, and have a node leave it
    Nodetool(nodetool::NodetoolArgs),
    /// Open a CQL prompt
    Shell(shell::ShellArgs),
    /// Copy a local store into a bucket
    Migrate(migrate::MigrateArgs),
    /// Make a store of its own of a copy of one in a bucket
    Adopt(adopt::AdoptArgs),
}

fn main() -> ExitCode {
    let command = Cli::parse().command;
    if !matches!(command, Some(Command::Nodetool(_) | Command::Shell(_))) {
        // What a store holds is its owner's alone: files get the mode 0600, and folders 0700.
        rustix::process::umask(Mode::RWXG | Mode::RWXO);
    }
    let ended = match command {
        Some(Command::Serve(args)) => serve::run(&args),
        Some(Command::Nodetool(args)) => nodetool::run(&args),
        Some(Command::Shell(args)) => shell::run(args),
        Some(Command::Migrate(args)) => migrate::run(&args),
        Some(Command::Adopt(args)) => adopt::run(&args),
        None => serve::run(&serve::ServeArgs::default()),
    };
    ended.unwrap_or_else(|error| {
        eprintln!("helenus: {error:#}");
        ExitCode::FAILURE
    })
}
