//! Parses CQL by recursive descent, with the rules of Cassandra 5.0's `Parser.g`.
//!
//! The parser never panics, takes time linear in the statement's length, and refuses nesting deeper than [`MAX_DEPTH`]. Errors read as
//! Cassandra's, which come from ANTLR 3. A rule with several alternatives looks as far ahead as it must to choose. It reports "no viable
//! alternative" for the token at which no alternative remains. A rule reports "mismatched input" if only one token can follow. The doc
//! comments name the rule that a function parses.

mod auth;
mod constraint;
mod describe;
mod message;
mod modification;
mod name;
mod property;
mod relation;
mod role;
mod schema;
mod select;
mod selector;
mod service_level;
mod statement;
mod table;
mod term;
mod transaction;
mod type_name;

use crate::ast::{BindMarker, Ident, ParsedStatement, TypeName};
use crate::error::CqlError;
use crate::lexer::{self, Excess, Kind, TOKENS_MAX, Token, Tokens};

/// Maximum depth of nested terms, selectors, types and relations.
pub const MAX_DEPTH: usize = 64;

/// Maximum operators and modifiers in one outermost term or selector. Each deepens the tree by one.
pub const MAX_LINKS: usize = 512;

/// Maximum statements of a batch, as in a BATCH message of the protocol.
pub const MAX_BATCH_STATEMENTS: usize = u16::MAX as usize;

/// Maximum length of a statement in bytes, which is that of a frame of the native protocol.
pub const MAX_STATEMENT_LENGTH: usize = 256 << 20;

type Parsed<T> = Result<T, CqlError>;

/// Parses one statement, with or without a `;` at its end.
///
/// # Errors
/// [`CqlError::Syntax`], or [`CqlError::Invalid`] for the few errors that Cassandra's parser reports so, such as a column declared twice in
/// a table.
pub fn parse_statement(text: &str) -> Result<ParsedStatement, CqlError> {
    if text.len() > MAX_STATEMENT_LENGTH {
        return Err(CqlError::Syntax(format!(
            "The statement is {} bytes long; the longest allowed is {MAX_STATEMENT_LENGTH}",
            text.len()
        )));
    }
    let tokens = lexer::tokenize(text);
    match tokens.excess {
        Some(Excess::Tokens) => return Err(too_many_tokens()),
        Some(Excess::Brackets) => return Err(too_deep()),
        None => {}
    }
    let mut parser = Parser::new(text, &tokens);
    let statement = parser.query()?;
    Ok(ParsedStatement {
        statement,
        bind_markers: parser.bind_markers,
    })
}

/// Parses the name of a type, which must be the whole text.
///
/// # Errors
/// [`CqlError::Syntax`] and [`CqlError::Invalid`], as [`parse_statement`].
pub fn parse_type(text: &str) -> Result<TypeName, CqlError> {
    let tokens = lexer::tokenize(text);
    let mut parser = Parser::new(text, &tokens);
    let name = parser.type_name()?;
    match parser.at(Kind::Eof) {
        true => Ok(name),
        false => Err(CqlError::Syntax(format!("'{text}' is not the name of a type"))),
    }
}

pub(crate) struct Parser<'a> {
    text: &'a str,
    tokens: &'a Tokens,
    position: usize,
    /// The last token that Cassandra's parser would have read so far. Messages quote no token behind it.
    furthest: usize,
    depth: usize,
    /// Number of operators and modifiers read in the outermost term or selector.
    links: usize,
    bind_markers: Vec<BindMarker>,
    /// True within BEGIN TRANSACTION, where written values may be references.
    in_transaction: bool,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, tokens: &'a Tokens) -> Parser<'a> {
        Parser {
            text,
            tokens,
            position: 0,
            furthest: 0,
            depth: 0,
            links: 0,
            bind_markers: Vec::new(),
            in_transaction: false,
        }
    }

    fn token_at(&self, index: usize) -> Token {
        let last = self.tokens.tokens.last();
        self.tokens.tokens.get(index).or(last).copied().unwrap_or(Token {
            kind: Kind::Eof,
            start: self.text.len() as u32,
            end: self.text.len() as u32,
            raw_index: 0,
        })
    }

    /// Returns the kind of the next token.
    fn kind(&self) -> Kind {
        self.token_at(self.position).kind
    }

    /// Returns the kind of the token that is `distance` places ahead. The next token has distance 0.
    fn kind_at(&self, distance: usize) -> Kind {
        self.token_at(self.position + distance).kind
    }

    /// Notes that Cassandra's parser looks `distance` tokens ahead here.
    fn reads(&mut self, distance: usize) {
        let last = self.tokens.tokens.len().saturating_sub(1);
        self.furthest = self.furthest.max(self.position + distance).min(last);
    }

    fn at(&self, kind: Kind) -> bool {
        self.kind() == kind
    }

    /// Takes the next token and returns it.
    fn advance(&mut self) -> Token {
        let token = self.token_at(self.position);
        if self.position + 1 < self.tokens.tokens.len() {
            self.position += 1;
        }
        token
    }

    /// Takes the next token if it is of that kind. Returns true if it was.
    fn accept(&mut self, kind: Kind) -> bool {
        let found = self.at(kind);
        if found {
            self.advance();
        }
        found
    }

    /// Takes the next token, which must be of that kind.
    fn expect(&mut self, kind: Kind) -> Parsed<Token> {
        if self.at(kind) {
            Ok(self.advance())
        } else {
            Err(self.mismatched(kind))
        }
    }

    /// Takes the next tokens, which must be of these kinds.
    fn expect_all(&mut self, kinds: &[Kind]) -> Parsed<()> {
        for kind in kinds {
            self.expect(*kind)?;
        }
        Ok(())
    }

    /// Returns a token's text as written.
    fn slice(&self, token: Token) -> &'a str {
        self.text
            .get(token.start as usize..token.end as usize)
            .unwrap_or_default()
    }

    /// Parses a string literal, which must come next.
    fn expect_string(&mut self) -> Parsed<String> {
        if !self.kind().is_string() {
            return Err(self.mismatched(Kind::StringLiteral));
        }
        let token = self.advance();
        Ok(self.token_text(token))
    }

    /// Adds a bind marker and returns its index.
    fn new_marker(&mut self, name: Option<Ident>) -> usize {
        self.bind_markers.push(BindMarker { name });
        self.bind_markers.len() - 1
    }

    /// Parses one level deeper.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.deeper()?;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    fn deeper(&mut self) -> Parsed<()> {
        if self.depth >= MAX_DEPTH {
            return Err(too_deep());
        }
        if self.depth == 0 {
            self.links = 0;
        }
        self.depth += 1;
        Ok(())
    }

    /// Counts an operator, or the beginning of a modifier.
    fn link(&mut self) -> Parsed<()> {
        if self.links >= MAX_LINKS {
            return Err(CqlError::Syntax(format!(
                "The statement has an expression that is too long; {MAX_LINKS} operators are allowed"
            )));
        }
        self.links += 1;
        self.advance();
        Ok(())
    }

    /// Parses one or more items separated by commas.
    fn comma_separated<T>(&mut self, mut parse: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut parsed = vec![parse(self)?];
        while self.accept(Kind::Comma) {
            parsed.push(parse(self)?);
        }
        Ok(parsed)
    }

    /// Parses `IF NOT EXISTS`, or nothing.
    fn if_not_exists(&mut self) -> Parsed<bool> {
        if !self.accept(Kind::If) {
            return Ok(false);
        }
        self.expect_all(&[Kind::Not, Kind::Exists])?;
        Ok(true)
    }

    /// Parses `IF EXISTS`, or nothing.
    fn if_exists(&mut self) -> Parsed<bool> {
        if !self.accept(Kind::If) {
            return Ok(false);
        }
        self.expect(Kind::Exists)?;
        Ok(true)
    }
}

fn too_deep() -> CqlError {
    CqlError::Syntax(format!(
        "The statement is nested too deeply; {MAX_DEPTH} levels are allowed"
    ))
}

fn too_many_tokens() -> CqlError {
    CqlError::Syntax(format!(
        "The statement has more than {TOKENS_MAX} words and signs, which is the limit; bind long values to markers"
    ))
}

#[cfg(test)]
#[path = "parser_tests.rs"]
mod tests;
