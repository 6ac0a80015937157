//! Reads expressions, by Java's precedence.

use std::sync::Arc;

use crate::ast::{Constant, Expr, ExprKind, Operator, Type, UnaryOperator};
use crate::error::CompileError;
use crate::lexer::Kind;
use crate::parser::{Parser, is_keyword};

type Parsed<T> = Result<T, CompileError>;

/// What functions call the maker of user types and tuples.
const CONTEXT: &str = "udfContext";

/// Operators of two operands, those that bind least first.
const LEVELS: &[&[(&str, Operator)]] = &[
    &[("|", Operator::Or)],
    &[("^", Operator::Xor)],
    &[("&", Operator::And)],
    &[("==", Operator::Equal), ("!=", Operator::NotEqual)],
    &[
        ("<=", Operator::LessOrEqual),
        (">=", Operator::GreaterOrEqual),
        ("<", Operator::Less),
        (">", Operator::Greater),
    ],
    &[("<<", Operator::ShiftLeft)],
    &[("+", Operator::Add), ("-", Operator::Subtract)],
    &[
        ("*", Operator::Multiply),
        ("/", Operator::Divide),
        ("%", Operator::Remainder),
    ],
];
/// Where comparisons stand among them, with which `instanceof` goes, and shifts, whose `>>` comes as two tokens.
const COMPARISONS: usize = 4;
const SHIFTS: usize = 5;

const ASSIGNMENTS: &[(&str, Option<Operator>)] = &[
    ("=", None),
    ("+=", Some(Operator::Add)),
    ("-=", Some(Operator::Subtract)),
    ("*=", Some(Operator::Multiply)),
    ("/=", Some(Operator::Divide)),
    ("%=", Some(Operator::Remainder)),
    ("&=", Some(Operator::And)),
    ("|=", Some(Operator::Or)),
    ("^=", Some(Operator::Xor)),
    ("<<=", Some(Operator::ShiftLeft)),
];

impl Parser {
    pub fn expression(&mut self) -> Parsed<Expr> {
        self.deeper(|parser| {
            let line = parser.line();
            let target = parser.conditional()?;
            let found = ASSIGNMENTS.iter().find(|(symbol, _)| parser.is_symbol(symbol));
            let Some(&(_, operator)) = found else {
                return Ok(target);
            };
            let ExprKind::Local(slot) = target.kind else {
                return Err(parser.error("The left-hand side of an assignment must be a variable"));
            };
            parser.advance();
            let value = Box::new(parser.expression()?);
            let kind = ExprKind::Assign {
                slot,
                operator,
                value,
            };
            Ok(Expr { line, kind })
        })
    }

    pub fn conditional(&mut self) -> Parsed<Expr> {
        let line = self.line();
        let condition = self.or_else()?;
        if !self.take_symbol("?") {
            return Ok(condition);
        }
        let then = self.expression()?;
        self.expect(":")?;
        let otherwise = self.deeper(Self::conditional)?;
        let kind = ExprKind::Conditional(Box::new(condition), Box::new(then), Box::new(otherwise));
        Ok(Expr { line, kind })
    }

    fn or_else(&mut self) -> Parsed<Expr> {
        let line = self.line();
        let mut left = self.and_then()?;
        while self.take_symbol("||") {
            let right = self.and_then()?;
            let kind = ExprKind::OrElse(Box::new(left), Box::new(right));
            left = Expr { line, kind };
        }
        Ok(left)
    }

    fn and_then(&mut self) -> Parsed<Expr> {
        let line = self.line();
        let mut left = self.binary(0)?;
        while self.take_symbol("&&") {
            let right = self.binary(0)?;
            let kind = ExprKind::AndThen(Box::new(left), Box::new(right));
            left = Expr { line, kind };
        }
        Ok(left)
    }

    fn binary(&mut self, level: usize) -> Parsed<Expr> {
        let Some(operators) = LEVELS.get(level) else {
            return self.unary();
        };
        let line = self.line();
        let mut left = self.binary(level + 1)?;
        loop {
            if level == COMPARISONS && self.take_word("instanceof") {
                let kind = ExprKind::InstanceOf(Box::new(left), self.type_name()?);
                left = Expr { line, kind };
                continue;
            }
            let Some(operator) = self.take_operator(level, operators) else {
                return Ok(left);
            };
            let right = self.binary(level + 1)?;
            let kind = ExprKind::Binary(operator, Box::new(left), Box::new(right));
            left = Expr { line, kind };
        }
    }

    fn take_operator(&mut self, level: usize, operators: &[(&str, Operator)]) -> Option<Operator> {
        let closing = (0..3).take_while(|&ahead| self.is_symbol_at(ahead, ">")).count();
        if level == SHIFTS && closing >= 2 {
            (0..closing).for_each(|_| drop(self.advance()));
            return Some(match closing {
                2 => Operator::ShiftRight,
                _ => Operator::ShiftRightUnsigned,
            });
        }
        if level == COMPARISONS && closing >= 2 {
            return None;
        }
        let found = operators.iter().find(|(symbol, _)| self.is_symbol(symbol))?;
        self.advance();
        Some(found.1)
    }

    fn unary(&mut self) -> Parsed<Expr> {
        let line = self.line();
        let operator = match self.peek() {
            Kind::Symbol("+") => UnaryOperator::Plus,
            Kind::Symbol("-") => UnaryOperator::Minus,
            Kind::Symbol("!") => UnaryOperator::Not,
            Kind::Symbol("~") => UnaryOperator::Complement,
            Kind::Symbol(symbol @ ("++" | "--")) => {
                let by = if *symbol == "++" { 1 } else { -1 };
                self.advance();
                let target = self.deeper(Self::unary)?;
                return self.increment(target, by, false);
            }
            Kind::Symbol("(") => {
                if let Some(cast) = self.cast()? {
                    return Ok(cast);
                }
                return self.postfix();
            }
            _ => return self.postfix(),
        };
        self.advance();
        let operand = self.deeper(Self::unary)?;
        let kind = ExprKind::Unary(operator, Box::new(operand));
        Ok(Expr { line, kind })
    }

    /// `(Type) operand`, if it is one.
    fn cast(&mut self) -> Parsed<Option<Expr>> {
        let (position, line) = (self.position(), self.line());
        self.advance();
        let ty = self.type_name();
        let is_closed = self.take_symbol(")");
        let (Ok(ty), true) = (ty, is_closed) else {
            self.go_back(position);
            return Ok(None);
        };
        let is_primitive = !matches!(ty, Type::Class(_));
        // `(a) - b` is a difference, `(int) - b` is not.
        let goes_on = match self.peek() {
            Kind::Word(word) => word != "instanceof",
            Kind::Symbol(symbol) => {
                matches!(*symbol, "(" | "!" | "~")
                    || is_primitive && matches!(*symbol, "+" | "-" | "++" | "--")
            }
            Kind::End => false,
            _ => true,
        };
        if !goes_on {
            self.go_back(position);
            return Ok(None);
        }
        let operand = self.deeper(Self::unary)?;
        let kind = ExprKind::Cast(ty, Box::new(operand));
        Ok(Some(Expr { line, kind }))
    }

    fn increment(&self, target: Expr, by: i8, is_postfix: bool) -> Parsed<Expr> {
        let ExprKind::Local(slot) = target.kind else {
            return Err(self.error("Invalid argument to operation ++/--"));
        };
        let kind = ExprKind::Increment { slot, by, is_postfix };
        Ok(Expr {
            line: target.line,
            kind,
        })
    }

    fn postfix(&mut self) -> Parsed<Expr> {
        let line = self.line();
        let mut object = self.primary()?;
        loop {
            if self.take_symbol(".") {
                self.type_arguments()?;
                let method = self.name()?;
                if !self.is_symbol("(") {
                    return Err(CompileError::new(
                        line,
                        format!("{method} cannot be resolved or is not a field"),
                    ));
                }
                let arguments = self.arguments()?;
                let kind = ExprKind::Call {
                    object: Box::new(object),
                    method,
                    arguments,
                };
                object = Expr { line, kind };
            } else if self.take_symbol("++") {
                object = self.increment(object, 1, true)?;
            } else if self.take_symbol("--") {
                object = self.increment(object, -1, true)?;
            } else if self.is_symbol("[") {
                return Err(self.error("arrays are not supported in functions"));
            } else {
                return Ok(object);
            }
        }
    }

    fn arguments(&mut self) -> Parsed<Vec<Expr>> {
        self.expect("(")?;
        let mut arguments = Vec::new();
        if self.take_symbol(")") {
            return Ok(arguments);
        }
        loop {
            arguments.push(self.expression()?);
            if !self.take_symbol(",") {
                self.expect(")")?;
                return Ok(arguments);
            }
        }
    }

    fn primary(&mut self) -> Parsed<Expr> {
        let line = self.line();
        let constant = match self.peek().clone() {
            Kind::Int(value) => Constant::Int(value),
            Kind::Long(value) => Constant::Long(value),
            Kind::Float(value) => Constant::Float(value),
            Kind::Double(value) => Constant::Double(value),
            Kind::Char(value) => Constant::Char(value),
            Kind::String(value) => Constant::String(Arc::from(value)),
            Kind::Symbol("(") => {
                self.advance();
                let inner = self.expression()?;
                self.expect(")")?;
                return Ok(inner);
            }
            Kind::Word(word) => match word.as_str() {
                "null" => Constant::Null,
                "true" => Constant::Boolean(true),
                "false" => Constant::Boolean(false),
                "new" => return self.creation(),
                _ => return self.named(&word),
            },
            Kind::Symbol(_) | Kind::End => return Err(self.unexpected()),
        };
        self.advance();
        let kind = ExprKind::Constant(constant);
        Ok(Expr { line, kind })
    }

    fn creation(&mut self) -> Parsed<Expr> {
        let line = self.line();
        self.advance();
        let Type::Class(class) = self.type_name()? else {
            return Err(self.unexpected());
        };
        let arguments = self.arguments()?;
        if self.is_symbol("{") {
            return Err(self.error("classes are not supported in functions"));
        }
        let kind = ExprKind::New {
            class: class.as_ref().to_owned(),
            arguments,
        };
        Ok(Expr { line, kind })
    }

    /// What begins with a name: a variable, or a class and one of its methods or fields.
    fn named(&mut self, word: &str) -> Parsed<Expr> {
        let line = self.line();
        if let Some(slot) = self.slot(word) {
            self.advance();
            let kind = ExprKind::Local(slot);
            return Ok(Expr { line, kind });
        }
        if word == CONTEXT {
            self.advance();
            let kind = ExprKind::Context;
            return Ok(Expr { line, kind });
        }
        if let Some(ty) = Type::primitive(word) {
            self.advance();
            if self.take_symbol(".") && self.take_word("class") {
                let kind = ExprKind::ClassLiteral(ty);
                return Ok(Expr { line, kind });
            }
            return Err(self.unexpected());
        }
        let first = self.name()?;
        if self.is_symbol("(") {
            let message = format!("The method {first}() is undefined");
            return Err(CompileError::new(line, message));
        }
        let mut class = String::new();
        let mut last = first.clone();
        while self.take_symbol(".") {
            if self.take_word("class") {
                let kind = ExprKind::ClassLiteral(Type::class(&last));
                return Ok(Expr { line, kind });
            }
            self.type_arguments()?;
            let next = match self.peek() {
                Kind::Word(next) if !is_keyword(next) => next.clone(),
                _ => return Err(self.unexpected()),
            };
            self.advance();
            class = std::mem::replace(&mut last, next);
            if self.is_symbol("(") {
                let arguments = self.arguments()?;
                let kind = ExprKind::StaticCall {
                    class,
                    method: last,
                    arguments,
                };
                return Ok(Expr { line, kind });
            }
        }
        // A field's class begins with a capital: else it would be a variable that there isn't.
        if class.starts_with(|c: char| c.is_uppercase()) {
            let kind = ExprKind::StaticField { class, field: last };
            return Ok(Expr { line, kind });
        }
        let what = if class.is_empty() { "to a variable" } else { "" };
        let message = format!("{first} cannot be resolved {what}");
        Err(CompileError::new(line, message.trim_end()))
    }
}
