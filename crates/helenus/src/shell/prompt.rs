//! The prompt: edits lines, keeps the history, and runs statements.

use std::path::PathBuf;

use anyhow::Result;
use helenus_query::trace::without_password;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{CompletionType, Config, Editor};

use super::complete::Completion;
use super::session::Session;
use super::statement::Input;

const HISTORY_FILE: &str = ".helenus_history";

fn history_path() -> Option<PathBuf> {
    std::env::var_os("HOME").map(|home| PathBuf::from(home).join(HISTORY_FILE))
}

/// Returns the part of a line that may be in the history, which must not contain passwords. `typed` has the statement's lines before.
fn history_entry<'l>(typed: &mut String, line: &'l str) -> Option<&'l str> {
    let start = typed.len();
    typed.push_str(line);
    let shown_len = without_secret(typed).len().checked_sub(start)?;
    typed.push('\n');
    line.get(..shown_len).filter(|shown| !shown.is_empty())
}

/// Returns a statement or command up to its password. A LOGIN is cut after the user's name.
fn without_secret(typed: &str) -> &str {
    let mut words = typed.split_whitespace();
    if !words
        .next()
        .is_some_and(|word| word.eq_ignore_ascii_case("login"))
    {
        return without_password(typed);
    }
    let Some(name) = words.next() else { return typed };
    let end = name.as_ptr().addr() - typed.as_ptr().addr() + name.len();
    typed.get(..end).unwrap_or_default()
}

type ShellEditor = Editor<Completion, FileHistory>;

/// Reads and runs lines until the end of the input.
pub fn prompt(session: &mut Session) -> Result<()> {
    println!(
        "Connected to {}. HELP shows the commands of this shell; statements end with ;",
        session.address()
    );
    let config = Config::builder().completion_type(CompletionType::List).build();
    let mut editor: ShellEditor = Editor::with_config(config)?;
    let history = history_path();
    if let Some(path) = &history {
        // An error is ignored, because there is no history at the first start.
        let _ = editor.load_history(path);
    }
    let mut input = Input::default();
    let mut typed = String::new();
    while !session.should_exit {
        if input.is_blank() {
            input.clear();
            typed.clear();
        }
        session.clear_interrupt();
        editor.set_helper(Some(Completion {
            names: session.names(),
            keyspace: session.keyspace().map(str::to_owned),
            before: typed.clone(),
        }));
        match editor.readline(&prompt_text(session, &input)) {
            Ok(line) => {
                remember(&mut editor, history.as_ref(), &mut typed, &line);
                session.feed(&mut input, &line)?;
            }
            Err(ReadlineError::Interrupted) => input.clear(),
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn prompt_text(session: &Session, input: &Input) -> String {
    let keyspace = session
        .keyspace()
        .map_or(String::new(), |keyspace| format!(":{keyspace}"));
    let prompt = format!("cql{keyspace}> ");
    match input.is_blank() {
        true => prompt,
        false => format!("{:>width$}", "... ", width = prompt.len()),
    }
}

/// Adds a line to the history. The file is written at once, so that no line is lost if the shell is killed.
fn remember(editor: &mut ShellEditor, file: Option<&PathBuf>, typed: &mut String, line: &str) {
    let Some(entry) = history_entry(typed, line) else {
        return;
    };
    // An error is ignored, because the shell works without a history.
    let added = editor.add_history_entry(entry).unwrap_or(false);
    if let Some(path) = file.filter(|_| added) {
        let _ = editor.append_history(path);
    }
}

#[cfg(test)]
mod tests {
    use super::history_entry;

    #[test]
    fn the_history_has_no_passwords() {
        let mut typed = String::new();
        let mut kept = |line| history_entry(&mut typed, line).map(str::to_owned);
        assert_eq!(kept("CREATE ROLE ann"), Some("CREATE ROLE ann".to_owned()));
        assert_eq!(
            kept("WITH LOGIN = true AND password = 'hush'"),
            Some("WITH LOGIN = true AND password".to_owned())
        );
        assert_eq!(kept("AND OPTIONS = {'password': 'hush'};"), None);
        let mut typed = String::new();
        let select = "SELECT password FROM users;";
        assert_eq!(history_entry(&mut typed, select), Some(select));
        let mut typed = String::new();
        assert_eq!(history_entry(&mut typed, "LOGIN ann 'hush'"), Some("LOGIN ann"));
    }
}
