//! Parses a function's body: tokens, names and types. [`crate::statement`] parses statements, [`crate::expression`] expressions.

use std::collections::BTreeSet;

use crate::ast::{AssignTarget, Body, Type};
use crate::classes;
use crate::error::Diagnostic;
use crate::lexer::{Kind, Token, tokens};

/// Maximum depth of nested statements and expressions.
const DEPTH_MAX: usize = 50;

/// The type name of a variable declared with `var`, until the type of its value is known.
pub(crate) const VAR: &str = "var";

/// The name that replaces the name of an unknown type.
pub(crate) const UNKNOWN: &str = "?";

pub(crate) type Parsed<T> = Result<T, Diagnostic>;

pub(crate) struct Parser {
    pub tokens: Vec<Token>,
    pub at: usize,
    /// The visible variables and their slots, innermost last.
    pub visible: Vec<(String, usize)>,
    pub slots: Vec<Type>,
    /// Slots of the final variables that were declared with a value.
    pub finals: Vec<usize>,
    depth: usize,
    /// Errors after which parsing continues.
    mistakes: Vec<Diagnostic>,
    pub forbidden: BTreeSet<String>,
}

/// A source that could be parsed.
pub(crate) struct Source {
    pub body: Body,
    /// Errors that did not stop the parser.
    pub mistakes: Vec<Diagnostic>,
    /// Uses of Java's features that functions may not use.
    pub forbidden: BTreeSet<String>,
}

/// A position that the parser can return to.
pub(crate) struct Mark {
    at: usize,
    mistakes: usize,
}

/// Parses a body whose parameters have these names and types.
///
/// # Errors
/// The first part of the source that is not Java, or not supported here.
pub(crate) fn parse(source: &str, parameters: &[(String, Type)]) -> Parsed<Source> {
    let mut parser = Parser {
        tokens: tokens(source)?,
        at: 0,
        visible: Vec::new(),
        slots: Vec::new(),
        finals: Vec::new(),
        depth: 0,
        mistakes: Vec::new(),
        forbidden: BTreeSet::new(),
    };
    for (name, ty) in parameters {
        parser.declare(name, ty.clone())?;
    }
    let mut statements = Vec::new();
    while parser.peek() != &Kind::End {
        match parser.is_symbol("}") {
            true => parser.members()?,
            false => statements.push(parser.statement()?),
        }
    }
    let body = Body {
        statements,
        slots: parser.slots,
    };
    Ok(Source {
        body,
        mistakes: parser.mistakes,
        forbidden: parser.forbidden,
    })
}

impl Parser {
    pub fn peek(&self) -> &Kind {
        self.peek_at(0)
    }

    pub fn peek_at(&self, ahead: usize) -> &Kind {
        self.tokens
            .get(self.at + ahead)
            .map_or(&Kind::End, |token| &token.kind)
    }

    pub fn line(&self) -> u32 {
        let token = self.tokens.get(self.at).or(self.tokens.last());
        token.map_or(1, |token| token.line)
    }

    pub fn advance(&mut self) -> Kind {
        let kind = self.peek().clone();
        self.at += 1;
        kind
    }

    pub fn mark(&self) -> Mark {
        Mark {
            at: self.at,
            mistakes: self.mistakes.len(),
        }
    }

    pub fn go_back(&mut self, mark: &Mark) {
        self.at = mark.at;
        self.mistakes.truncate(mark.mistakes);
    }

    /// Notes the use of a feature that functions may not use.
    pub fn forbid(&mut self, what: impl Into<String>) {
        self.forbidden.insert(what.into());
    }

    /// Notes an error after which parsing continues.
    pub fn note(&mut self, line: u32, message: impl Into<String>) {
        self.mistakes.push(Diagnostic::new(line, message));
    }

    pub fn error(&self, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(self.line(), message)
    }

    /// Returns the error for a token that is not allowed at its place.
    pub fn unexpected(&self) -> Diagnostic {
        let shown = match self.peek() {
            Kind::End => return self.open("Syntax error, insert \"}\" to complete ClassBody"),
            Kind::Word(word) => word.clone(),
            // The brace closes the method that Cassandra generates around the body.
            Kind::Symbol("}") => return self.open("Syntax error on token \"}\", delete this token"),
            Kind::Symbol(symbol) => (*symbol).to_owned(),
            Kind::Int(value) => value.to_string(),
            Kind::Long(value) => format!("{value}L"),
            Kind::Float(value) => format!("{value}f"),
            Kind::Double(value) => value.to_string(),
            Kind::Char(unit) => format!("'{}'", String::from_utf16_lossy(&[*unit])),
            Kind::String(text) => format!("\"{text}\""),
        };
        self.error(format!("Syntax error on token \"{shown}\", delete this token"))
    }

    /// Returns an error that the compiler reports behind the body, two lines below the last.
    fn open(&self, message: &str) -> Diagnostic {
        let last = self.tokens.last().map_or(1, |token| token.line);
        Diagnostic::new(last + 2, message)
    }

    /// Returns the line of the previous token.
    fn line_before(&self) -> u32 {
        let before = self.at.checked_sub(1).and_then(|at| self.tokens.get(at));
        before.map_or(1, |token| token.line)
    }

    /// Reads the semicolon at the end of a statement. `whole` is the compiler's name for the construct that the semicolon completes.
    pub fn end(&mut self, whole: &str) -> Parsed<()> {
        if self.take_symbol(";") {
            return Ok(());
        }
        match self.peek() {
            Kind::End | Kind::Symbol("}") => Err(Diagnostic::new(
                self.line_before(),
                format!("Syntax error, insert \";\" to complete {whole}"),
            )),
            _ => Err(self.unexpected()),
        }
    }

    pub fn is_symbol(&self, symbol: &str) -> bool {
        self.is_symbol_at(0, symbol)
    }

    pub fn is_symbol_at(&self, ahead: usize, symbol: &str) -> bool {
        matches!(self.peek_at(ahead), Kind::Symbol(found) if *found == symbol)
    }

    pub fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Kind::Word(found) if found == word)
    }

    pub fn take_symbol(&mut self, symbol: &str) -> bool {
        let is_there = self.is_symbol(symbol);
        self.at += usize::from(is_there);
        is_there
    }

    pub fn take_word(&mut self, word: &str) -> bool {
        let is_there = self.is_word(word);
        self.at += usize::from(is_there);
        is_there
    }

    pub fn expect(&mut self, symbol: &str) -> Parsed<()> {
        if self.take_symbol(symbol) {
            return Ok(());
        }
        match symbol {
            ")" if matches!(self.peek(), Kind::End | Kind::Symbol(";" | "}")) => Err(Diagnostic::new(
                self.line_before(),
                "Syntax error, insert \")\" to complete Expression",
            )),
            _ => Err(self.unexpected()),
        }
    }

    pub fn name(&mut self) -> Parsed<String> {
        match self.peek() {
            Kind::Word(word) if !is_keyword(word) => {
                let word = word.clone();
                self.at += 1;
                Ok(word)
            }
            _ => Err(self.unexpected()),
        }
    }

    /// Parses one level deeper.
    pub fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == DEPTH_MAX {
            return Err(self.error("The code is nested too deeply"));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    pub fn slot(&self, name: &str) -> Option<usize> {
        let found = self.visible.iter().rev().find(|(visible, _)| visible == name);
        found.map(|&(_, slot)| slot)
    }

    /// Notes an error if a final variable that has its value is assigned again.
    pub fn check_final(&mut self, line: u32, target: &AssignTarget) {
        let AssignTarget::Local(slot) = target else { return };
        if !self.finals.contains(slot) {
            return;
        }
        let name = self.visible.iter().rev().find(|(_, visible)| visible == slot);
        let name = name.map_or_else(String::new, |(name, _)| name.clone());
        let message = format!(
            "The final local variable {name} cannot be assigned. It must be blank and not using a compound assignment"
        );
        self.note(line, message);
    }

    pub fn declare(&mut self, name: &str, ty: Type) -> Parsed<usize> {
        if self.slot(name).is_some() {
            return Err(self.error(format!("Duplicate local variable {name}")));
        }
        self.slots.push(ty);
        let slot = self.slots.len() - 1;
        self.visible.push((name.to_owned(), slot));
        Ok(slot)
    }

    /// Reads a type with its type arguments and array brackets: `java.util.Map<String, Integer>`, `int[]`.
    pub fn type_name(&mut self) -> Parsed<Type> {
        let ty = self.element_type()?;
        self.dimensions(ty)
    }

    /// Reads pairs of brackets behind a type. Each pair makes the type an array.
    pub fn dimensions(&mut self, mut ty: Type) -> Parsed<Type> {
        while self.is_symbol("[") && self.is_symbol_at(1, "]") {
            self.at += 2;
            ty = Type::array(ty);
        }
        Ok(ty)
    }

    /// Reads a type without array brackets.
    pub fn element_type(&mut self) -> Parsed<Type> {
        let line = self.line();
        let Kind::Word(word) = self.peek() else {
            return Err(self.unexpected());
        };
        if let Some(ty) = Type::primitive(word) {
            self.at += 1;
            return Ok(ty);
        }
        let mut written = self.name()?;
        while self.is_symbol(".") && matches!(self.peek_at(1), Kind::Word(word) if !is_keyword(word)) {
            self.at += 1;
            written = format!("{written}.{}", self.name()?);
        }
        let arguments = self.type_arguments()?;
        let name = match classes::resolve(&written) {
            Some(name) => name,
            None if written == VAR => VAR,
            None => {
                self.note(line, classes::unknown(&written));
                UNKNOWN
            }
        };
        Ok(Type::generic(name, arguments))
    }

    /// Reads the type arguments `<…>`, if they follow. A bounded wildcard is replaced by its bound.
    pub fn type_arguments(&mut self) -> Parsed<Vec<Type>> {
        let mut arguments = Vec::new();
        if !self.take_symbol("<") {
            return Ok(arguments);
        }
        while !self.take_symbol(">") {
            let is_wildcard = self.take_symbol("?");
            if self.take_word("extends") || self.take_word("super") || matches!(self.peek(), Kind::Word(_)) {
                arguments.push(self.deeper(Self::type_name)?);
            } else if is_wildcard {
                arguments.push(Type::class("Object"));
            }
            if !self.is_symbol(">") && !self.take_symbol(",") {
                return Err(self.unexpected());
            }
        }
        Ok(arguments)
    }
}

pub(crate) fn is_keyword(word: &str) -> bool {
    const KEYWORDS: &[&str] = &[
        "abstract",
        "assert",
        "boolean",
        "break",
        "byte",
        "case",
        "catch",
        "char",
        "class",
        "const",
        "continue",
        "default",
        "do",
        "double",
        "else",
        "enum",
        "extends",
        "false",
        "final",
        "finally",
        "float",
        "for",
        "goto",
        "if",
        "implements",
        "import",
        "instanceof",
        "int",
        "interface",
        "long",
        "native",
        "new",
        "null",
        "package",
        "private",
        "protected",
        "public",
        "return",
        "short",
        "static",
        "strictfp",
        "super",
        "switch",
        "synchronized",
        "this",
        "throw",
        "throws",
        "transient",
        "true",
        "try",
        "void",
        "volatile",
        "while",
    ];
    KEYWORDS.contains(&word)
}
