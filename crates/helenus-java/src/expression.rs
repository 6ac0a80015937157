//! Reads expressions, by Java's precedence.

use std::sync::Arc;

use crate::ast::{Constant, Expr, ExprKind, Operator, Target, Type, UnaryOperator};
use crate::classes;
use crate::error::Mistake;
use crate::lexer::Kind;
use crate::parser::{Parser, UNKNOWN};

type Parsed<T> = Result<T, Mistake>;

/// What functions call the maker of user types and tuples.
const CONTEXT: &str = "udfContext";

/// How long a chain of operators or of calls may be.
const LINKS_MAX: u32 = 200;

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
            if target.kind == ExprKind::Meaningless {
                parser.advance();
                parser.expression()?;
                return Ok(target);
            }
            let target = target_of(target.kind)
                .ok_or_else(|| parser.error("The left-hand side of an assignment must be a variable"))?;
            parser.check_final(line, &target);
            parser.advance();
            let value = Box::new(parser.expression()?);
            let kind = ExprKind::Assign {
                target,
                operator,
                value,
            };
            Ok(Expr { line, kind })
        })
    }

    /// Counts a link of a chain such as `a + b + c`, which nests to the left.
    fn link(&self, links: &mut u32) -> Parsed<()> {
        *links += 1;
        match *links <= LINKS_MAX {
            true => Ok(()),
            false => Err(self.error("The code is nested too deeply")),
        }
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
        let mut links = 0;
        while self.take_symbol("||") {
            self.link(&mut links)?;
            let right = self.and_then()?;
            let kind = ExprKind::OrElse(Box::new(left), Box::new(right));
            left = Expr { line, kind };
        }
        Ok(left)
    }

    fn and_then(&mut self) -> Parsed<Expr> {
        let line = self.line();
        let mut left = self.binary(0)?;
        let mut links = 0;
        while self.take_symbol("&&") {
            self.link(&mut links)?;
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
        let mut links = 0;
        loop {
            self.link(&mut links)?;
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
        let (mark, line) = (self.mark(), self.line());
        if matches!(self.peek_at(1), Kind::Word(word) if self.slot(word).is_some()) {
            return Ok(None);
        }
        self.advance();
        let ty = self.type_name();
        let is_closed = self.take_symbol(")");
        let (Ok(ty), true) = (ty, is_closed) else {
            self.go_back(&mark);
            return Ok(None);
        };
        let is_primitive = ty.is_primitive();
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
            self.go_back(&mark);
            return Ok(None);
        }
        let operand = self.deeper(Self::unary)?;
        let kind = ExprKind::Cast(ty, Box::new(operand));
        Ok(Some(Expr { line, kind }))
    }

    fn increment(&mut self, target: Expr, by: i8, is_postfix: bool) -> Parsed<Expr> {
        let line = target.line;
        let target =
            target_of(target.kind).ok_or_else(|| self.error("Invalid argument to operation ++/--"))?;
        self.check_final(line, &target);
        let kind = ExprKind::Increment {
            target,
            by,
            is_postfix,
        };
        Ok(Expr { line, kind })
    }

    fn postfix(&mut self) -> Parsed<Expr> {
        let line = self.line();
        let mut object = self.primary()?;
        let mut links = 0;
        loop {
            self.link(&mut links)?;
            if self.take_symbol(".") {
                self.type_arguments()?;
                let method = self.name()?;
                if !self.is_symbol("(") {
                    let kind = match method.as_str() {
                        "length" => ExprKind::Length(Box::new(object)),
                        _ => {
                            self.note(line, format!("{method} cannot be resolved or is not a field"));
                            ExprKind::Meaningless
                        }
                    };
                    object = Expr { line, kind };
                    continue;
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
            } else if self.take_symbol("[") {
                let index = Box::new(self.expression()?);
                self.expect("]")?;
                let array = Box::new(object);
                let kind = ExprKind::Element { array, index };
                object = Expr { line, kind };
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
        let mut ty = self.element_type()?;
        if self.is_symbol("[") {
            return self.new_array(line, ty);
        }
        if ty.is_primitive() {
            return Err(self.unexpected());
        }
        let arguments = self.arguments()?;
        if self.is_symbol("{") {
            return Err(self.error("classes are not supported in functions"));
        }
        if ty.name() == UNKNOWN {
            ty = Type::class(UNKNOWN);
        }
        let kind = ExprKind::New { class: ty, arguments };
        Ok(Expr { line, kind })
    }

    /// `[2][3]`, `[]{1, 2}`
    fn new_array(&mut self, line: u32, of: Type) -> Parsed<Expr> {
        let mut ty = of;
        let mut lengths = Vec::new();
        while self.take_symbol("[") {
            if !self.is_symbol("]") {
                lengths.push(self.expression()?);
            }
            self.expect("]")?;
            ty = Type::array(ty);
        }
        if lengths.is_empty() {
            return self.array_of(&ty);
        }
        let kind = ExprKind::NewArray { ty, lengths };
        Ok(Expr { line, kind })
    }

    /// `{1, 2}` of an array's type.
    pub fn array_of(&mut self, ty: &Type) -> Parsed<Expr> {
        let line = self.line();
        let Type::Array(of) = ty else {
            let message = format!("Type mismatch: cannot convert from Object[] to {ty}");
            return Err(Mistake::new(line, message));
        };
        self.expect("{")?;
        let mut elements = Vec::new();
        while !self.take_symbol("}") {
            elements.push(match self.is_symbol("{") {
                true => self.deeper(|parser| parser.array_of(of))?,
                false => self.expression()?,
            });
            if !self.is_symbol("}") && !self.take_symbol(",") {
                return Err(self.unexpected());
            }
        }
        let ty = ty.clone();
        let kind = ExprKind::ArrayOf { ty, elements };
        Ok(Expr { line, kind })
    }

    /// What begins with a name: a variable, or a class and one of its methods or fields.
    fn named(&mut self, word: &str) -> Parsed<Expr> {
        let line = self.line();
        let kind = if let Some(slot) = self.slot(word) {
            self.advance();
            ExprKind::Local(slot)
        } else if word == CONTEXT {
            self.advance();
            ExprKind::Context
        } else if let Some(ty) = Type::primitive(word) {
            self.advance();
            if !(self.take_symbol(".") && self.take_word("class")) {
                return Err(self.unexpected());
            }
            ExprKind::ClassLiteral(ty)
        } else {
            self.member(line)?
        };
        Ok(Expr { line, kind })
    }

    /// `Class.field`, `Class.method(…)` or `Class.class`.
    fn member(&mut self, line: u32) -> Parsed<ExprKind> {
        let mut last = self.name()?;
        if self.is_symbol("(") {
            let arguments = self.arguments()?;
            if matches!(
                last.as_str(),
                "clone" | "finalize" | "notify" | "notifyAll" | "wait"
            ) {
                self.forbid(format!("call to java.lang.Object.{last}()"));
                return Ok(ExprKind::Meaningless);
            }
            let shown = if arguments.is_empty() { "" } else { "…" };
            self.note(
                line,
                format!("The method {last}({shown}) is undefined for the type"),
            );
            return Ok(ExprKind::Meaningless);
        }
        let mut class = String::new();
        while self.is_symbol(".") {
            // A field's object: what follows is asked of it.
            if classes::resolve(&class).is_some() && !self.is_class(&class, &last) {
                break;
            }
            self.advance();
            if !class.is_empty() {
                class.push('.');
            }
            class.push_str(&last);
            if self.take_word("class") {
                let name = self.class(line, &class);
                return Ok(ExprKind::ClassLiteral(Type::class(name)));
            }
            self.type_arguments()?;
            last = self.name()?;
            if self.is_symbol("(") {
                let arguments = self.arguments()?;
                let Some(name) = classes::resolve(&class) else {
                    let what = if class.contains('.') { " to a type" } else { "" };
                    self.note(line, format!("{class} cannot be resolved{what}"));
                    return Ok(ExprKind::Meaningless);
                };
                if classes::is_forbidden(name, &last) {
                    self.forbid(format!("call to {}.{last}()", classes::whole_name(name)));
                    return Ok(ExprKind::Meaningless);
                }
                return Ok(ExprKind::StaticCall {
                    class: name.to_owned(),
                    method: last,
                    arguments,
                });
            }
        }
        if class.is_empty() {
            self.note(line, format!("{last} cannot be resolved to a variable"));
            return Ok(ExprKind::Meaningless);
        }
        match classes::resolve(&class) {
            Some(name) => Ok(ExprKind::StaticField {
                class: name.to_owned(),
                field: last,
            }),
            None => {
                self.note(line, format!("{class}.{last} cannot be resolved to a type"));
                Ok(ExprKind::Meaningless)
            }
        }
    }

    fn is_class(&self, outer: &str, inner: &str) -> bool {
        classes::resolve(&format!("{outer}.{inner}")).is_some()
    }

    fn class(&mut self, line: u32, written: &str) -> &'static str {
        classes::resolve(written).unwrap_or_else(|| {
            self.note(line, format!("{written} cannot be resolved to a type"));
            UNKNOWN
        })
    }
}

/// What an expression stands for on the left of an assignment.
fn target_of(kind: ExprKind) -> Option<Target> {
    match kind {
        ExprKind::Local(slot) => Some(Target::Local(slot)),
        ExprKind::Element { array, index } => Some(Target::Element { array, index }),
        _ => None,
    }
}
