//! The shell's own commands, which are not sent to the server.

use helenus_cql::error::Consistency;
use uuid::Uuid;

/// A parsed command.
#[derive(Debug, PartialEq, Eq)]
pub enum Command {
    Help,
    Exit,
    Clear,
    ShowVersion,
    ShowHost,
    /// Shows the trace with this id.
    ShowSession(Uuid),
    Source(String),
    /// Changes the destination of results. `None` shows it.
    Capture(Option<Capture>),
    /// Connects again as another user.
    Login {
        username: String,
        password: Option<String>,
    },
    /// Changes the consistency level. `None` shows it.
    Consistency(Option<Consistency>),
    SerialConsistency(Option<Consistency>),
    Timing(Option<bool>),
    Expand(Option<bool>),
    Tracing(Option<bool>),
    Paging(Option<Paging>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paging {
    On,
    Off,
    Size(i32),
}

/// Destination of results.
#[derive(Debug, PartialEq, Eq)]
pub enum Capture {
    /// A file, to which results are appended.
    File(String),
    /// The standard output.
    Off,
}

/// Returns the first words of all commands.
pub fn names() -> impl Iterator<Item = &'static str> {
    NAMES.iter().copied()
}

const NAMES: &[&str] = &[
    "CAPTURE",
    "CLEAR",
    "CONSISTENCY",
    "COPY",
    "EXIT",
    "EXPAND",
    "HELP",
    "LOGIN",
    "PAGING",
    "QUIT",
    "SERIAL",
    "SHOW",
    "SOURCE",
    "TIMING",
    "TRACING",
];

pub const HELP: &str = "\
CQL statements end with ; and may span lines. Commands of the shell:
  HELP                          this text
  COPY table TO 'file';         write a table as CSV; COPY table FROM 'file' reads it
  SOURCE 'file'                 run the statements of a file
  CAPTURE ['file' | OFF]        add results to the end of a file instead of showing them
  LOGIN name ['password']       connect as another user; prompts for the password if it is not given
  CONSISTENCY [LEVEL]           show or set the consistency level
  SERIAL CONSISTENCY [LEVEL]    show or set the level of lightweight transactions
  TIMING [ON|OFF]               show how long each statement took
  EXPAND [ON|OFF]               one value a line instead of a table
  PAGING [ON|OFF|rows]          rows fetched and shown at a time
  TRACING [ON|OFF]              trace requests, and show their traces
  SHOW VERSION | HOST           what this shell is connected to
  SHOW SESSION id               the trace of a request
  CLEAR                         clear the screen
  EXIT                          leave (also QUIT, Ctrl-D)
Ctrl-C cancels what is being typed, shown or run. Results longer than the screen are shown by $PAGER.
DESCRIBE, USE and everything else is CQL and goes to the server.";

/// Parses a line as a command. `None` if it is not a command. An error if its argument is wrong.
pub fn parse(line: &str) -> Option<Result<Command, String>> {
    let line = line.trim().trim_end_matches(';').trim();
    let mut words = line.split_whitespace();
    let first = words.next()?.to_ascii_uppercase();
    let rest: Vec<&str> = words.collect();
    let switch = |wrap: fn(Option<bool>) -> Command| Some(on_off(&first, &rest).map(wrap));
    match first.as_str() {
        "HELP" | "?" => Some(Ok(Command::Help)),
        "EXIT" | "QUIT" if rest.is_empty() => Some(Ok(Command::Exit)),
        "CLEAR" | "CLS" if rest.is_empty() => Some(Ok(Command::Clear)),
        "SHOW" => Some(show(&rest)),
        "SOURCE" => Some(source(line)),
        "CAPTURE" => Some(capture(line, &rest)),
        "LOGIN" => Some(login(line)),
        "CONSISTENCY" => Some(level(rest.first().copied()).map(Command::Consistency)),
        "SERIAL" => Some(match rest.first() {
            Some(word) if word.eq_ignore_ascii_case("consistency") => {
                level(rest.get(1).copied()).map(Command::SerialConsistency)
            }
            _ => Err("SERIAL takes CONSISTENCY and a level".to_owned()),
        }),
        "TIMING" => switch(Command::Timing),
        "EXPAND" => switch(Command::Expand),
        "TRACING" => switch(Command::Tracing),
        "PAGING" => Some(paging(rest.first().copied()).map(Command::Paging)),
        _ => None,
    }
}

fn show(words: &[&str]) -> Result<Command, String> {
    let what = words.first().map(|word| word.to_ascii_uppercase());
    match (what.as_deref(), words.get(1)) {
        (Some("VERSION"), None) => Ok(Command::ShowVersion),
        (Some("HOST"), None) => Ok(Command::ShowHost),
        (Some("SESSION"), Some(id)) => match id.parse() {
            Ok(id) => Ok(Command::ShowSession(id)),
            Err(_) => Err(format!("{id} is not the id of a trace")),
        },
        _ => Err("SHOW takes VERSION, HOST, or SESSION and the id of a trace".to_owned()),
    }
}

/// Returns the text after the command's name.
fn argument(line: &str) -> &str {
    let name_end = line.find(char::is_whitespace).unwrap_or(line.len());
    line.get(name_end..).unwrap_or_default().trim()
}

/// Returns a text without its quotes. Doubled quotes inside become single ones.
pub fn unquote(text: &str) -> String {
    for quote in ['\'', '"'] {
        let inner = text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote));
        if let Some(inner) = inner {
            let quote = quote.to_string();
            return inner.replace(&quote.repeat(2), &quote);
        }
    }
    text.to_owned()
}

fn source(line: &str) -> Result<Command, String> {
    match unquote(argument(line)) {
        path if path.is_empty() => Err("SOURCE takes the name of a file in quotes".to_owned()),
        path => Ok(Command::Source(path)),
    }
}

fn capture(line: &str, words: &[&str]) -> Result<Command, String> {
    match words {
        [] => Ok(Command::Capture(None)),
        [word] if word.eq_ignore_ascii_case("off") => Ok(Command::Capture(Some(Capture::Off))),
        _ => match argument(line) {
            path if path.starts_with(['\'', '"']) => Ok(Command::Capture(Some(Capture::File(unquote(path))))),
            _ => Err("CAPTURE takes OFF, or the name of a file in quotes".to_owned()),
        },
    }
}

fn login(line: &str) -> Result<Command, String> {
    let argument = argument(line);
    let (username, password) = argument
        .split_once(char::is_whitespace)
        .map_or((argument, None), |(name, password)| (name, Some(password.trim())));
    match unquote(username) {
        name if name.is_empty() => Err("LOGIN takes a name, and a password in quotes".to_owned()),
        username => Ok(Command::Login {
            username,
            password: password.map(unquote),
        }),
    }
}

fn on_off(command: &str, words: &[&str]) -> Result<Option<bool>, String> {
    match words.first() {
        None => Ok(None),
        Some(word) if word.eq_ignore_ascii_case("on") => Ok(Some(true)),
        Some(word) if word.eq_ignore_ascii_case("off") => Ok(Some(false)),
        Some(word) => Err(format!("{command} takes ON or OFF, not {word}")),
    }
}

fn paging(word: Option<&str>) -> Result<Option<Paging>, String> {
    match word {
        None => Ok(None),
        Some(word) if word.eq_ignore_ascii_case("on") => Ok(Some(Paging::On)),
        Some(word) if word.eq_ignore_ascii_case("off") => Ok(Some(Paging::Off)),
        Some(word) => match word.parse() {
            Ok(size) if size > 0 => Ok(Some(Paging::Size(size))),
            _ => Err(format!("PAGING takes ON, OFF or a number of rows, not {word}")),
        },
    }
}

fn level(word: Option<&str>) -> Result<Option<Consistency>, String> {
    let Some(word) = word else { return Ok(None) };
    let named =
        |code: u16| Consistency::from_code(code).filter(|level| level.to_string().eq_ignore_ascii_case(word));
    match (0..=0x0B).find_map(named) {
        Some(level) => Ok(Some(level)),
        None => {
            let levels = (0..=0x0B).filter_map(Consistency::from_code);
            let levels: Vec<String> = levels.map(|level| level.to_string()).collect();
            Err(format!(
                "{word} is not a consistency level; they are {}",
                levels.join(", ")
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_distinguished_from_statements() {
        assert_eq!(parse("timing on"), Some(Ok(Command::Timing(Some(true)))));
        assert_eq!(
            parse("CONSISTENCY quorum;"),
            Some(Ok(Command::Consistency(Some(Consistency::Quorum))))
        );
        assert_eq!(
            parse("PAGING 7"),
            Some(Ok(Command::Paging(Some(Paging::Size(7)))))
        );
        assert_eq!(
            parse("SOURCE 'a b.cql'"),
            Some(Ok(Command::Source("a b.cql".to_owned())))
        );
        assert_eq!(
            parse("LOGIN ann 'it''s';"),
            Some(Ok(Command::Login {
                username: "ann".to_owned(),
                password: Some("it's".to_owned())
            }))
        );
        assert_eq!(
            parse("CAPTURE 'off.txt'"),
            Some(Ok(Command::Capture(Some(Capture::File("off.txt".to_owned())))))
        );
        assert_eq!(
            parse("capture off"),
            Some(Ok(Command::Capture(Some(Capture::Off))))
        );
        assert!(matches!(parse("SHOW SESSION x"), Some(Err(_))));
        assert!(matches!(parse("PAGING many"), Some(Err(_))));
        assert_eq!(parse("SELECT 1"), None);
        assert_eq!(parse("DESCRIBE TABLES"), None);
    }
}
