//! The prompt: line editing, history, and completion of keywords and names.

use std::path::PathBuf;

use anyhow::Result;
use helenus_query::trace::without_password;
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{Context, Editor, Helper};

use super::session::Session;
use super::statement::Input;

const HISTORY_FILE: &str = ".helenus_history";

const KEYWORDS: &[&str] = &[
    "ADD",
    "AGGREGATE",
    "ALLOW FILTERING",
    "ALTER",
    "AND",
    "APPLY BATCH",
    "AS",
    "ASC",
    "BEGIN",
    "BATCH",
    "BY",
    "CLUSTERING ORDER BY",
    "CONSISTENCY",
    "CONTAINS",
    "COUNT",
    "CREATE",
    "CUSTOM",
    "DELETE",
    "DESC",
    "DESCRIBE",
    "DISTINCT",
    "DROP",
    "ENTRIES",
    "EXISTS",
    "EXIT",
    "EXPAND",
    "FROM",
    "FROZEN",
    "FULL",
    "GROUP BY",
    "HELP",
    "IF",
    "IN",
    "INDEX",
    "INSERT INTO",
    "JSON",
    "KEY",
    "KEYS",
    "KEYSPACE",
    "KEYSPACES",
    "LIMIT",
    "LIST",
    "MAP",
    "MATERIALIZED VIEW",
    "NOT",
    "NULL",
    "ON",
    "ORDER BY",
    "PAGING",
    "PER PARTITION LIMIT",
    "PRIMARY KEY",
    "RENAME",
    "REPLICATION",
    "SCHEMA",
    "SELECT",
    "SET",
    "SHOW",
    "SOURCE",
    "STATIC",
    "TABLE",
    "TABLES",
    "TIMESTAMP",
    "TIMING",
    "TO",
    "TOKEN",
    "TRACING",
    "TRUNCATE",
    "TTL",
    "TUPLE",
    "TYPE",
    "TYPES",
    "UNLOGGED",
    "UPDATE",
    "USE",
    "USING",
    "VALUES",
    "WHERE",
    "WITH",
    "WRITETIME",
    "ascii",
    "bigint",
    "blob",
    "boolean",
    "counter",
    "date",
    "decimal",
    "double",
    "duration",
    "float",
    "inet",
    "int",
    "smallint",
    "text",
    "time",
    "timestamp",
    "timeuuid",
    "tinyint",
    "uuid",
    "varchar",
    "varint",
    "vector",
];

/// What Tab offers.
struct Names {
    words: Vec<String>,
}

impl Names {
    fn load(session: &mut Session) -> Names {
        let mut words: Vec<String> = KEYWORDS.iter().map(|word| (*word).to_owned()).collect();
        words.extend(session.names("SELECT keyspace_name FROM system_schema.keyspaces"));
        if let Some(keyspace) = session.keyspace().map(str::to_owned) {
            let quoted = keyspace.replace('\'', "''");
            for (column, table) in [
                ("table_name", "tables"),
                ("column_name", "columns"),
                ("type_name", "types"),
            ] {
                words.extend(session.names(&format!(
                    "SELECT {column} FROM system_schema.{table} WHERE keyspace_name = '{quoted}'"
                )));
            }
        }
        words.sort_unstable();
        words.dedup();
        Names { words }
    }
}

impl Completer for Names {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let before = line.get(..position).unwrap_or_default();
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let start = before
            .rfind(|c| !is_word(c))
            .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
        let prefix = before.get(start..).unwrap_or_default();
        if prefix.is_empty() {
            return Ok((position, Vec::new()));
        }
        let fits = |word: &&String| {
            word.get(..prefix.len())
                .is_some_and(|head| head.eq_ignore_ascii_case(prefix))
        };
        Ok((start, self.words.iter().filter(fits).cloned().collect()))
    }
}

impl Helper for Names {}
impl Highlighter for Names {}
impl Validator for Names {}
impl Hinter for Names {
    type Hint = String;
}

fn history_path() -> Option<PathBuf> {
    std::env::var_os("HOME").map(|home| PathBuf::from(home).join(HISTORY_FILE))
}

/// As much of a line as may stand in the history, behind what was typed of its statement before: no password.
fn history_entry<'l>(typed: &mut String, line: &'l str) -> Option<&'l str> {
    let start = typed.len();
    typed.push_str(line);
    let shown_len = without_password(typed).len().checked_sub(start)?;
    typed.push('\n');
    line.get(..shown_len).filter(|shown| !shown.is_empty())
}

/// Reads and runs lines until the end of the input.
pub fn prompt(session: &mut Session) -> Result<()> {
    println!(
        "Connected to {}. HELP shows the commands of this shell; statements end with ;",
        session.address()
    );
    let mut editor: Editor<Names, FileHistory> = Editor::new()?;
    editor.set_helper(Some(Names::load(session)));
    let history = history_path();
    if let Some(path) = &history {
        // A first start has no history to read.
        let _ = editor.load_history(path);
    }
    let mut input = Input::default();
    let mut typed = String::new();
    while !session.should_exit {
        let keyspace = session
            .keyspace()
            .map_or(String::new(), |keyspace| format!(":{keyspace}"));
        let prompt = format!("cql{keyspace}> ");
        let line = if input.is_blank() {
            editor.readline(&prompt)
        } else {
            editor.readline(&format!("{:>width$}", "... ", width = prompt.len()))
        };
        match line {
            Ok(line) => {
                if input.is_blank() {
                    typed.clear();
                }
                if let Some(entry) = history_entry(&mut typed, &line) {
                    editor.add_history_entry(entry)?;
                }
                let keyspace = session.keyspace().map(str::to_owned);
                session.feed(&mut input, &line)?;
                let is_ddl = ["create", "alter", "drop"].iter().any(|verb| {
                    line.get(..verb.len())
                        .is_some_and(|head| head.eq_ignore_ascii_case(verb))
                });
                if is_ddl || session.keyspace() != keyspace.as_deref() {
                    editor.set_helper(Some(Names::load(session)));
                }
            }
            Err(ReadlineError::Interrupted) => input.clear(),
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(error.into()),
        }
    }
    if let Some(path) = &history {
        editor.save_history(path)?;
    }
    Ok(())
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
    }
}
