//! Parses statements.

use crate::ast::{Case, CaseLabel, Catch, Expr, ExprKind, Statement, StatementKind, Type};
use crate::error::Diagnostic;
use crate::lexer::Kind;
use crate::parser::{Parsed, Parser, is_keyword};

impl Parser {
    /// Reads a part of the source whose variables are visible only inside it.
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

    pub fn statement(&mut self) -> Parsed<Statement> {
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
                self.locals(true)
            }
            "synchronized" => self.synchronized(),
            "assert" => self.assertion(),
            "class" | "interface" | "enum" | "static" | "abstract" => {
                Err(self.error(format!("'{word}' is not supported in functions")))
            }
            _ if self.is_declaration() => self.locals(false),
            _ => self.expression_statement(),
        }
    }

    fn synchronized(&mut self) -> Parsed<StatementKind> {
        self.at += 1;
        self.expect("(")?;
        if !self.take_word("this") {
            self.expression()?;
        }
        self.expect(")")?;
        self.forbid("use of synchronized");
        Ok(StatementKind::Block(self.block()?))
    }

    fn assertion(&mut self) -> Parsed<StatementKind> {
        self.at += 1;
        self.expression()?;
        if self.take_symbol(":") {
            self.expression()?;
        }
        self.end("BlockStatements")?;
        self.forbid("field declared: $assertionsDisabled");
        self.forbid("static initializer declared");
        Ok(StatementKind::Block(Vec::new()))
    }

    /// Reads the members that follow if the body itself closes its method: fields and initializers. The generated end of the method closes
    /// the last initializer.
    pub fn members(&mut self) -> Parsed<()> {
        let open = self.unexpected();
        self.expect("}")?;
        loop {
            let mut is_static = false;
            while let Kind::Word(word) = self.peek()
                && matches!(
                    word.as_str(),
                    "final" | "private" | "public" | "protected" | "static"
                )
            {
                is_static |= word == "static";
                self.at += 1;
            }
            if self.take_symbol("{") {
                let is_empty = matches!(self.peek(), Kind::End | Kind::Symbol("}"));
                while !matches!(self.peek(), Kind::End | Kind::Symbol("}")) {
                    self.statement()?;
                }
                match is_static {
                    true => self.forbid("static initializer declared"),
                    false if !is_empty => self.forbid("initializer declared"),
                    false => {}
                }
                if !self.take_symbol("}") {
                    return Ok(());
                }
                continue;
            }
            if !self.is_declaration() {
                return Err(open);
            }
            let ty = self.type_name()?;
            let name = self.name()?;
            if self.take_symbol("=") {
                self.expression()?;
                self.forbid("initializer declared");
            }
            self.end("ClassBodyDeclarations")?;
            self.declare(&name, ty)?;
            self.forbid(format!("field declared: {name}"));
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
            return Err(Diagnostic::new(
                line,
                "Syntax error, this expression is not a statement",
            ));
        }
        self.end("Statement")?;
        Ok(StatementKind::Expr(value))
    }

    /// Returns the error for a name that stands alone. The compiler takes the name for the type of a variable.
    fn alone(&mut self, line: u32, word: &str) -> Diagnostic {
        let mut message =
            "Syntax error, insert \"VariableDeclarators\" to complete LocalVariableDeclaration".to_owned();
        if self.peek() == &Kind::End {
            message += &format!("\nLine {line}: Syntax error, insert \";\" to complete BlockStatements");
        }
        if self.slot(word).is_none() {
            message += &format!("\nLine {line}: {word} cannot be resolved");
        }
        Diagnostic::new(line, message)
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

    /// Returns true if a type and a name follow.
    fn is_declaration(&mut self) -> bool {
        let mark = self.mark();
        let is_type = self.type_name().is_ok();
        let is_one = is_type && matches!(self.peek(), Kind::Word(word) if !is_keyword(word));
        self.go_back(&mark);
        is_one
    }

    /// Reads declarations such as `int a = 1, b`, with the semicolon.
    fn locals(&mut self, is_final: bool) -> Parsed<StatementKind> {
        let mut locals = self.declarations()?;
        for local in locals.iter().filter(|_| is_final) {
            if let StatementKind::Local { slot, value: Some(_) } = local.kind {
                self.finals.push(slot);
            }
        }
        self.end("BlockStatements")?;
        Ok(match locals.len() {
            1 => locals.remove(0).kind,
            // The block does not hide its variables from the following statements, because names were resolved while parsing.
            _ => StatementKind::Block(locals),
        })
    }

    fn declarations(&mut self) -> Parsed<Vec<Statement>> {
        let ty = self.type_name()?;
        let mut locals = Vec::new();
        loop {
            let line = self.line();
            let name = self.name()?;
            // Brackets may also follow the name: `int a[]`.
            let ty = self.dimensions(ty.clone())?;
            // The value is read before the declaration, because a variable is not visible in its own value.
            let value = match self.take_symbol("=") {
                true if self.is_symbol("{") => Some(self.array_of(&ty)?),
                true => Some(self.expression()?),
                false => None,
            };
            let slot = self.declare(&name, ty)?;
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
                () if self.take_word("case") => Some(CaseLabel::Value(self.conditional()?)),
                () if self.take_word("default") => Some(CaseLabel::Default),
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
}
