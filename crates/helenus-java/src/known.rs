//! Types of expressions, as far as they are known.

use crate::ast::{Operator, Type};
use crate::parser::UNKNOWN;
use crate::types::{is_castable, promoted};

/// What is known of an expression's type.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Known {
    Type(Type),
    Null,
    Nothing,
}

impl Known {
    pub fn shown(&self) -> String {
        match self {
            Known::Type(ty) => ty.to_string(),
            Known::Null => "null".to_owned(),
            Known::Nothing => "Object".to_owned(),
        }
    }

    /// A type that is there; nothing is known of one that isn't.
    pub fn of(ty: Type) -> Known {
        match ty.name() == UNKNOWN {
            true => Known::Nothing,
            false => Known::Type(ty),
        }
    }
}

impl Known {
    /// None if every type may be meant.
    pub fn ty(&self) -> Option<Option<&Type>> {
        match self {
            Known::Type(ty) => Some(Some(ty)),
            Known::Null => Some(None),
            Known::Nothing => None,
        }
    }
}

pub(crate) fn shown(arguments: &[Known]) -> String {
    arguments.iter().map(Known::shown).collect::<Vec<_>>().join(", ")
}

/// The type of one of two values.
pub(crate) fn both(then: Known, otherwise: Known) -> Known {
    match (then, otherwise) {
        (then, otherwise) if then == otherwise => then,
        (Known::Type(then), Known::Type(otherwise)) => {
            let whole = match (then.unboxed(), otherwise.unboxed()) {
                (Some(then), Some(otherwise)) => promoted(&then, &otherwise),
                _ => None,
            };
            whole.map_or(Known::Nothing, Known::Type)
        }
        (Known::Type(ty), Known::Null) | (Known::Null, Known::Type(ty)) => Known::Type(ty.boxed()),
        _ => Known::Nothing,
    }
}

/// The type of what an operator makes of two values; else whether they can't be compared with each other.
pub(crate) fn result(operator: Operator, left: &Known, right: &Known) -> Result<Type, bool> {
    let is_equality = matches!(operator, Operator::Equal | Operator::NotEqual);
    let (Known::Type(left), Known::Type(right)) = (left, right) else {
        // With null, objects can be compared.
        let is_object = |known: &Known| !matches!(known, Known::Type(ty) if ty.is_primitive());
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
