//! Reads a function's body: statements. Expressions are read in [`crate::expression`].

use crate::ast::{Body, Case, Catch, Expr, ExprKind, Statement, StatementKind, Type};
use crate::classes;
use crate::error::Mistake;
use crate::lexer::{Kind, Token, tokens};

/// How deep statements and expressions may nest.
const DEPTH_MAX: usize = 50;

/// The name of the type of a variable that its value tells.
pub(crate) const VAR: &str = "var";

/// The name of a type that there isn't.
pub(crate) const UNKNOWN: &str = "?";

type Parsed<T> = Result<T, Mistake>;

pub(crate) struct Parser {
    tokens: Vec<Token>,
    at: usize,
    /// The variables that can be seen, innermost last.
    visible: Vec<(String, usize)>,
    slots: Vec<Type>,
    depth: usize,
    /// What is wrong although it could be read.
    mistakes: Vec<Mistake>,
}

/// A place to go back to.
pub(crate) struct Mark {
    at: usize,
    mistakes: usize,
}

/// Reads a body whose parameters have these names and types, and what is wrong with it although it could be read.
///
/// # Errors
/// The first thing that is no Java, or no Java that is understood here.
pub(crate) fn parse(source: &str, parameters: &[(String, Type)]) -> Parsed<(Body, Vec<Mistake>)> {
    let mut parser = Parser {
        tokens: tokens(source)?,
        at: 0,
        visible: Vec::new(),
        slots: Vec::new(),
        depth: 0,
        mistakes: Vec::new(),
    };
    for (name, ty) in parameters {
        parser.declare(name, ty.clone())?;
    }
    let mut statements = Vec::new();
    while parser.peek() != &Kind::End {
        statements.push(parser.statement()?);
    }
    let body = Body {
        statements,
        slots: parser.slots,
    };
    Ok((body, parser.mistakes))
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

    /// Notes a mistake that reading goes on after.
    pub fn note(&mut self, line: u32, message: impl Into<String>) {
        self.mistakes.push(Mistake::new(line, message));
    }

    pub fn error(&self, message: impl Into<String>) -> Mistake {
        Mistake::new(self.line(), message)
    }

    /// The error at a token that can't stand where it stands.
    pub fn unexpected(&self) -> Mistake {
        let shown = match self.peek() {
            Kind::End => return self.open("Syntax error, insert \"}\" to complete ClassBody"),
            Kind::Word(word) => word.clone(),
            // The body's own brace closes what the body stands in.
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

    /// An error that shows after the body only, two lines below its last.
    fn open(&self, message: &str) -> Mistake {
        let last = self.tokens.last().map_or(1, |token| token.line);
        Mistake::new(last + 2, message)
    }

    /// The line of what stands before.
    fn line_before(&self) -> u32 {
        let before = self.at.checked_sub(1).and_then(|at| self.tokens.get(at));
        before.map_or(1, |token| token.line)
    }

    /// The end of a statement, which is part of what the compiler calls `whole`.
    fn end(&mut self, whole: &str) -> Parsed<()> {
        if self.take_symbol(";") {
            return Ok(());
        }
        match self.peek() {
            Kind::End | Kind::Symbol("}") => Err(Mistake::new(
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
            ")" if matches!(self.peek(), Kind::End | Kind::Symbol(";" | "}")) => Err(Mistake::new(
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

    /// Goes one level deeper.
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

    fn declare(&mut self, name: &str, ty: Type) -> Parsed<usize> {
        if self.slot(name).is_some() {
            return Err(self.error(format!("Duplicate local variable {name}")));
        }
        self.slots.push(ty);
        let slot = self.slots.len() - 1;
        self.visible.push((name.to_owned(), slot));
        Ok(slot)
    }

    /// Reads something whose variables are seen in it only.
    fn scope<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        let visible = self.visible.len();
        let result = self.deeper(read);
        self.visible.truncate(visible);
        result
    }

    fn block(&mut self) -> Parsed<Vec<Statement>> {
        self.expect("{")?;
        self.scope(|parser| {
            let mut statements = Vec::new();
            while !parser.take_symbol("}") {
                statements.push(parser.statement()?);
            }
            Ok(statements)
        })
    }

    fn statement(&mut self) -> Parsed<Statement> {
        let line = self.line();
        let kind = self.statement_kind()?;
        Ok(Statement { line, kind })
    }

    fn statement_kind(&mut self) -> Parsed<StatementKind> {
        let Kind::Word(word) = self.peek().clone() else {
            return match self.peek() {
                Kind::Symbol("{") => Ok(StatementKind::Block(self.block()?)),
                Kind::Symbol(";") => {
                    self.at += 1;
                    Ok(StatementKind::Block(Vec::new()))
                }
                _ => self.expression_statement(),
            };
        };
        match word.as_str() {
            "if" => self.if_statement(),
            "while" => {
                self.at += 1;
                let condition = self.in_parentheses()?;
                let body = Box::new(self.scope(Self::statement)?);
                Ok(StatementKind::While { condition, body })
            }
            "do" => {
                self.at += 1;
                let body = Box::new(self.scope(Self::statement)?);
                if !self.take_word("while") {
                    return Err(self.unexpected());
                }
                let condition = self.in_parentheses()?;
                self.end("BlockStatements")?;
                Ok(StatementKind::DoWhile { body, condition })
            }
            "for" => self.scope(Self::for_statement),
            "switch" => self.scope(Self::switch_statement),
            "return" => {
                self.at += 1;
                if self.is_symbol(";") {
                    return Err(self.error("This method must return a result"));
                }
                let value = self.expression()?;
                self.end("BlockStatements")?;
                Ok(StatementKind::Return(value))
            }
            "throw" => {
                self.at += 1;
                let value = self.expression()?;
                self.end("BlockStatements")?;
                Ok(StatementKind::Throw(value))
            }
            "try" => self.try_statement(),
            "break" | "continue" => {
                let is_break = word == "break";
                self.at += 1;
                if let Kind::Word(_) = self.peek() {
                    return Err(self.error("labels are not supported in functions"));
                }
                self.end("BlockStatements")?;
                Ok(if is_break {
                    StatementKind::Break
                } else {
                    StatementKind::Continue
                })
            }
            "final" => {
                self.at += 1;
                self.locals()
            }
            "class" | "interface" | "enum" | "synchronized" | "assert" | "static" | "abstract" => {
                Err(self.error(format!("'{word}' is not supported in functions")))
            }
            _ if self.is_declaration() => self.locals(),
            _ => self.expression_statement(),
        }
    }

    fn expression_statement(&mut self) -> Parsed<StatementKind> {
        let line = self.line();
        if let (Kind::Word(word), Kind::Symbol(";") | Kind::End) = (self.peek().clone(), self.peek_at(1)) {
            self.at += 1;
            return Err(self.alone(line, &word));
        }
        let value = self.expression()?;
        if !matches!(
            value.kind,
            ExprKind::Assign { .. }
                | ExprKind::Increment { .. }
                | ExprKind::Call { .. }
                | ExprKind::StaticCall { .. }
                | ExprKind::New { .. }
                | ExprKind::Meaningless
        ) {
            return Err(Mistake::new(
                line,
                "Syntax error, this expression is not a statement",
            ));
        }
        self.end("Statement")?;
        Ok(StatementKind::Expr(value))
    }

    /// The error of a name that stands alone, which is taken for the type of a variable.
    fn alone(&mut self, line: u32, word: &str) -> Mistake {
        let mut message =
            "Syntax error, insert \"VariableDeclarators\" to complete LocalVariableDeclaration".to_owned();
        if self.peek() == &Kind::End {
            message += &format!("\nLine {line}: Syntax error, insert \";\" to complete BlockStatements");
        }
        if self.slot(word).is_none() {
            message += &format!("\nLine {line}: {word} cannot be resolved");
        }
        Mistake::new(line, message)
    }

    fn in_parentheses(&mut self) -> Parsed<Expr> {
        self.expect("(")?;
        let value = self.expression()?;
        self.expect(")")?;
        Ok(value)
    }

    fn if_statement(&mut self) -> Parsed<StatementKind> {
        self.at += 1;
        let condition = self.in_parentheses()?;
        let then = Box::new(self.scope(Self::statement)?);
        let otherwise = match self.take_word("else") {
            true => Some(Box::new(self.scope(Self::statement)?)),
            false => None,
        };
        Ok(StatementKind::If {
            condition,
            then,
            otherwise,
        })
    }

    /// Whether a type and a name follow.
    fn is_declaration(&mut self) -> bool {
        let mark = self.mark();
        let is_type = self.type_name().is_ok();
        let is_one = is_type && matches!(self.peek(), Kind::Word(word) if !is_keyword(word));
        self.go_back(&mark);
        is_one
    }

    /// `int a = 1, b`, with the semicolon.
    fn locals(&mut self) -> Parsed<StatementKind> {
        let mut locals = self.declarations()?;
        self.end("BlockStatements")?;
        Ok(match locals.len() {
            1 => locals.remove(0).kind,
            // Not a block: the variables are seen by what follows, which was settled when they were read.
            _ => StatementKind::Block(locals),
        })
    }

    fn declarations(&mut self) -> Parsed<Vec<Statement>> {
        let ty = self.type_name()?;
        let mut locals = Vec::new();
        loop {
            let line = self.line();
            let name = self.name()?;
            // A variable is not seen in its own value.
            let value = match self.take_symbol("=") {
                true if self.is_symbol("{") => Some(self.array_of(&ty)?),
                true => Some(self.expression()?),
                false => None,
            };
            let slot = self.declare(&name, ty.clone())?;
            let kind = StatementKind::Local { slot, value };
            locals.push(Statement { line, kind });
            if !self.take_symbol(",") {
                return Ok(locals);
            }
        }
    }

    fn for_statement(&mut self) -> Parsed<StatementKind> {
        self.at += 1;
        self.expect("(")?;
        self.take_word("final");
        let mark = self.mark();
        if self.is_declaration() {
            let ty = self.type_name()?;
            let name = self.name()?;
            if self.take_symbol(":") {
                let of = self.expression()?;
                self.expect(")")?;
                let slot = self.declare(&name, ty)?;
                let body = Box::new(self.statement()?);
                return Ok(StatementKind::ForEach { slot, of, body });
            }
            self.go_back(&mark);
        }
        let init = match () {
            () if self.is_symbol(";") => Vec::new(),
            () if self.is_declaration() => self.declarations()?,
            () => {
                let expressions = self.expressions()?.into_iter();
                let statement = |value: Expr| Statement {
                    line: value.line,
                    kind: StatementKind::Expr(value),
                };
                expressions.map(statement).collect()
            }
        };
        self.expect(";")?;
        let condition = match self.is_symbol(";") {
            true => None,
            false => Some(self.expression()?),
        };
        self.expect(";")?;
        let update = match self.is_symbol(")") {
            true => Vec::new(),
            false => self.expressions()?,
        };
        self.expect(")")?;
        let body = Box::new(self.statement()?);
        Ok(StatementKind::For {
            init,
            condition,
            update,
            body,
        })
    }

    fn expressions(&mut self) -> Parsed<Vec<Expr>> {
        let mut expressions = vec![self.expression()?];
        while self.take_symbol(",") {
            expressions.push(self.expression()?);
        }
        Ok(expressions)
    }

    fn switch_statement(&mut self) -> Parsed<StatementKind> {
        self.at += 1;
        let subject = self.in_parentheses()?;
        self.expect("{")?;
        let mut cases: Vec<Case> = Vec::new();
        while !self.take_symbol("}") {
            let label = match () {
                () if self.take_word("case") => Some(Some(self.conditional()?)),
                () if self.take_word("default") => Some(None),
                () => None,
            };
            match (label, cases.last_mut()) {
                (Some(label), last) => {
                    self.expect(":")?;
                    match last.filter(|case| case.body.is_empty()) {
                        Some(case) => case.labels.push(label),
                        None => cases.push(Case {
                            labels: vec![label],
                            body: Vec::new(),
                        }),
                    }
                }
                (None, None) => return Err(self.unexpected()),
                (None, Some(_)) => {
                    let statement = self.statement()?;
                    if let Some(case) = cases.last_mut() {
                        case.body.push(statement);
                    }
                }
            }
        }
        Ok(StatementKind::Switch { subject, cases })
    }

    fn try_statement(&mut self) -> Parsed<StatementKind> {
        self.at += 1;
        let body = self.block()?;
        let mut catches = Vec::new();
        while self.take_word("catch") {
            let catch = self.scope(|parser| {
                parser.expect("(")?;
                parser.take_word("final");
                let mut classes = vec![parser.type_name()?.name().to_owned()];
                while parser.take_symbol("|") {
                    classes.push(parser.type_name()?.name().to_owned());
                }
                let name = parser.name()?;
                parser.expect(")")?;
                let slot = parser.declare(&name, Type::class("Throwable"))?;
                let body = parser.block()?;
                Ok(Catch { classes, slot, body })
            })?;
            catches.push(catch);
        }
        let finally = match self.take_word("finally") {
            true => Some(self.block()?),
            false => None,
        };
        if catches.is_empty() && finally.is_none() {
            return Err(self.error("Syntax error, insert \"Finally\" to complete BlockStatements"));
        }
        Ok(StatementKind::Try {
            body,
            catches,
            finally,
        })
    }

    /// A type with its type arguments, or of arrays: `java.util.Map<String, Integer>`, `int[]`.
    pub fn type_name(&mut self) -> Parsed<Type> {
        let mut ty = self.element_type()?;
        while self.is_symbol("[") && self.is_symbol_at(1, "]") {
            self.at += 2;
            ty = Type::array(ty);
        }
        Ok(ty)
    }

    /// A type that is no array.
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
                self.note(line, format!("{written} cannot be resolved to a type"));
                UNKNOWN
            }
        };
        Ok(Type::generic(name, arguments))
    }

    /// `<…>`, if it follows; bounds stand for what they bound.
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
