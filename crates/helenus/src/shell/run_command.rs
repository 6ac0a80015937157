//! Execution of the shell's own commands.

use std::io::Write;

use anyhow::Result;
use helenus_cql::error::Consistency;
use uuid::Uuid;

use super::client::Login;
use super::command::{Capture, Command, HELP, Paging};
use super::session::{PAGE_SIZE, Session, say};
use super::traced::write_trace;

impl Session {
    /// Runs a command. Returns false if it failed.
    pub(super) fn run_command(&mut self, command: Command) -> Result<bool> {
        match command {
            Command::Help => say!("{HELP}"),
            Command::Exit => self.should_exit = true,
            Command::Clear => write!(std::io::stdout(), "\x1b[2J\x1b[H")?,
            Command::ShowVersion => return self.show_version(),
            Command::ShowHost => say!("Connected to {}", self.address()),
            Command::ShowSession(id) => return self.show_session(id),
            Command::Source(path) => return self.run_file(&path),
            Command::Capture(capture) => return self.capture(capture),
            Command::Login { username, password } => return self.log_in(username, password),
            Command::Consistency(level) => {
                self.consistency = level.unwrap_or(self.consistency);
                say!("Consistency level is {}", self.consistency);
            }
            Command::SerialConsistency(Some(level)) if !level.is_serial() => {
                self.complain("the serial consistency level is SERIAL or LOCAL_SERIAL");
                return Ok(false);
            }
            Command::SerialConsistency(level) => {
                self.serial_consistency = level.or(self.serial_consistency);
                let level = self.serial_consistency.unwrap_or(Consistency::Serial);
                say!("Serial consistency level is {level}");
            }
            Command::Timing(on) => switch("Timing", &mut self.is_timing, on)?,
            Command::Expand(on) => switch("Expanded output", &mut self.is_expanding, on)?,
            Command::Tracing(on) => switch("Tracing", &mut self.is_tracing, on)?,
            Command::Paging(paging) => self.set_paging(paging)?,
        }
        Ok(true)
    }

    fn set_paging(&mut self, paging: Option<Paging>) -> Result<()> {
        match paging {
            Some(Paging::On) => self.page_size = Some(PAGE_SIZE),
            Some(Paging::Off) => self.page_size = None,
            Some(Paging::Size(size)) => self.page_size = Some(size),
            None => {}
        }
        match self.page_size {
            Some(size) => say!("Paging is on: {size} rows a page"),
            None => say!("Paging is off"),
        }
        Ok(())
    }

    /// Prints versions in cqlsh's format.
    fn show_version(&mut self) -> Result<bool> {
        let query = "SELECT release_version, cql_version, native_protocol_version FROM system.local";
        let rows = self.texts(query);
        let Some([release, cql, protocol]) = rows.first().map(Vec::as_slice) else {
            self.complain("the server does not report its version");
            return Ok(false);
        };
        let own = env!("CARGO_PKG_VERSION");
        say!("[helenus shell {own} | Cassandra {release} | CQL spec {cql} | Native protocol v{protocol}]");
        Ok(true)
    }

    fn show_session(&mut self, id: Uuid) -> Result<bool> {
        let mut out = self.output.writer()?;
        let shown = write_trace(&mut self.client, &self.server.interrupt, id, &mut out);
        out.flush()?;
        match shown {
            Ok(true) => Ok(true),
            Ok(false) => {
                self.complain(format!("no complete trace {id} was found"));
                Ok(false)
            }
            Err(error) => {
                self.report(error, "")?;
                Ok(false)
            }
        }
    }

    /// Runs the statements of a file. Returns false if one failed.
    pub fn run_file(&mut self, path: &str) -> Result<bool> {
        match std::fs::read_to_string(path) {
            Ok(text) => self.run_text(&text, Some(path)),
            Err(error) => {
                self.complain(format!("can't read {path}: {error}"));
                Ok(false)
            }
        }
    }

    fn capture(&mut self, capture: Option<Capture>) -> Result<bool> {
        match capture {
            Some(Capture::File(path)) => match self.output.capture(&path) {
                Ok(()) => say!("Now capturing query output to '{path}'."),
                Err(error) => {
                    self.complain(format!("can't write {path}: {error}"));
                    return Ok(false);
                }
            },
            Some(Capture::Off) => self.output.stop_capture(),
            None => match self.output.captured_path() {
                Some(path) => say!("Currently capturing query output to '{path}'."),
                None => say!("Currently not capturing query output."),
            },
        }
        Ok(true)
    }

    /// Connects as another user. If that fails, the present connection is kept.
    fn log_in(&mut self, username: String, password: Option<String>) -> Result<bool> {
        let login = Login {
            username: Some(username),
            password,
        };
        let before = std::mem::replace(&mut self.login, login);
        match self.reconnect() {
            Ok(()) => Ok(true),
            Err(error) => {
                self.login = before;
                self.complain(format!("{error:#}"));
                Ok(false)
            }
        }
    }
}

fn switch(what: &str, setting: &mut bool, on: Option<bool>) -> Result<()> {
    *setting = on.unwrap_or(*setting);
    say!("{what} is {}", if *setting { "on" } else { "off" });
    Ok(())
}
