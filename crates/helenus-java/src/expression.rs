//! Parses expressions, by Java's precedence.

use crate::ast::{AssignTarget, Expr, ExprKind, Operator, UnaryOperator};
use crate::lexer::Kind;
use crate::parser::{Parsed, Parser};

/// Maximum length of a chain of operators or of calls.
const LINKS_MAX: u32 = 200;

/// Binary operators by precedence, lowest first.
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
/// Indexes in [`LEVELS`] of the comparisons and of the shifts. `instanceof` has the precedence of comparisons. `>>` is not in the table,
/// because it comes as two tokens.
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

    /// Counts a link of a chain such as `a + b + c`, whose tree nests to the left.
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

    /// Reads `(Type) operand`. `None` if the parenthesis does not begin a cast.
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
        // `(a) - b` is a difference, but `(int) - b` is a cast.
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

    pub fn arguments(&mut self) -> Parsed<Vec<Expr>> {
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
}

/// Returns the assignment target that an expression stands for. `None` if it can't be assigned to.
fn target_of(kind: ExprKind) -> Option<AssignTarget> {
    match kind {
        ExprKind::Local(slot) => Some(AssignTarget::Local(slot)),
        ExprKind::Element { array, index } => Some(AssignTarget::Element { array, index }),
        _ => None,
    }
}
