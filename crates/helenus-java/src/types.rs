//! Assignability and castability of types (Java's specification, 5).

use crate::ast::{Constant, Expr, ExprKind, Type, UnaryOperator};
use crate::parser::UNKNOWN;
use crate::signatures;

/// Returns the type in which two numbers are computed with.
pub(crate) fn promoted(left: &Type, right: &Type) -> Option<Type> {
    let is = |ty: Type| *left == ty || *right == ty;
    if is(Type::Boolean) || !left.is_primitive() || !right.is_primitive() {
        return None;
    }
    Some(match () {
        () if is(Type::Double) => Type::Double,
        () if is(Type::Float) => Type::Float,
        () if is(Type::Long) => Type::Long,
        () => Type::Int,
    })
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
        Type::Boolean | Type::Char | Type::Class(..) | Type::Array(_) => None,
    };
    match (rank(from), rank(to)) {
        _ if from == to => true,
        (Some(from), Some(to)) => from <= to,
        (None, Some(to)) => *from == Type::Char && to >= 2,
        _ => false,
    }
}

/// Whether nothing is known of a type, so that nothing can be said to be wrong with it.
fn is_open(ty: &Type) -> bool {
    match ty {
        Type::Class(name, _) => {
            name.as_ref() == UNKNOWN
                || matches!(name.as_ref(), "Comparable" | "Serializable")
                || !signatures::is_known(name)
        }
        _ => false,
    }
}

/// Whether a value of type `from` is one of type `to` as it is, with numbers made wider.
pub(crate) fn is_kind_of(from: &Type, to: &Type) -> bool {
    match (from, to) {
        _ if from == to => true,
        (Type::Array(_), Type::Class(name, _)) => name.as_ref() == "Object",
        (Type::Class(..), Type::Class(name, _)) => {
            let Some(found) = signatures::as_class(from, name) else {
                return is_open(from) || is_open(to);
            };
            let (found, wanted) = (found.arguments(), to.arguments());
            found.is_empty() || wanted.is_empty() || found == wanted
        }
        _ => from.is_primitive() && to.is_primitive() && is_wider(from, to),
    }
}

/// Whether a value of type `from` may be assigned to a variable of type `to`, in a box or out of it if need be.
pub(crate) fn is_assignable(from: &Type, to: &Type) -> bool {
    if is_kind_of(from, to) {
        return true;
    }
    match (from.is_primitive(), to.is_primitive()) {
        (true, false) => is_kind_of(&from.boxed(), to),
        (false, true) => match from.unboxed() {
            Some(from) => is_wider(&from, to),
            None => is_open(from),
        },
        _ => false,
    }
}

/// Whether a cast may succeed.
pub(crate) fn is_castable(from: &Type, to: &Type) -> bool {
    let raw = |ty: &Type| match ty {
        Type::Class(name, _) => Type::class(name),
        other => other.clone(),
    };
    let (from, to) = (&raw(from), &raw(to));
    match (from.is_primitive(), to.is_primitive()) {
        (true, true) => (*from == Type::Boolean) == (*to == Type::Boolean),
        (true, false) => is_kind_of(&from.boxed(), to),
        (false, true) => is_assignable(from, to) || is_kind_of(&to.boxed(), from),
        // Interfaces may be had by any class that is not final.
        (false, false) => {
            let is_final = |ty: &Type| ty.unboxed().is_some() || ty.name() == "String";
            let is_interface = |ty: &Type| {
                matches!(
                    ty.name(),
                    "List" | "Set" | "Map" | "Collection" | "Iterable" | "Iterator"
                )
            };
            is_kind_of(from, to)
                || is_kind_of(to, from)
                || is_interface(from) && is_interface(to)
                || is_interface(from) && !is_final(to)
                || is_interface(to) && !is_final(from)
        }
    }
}

/// Whether it is a constant `int` that fits into a smaller type.
pub(crate) fn is_small_constant(value: &Expr, to: &Type) -> bool {
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

/// Returns the type of the elements that `for` goes through.
pub(crate) fn element_of(ty: &Type) -> Option<Type> {
    match ty {
        Type::Array(of) => Some(of.as_ref().clone()),
        _ => {
            let iterable = signatures::as_class(ty, "Iterable")?;
            Some(
                iterable
                    .arguments()
                    .first()
                    .cloned()
                    .unwrap_or_else(|| Type::class("Object")),
            )
        }
    }
}
