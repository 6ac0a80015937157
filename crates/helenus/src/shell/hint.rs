//! Suggestions for mistyped keywords and names.

use super::command;
use super::keywords::{KEYWORDS, VERBS};
use super::names::{Names, table_of};

/// Minimum similarity, from 0 to 1, of a word that is suggested.
const LIKENESS_MIN: f64 = 0.7;

/// Returns a suggestion for a statement that was refused with this message. `None` if no word is similar.
pub fn hint(statement: &str, message: &str, keyspace: Option<&str>, names: &Names) -> Option<String> {
    let meant = match refused_name(message) {
        Some(Refused::Table(name)) => nearest_table(named_table(statement, name), keyspace, names),
        Some(Refused::Keyspace(name)) => nearest(name, names.keyspaces()),
        Some(Refused::Column(name)) => nearest(name, names.columns_of_statement(statement, keyspace)),
        None => mistyped_keyword(statement, message),
    };
    meant.map(|meant| format!("did you mean {meant}?"))
}

enum Refused<'m> {
    Table(&'m str),
    Keyspace(&'m str),
    Column(&'m str),
}

/// Returns the unknown name in the server's message. `None` if the message names none.
fn refused_name(message: &str) -> Option<Refused<'_>> {
    let table = between(message, "table ", " does not exist")
        .or_else(|| between(message, "unconfigured table ", ""))
        .map(Refused::Table);
    let keyspace = || {
        between(message, "eyspace ", " does not exist").map(|name| Refused::Keyspace(name.trim_matches('\'')))
    };
    let column = || {
        ["Undefined column name ", "Unknown identifier ", "Undefined name "]
            .iter()
            .find_map(|words| between(message, words, " "))
            .map(|name| Refused::Column(name.trim_matches(['"', '\''])))
    };
    table.or_else(keyspace).or_else(column)
}

/// Returns the text between `before` and `after`. If `after` is empty or a space, returns the word after `before`.
fn between<'m>(message: &'m str, before: &str, after: &str) -> Option<&'m str> {
    let (_, rest) = message.split_once(before)?;
    match after {
        "" | " " => rest.split_whitespace().next(),
        after => rest.split_once(after).map(|(name, _)| name),
    }
}

/// Returns the table as the statement names it, because the server's message omits the keyspace.
fn named_table<'t>(statement: &'t str, name: &'t str) -> &'t str {
    let named = table_of(statement).filter(|named| named.rsplit('.').next() == Some(name));
    named.unwrap_or(name)
}

fn nearest_table(name: &str, keyspace: Option<&str>, names: &Names) -> Option<String> {
    match name.rsplit_once('.') {
        Some((keyspace, table)) => {
            let table = nearest(table, names.tables(keyspace))?;
            Some(format!("{keyspace}.{table}"))
        }
        None => nearest(name, names.tables(keyspace?)),
    }
}

/// Returns the keyword that is similar to the first word, or to the word at which the parser stopped.
fn mistyped_keyword(statement: &str, message: &str) -> Option<String> {
    let first = statement.split_whitespace().next()?;
    let commands = VERBS.iter().copied().chain(command::names());
    if !VERBS.iter().any(|verb| verb.eq_ignore_ascii_case(first)) {
        return nearest(&first.to_uppercase(), commands.map(str::to_owned));
    }
    let stopped_at = between(message, "input '", "'")?;
    let stopped_at = stopped_at.to_uppercase();
    let is_keyword = KEYWORDS.contains(&stopped_at.as_str());
    let keywords = KEYWORDS.iter().map(|word| (*word).to_owned());
    (!is_keyword).then(|| nearest(&stopped_at, keywords)).flatten()
}

/// Returns the most similar candidate that differs from the word. `None` if none is similar enough.
fn nearest(word: &str, candidates: impl IntoIterator<Item = String>) -> Option<String> {
    candidates
        .into_iter()
        .filter(|candidate| candidate != word)
        .map(|candidate| {
            (
                strsim::normalized_damerau_levenshtein(word, &candidate),
                candidate,
            )
        })
        .filter(|(likeness, _)| *likeness >= LIKENESS_MIN)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_and_keyword() {
        let names = Names::of(&[("shop", "users", &["id", "name"]), ("shop", "orders", &["id"])]);
        let hint = |statement: &str, message: &str| hint(statement, message, Some("shop"), &names);
        let did_you_mean = |name: &str| Some(format!("did you mean {name}?"));
        assert_eq!(
            hint("SELECT * FROM usrs", "table usrs does not exist"),
            did_you_mean("users")
        );
        assert_eq!(
            hint("SELECT * FROM shop.oders", "table oders does not exist"),
            did_you_mean("shop.orders")
        );
        assert_eq!(
            hint("USE shp", "Keyspace 'shp' does not exist"),
            did_you_mean("shop")
        );
        assert_eq!(
            hint(
                "SELECT nmae FROM users",
                "Undefined column name nmae in table shop.users"
            ),
            did_you_mean("name")
        );
        assert_eq!(
            hint("SELCT 1", "line 1:0 no viable alternative at input 'SELCT'"),
            did_you_mean("SELECT")
        );
        assert_eq!(
            hint(
                "SELECT * FORM t",
                "line 1:9 mismatched input 'FORM' expecting K_FROM"
            ),
            did_you_mean("FROM")
        );
        assert_eq!(
            hint("SELECT 1 FROM xyzzyxx", "table xyzzyxx does not exist"),
            None
        );
    }
}
