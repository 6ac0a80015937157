//! The COPY statement: `COPY [keyspace.]table [(column, …)] TO|FROM 'file' [WITH option = value [AND …]]`.

use std::collections::BTreeMap;
use std::str::FromStr;

use super::command::unquote;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    To,
    From,
}

/// A parsed COPY.
#[derive(Debug, PartialEq)]
pub struct CopyStatement {
    /// The table in CQL's form, with its keyspace if one was given.
    pub table: String,
    /// The columns in CQL's form. Empty means all.
    pub columns: Vec<String>,
    pub direction: Direction,
    /// A path, or STDIN or STDOUT.
    pub file: CopyFile,
    pub options: Options,
}

#[derive(Debug, PartialEq, Eq)]
pub enum CopyFile {
    Path(String),
    Standard,
}

/// The options, with cqlsh's defaults.
#[derive(Debug, PartialEq)]
pub struct Options {
    pub has_header: bool,
    pub delimiter: u8,
    pub quote: u8,
    pub escape: u8,
    /// Text for null.
    pub null: String,
    /// Rows per page of COPY TO.
    pub page_size: i32,
    /// Rows between two marks.
    pub chunk_size: u64,
    /// Maximum number of concurrent requests.
    pub in_flight_max: usize,
    /// Maximum number of rows. `None` means all.
    pub rows_max: Option<u64>,
    pub skip_rows: u64,
    /// Columns of the file that are skipped, in CQL's form.
    pub skip_columns: Vec<String>,
    /// Maximum rows per second of COPY FROM.
    pub ingest_rate: u32,
    pub attempts_max: u32,
    /// Maximum number of rows that cannot be parsed. `None` means no limit.
    pub parse_errors_max: Option<u64>,
    pub insert_errors_max: Option<u64>,
    /// The file for rows that could not be inserted. `None` means a file named after the table.
    pub error_file: Option<String>,
    /// Time to live of the rows, in seconds.
    pub ttl: Option<u32>,
    /// True to resume the same COPY where it was interrupted.
    pub is_resuming: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            has_header: false,
            delimiter: b',',
            quote: b'"',
            escape: b'\\',
            null: String::new(),
            page_size: 1000,
            chunk_size: 5000,
            in_flight_max: 16 * REQUESTS_PER_PROCESS,
            rows_max: None,
            skip_rows: 0,
            skip_columns: Vec::new(),
            ingest_rate: 100_000,
            attempts_max: 5,
            parse_errors_max: None,
            insert_errors_max: Some(1000),
            error_file: None,
            ttl: None,
            is_resuming: false,
        }
    }
}

/// Concurrent requests on one connection that replace one process of cqlsh.
const REQUESTS_PER_PROCESS: usize = 16;
/// Maximum number of concurrent requests: half of the stream ids of a connection, which have 15 bits.
const IN_FLIGHT_MAX: usize = 16_384;

/// Parses a COPY. `None` if the statement is not a COPY. An error if it cannot be run.
pub fn parse(statement: &str) -> Option<Result<CopyStatement, String>> {
    let mut words = Words::new(statement);
    words.peek_is("COPY").then(|| {
        words.next();
        parse_rest(&mut words)
    })
}

fn parse_rest(words: &mut Words<'_>) -> Result<CopyStatement, String> {
    let table = words.next().ok_or(USAGE)?.to_owned();
    let columns = match words.peek_is("(") {
        true => name_list(words)?,
        false => Vec::new(),
    };
    let direction = match words.next().map(str::to_ascii_uppercase).as_deref() {
        Some("TO") => Direction::To,
        Some("FROM") => Direction::From,
        _ => return Err(USAGE.to_owned()),
    };
    let file = match words.next() {
        Some(word) if word.starts_with('\'') => CopyFile::Path(unquote(word)),
        Some(word) if word.eq_ignore_ascii_case("STDOUT") || word.eq_ignore_ascii_case("STDIN") => {
            CopyFile::Standard
        }
        _ => return Err(USAGE.to_owned()),
    };
    let mut options = Options::default();
    for (name, value) in option_list(words)? {
        options.set(&name, &value, direction)?;
    }
    Ok(CopyStatement {
        table,
        columns,
        direction,
        file,
        options,
    })
}

const USAGE: &str =
    "COPY is written COPY table [(column, …)] TO|FROM 'file'|STDOUT|STDIN [WITH option = value [AND …]]";

fn name_list(words: &mut Words<'_>) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    words.next();
    loop {
        match words.next() {
            Some(")") => return Ok(names),
            Some(",") => {}
            Some(name) => names.push(name.to_owned()),
            None => return Err(USAGE.to_owned()),
        }
    }
}

fn option_list(words: &mut Words<'_>) -> Result<BTreeMap<String, String>, String> {
    let mut options = BTreeMap::new();
    match words.next() {
        None => return Ok(options),
        Some(word) if word.eq_ignore_ascii_case("WITH") => {}
        Some(word) => return Err(format!("COPY: WITH is expected in place of {word}")),
    }
    loop {
        let (Some(name), Some("="), Some(value)) = (words.next(), words.next(), words.next()) else {
            return Err(USAGE.to_owned());
        };
        let value = match value {
            "-" => format!("-{}", words.next().unwrap_or_default()),
            value => unquote(value),
        };
        options.insert(name.to_ascii_uppercase(), value);
        match words.next() {
            None => return Ok(options),
            Some(word) if word.eq_ignore_ascii_case("AND") => {}
            Some(word) => return Err(format!("COPY: AND is expected in place of {word}")),
        }
    }
}

/// Options of both directions; those of COPY TO and COPY FROM follow.
const COMMON: &[&str] = &["HEADER", "DELIMITER", "QUOTE", "ESCAPE", "NULL", "RESUME"];
const OF_TO: &[&str] = &["PAGESIZE", "MAXROWS"];
const OF_FROM: &[&str] = &[
    "CHUNKSIZE",
    "NUMPROCESSES",
    "MAXROWS",
    "SKIPROWS",
    "SKIPCOLS",
    "INGESTRATE",
    "MAXATTEMPTS",
    "MAXPARSEERRORS",
    "MAXINSERTERRORS",
    "ERRFILE",
    "TTL",
];

impl Options {
    fn set(&mut self, name: &str, value: &str, direction: Direction) -> Result<(), String> {
        let own = match direction {
            Direction::To => OF_TO,
            Direction::From => OF_FROM,
        };
        if !COMMON.contains(&name) && !own.contains(&name) {
            let known: Vec<&str> = COMMON.iter().chain(own).copied().collect();
            return Err(format!(
                "COPY has no option {name} here; the options are {}",
                known.join(", ")
            ));
        }
        match name {
            "HEADER" => self.has_header = boolean(name, value)?,
            "DELIMITER" => self.delimiter = one_byte(name, value)?,
            "QUOTE" => self.quote = one_byte(name, value)?,
            "ESCAPE" => self.escape = one_byte(name, value)?,
            "NULL" => value.clone_into(&mut self.null),
            "RESUME" => self.is_resuming = boolean(name, value)?,
            "PAGESIZE" => self.page_size = at_least_one(name, value)?,
            "CHUNKSIZE" => self.chunk_size = at_least_one(name, value)?,
            "NUMPROCESSES" => {
                let processes: usize = at_least_one(name, value)?;
                self.in_flight_max = processes.saturating_mul(REQUESTS_PER_PROCESS).min(IN_FLIGHT_MAX);
            }
            "MAXROWS" => self.rows_max = unless_negative(name, value)?,
            "SKIPROWS" => self.skip_rows = number(name, value)?,
            "SKIPCOLS" => self.skip_columns = value.split(',').map(|name| name.trim().to_owned()).collect(),
            "INGESTRATE" => self.ingest_rate = at_least_one(name, value)?,
            "MAXATTEMPTS" => self.attempts_max = at_least_one(name, value)?,
            "MAXPARSEERRORS" => self.parse_errors_max = unless_negative(name, value)?,
            "MAXINSERTERRORS" => self.insert_errors_max = unless_negative(name, value)?,
            "ERRFILE" => self.error_file = Some(value.to_owned()),
            "TTL" => self.ttl = Some(number(name, value)?),
            _ => {}
        }
        Ok(())
    }
}

fn boolean(name: &str, value: &str) -> Result<bool, String> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "yes" | "1" => Ok(true),
        "false" | "no" | "0" => Ok(false),
        _ => Err(format!("COPY: {name} is true or false, not {value}")),
    }
}

fn one_byte(name: &str, value: &str) -> Result<u8, String> {
    match value.as_bytes() {
        [byte] if byte.is_ascii() => Ok(*byte),
        _ if value == "\\t" => Ok(b'\t'),
        _ => Err(format!("COPY: {name} is one ASCII character, not '{value}'")),
    }
}

fn number<N: FromStr>(name: &str, value: &str) -> Result<N, String> {
    value
        .parse()
        .map_err(|_| format!("COPY: {name} is a number, not {value}"))
}

fn at_least_one<N: FromStr + PartialOrd + From<u8>>(name: &str, value: &str) -> Result<N, String> {
    let number: N = number(name, value)?;
    match number >= N::from(1) {
        true => Ok(number),
        false => Err(format!("COPY: {name} is at least 1")),
    }
}

/// Parses a limit. `None` if it is negative, because cqlsh uses -1 for no limit.
fn unless_negative(name: &str, value: &str) -> Result<Option<u64>, String> {
    let number: i64 = number(name, value)?;
    Ok(u64::try_from(number).ok())
}

/// Iterator over the words, strings and signs of a text.
struct Words<'t> {
    rest: &'t str,
}

impl<'t> Words<'t> {
    fn new(text: &'t str) -> Words<'t> {
        Words { rest: text }
    }

    fn peek_is(&self, word: &str) -> bool {
        Words::new(self.rest)
            .next()
            .is_some_and(|next| next.eq_ignore_ascii_case(word))
    }
}

impl<'t> Iterator for Words<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        let rest = self.rest.trim_start();
        let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
        let mut len = 0;
        let mut quote = None;
        for c in rest.chars() {
            let is_start = len == 0;
            match quote {
                Some(open) if c == open => quote = None,
                Some(_) => {}
                None if matches!(c, '\'' | '"') && (is_start || goes_on(rest.get(..len), c)) => {
                    quote = Some(c)
                }
                None if is_word(c) && !rest.starts_with('\'') => {}
                None if is_start => {
                    len += c.len_utf8();
                    break;
                }
                None => break,
            }
            len += c.len_utf8();
        }
        let (word, after) = rest.split_at(len);
        self.rest = after;
        (!word.is_empty()).then_some(word)
    }
}

/// Returns true if a quote belongs to the text before it: a doubled quote, or one after the dot of a name.
fn goes_on(before: Option<&str>, quote: char) -> bool {
    before.is_some_and(|before| before.ends_with(quote) || (quote == '"' && before.ends_with('.')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_with_options() {
        let copy = parse(
            "COPY shop.\"Users\" (id, \"Name\") FROM 'it''s.csv' WITH HEADER = TRUE AND delimiter='|' AND MAXROWS=-1 AND SKIPROWS = 3",
        );
        let expected = CopyStatement {
            table: "shop.\"Users\"".to_owned(),
            columns: vec!["id".to_owned(), "\"Name\"".to_owned()],
            direction: Direction::From,
            file: CopyFile::Path("it's.csv".to_owned()),
            options: Options {
                has_header: true,
                delimiter: b'|',
                skip_rows: 3,
                ..Options::default()
            },
        };
        assert_eq!(copy, Some(Ok(expected)));
    }

    #[test]
    fn mistakes_are_told() {
        let error = |text: &str| parse(text).unwrap().unwrap_err();
        assert!(error("COPY t TO").contains("COPY is written"));
        assert!(error("COPY t TO 'f' WITH TTL = 3").contains("no option TTL"));
        assert!(error("COPY t TO 'f' WITH DELIMITER = 'ab'").contains("one ASCII character"));
        assert_eq!(parse("SELECT 1"), None);
    }
}
