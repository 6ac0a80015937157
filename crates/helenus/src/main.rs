//! The helenus binary. Without a command it runs a node.

mod adopt;
mod backup;
mod compact;
mod compare;
mod comparison_exit;
mod generate;
mod import;
mod migrate;
mod migrate_log;
mod node_session;
mod nodetool;
mod replace_file;
mod replicate;
mod restore;
mod running_nodes;
mod serve;
mod shell;
mod table_reading;
mod token_bucket;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

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
    /// Show the state of a cluster, and have nodes leave it
    Nodetool(nodetool::NodetoolArgs),
    /// Open a CQL prompt
    Shell(shell::ShellArgs),
    /// Write a backup of a running node's store, list backups, and verify them
    Backup(backup::BackupArgs),
    /// Restore tables from a backup, into a running node or a new store
    Restore(restore::RestoreArgs),
    /// Bring tables of a Cassandra cluster in, from its SSTables
    Import(Box<import::ImportArgs>),
    /// Copy tables into another cluster, and send it their changes
    Replicate(Box<replicate::ReplicateArgs>),
    /// Compare the tables of two running clusters
    Compare(Box<compare::CompareArgs>),
    /// Do compactions for the nodes of a store in a bucket
    Compact(compact::CompactArgs),
    /// Copy a local store into a bucket
    Migrate(migrate::MigrateArgs),
    /// Move the log of a store in a bucket to another place
    MigrateLog(migrate_log::MigrateLogArgs),
    /// Make the copy of a store in a bucket a store of its own
    Adopt(adopt::AdoptArgs),
    /// Print a file of settings, completions for a shell, or man pages
    Generate(generate::GenerateArgs),
}

/// Sets the umask so that all files written later, including those of the object store, are readable by their owner only.
fn keep_files_private() {
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
}

/// Returns the arguments of the process. A link to the binary with the name nodetool runs the command nodetool.
fn arguments() -> Vec<OsString> {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    let is_nodetool = arguments
        .first()
        .is_some_and(|name| Path::new(name).file_name() == Some("nodetool".as_ref()));
    if is_nodetool {
        arguments.splice(0..1, ["helenus".into(), "nodetool".into()]);
    }
    match arguments.get(1).is_some_and(|command| command == "nodetool") {
        true => nodetool::normalized(arguments),
        false => arguments,
    }
}

fn main() -> ExitCode {
    let ended = match Cli::parse_from(arguments()).command {
        Some(Command::Serve(args)) => serve::run(&args),
        Some(Command::Nodetool(args)) => nodetool::run(&args),
        Some(Command::Shell(args)) => shell::run(args),
        Some(Command::Backup(args)) => backup::run(&args),
        Some(Command::Restore(args)) => restore::run(&args),
        Some(Command::Import(args)) => import::run(&args),
        Some(Command::Replicate(args)) => replicate::run(&args),
        Some(Command::Compare(args)) => Ok(compare::run(&args)),
        Some(Command::Compact(args)) => compact::run(&args),
        Some(Command::Migrate(args)) => migrate::run(&args),
        Some(Command::MigrateLog(args)) => migrate_log::run(&args),
        Some(Command::Adopt(args)) => adopt::run(&args),
        Some(Command::Generate(args)) => generate::run(&args),
        None => serve::run_without_command(),
    };
    ended.unwrap_or_else(|error| {
        eprintln!("helenus: {error:#}");
        ExitCode::FAILURE
    })
}
