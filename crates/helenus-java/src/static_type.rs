//! Static types of expressions, as far as they are known.

use crate::ast::{Operator, Type};
use crate::parser::UNKNOWN;
use crate::signatures::Argument;
use crate::types::{is_castable, promoted};

/// The known type of an expression. `Nothing` if the type is unknown.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum StaticType {
    Type(Type),
    Null,
    Nothing,
}

impl StaticType {
    pub fn shown(&self) -> String {
        match self {
            StaticType::Type(ty) => ty.to_string(),
            StaticType::Null => "null".to_owned(),
            StaticType::Nothing => "Object".to_owned(),
        }
    }

    /// Returns the static type for a type. `Nothing` if it is the unknown type.
    pub fn of(ty: Type) -> StaticType {
        match ty.name() == UNKNOWN {
            true => StaticType::Nothing,
            false => StaticType::Type(ty),
        }
    }
}

impl StaticType {
    /// Returns the type as that of a call's argument.
    pub fn as_argument(&self) -> Argument<'_> {
        match self {
            StaticType::Type(ty) => Argument::Of(ty),
            StaticType::Null => Argument::Null,
            StaticType::Nothing => Argument::Any,
        }
    }
}

pub(crate) fn shown(arguments: &[StaticType]) -> String {
    arguments
        .iter()
        .map(StaticType::shown)
        .collect::<Vec<_>>()
        .join(", ")
}

/// Returns the type of a conditional expression with these two branches.
pub(crate) fn both(then: StaticType, otherwise: StaticType) -> StaticType {
    match (then, otherwise) {
        (then, otherwise) if then == otherwise => then,
        (StaticType::Type(then), StaticType::Type(otherwise)) => {
            let whole = match (then.unboxed(), otherwise.unboxed()) {
                (Some(then), Some(otherwise)) => promoted(&then, &otherwise),
                _ => None,
            };
            whole.map_or(StaticType::Nothing, StaticType::Type)
        }
        (StaticType::Type(ty), StaticType::Null) | (StaticType::Null, StaticType::Type(ty)) => {
            StaticType::Type(ty.boxed())
        }
        _ => StaticType::Nothing,
    }
}

/// Returns the type of an operator's result. The error is true if the operator compares two values that can't be compared with each other.
pub(crate) fn result(operator: Operator, left: &StaticType, right: &StaticType) -> Result<Type, bool> {
    let is_equality = matches!(operator, Operator::Equal | Operator::NotEqual);
    let (StaticType::Type(left), StaticType::Type(right)) = (left, right) else {
        // Objects can be compared with null.
        let is_object = |known: &StaticType| !matches!(known, StaticType::Type(ty) if ty.is_primitive());
        return match is_equality && is_object(left) && is_object(right) {
            true => Ok(Type::Boolean),
            false => Err(false),
        };
    };
    if is_equality && !left.is_primitive() && !right.is_primitive() {
        return match is_castable(left, right) {
            true => Ok(Type::Boolean),
            false => Err(true),
        };
    }
    let (Some(a), Some(b)) = (left.unboxed(), right.unboxed()) else {
        return match is_equality && (is_castable(left, right) || is_castable(right, left)) {
            true => Ok(Type::Boolean),
            false => Err(is_equality),
        };
    };
    let is_bits = matches!(operator, Operator::And | Operator::Or | Operator::Xor);
    match (a == Type::Boolean, b == Type::Boolean) {
        (true, true) if is_bits || is_equality => return Ok(Type::Boolean),
        (false, false) => {}
        _ => return Err(is_equality),
    }
    let both = promoted(&a, &b);
    match operator {
        _ if is_equality => Ok(Type::Boolean),
        Operator::Less | Operator::LessOrEqual | Operator::Greater | Operator::GreaterOrEqual => {
            Ok(Type::Boolean)
        }
        Operator::ShiftLeft | Operator::ShiftRight | Operator::ShiftRightUnsigned => {
            promoted(&a, &Type::Int).ok_or(false)
        }
        _ if is_bits && matches!(both, Some(Type::Float | Type::Double)) => Err(false),
        _ => both.ok_or(false),
    }
}

pub(crate) fn symbol(operator: Operator) -> &'static str {
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
