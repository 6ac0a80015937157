//! Reads JSON as Jackson does for Cassandra. Errors have Jackson's messages, because statements show them.

mod number;
mod string;

use std::fmt;

use serde_json::{Map, Value};

/// Maximum depth of nesting (`StreamReadConstraints`).
const DEPTH_MAX: usize = 500;
/// Maximum characters of the text that a message shows.
const SHOWN_CHARS_MAX: usize = 500;

/// The error of a text that is not JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonError {
    /// The Java class of the exception.
    pub class: &'static str,
    /// The text of `getMessage`, including the position.
    pub message: String,
}

impl fmt::Display for JsonError {
    /// Writes the exception as Java's `toString`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.class, self.message)
    }
}

const PARSE: &str = "com.fasterxml.jackson.core.JsonParseException";
const END: &str = "com.fasterxml.jackson.core.io.JsonEOFException";
const EMPTY: &str = "com.fasterxml.jackson.databind.exc.MismatchedInputException";
const VALUES: &str = "(JSON String, Number, Array, Object or token 'null', 'true' or 'false')";

/// Characters that may separate tokens.
pub const BLANKS: [char; 4] = [' ', '\t', '\n', '\r'];

/// Reads the first value of the text. Text behind it is ignored.
///
/// # Errors
/// [`JsonError`] if the text does not start with JSON.
pub fn read(text: &str) -> Result<Value, JsonError> {
    let mut reader = Reader {
        text,
        at: 0,
        depth: 0,
    };
    reader.skip_blanks();
    if reader.peek().is_none() {
        // The end of an empty text has the column 0.
        let column = if text.is_empty() { 0 } else { reader.column() };
        let place = reader.place(column);
        return Err(JsonError {
            class: EMPTY,
            message: format!("No content to map due to end-of-input\n {place}"),
        });
    }
    reader.value()
}

/// Returns the position of the text's first value, as messages show it.
pub fn beginning(text: &str) -> String {
    let mut reader = Reader {
        text,
        at: 0,
        depth: 0,
    };
    reader.skip_blanks();
    reader.place(reader.column())
}

struct Reader<'a> {
    text: &'a str,
    /// Offset in bytes, always on a character boundary.
    at: usize,
    depth: usize,
}

type Read<T> = Result<T, JsonError>;

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn advance(&mut self, c: char) {
        self.at += c.len_utf8();
    }

    fn skip_blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches(BLANKS).len();
    }

    /// Returns the column of the next character, counted from 1.
    fn column(&self) -> usize {
        let before = self.text.get(..self.at).unwrap_or_default();
        before.rsplit('\n').next().unwrap_or_default().chars().count() + 1
    }

    fn source(&self) -> String {
        let count = self.text.chars().count();
        let shown: String = self.text.chars().take(SHOWN_CHARS_MAX).map(shown).collect();
        if count <= SHOWN_CHARS_MAX {
            return format!("(String)\"{shown}\"");
        }
        format!("(String)\"{shown}\"[truncated {} chars]", count - SHOWN_CHARS_MAX)
    }

    fn place(&self, column: usize) -> String {
        let line = self.text.get(..self.at).unwrap_or_default().matches('\n').count() + 1;
        format!("at [Source: {}; line: {line}, column: {column}]", self.source())
    }

    fn error<T>(&self, class: &'static str, message: String) -> Read<T> {
        self.error_at(class, message, self.column())
    }

    fn error_at<T>(&self, class: &'static str, message: String, column: usize) -> Read<T> {
        let place = self.place(column);
        Err(JsonError {
            class,
            message: format!("{message}\n {place}"),
        })
    }

    fn unexpected<T>(&mut self, c: char, wanted: &str) -> Read<T> {
        self.advance(c);
        let shown = described(c);
        self.error(
            PARSE,
            match c {
                '\0'..' ' => format!(
                    "Illegal character ({shown}): only regular white space (\\r, \\n, \\t) is allowed between tokens"
                ),
                _ => format!("Unexpected character ({shown}): {wanted}"),
            },
        )
    }

    /// Reads the opening bracket of an object or an array. Returns its position, as messages show it.
    fn open(&mut self) -> Read<String> {
        let start = self.place(self.column());
        self.at += 1;
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return self.error(
                PARSE,
                format!("Document nesting depth exceeds the maximum allowed ({DEPTH_MAX})"),
            );
        }
        Ok(start)
    }

    fn unclosed<T>(&self, what: &str, start: &str) -> Read<T> {
        self.error(
            END,
            format!("Unexpected end-of-input: expected close marker for {what} (start marker {start})"),
        )
    }

    fn between<T>(&self, class: &'static str, what: &str) -> Read<T> {
        self.error(
            class,
            format!("Unexpected end-of-input within/between {what} entries"),
        )
    }

    /// Returns the error for a closing bracket that does not match the open one.
    fn mismatched<T>(&mut self, c: char, end: char, what: &str, start: &str) -> Read<T> {
        self.advance(c);
        self.error(
            PARSE,
            format!("Unexpected close marker '{c}': expected '{end}' (for {what} starting {start})"),
        )
    }

    fn value(&mut self) -> Read<Value> {
        self.skip_blanks();
        match self.peek() {
            Some('{') => self.object(),
            Some('[') => self.array(),
            Some('"') => self.string(string::VALUE).map(Value::String),
            Some('-') if self.rest().starts_with("-Infinity") => self.not_a_number("-Infinity"),
            Some(c) if c == '-' || c.is_ascii_digit() => self.number(),
            Some('+') if self.rest().chars().nth(1).is_some() => {
                self.at += 1;
                let c = self.peek().unwrap_or_default();
                self.unexpected_in_number(c)
            }
            Some(c) if begins_word(c) => self.word(),
            Some('/') => self.unexpected(
                '/',
                "maybe a (non-standard) comment? (not recognized as one since Feature 'ALLOW_COMMENTS' not enabled for parser)",
            ),
            Some(c) => self.unexpected(c, &format!("expected a valid value {VALUES}")),
            None => self.error(END, "Unexpected end-of-input".to_owned()),
        }
    }

    fn object(&mut self) -> Read<Value> {
        let start = self.open()?;
        let mut map = Map::new();
        if self.is_empty('}', "Object", &start)? {
            return Ok(Value::Object(map));
        }
        loop {
            self.skip_blanks();
            let name = match self.peek() {
                Some('"') => self.string(string::NAME)?,
                Some(c) => return self.unexpected(c, "was expecting double-quote to start field name"),
                None => return self.between(PARSE, "Object"),
            };
            self.skip_blanks();
            match self.peek() {
                Some(':') => self.at += 1,
                Some(c) => {
                    return self.unexpected(c, "was expecting a colon to separate field name and value");
                }
                None => return self.between(END, "Object"),
            }
            self.skip_blanks();
            if self.peek().is_none() {
                return self.between(END, "Object");
            }
            let value = self.value()?;
            map.insert(name, value);
            if self.is_closed('}', "Object", &start)? {
                return Ok(Value::Object(map));
            }
        }
    }

    fn array(&mut self) -> Read<Value> {
        let start = self.open()?;
        let mut values = Vec::new();
        if self.is_empty(']', "Array", &start)? {
            return Ok(Value::Array(values));
        }
        loop {
            self.skip_blanks();
            if self.peek().is_none() {
                return self.between(PARSE, "Array");
            }
            values.push(self.value()?);
            if self.is_closed(']', "Array", &start)? {
                return Ok(Value::Array(values));
            }
        }
    }

    /// Reads the closing bracket if it comes next. Returns true if it does.
    fn is_empty(&mut self, end: char, what: &str, start: &str) -> Read<bool> {
        self.skip_blanks();
        match self.peek() {
            Some(']' | '}') | None => self.is_closed(end, what, start),
            Some(_) => Ok(false),
        }
    }

    /// Reads a comma or the closing bracket. Returns true for the bracket.
    fn is_closed(&mut self, end: char, what: &str, start: &str) -> Read<bool> {
        self.skip_blanks();
        match self.peek() {
            Some(',') => {
                self.at += 1;
                Ok(false)
            }
            Some(c) if c == end => {
                self.at += 1;
                self.depth -= 1;
                Ok(true)
            }
            Some(c @ (']' | '}')) => self.mismatched(c, end, what, start),
            Some(c) => self.unexpected(c, &format!("was expecting comma to separate {what} entries")),
            None => self.unclosed(what, start),
        }
    }

    fn not_a_number(&mut self, word: &str) -> Read<Value> {
        self.at += word.len();
        self.error(
            PARSE,
            format!(
                "Non-standard token '{word}': enable JsonParser.Feature.ALLOW_NON_NUMERIC_NUMBERS to allow"
            ),
        )
    }

    fn word(&mut self) -> Read<Value> {
        let rest = self.rest();
        let is_part = |c: char| begins_word(c) || c.is_numeric();
        let word = rest
            .get(..rest.find(|c: char| !is_part(c)).unwrap_or(rest.len()))
            .unwrap_or_default();
        self.at += word.len();
        match word {
            "null" => Ok(Value::Null),
            "true" => Ok(Value::Bool(true)),
            "false" => Ok(Value::Bool(false)),
            "NaN" | "Infinity" => {
                self.at -= word.len();
                self.not_a_number(word)
            }
            _ => self.error(
                PARSE,
                format!("Unrecognized token '{word}': was expecting {VALUES}"),
            ),
        }
    }
}

/// Returns true as Java's `isJavaIdentifierStart`, except for some unusual characters.
fn begins_word(c: char) -> bool {
    c.is_alphabetic() || matches!(c, '_' | '$' | '\u{a2}'..='\u{a5}' | '\u{20a0}'..='\u{20c0}')
}

/// Returns a character as messages name it. If Java needs two units for the character, only the first is named.
fn described(c: char) -> String {
    let unit = c.encode_utf16(&mut [0; 2]).first().copied().unwrap_or_default();
    let shown = char::from_u32(u32::from(unit)).unwrap_or('?');
    match unit {
        _ if shown.is_control() => format!("(CTRL-CHAR, code {unit})"),
        0..=255 => format!("'{shown}' (code {unit})"),
        _ => format!("'{shown}' (code {unit} / 0x{unit:x})"),
    }
}

/// Returns a character of the text as messages show it. Control characters other than line ends are escaped.
fn shown(c: char) -> String {
    match c {
        '\n' | '\r' => c.to_string(),
        c if c.is_control() => format!("\\u{:04X}", u32::from(c)),
        c => c.to_string(),
    }
}
