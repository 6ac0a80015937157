//! Splits a statement into tokens, as Cassandra's `Lexer.g` does.
//!
//! Several rules may match the same text. The grammar's lookahead then commits to one rule before it is sure that the rule matches to the
//! end. For example, it takes `-n` for the beginning of `-NaN`, and eight hexadecimal digits and a `-` for that of a UUID. The lexer makes
//! the same commitments, so that it refuses the same statements.

mod cursor;
mod numbers;
mod token;

pub use token::Kind;

use cursor::Cursor;

/// A token: a piece of the statement's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    pub kind: Kind,
    /// Byte offset of the token's first byte.
    pub start: u32,
    /// Byte offset after the token's last byte.
    pub end: u32,
    /// The token's index among all tokens, including white space and comments. Messages use it to choose the tokens that they quote.
    pub raw_index: u32,
}

/// Text that is not a token. The lexer continues after it, and the parser decides which error came first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LexError {
    /// Byte offset of the character that did not fit. At the end of the text, the text's length.
    pub offset: usize,
    pub problem: LexProblem,
    /// Number of tokens before the error, including white space and comments.
    pub raw_index: u32,
}

/// The error at a character.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LexProblem {
    NoViableAlternative,
    /// The expected text, as Cassandra shows it.
    Mismatched(&'static str),
}

/// Maximum tokens of a statement. The parser needs some hundred bytes for each token.
pub const TOKENS_MAX: usize = 2_000_000;

/// Maximum open brackets. The parser allows fewer levels of nesting.
const OPEN_MAX: usize = 1024;

/// The limit that ended the lexing of a text early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excess {
    /// The text has more than [`TOKENS_MAX`] tokens.
    Tokens,
    /// The brackets are nested deeper than any valid statement's.
    Brackets,
}

/// The tokens of a statement without white space and comments. The last is always [`Kind::Eof`].
#[derive(Clone, Debug)]
pub struct Tokens {
    pub tokens: Vec<Token>,
    /// The first text that is not a token. `None` if all of the text consists of tokens.
    pub error: Option<LexError>,
    /// The limit because of which the text behind the last token was not read. `None` if all of it was read.
    pub excess: Option<Excess>,
}

/// Splits a text of less than 4 GB into tokens.
pub fn tokenize(text: &str) -> Tokens {
    let mut cursor = Cursor::new(text);
    let mut tokens = Vec::with_capacity((text.len() / 5 + 8).min(TOKENS_MAX));
    let mut error = None;
    let mut raw_index = 0;
    let mut open = 0usize;
    loop {
        let start = cursor.position();
        let excess = match (tokens.len() > TOKENS_MAX, open > OPEN_MAX) {
            (true, _) => Some(Excess::Tokens),
            (false, true) => Some(Excess::Brackets),
            (false, false) => None,
        };
        let next = match excess {
            None => next_token(&mut cursor),
            Some(_) => Ok(Lexeme::End),
        };
        match next {
            Ok(Lexeme::End) => {
                tokens.push(token(Kind::Eof, start, start, raw_index));
                return Tokens {
                    tokens,
                    error,
                    excess,
                };
            }
            Ok(Lexeme::Hidden) => raw_index += 1,
            Ok(Lexeme::Token(kind)) => {
                match kind {
                    Kind::LeftParen | Kind::LeftBracket | Kind::LeftBrace => open += 1,
                    Kind::RightParen | Kind::RightBracket | Kind::RightBrace => open = open.saturating_sub(1),
                    _ => {}
                }
                tokens.push(token(kind, start, cursor.position(), raw_index));
                raw_index += 1;
            }
            Err((offset, problem)) => {
                if error.is_none() {
                    error = Some(LexError {
                        offset,
                        problem,
                        raw_index,
                    });
                }
                cursor.skip_past(start, offset);
            }
        }
    }
}

/// Returns the spans of a statement's tokens, including white space and comments, up to the first error. Only messages need them.
pub(crate) fn raw_tokens(text: &str) -> Vec<(usize, usize)> {
    let mut cursor = Cursor::new(text);
    let mut spans = Vec::new();
    loop {
        let start = cursor.position();
        match next_token(&mut cursor) {
            Ok(Lexeme::End) => return spans,
            Ok(Lexeme::Hidden | Lexeme::Token(_)) => spans.push((start, cursor.position())),
            Err((offset, _)) => cursor.skip_past(start, offset),
        }
    }
}

fn token(kind: Kind, start: usize, end: usize, raw_index: u32) -> Token {
    Token {
        kind,
        start: start as u32,
        end: end as u32,
        raw_index,
    }
}

enum Lexeme {
    Token(Kind),
    /// White space or a comment.
    Hidden,
    End,
}

/// The offset of the offending character, and the error.
type Failure = (usize, LexProblem);

fn next_token(cursor: &mut Cursor<'_>) -> Result<Lexeme, Failure> {
    let Some(first) = cursor.peek() else {
        return Ok(Lexeme::End);
    };
    let kind = match first {
        b' ' | b'\t' | b'\n' | b'\r' => {
            cursor.skip_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'));
            return Ok(Lexeme::Hidden);
        }
        b'A'..=b'Z' | b'a'..=b'z' => word(cursor)?,
        b'0'..=b'9' => numbers::number(cursor)?,
        b'\'' => quoted(cursor, b'\'', Kind::StringLiteral, "'''")?,
        b'"' => quoted_name(cursor)?,
        b'$' => dollar_string(cursor)?,
        b'-' => return minus(cursor),
        b'/' => return slash(cursor),
        b'!' => {
            cursor.advance(1);
            cursor.expect(b'=', "'='")?;
            Kind::NeqSign
        }
        b'.' if cursor.peek_at(1) == Some(b'.') => operator(cursor, 2, Kind::Range),
        b'<' if cursor.peek_at(1) == Some(b'=') => operator(cursor, 2, Kind::LessEq),
        b'>' if cursor.peek_at(1) == Some(b'=') => operator(cursor, 2, Kind::GreaterEq),
        b'+' if cursor.peek_at(1) == Some(b'=') => operator(cursor, 2, Kind::PlusEq),
        other => match single(other) {
            Some(kind) => operator(cursor, 1, kind),
            None => return Err((cursor.position(), LexProblem::NoViableAlternative)),
        },
    };
    Ok(Lexeme::Token(kind))
}

fn operator(cursor: &mut Cursor<'_>, length: usize, kind: Kind) -> Kind {
    cursor.advance(length);
    kind
}

fn single(byte: u8) -> Option<Kind> {
    Some(match byte {
        b'(' => Kind::LeftParen,
        b')' => Kind::RightParen,
        b'[' => Kind::LeftBracket,
        b']' => Kind::RightBracket,
        b'{' => Kind::LeftBrace,
        b'}' => Kind::RightBrace,
        b',' => Kind::Comma,
        b';' => Kind::Semicolon,
        b':' => Kind::Colon,
        b'.' => Kind::Dot,
        b'+' => Kind::Plus,
        b'*' => Kind::Star,
        b'%' => Kind::Percent,
        b'=' => Kind::EqSign,
        b'<' => Kind::Less,
        b'>' => Kind::Greater,
        b'?' => Kind::QuestionMark,
        _ => return None,
    })
}

/// Reads an identifier, a keyword, a UUID that begins with a letter, an ISO duration, or `expr(`.
fn word(cursor: &mut Cursor<'_>) -> Result<Kind, Failure> {
    let start = cursor.position();
    if numbers::begins_uuid(cursor) {
        return numbers::uuid(cursor);
    }
    let duration_end = numbers::iso_duration_end(cursor);
    cursor.skip_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if let Some(end) = duration_end.filter(|end| *end >= cursor.position()) {
        cursor.seek(end);
        return Ok(Kind::DurationLiteral);
    }
    let text = cursor.text_from(start);
    if text == b"expr" && cursor.peek() == Some(b'(') {
        cursor.advance(1);
        return Ok(Kind::ExprOpen);
    }
    Ok(Kind::keyword(text).unwrap_or(Kind::Identifier))
}

/// Reads a string between two quotes. A doubled quote inside the string is one quote.
fn quoted(cursor: &mut Cursor<'_>, quote: u8, kind: Kind, expected: &'static str) -> Result<Kind, Failure> {
    cursor.advance(1);
    loop {
        cursor.skip_while(|byte| byte != quote);
        if cursor.peek().is_none() {
            return Err((cursor.position(), LexProblem::Mismatched(expected)));
        }
        cursor.advance(1);
        if cursor.peek() != Some(quote) {
            return Ok(kind);
        }
        cursor.advance(1);
    }
}

fn quoted_name(cursor: &mut Cursor<'_>) -> Result<Kind, Failure> {
    if cursor.peek_at(1) == Some(b'"') && cursor.peek_at(2) != Some(b'"') {
        cursor.advance(2);
        return Ok(Kind::EmptyQuotedName);
    }
    quoted(cursor, b'"', Kind::QuotedName, "'\"'")
}

/// Reads `$$...$$`, which has no escapes.
fn dollar_string(cursor: &mut Cursor<'_>) -> Result<Kind, Failure> {
    cursor.advance(1);
    cursor.expect(b'$', "'$'")?;
    loop {
        let start = cursor.position();
        cursor.skip_while(|byte| byte != b'$');
        if cursor.peek().is_none() {
            let last = cursor.last_character_since(start);
            return Err((last, LexProblem::Mismatched("'$'")));
        }
        cursor.advance(1);
        if cursor.peek() == Some(b'$') {
            cursor.advance(1);
            return Ok(Kind::DollarString);
        }
    }
}

/// Reads a negative number, a comment, `-=` or `-`.
fn minus(cursor: &mut Cursor<'_>) -> Result<Lexeme, Failure> {
    let kind = match cursor.peek_at(1) {
        Some(b'-') => return line_comment(cursor),
        Some(b'0'..=b'9') => numbers::number(cursor)?,
        Some(b'=') => operator(cursor, 2, Kind::MinusEq),
        Some(b'n' | b'N') => cursor.expect_word(b"-nan", Kind::NegativeNan)?,
        Some(b'i' | b'I') => cursor.expect_word(b"-infinity", Kind::NegativeInfinity)?,
        Some(b'P') => match numbers::iso_duration_end(cursor) {
            Some(end) => {
                cursor.seek(end);
                Kind::DurationLiteral
            }
            None => {
                cursor.advance(2);
                cursor.skip_while(|byte| byte.is_ascii_digit());
                return Err((cursor.position(), LexProblem::NoViableAlternative));
            }
        },
        _ => operator(cursor, 1, Kind::Minus),
    };
    Ok(Lexeme::Token(kind))
}

/// Reads a comment or `/`.
fn slash(cursor: &mut Cursor<'_>) -> Result<Lexeme, Failure> {
    match cursor.peek_at(1) {
        Some(b'/') => line_comment(cursor),
        Some(b'*') => {
            cursor.advance(2);
            loop {
                cursor.skip_while(|byte| byte != b'*');
                if cursor.peek().is_none() {
                    return Err((cursor.position(), LexProblem::Mismatched("'*'")));
                }
                cursor.advance(1);
                if cursor.peek() == Some(b'/') {
                    cursor.advance(1);
                    return Ok(Lexeme::Hidden);
                }
            }
        }
        _ => Ok(Lexeme::Token(operator(cursor, 1, Kind::Slash))),
    }
}

/// Reads a comment to the end of the line. As in Cassandra, it is an error if the text ends without a line end.
fn line_comment(cursor: &mut Cursor<'_>) -> Result<Lexeme, Failure> {
    cursor.skip_while(|byte| byte != b'\n' && byte != b'\r');
    if cursor.peek().is_none() {
        return Err((cursor.position(), LexProblem::Mismatched("set null")));
    }
    cursor.advance(1);
    Ok(Lexeme::Hidden)
}

#[cfg(test)]
#[path = "lexer_tests.rs"]
mod tests;
