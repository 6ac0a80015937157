//! `helenus shell`: a CQL prompt that needs nothing but this binary.

pub mod client;
mod command;
mod complete;
mod connection;
mod copy;
mod copy_statement;
mod grid;
mod hint;
pub mod interrupt;
mod keywords;
mod names;
mod output;
mod prompt;
mod results;
mod run_command;
mod session;
mod statement;
mod tls;
mod traced;

use std::io::{IsTerminal, Read};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;

use client::Server;
pub(crate) use connection::connection_args;
pub use connection::{ConnectionArgs, with_port};
use interrupt::Interrupt;
use results::Format;
use session::Session;

/// Opens a CQL prompt.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  helenus shell\n  helenus shell db1:9042\n  helenus shell -e \"SELECT * FROM shop.users\"\n  helenus shell -f schema.cql"
)]
pub struct ShellArgs {
    /// The server, as HOST or HOST:PORT
    #[arg(default_value = "127.0.0.1:9042")]
    host: String,
    /// Run these statements and exit
    #[arg(short, long, value_name = "CQL", conflicts_with = "file")]
    execute: Option<String>,
    /// Run the statements of a file and exit
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// The format of rows
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// The keyspace to start in
    #[arg(short, long)]
    keyspace: Option<String>,
    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Runs the shell. The exit code is 2 if a statement of a script failed, and 130 after Ctrl-C.
pub fn run(args: ShellArgs) -> Result<ExitCode> {
    match run_session(args) {
        // A broken pipe is not an error: the reader of the output has ended.
        Err(error) if is_broken_pipe(&error) => Ok(ExitCode::SUCCESS),
        result => result,
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<std::io::Error>()
        .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

fn run_session(args: ShellArgs) -> Result<ExitCode> {
    let login = args.connection.login();
    let server = Server {
        address: with_port(&args.host),
        encryption: args.connection.encryption()?,
        interrupt: Interrupt::default(),
    };
    let interrupt = server.interrupt.clone();
    let mut session = Session::connect(server, login, args.format)?;
    interrupt.catch()?;
    if let Some(keyspace) = &args.keyspace {
        session.run_text(&format!("USE {keyspace};"), None)?;
    }
    let all_well = run_input(&mut session, &args)?;
    Ok(match all_well {
        true => ExitCode::SUCCESS,
        false if session.was_cancelled => ExitCode::from(EXIT_INTERRUPTED),
        false => ExitCode::from(2),
    })
}

/// Exit code of a process that SIGINT ended, by the convention of shells.
pub const EXIT_INTERRUPTED: u8 = 130;

/// Runs the statements of the arguments, of the standard input, or of the prompt. Returns false if a statement of a script failed.
fn run_input(session: &mut Session, args: &ShellArgs) -> Result<bool> {
    if let Some(text) = &args.execute {
        return session.run_text(text, None);
    }
    if let Some(path) = &args.file {
        let path = path.to_string_lossy();
        return session.run_file(&path);
    }
    if std::io::stdin().is_terminal() {
        session.start_prompt();
        prompt::prompt(session)?;
        session.was_cancelled = false;
        return Ok(true);
    }
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .context("can't read the standard input as text")?;
    session.run_text(&text, Some("<stdin>"))
}
