//! Completion with Tab: offers the names and keywords that fit at the cursor.

use std::rc::Rc;

use helenus_cql::error::Consistency;
use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};

use super::command;
use super::keywords::{KEYWORDS, VERBS};
use super::names::Names;
use super::statement::code_words;

/// Completer of the line that is being typed.
#[derive(Default)]
pub struct Completion {
    pub names: Rc<Names>,
    pub keyspace: Option<String>,
    /// The statement's lines before the one that is being typed.
    pub before: String,
}

impl Completion {
    /// Returns the start of the word before the cursor, and the words that may replace it.
    pub fn candidates(&self, line: &str, position: usize) -> (usize, Vec<String>) {
        let typed = line.get(..position).unwrap_or_default();
        let start = word_start(typed);
        let prefix = typed.get(start..).unwrap_or_default();
        let before = format!("{}{}", self.before, typed.get(..start).unwrap_or_default());
        let whole = format!("{}{line}", self.before);
        let statement_start = before.rfind(';').map_or(0, |at| at + 1);
        let before = code_words(before.get(statement_start..).unwrap_or_default());
        let whole = whole.get(statement_start..).unwrap_or_default();
        let mut fitting: Vec<String> = self
            .expected(&before, whole, prefix)
            .into_iter()
            .filter(|word| {
                word.get(..prefix.len())
                    .is_some_and(|head| head.eq_ignore_ascii_case(prefix))
            })
            .collect();
        fitting.sort_unstable();
        fitting.dedup();
        (start, fitting)
    }

    /// Returns the words that may follow the words of a statement.
    fn expected(&self, before: &[&str], whole: &str, prefix: &str) -> Vec<String> {
        let upper: Vec<String> = before.iter().map(|word| word.to_ascii_uppercase()).collect();
        let upper: Vec<&str> = upper.iter().map(String::as_str).collect();
        let fixed = |words: &[&str]| -> Vec<String> { words.iter().map(|word| (*word).to_owned()).collect() };
        match upper.as_slice() {
            [] => VERBS
                .iter()
                .copied()
                .chain(command::names())
                .map(str::to_owned)
                .collect(),
            ["USE"] | [.., "KEYSPACE"] => self.names.keyspaces(),
            ["CONSISTENCY"] => levels(|_| true),
            ["SERIAL"] => fixed(&["CONSISTENCY"]),
            ["SERIAL", "CONSISTENCY"] => levels(Consistency::is_serial),
            ["SHOW"] => fixed(&["VERSION", "HOST", "SESSION"]),
            ["TRACING" | "EXPAND" | "PAGING" | "TIMING"] => fixed(&["ON", "OFF"]),
            ["CAPTURE"] => fixed(&["OFF"]),
            ["DESCRIBE" | "DESC"] => {
                let kinds = [
                    "KEYSPACES",
                    "KEYSPACE",
                    "TABLES",
                    "TABLE",
                    "TYPES",
                    "TYPE",
                    "SCHEMA",
                    "FULL SCHEMA",
                    "CLUSTER",
                    "FUNCTIONS",
                    "FUNCTION",
                    "AGGREGATES",
                    "AGGREGATE",
                    "INDEX",
                    "MATERIALIZED VIEW",
                ];
                let kinds = kinds.iter().map(|kind| (*kind).to_owned());
                kinds.chain(self.tables(prefix)).collect()
            }
            ["UPDATE" | "TRUNCATE" | "COPY"] | [.., "FROM" | "INTO" | "TABLE"] | ["CREATE", .., "ON"]
                if upper.first() != Some(&"COPY") || upper.len() == 1 =>
            {
                self.tables(prefix)
            }
            ["COPY", _] => fixed(&["(", "TO", "FROM"]),
            ["INSERT", "INTO", _] => fixed(&["(", "JSON"]),
            [
                "SELECT" | "DELETE" | "INSERT" | "COPY",
                ..,
                "SELECT" | "DELETE" | "(" | "," | "DISTINCT" | "BY",
            ]
            | ["SELECT" | "DELETE"]
            | ["UPDATE", .., "SET" | ","]
            | [.., "WHERE" | "AND" | "IF"] => self.columns(whole),
            _ => {
                let keywords = KEYWORDS.iter().map(|word| (*word).to_owned());
                keywords
                    .chain(self.columns_of_table(whole))
                    .chain(self.types())
                    .collect()
            }
        }
    }

    /// Returns the tables of the keyspace before the dot. Without a dot, returns those of the current keyspace, and the names of all
    /// keyspaces.
    fn tables(&self, prefix: &str) -> Vec<String> {
        if let Some((keyspace, _)) = prefix.split_once('.') {
            let tables = self.names.tables(keyspace).into_iter();
            return tables.map(|table| format!("{keyspace}.{table}")).collect();
        }
        let keyspaces = self.names.keyspaces().into_iter().map(|name| format!("{name}."));
        let own = self
            .keyspace
            .iter()
            .flat_map(|keyspace| self.names.tables(keyspace));
        own.chain(keyspaces).collect()
    }

    /// Returns the columns of the statement's table, and all else that may be in the place of a column.
    fn columns(&self, whole: &str) -> Vec<String> {
        let also = [
            "*",
            "COUNT(*)",
            "DISTINCT",
            "JSON",
            "TOKEN(",
            "TTL(",
            "WRITETIME(",
            "FROM",
            "EXISTS",
        ];
        let also = also.iter().map(|word| (*word).to_owned());
        self.columns_of_table(whole).into_iter().chain(also).collect()
    }

    fn columns_of_table(&self, whole: &str) -> Vec<String> {
        self.names.columns_of_statement(whole, self.keyspace.as_deref())
    }

    fn types(&self) -> Vec<String> {
        let keyspace = self.keyspace.iter();
        keyspace.flat_map(|keyspace| self.names.types(keyspace)).collect()
    }
}

fn levels(fits: impl Fn(Consistency) -> bool) -> Vec<String> {
    let levels = (0..=0x0B).filter_map(Consistency::from_code);
    levels
        .filter(|level| fits(*level))
        .map(|level| level.to_string())
        .collect()
}

/// Returns the start of the word before the cursor. Dots and quotes belong to the word, because a name may have them.
fn word_start(typed: &str) -> usize {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '"');
    let word: usize = typed
        .chars()
        .rev()
        .take_while(|c| is_word(*c))
        .map(char::len_utf8)
        .sum();
    typed.len().saturating_sub(word)
}

/// Returns true if the cursor is in the name of a file.
fn is_in_file_name(typed: &str) -> bool {
    let first = typed
        .split_whitespace()
        .next()
        .unwrap_or_default()
        .to_ascii_uppercase();
    matches!(first.as_str(), "SOURCE" | "CAPTURE" | "COPY") && typed.matches('\'').count() % 2 == 1
}

impl Completer for Completion {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        position: usize,
        context: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        if is_in_file_name(line.get(..position).unwrap_or_default()) {
            return FilenameCompleter::new().complete(line, position, context);
        }
        let (start, words) = self.candidates(line, position);
        let pairs = words.into_iter().map(|word| Pair {
            display: word.clone(),
            replacement: word,
        });
        Ok((start, pairs.collect()))
    }
}

impl Helper for Completion {}
impl Highlighter for Completion {}
impl Validator for Completion {}
impl Hinter for Completion {
    type Hint = String;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(before: &str, line: &str) -> Vec<String> {
        let names = Names::of(&[
            ("shop", "users", &["id", "name"]),
            ("shop", "orders", &["number", "total"]),
            ("system", "local", &["key"]),
            ("system_views", "clients", &["address"]),
        ]);
        let completion = Completion {
            names: Rc::new(names),
            keyspace: Some("shop".to_owned()),
            before: before.to_owned(),
        };
        let position = line.find('|').unwrap();
        completion.candidates(&line.replace('|', ""), position).1
    }

    #[test]
    fn names_fit_their_place() {
        assert_eq!(offered("", "SELECT * FROM u|"), ["users"]);
        assert_eq!(offered("", "insert into o|"), ["orders"]);
        assert_eq!(
            offered("SELECT *\n", "FROM |"),
            ["orders", "shop.", "system.", "system_views.", "users"]
        );
        assert_eq!(
            offered("", "SELECT * FROM system_views.|"),
            ["system_views.clients"]
        );
        assert_eq!(offered("", "USE sys|"), ["system", "system_views"]);
        assert_eq!(offered("", "SELECT n| FROM users"), ["name"]);
        assert_eq!(offered("", "SELECT * FROM orders WHERE n|"), ["number"]);
        assert_eq!(offered("", "SELECT 1; UPDATE users SET i|"), ["id"]);
        assert_eq!(offered("", "INSERT INTO users (id, n|"), ["name"]);
    }

    #[test]
    fn words_fit_their_place() {
        assert_eq!(offered("", "SEL|"), ["SELECT"]);
        assert_eq!(offered("", "CONSISTENCY LOCAL_Q|"), ["LOCAL_QUORUM"]);
        assert_eq!(offered("", "SERIAL CONSISTENCY |"), ["LOCAL_SERIAL", "SERIAL"]);
        assert_eq!(offered("", "TRACING |"), ["OFF", "ON"]);
        assert_eq!(offered("", "SELECT * FROM users ALL|"), ["ALLOW FILTERING"]);
    }
}
