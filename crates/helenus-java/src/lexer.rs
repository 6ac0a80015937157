//! Splits source text into tokens.

use crate::error::Diagnostic;

/// A token and its line, counted from 1.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Token {
    pub kind: Kind,
    pub line: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    /// A name or a keyword.
    Word(String),
    Int(i32),
    Long(i64),
    Float(f32),
    Double(f64),
    Char(u16),
    String(String),
    /// An operator or a separator.
    Symbol(&'static str),
    End,
}

/// Symbols, longest first, so that `>>>=` is not read as `>`. The parser joins `>>` and `>>>`, since they may also close two type
/// arguments.
const SYMBOLS: &[&str] = &[
    "...", "<<=", "->", "::", "++", "--", "&&", "||", "==", "!=", "<=", ">=", "+=", "-=", "*=", "/=", "%=",
    "&=", "|=", "^=", "<<", "(", ")", "{", "}", "[", "]", ";", ",", ".", "@", "=", "<", ">", "!", "~", "?",
    ":", "+", "-", "*", "/", "&", "|", "^", "%",
];

/// Splits `source` into tokens, of which the last is [`Kind::End`].
///
/// # Errors
/// If some text is not a token of Java.
pub(crate) fn tokens(source: &str) -> Result<Vec<Token>, Diagnostic> {
    let mut lexer = Lexer {
        rest: source,
        line: 1,
    };
    let mut tokens = Vec::new();
    loop {
        lexer.skip_blanks()?;
        let line = lexer.line;
        let kind = lexer.next()?;
        let is_end = kind == Kind::End;
        tokens.push(Token { kind, line });
        if is_end {
            return Ok(tokens);
        }
    }
}

struct Lexer<'a> {
    rest: &'a str,
    line: u32,
}

impl Lexer<'_> {
    fn error(&self, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(self.line, message)
    }

    fn advance(&mut self, len: usize) {
        let (passed, rest) = self.rest.split_at(len);
        self.line += passed.matches('\n').count() as u32;
        self.rest = rest;
    }

    fn skip_blanks(&mut self) -> Result<(), Diagnostic> {
        loop {
            let blank = self.rest.len() - self.rest.trim_start().len();
            self.advance(blank);
            if self.rest.starts_with("//") {
                let end = self.rest.find('\n').unwrap_or(self.rest.len());
                self.advance(end);
            } else if self.rest.starts_with("/*") {
                let end = self
                    .rest
                    .find("*/")
                    .ok_or_else(|| self.error("Unexpected end of comment"))?;
                self.advance(end + 2);
            } else {
                return Ok(());
            }
        }
    }

    fn next(&mut self) -> Result<Kind, Diagnostic> {
        let Some(first) = self.rest.chars().next() else {
            return Ok(Kind::End);
        };
        let second_is_digit = self.rest[first.len_utf8()..].starts_with(|c: char| c.is_ascii_digit());
        match first {
            '0'..='9' => self.number(),
            '.' if second_is_digit => self.number(),
            '"' => self.string(),
            '\'' => self.character(),
            _ if is_word_start(first) => Ok(self.word()),
            _ => {
                let symbol = SYMBOLS.iter().find(|symbol| self.rest.starts_with(**symbol));
                let symbol = symbol.ok_or_else(|| {
                    self.error("Syntax error on token \"Invalid Character\", delete this token")
                })?;
                self.advance(symbol.len());
                Ok(Kind::Symbol(symbol))
            }
        }
    }

    fn word(&mut self) -> Kind {
        let end = self
            .rest
            .find(|c: char| !is_word_part(c))
            .unwrap_or(self.rest.len());
        let word = self.rest[..end].to_owned();
        self.advance(end);
        Kind::Word(word)
    }

    fn number(&mut self) -> Result<Kind, Diagnostic> {
        let bytes = self.rest.as_bytes();
        let at = |index: usize| bytes.get(index).copied().unwrap_or(0);
        let radix = match (at(0), at(1) | 0x20) {
            (b'0', b'x') => 16,
            (b'0', b'b') => 2,
            _ => 10,
        };
        let mut end = if radix == 10 { 0 } else { 2 };
        let mut is_real = false;
        while let byte = at(end)
            && (byte == b'_'
                || (byte as char).is_digit(radix)
                || is_part_of_real(radix, byte, at(end + 1), end.checked_sub(1).map_or(0, at)))
        {
            is_real |= radix == 10 && !(byte == b'_' || byte.is_ascii_digit());
            end += 1;
        }
        let digits = self.rest[..end].replace('_', "");
        let suffix = at(end) | 0x20;
        let line_error = self.error(format!(
            "The literal {} of type int is out of range ",
            &self.rest[..end]
        ));
        let kind = match (radix, suffix) {
            (10, b'f') => digits.parse().map(Kind::Float).map_err(|_| line_error)?,
            (10, b'd') => digits.parse().map(Kind::Double).map_err(|_| line_error)?,
            _ if is_real => {
                let kind = digits.parse().map(Kind::Double).map_err(|_| line_error)?;
                self.advance(end);
                return Ok(kind);
            }
            _ => {
                let is_long = suffix == b'l';
                let kind = integer(&digits, radix, is_long).ok_or(line_error)?;
                self.advance(end + usize::from(is_long));
                return Ok(kind);
            }
        };
        self.advance(end + 1);
        Ok(kind)
    }

    fn string(&mut self) -> Result<Kind, Diagnostic> {
        let mut text: Vec<u16> = Vec::new();
        self.advance(1);
        loop {
            match self.rest.chars().next() {
                None | Some('\n') => {
                    return Err(self.error("String literal is not properly closed by a double-quote"));
                }
                Some('"') => {
                    self.advance(1);
                    return Ok(Kind::String(String::from_utf16_lossy(&text)));
                }
                Some(_) => self.unit(&mut text)?,
            }
        }
    }

    fn character(&mut self) -> Result<Kind, Diagnostic> {
        let mut units: Vec<u16> = Vec::new();
        self.advance(1);
        if !self.rest.starts_with(['\'', '\n']) && !self.rest.is_empty() {
            self.unit(&mut units)?;
        }
        match (units.as_slice(), self.rest.starts_with('\'')) {
            (&[unit], true) => {
                self.advance(1);
                Ok(Kind::Char(unit))
            }
            _ => Err(self.error("Invalid character constant")),
        }
    }

    /// Reads a character of a text, or an escape.
    fn unit(&mut self, into: &mut Vec<u16>) -> Result<(), Diagnostic> {
        let mut chars = self.rest.chars();
        let Some(first) = chars.next() else { return Ok(()) };
        if first != '\\' {
            into.extend_from_slice(first.encode_utf16(&mut [0; 2]));
            self.advance(first.len_utf8());
            return Ok(());
        }
        let invalid = || {
            self.error("Invalid escape sequence (valid ones are  \\b  \\t  \\n  \\f  \\r  \\\"  \\'  \\\\ )")
        };
        let escaped = chars.next().ok_or_else(invalid)?;
        let (unit, len) = match escaped {
            'b' => (8, 2),
            't' => (9, 2),
            'n' => (10, 2),
            'f' => (12, 2),
            'r' => (13, 2),
            's' => (32, 2),
            '"' | '\'' | '\\' => (escaped as u16, 2),
            'u' => {
                let digits = self.rest.get(2..6).ok_or_else(invalid)?;
                (u16::from_str_radix(digits, 16).map_err(|_| invalid())?, 6)
            }
            '0'..='7' => {
                let octal = self.rest[1..]
                    .bytes()
                    .take(3)
                    .take_while(|b| (b'0'..=b'7').contains(b))
                    .count();
                let octal = if octal == 3 && escaped > '3' { 2 } else { octal };
                let value = u16::from_str_radix(&self.rest[1..=octal], 8).map_err(|_| invalid())?;
                (value, 1 + octal)
            }
            _ => return Err(invalid()),
        };
        into.push(unit);
        self.advance(len);
        Ok(())
    }
}

/// Returns true if a byte continues a decimal number with a fraction or an exponent.
fn is_part_of_real(radix: u32, byte: u8, next: u8, previous: u8) -> bool {
    if radix != 10 {
        return false;
    }
    match byte {
        b'.' => next.is_ascii_digit() || !is_word_start(next as char) && next != b'.',
        b'e' | b'E' => next.is_ascii_digit() || matches!(next, b'+' | b'-'),
        b'+' | b'-' => matches!(previous, b'e' | b'E'),
        _ => false,
    }
}

/// Returns an integer literal. `None` if it is too large. The magnitude of the smallest number is accepted, although only a minus sign in
/// front makes it valid.
fn integer(digits: &str, radix: u32, is_long: bool) -> Option<Kind> {
    let (digits, radix) = match radix {
        10 if digits.len() > 1 && digits.starts_with('0') => (&digits[1..], 8),
        10 => (digits, 10),
        _ => (&digits[2..], radix),
    };
    let value = u64::from_str_radix(digits, radix).ok()?;
    let max: u64 = match (radix, is_long) {
        (10, true) => 1 << 63,
        (10, false) => 1 << 31,
        (_, true) => u64::MAX,
        (_, false) => u64::from(u32::MAX),
    };
    (value <= max).then_some(match is_long {
        true => Kind::Long(value as i64),
        false => Kind::Int(value as u32 as i32),
    })
}

pub(crate) fn is_word_start(c: char) -> bool {
    c.is_alphabetic() || c == '_' || c == '$'
}

pub(crate) fn is_word_part(c: char) -> bool {
    is_word_start(c) || c.is_numeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(source: &str) -> Vec<Kind> {
        let mut kinds: Vec<Kind> = tokens(source)
            .unwrap()
            .into_iter()
            .map(|token| token.kind)
            .collect();
        assert_eq!(kinds.pop(), Some(Kind::End));
        kinds
    }

    #[test]
    fn numbers_are_of_the_type_that_they_are_written_in() {
        assert_eq!(
            kinds("1 1L 1.5 1.5f 2d 1e3 .5 0x1F 0b101 017 1_000 2147483648 0xFFFFFFFF"),
            [
                Kind::Int(1),
                Kind::Long(1),
                Kind::Double(1.5),
                Kind::Float(1.5),
                Kind::Double(2.0),
                Kind::Double(1000.0),
                Kind::Double(0.5),
                Kind::Int(31),
                Kind::Int(5),
                Kind::Int(15),
                Kind::Int(1000),
                Kind::Int(i32::MIN),
                Kind::Int(-1),
            ]
        );
        assert!(tokens("2147483649").is_err());
    }

    #[test]
    fn texts_have_escapes_and_comments_go() {
        assert_eq!(
            kinds("\"a\\n\\u0041\\101\" /* x\n */ 'c' // end"),
            [Kind::String("a\nAA".into()), Kind::Char(b'c'.into())]
        );
        assert!(tokens("\"open").is_err());
        assert!(tokens("''").is_err());
        assert!(tokens("#").is_err());
    }

    #[test]
    fn lines_are_counted() {
        let tokens = tokens("a\n/*\n*/ b").unwrap();
        assert_eq!(
            tokens.iter().map(|token| token.line).collect::<Vec<_>>(),
            [1, 3, 3]
        );
    }

    #[test]
    fn a_dot_after_a_number_may_be_a_call() {
        assert_eq!(
            kinds("x.y"),
            [Kind::Word("x".into()), Kind::Symbol("."), Kind::Word("y".into())]
        );
        assert_eq!(kinds("1."), [Kind::Double(1.0)]);
    }
}
