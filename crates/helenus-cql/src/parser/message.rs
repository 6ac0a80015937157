//! Syntax errors with the words and positions of Cassandra's (`org.apache.cassandra.cql3.ErrorCollector`).

use super::Parser;
use crate::error::CqlError;
use crate::lexer::{self, Kind, LexError, LexProblem, Token};

/// Number of tokens, including white space, that a message quotes before the offending one, and after it.
const QUOTED_BEFORE: usize = 10;
const QUOTED_AFTER: usize = 2;

impl Parser<'_> {
    /// Returns the error for a next token that is not the required one.
    pub(super) fn mismatched(&self, expected: Kind) -> CqlError {
        self.syntax_error(0, &|found| {
            format!("mismatched input {found} expecting {}", expected.name())
        })
    }

    /// Returns the error for a next token that is none of several allowed ones.
    pub(super) fn mismatched_set(&self) -> CqlError {
        self.syntax_error(0, &|found| format!("mismatched input {found} expecting set null"))
    }

    /// Returns the error for a next token with which no alternative begins.
    pub(super) fn no_viable(&self) -> CqlError {
        self.no_viable_at(0)
    }

    /// Returns the error for a next token that the grammar's rule allows only under a condition.
    pub(super) fn failed_predicate(&self, rule: &str, predicate: &str) -> CqlError {
        self.syntax_error(0, &|_| format!("rule {rule} failed predicate: {{{predicate}}}?"))
    }

    /// Returns the error for a token that fits no alternative. `distance` is the number of tokens ahead.
    pub(super) fn no_viable_at(&self, distance: usize) -> CqlError {
        self.syntax_error(distance, &|found| {
            format!("no viable alternative at input {found}")
        })
    }

    /// Returns an error of the grammar's actions, which has no position.
    pub(super) fn recognition_error(&self, message: impl Into<String>) -> CqlError {
        self.earlier_lex_error(0)
            .unwrap_or_else(|| CqlError::Syntax(message.into()))
    }

    fn syntax_error(&self, distance: usize, message: &dyn Fn(&str) -> String) -> CqlError {
        if let Some(error) = self.earlier_lex_error(distance) {
            return error;
        }
        let offending = self.token_at(self.position + distance);
        let text = if offending.kind == Kind::Eof {
            message("'<EOF>'")
        } else {
            message(&format!("'{}'", escape(&self.token_text(offending))))
        };
        let (line, column) = match offending.kind {
            Kind::Eof => (0, -1),
            _ => {
                let (line, column) = line_and_column(self.text, offending.start as usize);
                (line, column as i64)
            }
        };
        let snippet = self.snippet(distance).unwrap_or_default();
        CqlError::Syntax(format!("line {line}:{column} {text}{snippet}"))
    }

    /// Returns the lexer's error, if it lies before the token that is `distance` places ahead.
    fn earlier_lex_error(&self, distance: usize) -> Option<CqlError> {
        let error = self.tokens.error.as_ref()?;
        let read = self.furthest.max(self.position + distance);
        (error.raw_index <= self.token_at(read).raw_index).then(|| lex_error(self.text, error))
    }

    /// Returns the lexer's error. `None` if there is none.
    pub(super) fn any_lex_error(&self) -> Option<CqlError> {
        self.tokens
            .error
            .as_ref()
            .map(|error| lex_error(self.text, error))
    }

    /// Returns the tokens around the offending one, which is in brackets.
    fn snippet(&self, distance: usize) -> Option<String> {
        let read = self.furthest.max(self.position + distance);
        let size = self.token_at(read).raw_index as usize + 1;
        let index = self.token_at(self.position).raw_index as usize;
        let raw = lexer::raw_tokens(self.text);
        let from = Span::of(self, *raw.get(index.saturating_sub(QUOTED_BEFORE))?);
        let to = Span::of(self, *raw.get((index + QUOTED_AFTER).min(size - 1))?);
        let offending = Span::of(self, *raw.get(index.min(size - 1))?);
        let mut lines: Vec<Vec<u16>> = self
            .text
            .split('\n')
            .map(|line| line.encode_utf16().collect())
            .collect();
        while lines.len() > 1 && lines.last().is_some_and(Vec::is_empty) {
            lines.pop();
        }
        let from_start = from.line == 1 && from.column == 0;
        let last_line_length = lines.last().map_or(0, Vec::len);
        let to_end = to.line == lines.len() && to.column + to.length == last_line_length;

        lines.get_mut(to.line - 1)?.truncate(to.column + to.length);
        highlight(lines.get_mut(offending.line - 1)?, &offending);
        let from_line = lines.get_mut(from.line - 1)?;
        from_line.drain(..from.column.min(from_line.len()));

        let quoted: Vec<u16> = lines.get(from.line - 1..to.line)?.concat();
        Some(format!(
            " ({}{}{})",
            if from_start { "" } else { "..." },
            String::from_utf16_lossy(&quoted),
            if to_end { "" } else { "..." },
        ))
    }

    /// Returns the token's text as messages show it, and as strings and names are stored: without quotes and escapes.
    pub(super) fn token_text(&self, token: Token) -> String {
        unquoted(self.slice(token), token.kind)
    }
}

fn unquoted(text: &str, kind: Kind) -> String {
    let inner = |quote: usize| {
        text.get(quote..text.len().saturating_sub(quote))
            .unwrap_or_default()
    };
    match kind {
        Kind::StringLiteral => inner(1).replace("''", "'"),
        Kind::QuotedName => inner(1).replace("\"\"", "\""),
        Kind::DollarString => inner(2).to_owned(),
        _ => text.to_owned(),
    }
}

/// The position of a token, measured as Java does: columns and lengths in UTF-16 units.
struct Span {
    line: usize,
    column: usize,
    /// Length of the token's text without quotes.
    length: usize,
}

impl Span {
    fn of(parser: &Parser<'_>, (start, end): (usize, usize)) -> Span {
        let (line, column) = line_and_column(parser.text, start);
        let text = parser.text.get(start..end).unwrap_or_default();
        let kind = match text.as_bytes() {
            [b'\'', ..] => Kind::StringLiteral,
            [b'"', _, _, ..] => Kind::QuotedName,
            [b'$', ..] => Kind::DollarString,
            _ => Kind::Identifier,
        };
        Span {
            line,
            column,
            length: unquoted(text, kind).encode_utf16().count(),
        }
    }
}

fn highlight(line: &mut Vec<u16>, offending: &Span) {
    let end = (offending.column + offending.length).min(line.len());
    line.insert(end, u16::from(b']'));
    line.insert(offending.column.min(line.len()), u16::from(b'['));
}

/// Returns the line, from 1, and the column, from 0 and in UTF-16 units.
pub(super) fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let column = before
        .get(line_start..)
        .unwrap_or_default()
        .encode_utf16()
        .count();
    (line, column)
}

fn lex_error(text: &str, error: &LexError) -> CqlError {
    let (line, column) = line_and_column(text, error.offset);
    let character = match text.get(error.offset..).and_then(|rest| rest.chars().next()) {
        Some(character) => {
            let mut units = [0; 2];
            let first = character.encode_utf16(&mut units).first().copied();
            // A lone half of a surrogate pair is shown as a question mark.
            let shown = String::from_utf16(&[first.unwrap_or_default()]).unwrap_or("?".to_owned());
            format!("'{}'", escape(&shown))
        }
        None => "'<EOF>'".to_owned(),
    };
    CqlError::Syntax(match error.problem {
        LexProblem::NoViableAlternative => {
            format!("line {line}:{column} no viable alternative at character {character}")
        }
        LexProblem::Mismatched(expected) => {
            format!("line {line}:{column} mismatched character {character} expecting {expected}")
        }
    })
}

/// Returns the text with line ends and tabs as escapes, as ANTLR shows tokens.
fn escape(text: &str) -> String {
    text.replace('\n', "\\n")
        .replace('\r', "\\r")
        .replace('\t', "\\t")
}
