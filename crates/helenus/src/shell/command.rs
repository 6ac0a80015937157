//! The shell's own commands, which never reach the server.

use helenus_cql::error::Consistency;

/// A command, as typed.
#[derive(Debug, PartialEq, Eq)]
pub enum Command {
    Help,
    Exit,
    Clear,
    ShowVersion,
    ShowHost,
    Source(String),
    /// With nothing: show it.
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

pub const HELP: &str = "\
CQL statements end with ; and may span lines. Commands of the shell:
  HELP                          this text
  SOURCE 'file'                 run the statements of a file
  CONSISTENCY [LEVEL]           show or set the consistency level
  SERIAL CONSISTENCY [LEVEL]    show or set the level of lightweight transactions
  TIMING [ON|OFF]               show how long each statement took
  EXPAND [ON|OFF]               one value a line instead of a table
  PAGING [ON|OFF|rows]          rows fetched and shown at a time
  TRACING [ON|OFF]              ask the server to trace requests
  SHOW VERSION | HOST           what this shell is connected to
  CLEAR                         clear the screen
  EXIT                          leave (also QUIT, Ctrl-D)
DESCRIBE, USE and everything else is CQL and goes to the server.";

/// Reads a line as a command. None if it isn't one; an error if it is one with a wrong argument.
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
        "SHOW" => Some(
            match rest.first().map(|word| word.to_ascii_uppercase()).as_deref() {
                Some("VERSION") => Ok(Command::ShowVersion),
                Some("HOST") => Ok(Command::ShowHost),
                _ => Err("SHOW takes VERSION or HOST".to_owned()),
            },
        ),
        "SOURCE" => {
            let path = line
                .get("SOURCE".len()..)
                .unwrap_or_default()
                .trim()
                .trim_matches(['\'', '"']);
            Some(if path.is_empty() {
                Err("SOURCE takes the name of a file in quotes".to_owned())
            } else {
                Ok(Command::Source(path.to_owned()))
            })
        }
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
        None => Err(format!(
            "{word} is not a consistency level; one of ONE, QUORUM, ALL, LOCAL_QUORUM, …"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_told_from_statements() {
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
        assert!(matches!(parse("PAGING many"), Some(Err(_))));
        assert_eq!(parse("SELECT 1"), None);
        assert_eq!(parse("DESCRIBE TABLES"), None);
    }
}
