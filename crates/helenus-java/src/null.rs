//! Java's errors for a null in place of an object.

use crate::ast::{Expr, ExprKind, Type};
use crate::classes::whole_name;
use crate::error::Failure;
use crate::interpret::Frame;
use crate::signatures;
use crate::value::Value;

impl Frame<'_> {
    /// Adds to a null pointer exception which variable could not be unboxed.
    pub fn because(&self, failure: Failure, operands: &[(&Expr, &Value)]) -> Failure {
        let null = operands.iter().find_map(|(expr, value)| match expr.kind {
            ExprKind::Local(slot) if value.is_null() => Some(slot),
            _ => None,
        });
        match null {
            Some(slot) => self.unboxed_null(failure, slot),
            None => failure,
        }
    }

    pub fn unboxed_null(&self, failure: Failure, slot: usize) -> Failure {
        let Some(ty) = self.body.slots.get(slot) else {
            return failure;
        };
        match ty.unboxed() {
            Some(unboxed) if failure.is_bare_null_pointer() => {
                let method = format!("{}.{}Value()", whole_name(ty.name()), unboxed.name());
                self.null_because(&method, slot)
            }
            _ => failure,
        }
    }

    /// Returns the exception of a method call on null. The message names the object if it is a variable.
    pub fn asked_of_null(&self, object: &Expr, method: &str, arguments: usize) -> Failure {
        let ExprKind::Local(slot) = object.kind else {
            return Failure::null_pointer();
        };
        let Some(ty) = self.body.slots.get(slot) else {
            return Failure::null_pointer();
        };
        let found = signatures::methods(ty, method).into_iter();
        let mut found = found.filter(|(method, _)| method.parameters.len() == arguments);
        let parameters = found.next().map(|(method, _)| method.parameters.as_slice());
        let parameters = parameters
            .unwrap_or_default()
            .iter()
            .map(|ty| match signatures::is_variable(ty) {
                true => "Object",
                false => short_name(ty),
            });
        let parameters: Vec<&str> = parameters.collect();
        self.null_because(
            &format!("{}.{method}({})", short_name(ty), parameters.join(", ")),
            slot,
        )
    }

    /// Returns the exception in Java's words, which number variables instead of naming them: `<parameter1>`, `<local3>`.
    fn null_because(&self, method: &str, slot: usize) -> Failure {
        let parameters = self.context.signature.arguments.len();
        let variable = match slot < parameters {
            true => format!("parameter{}", slot + 1),
            false => {
                // In the numbering, the method's object comes first, and `long` and `double` take two places.
                let size = |ty: &Type| {
                    if matches!(ty, Type::Long | Type::Double) {
                        2
                    } else {
                        1
                    }
                };
                let before: usize = self.body.slots.iter().take(slot).map(size).sum();
                format!("local{}", before + 1)
            }
        };
        Failure::null_pointer_because(format!(
            "Cannot invoke \"{method}\" because \"<{variable}>\" is null"
        ))
    }
}

/// Returns a class's name in the messages of the virtual machine: the full name, except for `String` and `Object`.
fn short_name(ty: &Type) -> &str {
    match ty.name() {
        name @ ("String" | "Object") => name,
        name => whole_name(name),
    }
}
