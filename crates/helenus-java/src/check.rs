//! What can be seen to be wrong with a body before it runs: types that don't match where both are known, classes that there aren't, and ways
//! to its end without a result. Types of what methods give are not known here: what is wrong with those shows when it runs.

use crate::ast::{Body, Constant, Expr, ExprKind, Operator, Statement, Type, UnaryOperator};
use crate::error::CompileError;
use crate::statics;
use crate::value::whole_name;

type Checked<T> = Result<T, CompileError>;

/// Checks a body whose result is of type `returns`.
///
/// # Errors
/// The first mistake, in the words of Eclipse's compiler.
pub(crate) fn check(body: &Body, returns: &Type) -> Checked<()> {
    let checker = Checker {
        slots: &body.slots,
        returns,
    };
    checker.all(&body.statements)?;
    match ends(&body.statements) {
        true => Err(CompileError::new(
            1,
            format!("This method must return a result of type {}", returns.name()),
        )),
        false => Ok(()),
    }
}

/// Whether control may come to the end of these.
fn ends(statements: &[Statement]) -> bool {
    statements.iter().all(statement_ends)
}

fn statement_ends(statement: &Statement) -> bool {
    match statement {
        Statement::Return(_) | Statement::Throw(_) | Statement::Break | Statement::Continue => false,
        Statement::Block(statements) => ends(statements),
        Statement::If { then, otherwise, .. } => {
            otherwise
                .as_ref()
                .is_none_or(|otherwise| statement_ends(otherwise))
                || statement_ends(then)
        }
        Statement::While { condition, body } => !is_true(condition) || breaks(body),
        Statement::DoWhile { body, condition } => breaks(body) || statement_ends(body) && !is_true(condition),
        Statement::For { condition, body, .. } => {
            condition.as_ref().is_some_and(|condition| !is_true(condition)) || breaks(body)
        }
        Statement::Switch { cases, .. } => {
            let has_default = cases.iter().any(|case| case.labels.contains(&None));
            let last = cases.last().is_none_or(|case| ends(&case.body));
            !has_default || last || cases.iter().flat_map(|case| &case.body).any(breaks)
        }
        Statement::Try {
            body,
            catches,
            finally,
        } => {
            finally.as_ref().is_none_or(|finally| ends(finally))
                && (ends(body) || catches.iter().any(|catch| ends(&catch.body)))
        }
        Statement::Local { .. } | Statement::Expr(_) | Statement::ForEach { .. } => true,
    }
}

fn is_true(condition: &Expr) -> bool {
    condition.kind == ExprKind::Constant(Constant::Boolean(true))
}

/// Whether it holds a `break` of what is around it.
fn breaks(statement: &Statement) -> bool {
    match statement {
        Statement::Break => true,
        Statement::Block(statements) => statements.iter().any(breaks),
        Statement::If { then, otherwise, .. } => {
            breaks(then) || otherwise.as_ref().is_some_and(|other| breaks(other))
        }
        Statement::Try {
            body,
            catches,
            finally,
        } => {
            let catches = catches.iter().flat_map(|catch| &catch.body);
            body.iter()
                .chain(catches)
                .chain(finally.iter().flatten())
                .any(breaks)
        }
        _ => false,
    }
}

/// What is known of an expression's type.
#[derive(Clone, Debug, PartialEq)]
enum Known {
    Type(Type),
    Null,
    Nothing,
}

struct Checker<'a> {
    slots: &'a [Type],
    returns: &'a Type,
}

impl Checker<'_> {
    fn all(&self, statements: &[Statement]) -> Checked<()> {
        statements
            .iter()
            .try_for_each(|statement| self.statement(statement))
    }

    fn statement(&self, statement: &Statement) -> Checked<()> {
        match statement {
            Statement::Local { slot, value } => match (value, self.slots.get(*slot)) {
                (Some(value), Some(ty)) => self.assign(value, ty),
                _ => Ok(()),
            },
            Statement::Expr(expr) => self.expr(expr).map(drop),
            Statement::Block(statements) => self.all(statements),
            Statement::If {
                condition,
                then,
                otherwise,
            } => {
                self.condition(condition)?;
                self.statement(then)?;
                otherwise
                    .as_ref()
                    .map_or(Ok(()), |otherwise| self.statement(otherwise))
            }
            Statement::While { condition, body } | Statement::DoWhile { body, condition } => {
                self.condition(condition)?;
                self.statement(body)
            }
            Statement::For {
                init,
                condition,
                update,
                body,
            } => {
                self.all(init)?;
                condition
                    .as_ref()
                    .map_or(Ok(()), |condition| self.condition(condition))?;
                update.iter().try_for_each(|expr| self.expr(expr).map(drop))?;
                self.statement(body)
            }
            Statement::ForEach { of, body, .. } => {
                self.expr(of)?;
                self.statement(body)
            }
            Statement::Switch { subject, cases } => {
                self.expr(subject)?;
                cases.iter().try_for_each(|case| self.all(&case.body))
            }
            Statement::Return(value) => self.assign(value, self.returns),
            Statement::Throw(value) => self.expr(value).map(drop),
            Statement::Try {
                body,
                catches,
                finally,
            } => {
                self.all(body)?;
                catches.iter().try_for_each(|catch| self.all(&catch.body))?;
                finally.as_ref().map_or(Ok(()), |finally| self.all(finally))
            }
            Statement::Break | Statement::Continue => Ok(()),
        }
    }

    fn condition(&self, condition: &Expr) -> Checked<()> {
        self.assign(condition, &Type::Boolean)
    }

    /// Checks that a value may be assigned to a variable of type `to`.
    fn assign(&self, value: &Expr, to: &Type) -> Checked<()> {
        let from = match self.expr(value)? {
            Known::Nothing => return Ok(()),
            Known::Null if matches!(to, Type::Class(_)) => return Ok(()),
            Known::Null => return Err(mismatch(value.line, "null", to)),
            Known::Type(from) => from,
        };
        match is_assignable(&from, to) || is_small_constant(value, to) {
            true => Ok(()),
            false => Err(mismatch(value.line, from.name(), to)),
        }
    }

    fn expr(&self, expr: &Expr) -> Checked<Known> {
        let known = match &expr.kind {
            ExprKind::Constant(constant) => match constant {
                Constant::Null => return Ok(Known::Null),
                Constant::Boolean(_) => Type::Boolean,
                Constant::Char(_) => Type::Char,
                Constant::Int(_) => Type::Int,
                Constant::Long(_) => Type::Long,
                Constant::Float(_) => Type::Float,
                Constant::Double(_) => Type::Double,
                Constant::String(_) => Type::class("String"),
            },
            ExprKind::Local(slot) => {
                return Ok(self
                    .slots
                    .get(*slot)
                    .map_or(Known::Nothing, |ty| Known::Type(ty.clone())));
            }
            ExprKind::Context => return Ok(Known::Nothing),
            ExprKind::Assign {
                slot,
                operator,
                value,
            } => {
                let Some(ty) = self.slots.get(*slot) else {
                    return Ok(Known::Nothing);
                };
                match operator {
                    None => self.assign(value, ty)?,
                    Some(_) => drop(self.expr(value)?),
                }
                ty.clone()
            }
            ExprKind::Increment { slot, .. } => {
                return Ok(self
                    .slots
                    .get(*slot)
                    .map_or(Known::Nothing, |ty| Known::Type(ty.clone())));
            }
            ExprKind::Unary(UnaryOperator::Not, operand) => {
                self.condition(operand)?;
                Type::Boolean
            }
            ExprKind::Unary(_, operand) => match self.expr(operand)? {
                Known::Type(ty) => match ty.unboxed().and_then(|ty| promoted(&ty, &Type::Int)) {
                    Some(ty) => ty,
                    None => return Ok(Known::Nothing),
                },
                other => return Ok(other),
            },
            ExprKind::Binary(operator, left, right) => return self.binary(expr.line, *operator, left, right),
            ExprKind::AndThen(left, right) | ExprKind::OrElse(left, right) => {
                self.condition(left)?;
                self.condition(right)?;
                Type::Boolean
            }
            ExprKind::Conditional(condition, then, otherwise) => {
                self.condition(condition)?;
                let (then, otherwise) = (self.expr(then)?, self.expr(otherwise)?);
                match then == otherwise {
                    true => return Ok(then),
                    false => return Ok(Known::Nothing),
                }
            }
            ExprKind::Cast(ty, operand) => {
                self.expr(operand)?;
                ty.clone()
            }
            ExprKind::InstanceOf(operand, _) => {
                self.expr(operand)?;
                Type::Boolean
            }
            ExprKind::Call {
                object, arguments, ..
            } => {
                if let (Known::Type(ty), ExprKind::Call { method, .. }) = (self.expr(object)?, &expr.kind)
                    && !matches!(ty, Type::Class(_))
                {
                    let message = format!("Cannot invoke {method}() on the primitive type {}", ty.name());
                    return Err(CompileError::new(expr.line, message));
                }
                self.arguments(arguments)?;
                return Ok(Known::Nothing);
            }
            ExprKind::StaticCall { class, arguments, .. } => {
                if !statics::CLASSES.contains(&class.as_str()) {
                    return Err(CompileError::new(
                        expr.line,
                        format!("{class} cannot be resolved"),
                    ));
                }
                self.arguments(arguments)?;
                return Ok(Known::Nothing);
            }
            ExprKind::StaticField { class, field } => {
                if statics::field(class, field).is_err() {
                    let message = format!("{field} cannot be resolved or is not a field");
                    return Err(CompileError::new(expr.line, message));
                }
                return Ok(Known::Nothing);
            }
            ExprKind::New { class, arguments } => {
                if !statics::is_made(class) {
                    return Err(CompileError::new(
                        expr.line,
                        format!("{class} cannot be resolved to a type"),
                    ));
                }
                self.arguments(arguments)?;
                Type::class(class)
            }
            ExprKind::ClassLiteral(_) => Type::class("Class"),
        };
        Ok(Known::Type(known))
    }

    fn arguments(&self, arguments: &[Expr]) -> Checked<()> {
        arguments
            .iter()
            .try_for_each(|argument| self.expr(argument).map(drop))
    }

    fn binary(&self, line: u32, operator: Operator, left: &Expr, right: &Expr) -> Checked<Known> {
        let (left, right) = (self.expr(left)?, self.expr(right)?);
        let text = Known::Type(Type::class("String"));
        if operator == Operator::Add && (left == text || right == text) {
            return Ok(text);
        }
        let is_equality = matches!(operator, Operator::Equal | Operator::NotEqual);
        let (Known::Type(left), Known::Type(right)) = (left, right) else {
            return Ok(if is_equality {
                Known::Type(Type::Boolean)
            } else {
                Known::Nothing
            });
        };
        let undefined = || {
            let symbol = symbol(operator);
            let message = format!(
                "The operator {symbol} is undefined for the argument type(s) {}, {}",
                left.name(),
                right.name()
            );
            CompileError::new(line, message)
        };
        if is_equality {
            return Ok(Known::Type(Type::Boolean));
        }
        let (Some(a), Some(b)) = (left.unboxed(), right.unboxed()) else {
            let is_known = |ty: &Type| {
                whole_name(ty.name()) != ty.name() && ty.name() != "Object" && ty.name() != "Number"
            };
            return match is_known(&left) && is_known(&right) {
                true => Err(undefined()),
                false => Ok(Known::Nothing),
            };
        };
        let is_bits = matches!(operator, Operator::And | Operator::Or | Operator::Xor);
        match (a == Type::Boolean, b == Type::Boolean) {
            (true, true) if is_bits => return Ok(Known::Type(Type::Boolean)),
            (false, false) => {}
            _ => return Err(undefined()),
        }
        Ok(match operator {
            Operator::Less | Operator::LessOrEqual | Operator::Greater | Operator::GreaterOrEqual => {
                Known::Type(Type::Boolean)
            }
            Operator::ShiftLeft | Operator::ShiftRight | Operator::ShiftRightUnsigned => {
                promoted(&a, &Type::Int).map_or(Known::Nothing, Known::Type)
            }
            _ => promoted(&a, &b).map_or(Known::Nothing, Known::Type),
        })
    }
}

fn symbol(operator: Operator) -> &'static str {
    match operator {
        Operator::Add => "+",
        Operator::Subtract => "-",
        Operator::Multiply => "*",
        Operator::Divide => "/",
        Operator::Remainder => "%",
        Operator::And => "&",
        Operator::Or => "|",
        Operator::Xor => "^",
        Operator::ShiftLeft => "<<",
        Operator::ShiftRight => ">>",
        Operator::ShiftRightUnsigned => ">>>",
        Operator::Equal => "==",
        Operator::NotEqual => "!=",
        Operator::Less => "<",
        Operator::LessOrEqual => "<=",
        Operator::Greater => ">",
        Operator::GreaterOrEqual => ">=",
    }
}

/// The type in which two numbers are computed with.
fn promoted(left: &Type, right: &Type) -> Option<Type> {
    let is = |ty: Type| *left == ty || *right == ty;
    if is(Type::Boolean) || matches!(left, Type::Class(_)) || matches!(right, Type::Class(_)) {
        return None;
    }
    Some(match () {
        () if is(Type::Double) => Type::Double,
        () if is(Type::Float) => Type::Float,
        () if is(Type::Long) => Type::Long,
        () => Type::Int,
    })
}

/// Whether a value of type `from` may be assigned to a variable of type `to`; yes where it isn't known.
fn is_assignable(from: &Type, to: &Type) -> bool {
    match (from, to) {
        _ if from == to => true,
        (Type::Class(_), Type::Class(_)) => {
            // Of the boxes and texts, none is another.
            let is_final = |ty: &Type| ty.unboxed().is_some() || ty.name() == "String";
            !(is_final(from) && is_final(to))
        }
        (_, Type::Class(_)) => match to.unboxed() {
            Some(to) => *from == to,
            None => matches!(to.name(), "Object" | "Number" | "Comparable"),
        },
        (Type::Class(name), _) => match from.unboxed() {
            Some(from) => is_wider(&from, to),
            None => name.as_ref() != "String" && whole_name(name) == name.as_ref(),
        },
        _ => is_wider(from, to),
    }
}

/// Whether every number of a type is one of another.
fn is_wider(from: &Type, to: &Type) -> bool {
    let rank = |ty: &Type| match ty {
        Type::Byte => Some(0),
        Type::Short => Some(1),
        Type::Int => Some(2),
        Type::Long => Some(3),
        Type::Float => Some(4),
        Type::Double => Some(5),
        Type::Boolean | Type::Char | Type::Class(_) => None,
    };
    match (rank(from), rank(to)) {
        _ if from == to => true,
        (Some(from), Some(to)) => from <= to,
        (None, Some(to)) => *from == Type::Char && to >= 2,
        _ => false,
    }
}

/// Whether it is a constant `int` that fits into a smaller type.
fn is_small_constant(value: &Expr, to: &Type) -> bool {
    let number = match &value.kind {
        ExprKind::Constant(Constant::Int(number)) => i64::from(*number),
        ExprKind::Constant(Constant::Char(unit)) => i64::from(*unit),
        ExprKind::Unary(UnaryOperator::Minus, operand) => match operand.kind {
            ExprKind::Constant(Constant::Int(number)) => -i64::from(number),
            _ => return false,
        },
        _ => return false,
    };
    match to.unboxed() {
        Some(Type::Byte) => i8::try_from(number).is_ok(),
        Some(Type::Short) => i16::try_from(number).is_ok(),
        Some(Type::Char) => u16::try_from(number).is_ok(),
        _ => false,
    }
}

fn mismatch(line: u32, from: &str, to: &Type) -> CompileError {
    CompileError::new(
        line,
        format!("Type mismatch: cannot convert from {from} to {}", to.name()),
    )
}
