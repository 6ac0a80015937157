//! Java's errors for a null where an object is needed.

use crate::ast::{Expr, ExprKind, Type};
use crate::classes::whole_name;
use crate::error::Failure;
use crate::interpret::Frame;
use crate::signatures;
use crate::value::Value;

impl Frame<'_> {
    /// Says of a null which variable it was that had to be taken out of its box.
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

    /// What is thrown when a method is called of a variable that is null. What else can be null has no name.
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

    /// In the words of Java, which has no names of variables: `<parameter1>`, `<local3>`.
    fn null_because(&self, method: &str, slot: usize) -> Failure {
        let parameters = self.context.signature.arguments.len();
        let variable = match slot < parameters {
            true => format!("parameter{}", slot + 1),
            false => {
                // The method's object comes first; `long` and `double` take two places.
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

/// Returns a class as the virtual machine names it: whole, but for two.
fn short_name(ty: &Type) -> &str {
    match ty.name() {
        name @ ("String" | "Object") => name,
        name => whole_name(name),
    }
}
