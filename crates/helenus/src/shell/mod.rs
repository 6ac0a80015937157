//! `helenus shell`: a CQL prompt that needs nothing but this binary.

mod client;
mod command;
mod complete;
mod session;
mod statement;
mod table;
mod tls;

use std::io::{IsTerminal, Read};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;

use client::{Client, Login};
use session::Session;

/// A CQL prompt.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  helenus shell\n  helenus shell db1:9042\n  helenus shell -e \"SELECT * FROM shop.users\"\n  helenus shell -f schema.cql"
)]
pub struct ShellArgs {
    /// The server, as HOST or HOST:PORT
    #[arg(default_value = "127.0.0.1:9042")]
    host: String,
    /// Run these statements and leave
    #[arg(short, long, value_name = "CQL", conflicts_with = "file")]
    execute: Option<String>,
    /// Run the statements of a file and leave
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// The keyspace to start in
    #[arg(short, long)]
    keyspace: Option<String>,
    /// Who to log in as, if the server asks
    #[arg(short, long)]
    username: Option<String>,
    /// The password; asked for if it is needed and not given
    #[arg(short, long, env = "HELENUS_PASSWORD", hide_env_values = true)]
    password: Option<String>,
    /// Encrypt, and check who the server is
    #[arg(long)]
    tls: bool,
    /// Who has signed the server's certificate, as a PEM file [default: whom the system trusts]
    #[arg(long, value_name = "FILE", requires = "tls")]
    tls_authority: Option<PathBuf>,
}

/// Runs the shell. The exit code tells if any statement failed.
pub fn run(args: ShellArgs) -> Result<ExitCode> {
    match run_session(args) {
        // Whoever read the output has seen enough.
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
    let login = Login {
        username: args.username.clone(),
        password: args.password.clone(),
    };
    let encryption = match args.tls {
        true => Some(tls::client_config(args.tls_authority.as_deref())?),
        false => None,
    };
    let mut session = Session::new(Client::connect(&with_port(&args.host), &login, encryption)?);
    if let Some(keyspace) = &args.keyspace {
        session.run_text(&format!("USE {keyspace};"))?;
    }
    let text = match (&args.execute, &args.file) {
        (Some(text), _) => Some(text.clone()),
        (None, Some(path)) => {
            Some(std::fs::read_to_string(path).with_context(|| format!("can't read {}", path.display()))?)
        }
        (None, None) if !std::io::stdin().is_terminal() => {
            let mut text = String::new();
            std::io::stdin()
                .read_to_string(&mut text)
                .context("can't read the standard input as text")?;
            Some(text)
        }
        (None, None) => None,
    };
    let all_well = match text {
        Some(text) => session.run_text(&text)?,
        None => {
            complete::prompt(&mut session)?;
            true
        }
    };
    Ok(if all_well {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(2)
    })
}

/// Adds Cassandra's port where the address has none.
fn with_port(host: &str) -> String {
    let has_port = match host.strip_prefix('[') {
        Some(v6) => v6.contains("]:"),
        None => host.matches(':').count() == 1,
    };
    match has_port {
        true => host.to_owned(),
        false if host.contains(':') && !host.starts_with('[') => format!("[{host}]:9042"),
        false => format!("{host}:9042"),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_port_is_optional() {
        assert_eq!(super::with_port("db1"), "db1:9042");
        assert_eq!(super::with_port("db1:9043"), "db1:9043");
        assert_eq!(super::with_port("::1"), "[::1]:9042");
        assert_eq!(super::with_port("[::1]:9043"), "[::1]:9043");
    }
}
