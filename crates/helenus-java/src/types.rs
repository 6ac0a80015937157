//! Assignability and castability of types (Java's specification, 5).

use crate::ast::{Constant, Expr, ExprKind, Type, UnaryOperator};
use crate::parser::UNKNOWN;
use crate::signatures;

/// Returns the type in which two numbers are computed. `None` if one of the types is not primitive, or is `boolean`.
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

/// Returns true if every number of type `from` is also one of type `to`.
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

/// Returns true if nothing is known of a type, so that no error can be found in its use.
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

/// Returns true if a value of type `from` is one of type `to` without boxing. Numbers may be widened.
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

/// Returns true if a value of type `from` may be assigned to a variable of type `to`. The value may be boxed or unboxed.
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

/// Returns true if a cast can succeed.
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
        // A class that is not final may have a subclass that implements the interface.
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

/// Returns true if the value is a constant `int` that fits into the smaller type `to`.
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

/// Returns the type of the elements over which a `for` loop iterates.
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
