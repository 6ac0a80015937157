//! Reads JSON as Jackson does for Cassandra, with its messages: statements show them.

use std::fmt;

use serde_json::{Map, Number, Value};

/// Nesting beyond this is refused (`StreamReadConstraints`).
const DEPTH_MAX: usize = 500;
/// Characters of the text that a message shows.
const SHOWN_CHARS_MAX: usize = 500;

/// Why a text is no JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonError {
    /// The Java class of the exception.
    pub class: &'static str,
    /// What `getMessage` says, place included.
    pub message: String,
}

impl fmt::Display for JsonError {
    /// What Java's `toString` says of the exception.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.class, self.message)
    }
}

const PARSE: &str = "com.fasterxml.jackson.core.JsonParseException";
const END: &str = "com.fasterxml.jackson.core.io.JsonEOFException";
const EMPTY: &str = "com.fasterxml.jackson.databind.exc.MismatchedInputException";
const VALUES: &str = "(JSON String, Number, Array, Object or token 'null', 'true' or 'false')";

const BLANKS: [char; 4] = [' ', '\t', '\n', '\r'];

/// Reads the first value of the text; what follows it does not count.
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
        // An empty text ends before its first column.
        let column = if text.is_empty() { 0 } else { reader.column() };
        let place = reader.place(column);
        return Err(JsonError {
            class: EMPTY,
            message: format!("No content to map due to end-of-input\n {place}"),
        });
    }
    reader.value()
}

struct Reader<'a> {
    text: &'a str,
    /// Offset in bytes, always between characters.
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

    /// Number, from 1, of the character that comes next on its line.
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
        let place = self.place(self.column());
        Err(JsonError {
            class,
            message: format!("{message}\n {place}"),
        })
    }

    fn unexpected<T>(&mut self, c: char, wanted: &str) -> Read<T> {
        self.advance(c);
        self.error(
            PARSE,
            format!("Unexpected character ('{c}' (code {})): {wanted}", u32::from(c)),
        )
    }

    fn open(&mut self) -> Read<String> {
        let start = format!("start marker {}", self.place(self.column()));
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
            format!("Unexpected end-of-input: expected close marker for {what} ({start})"),
        )
    }

    fn value(&mut self) -> Read<Value> {
        self.skip_blanks();
        match self.peek() {
            Some('{') => self.object(),
            Some('[') => self.array(),
            Some('"') => self.string().map(Value::String),
            Some('-') if self.rest().starts_with("-Infinity") => self.not_a_number("-Infinity"),
            Some(c) if c == '-' || c.is_ascii_digit() => self.number(),
            Some('+') if self.rest().chars().nth(1).is_some() => {
                self.at += 1;
                let c = self.peek().unwrap_or_default();
                self.unexpected_in_number(c)
            }
            Some(c) if c.is_alphabetic() || c == '_' || c == '$' => self.word(),
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
        self.skip_blanks();
        if self.peek() == Some('}') {
            self.at += 1;
            self.depth -= 1;
            return Ok(Value::Object(map));
        }
        loop {
            self.skip_blanks();
            let name = match self.peek() {
                Some('"') => self.string()?,
                Some(c) => return self.unexpected(c, "was expecting double-quote to start field name"),
                None => return self.unclosed("Object", &start),
            };
            self.skip_blanks();
            match self.peek() {
                Some(':') => self.at += 1,
                Some(c) => {
                    return self.unexpected(c, "was expecting a colon to separate field name and value");
                }
                None => return self.unclosed("Object", &start),
            }
            self.skip_blanks();
            if self.peek().is_none() {
                return self.unclosed("Object", &start);
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
        self.skip_blanks();
        if self.peek() == Some(']') {
            self.at += 1;
            self.depth -= 1;
            return Ok(Value::Array(values));
        }
        loop {
            self.skip_blanks();
            if self.peek().is_none() {
                return self.unclosed("Array", &start);
            }
            values.push(self.value()?);
            if self.is_closed(']', "Array", &start)? {
                return Ok(Value::Array(values));
            }
        }
    }

    /// Reads a comma, or the end.
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
            Some(c) => self.unexpected(c, &format!("was expecting comma to separate {what} entries")),
            None => self.unclosed(what, start),
        }
    }

    fn string(&mut self) -> Read<String> {
        let rest = self.rest();
        let mut escaped = false;
        let end = rest.char_indices().skip(1).find(|(_, c)| {
            let is_end = *c == '"' && !escaped;
            escaped = *c == '\\' && !escaped;
            is_end
        });
        let closed = rest
            .get(..end.map_or(rest.len(), |(end, _)| end))
            .unwrap_or_default();
        if let Some((at, c)) = closed.char_indices().find(|(_, c)| u32::from(*c) < 0x20) {
            self.at += at + 1;
            return self.error(
                PARSE,
                format!(
                    "Illegal unquoted character ((CTRL-CHAR, code {})): has to be escaped using backslash to be included in \
                     string value",
                    u32::from(c)
                ),
            );
        }
        let Some((end, _)) = end else {
            self.at = self.text.len();
            return self.error(END, "Unexpected end-of-input in VALUE_STRING".to_owned());
        };
        let literal = rest.get(..=end).unwrap_or_default();
        match serde_json::from_str(literal) {
            Ok(text) => {
                self.at += literal.len();
                Ok(text)
            }
            Err(error) => self.error(PARSE, format!("Illegal string: {error}")),
        }
    }

    fn number(&mut self) -> Read<Value> {
        let start = self.at;
        if self.peek() == Some('-') {
            self.at += 1;
            match self.peek() {
                Some(c) if c.is_ascii_digit() => {}
                Some(c) => {
                    return self.unexpected_in_number(c);
                }
                None => {
                    return self.error(
                        END,
                        "Unexpected end-of-inputNo digit following minus sign".to_owned(),
                    );
                }
            }
        }
        if let [b'0', b'0'..=b'9', ..] = self.rest().as_bytes() {
            self.at += 1;
            return self.error(
                PARSE,
                "Invalid numeric value: Leading zeroes not allowed".to_owned(),
            );
        }
        self.skip_digits();
        if self.peek() == Some('.') {
            self.at += 1;
            if self.skip_digits() == 0 {
                // At the end it is the point itself that is shown.
                let c = self.peek().unwrap_or('.');
                return self.not_in_number(c, "Decimal point not followed by a digit");
            }
        }
        if matches!(self.peek(), Some('e' | 'E')) {
            self.at += 1;
            let exponent = self.at;
            self.at += usize::from(matches!(self.peek(), Some('+' | '-')));
            if self.skip_digits() == 0 {
                let Some(c) = self.peek() else {
                    return self.error(
                        END,
                        "Unexpected end-of-inputexpected a digit for number exponent".to_owned(),
                    );
                };
                self.at = exponent;
                return self.not_in_number(c, "Exponent indicator not followed by a digit");
            }
        }
        let literal = self.text.get(start..self.at).unwrap_or_default();
        if self.depth == 0
            && let Some(c) = self.peek().filter(|c| !BLANKS.contains(c))
        {
            return self.unexpected(c, "Expected space separating root-level values");
        }
        match serde_json::from_str::<Number>(literal) {
            Ok(number) => Ok(Value::Number(number)),
            Err(_) => self.error(PARSE, format!("Invalid numeric value: {literal}")),
        }
    }

    /// Returns how many there were.
    fn skip_digits(&mut self) -> usize {
        let rest = self.rest();
        let count = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        self.at += count;
        count
    }

    /// Of the character that comes next.
    fn unexpected_in_number<T>(&mut self, c: char) -> Read<T> {
        self.advance(c);
        self.not_in_number(
            c,
            "expected digit (0-9) to follow minus sign, for valid numeric value",
        )
    }

    fn not_in_number<T>(&self, c: char, wanted: &str) -> Read<T> {
        let code = u32::from(c);
        self.error(
            PARSE,
            format!("Unexpected character ('{c}' (code {code})) in numeric value: {wanted}"),
        )
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
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
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

/// A character of the text in a message: all control characters but those that break lines are escaped.
fn shown(c: char) -> String {
    match c {
        '\n' | '\r' => c.to_string(),
        c if u32::from(c) < 0x20 => format!("\\u{:04X}", u32::from(c)),
        c => c.to_string(),
    }
}
