//! `udfContext`: makes tuples and values of user types (Cassandra's `UDFContextImpl`).

use std::rc::Rc;

use helenus_cql::types::CqlType;

use crate::error::Failure;
use crate::value::{Fields, Value};
use crate::{Signature, Types};

pub(crate) struct Context<'a> {
    pub signature: &'a Signature,
    pub types: &'a dyn Types,
}

impl Context<'_> {
    /// Calls a method of `udfContext`.
    ///
    /// # Errors
    /// If there is no such type.
    pub fn call(&self, method: &str, arguments: &[Value]) -> Result<Value, Failure> {
        let returns = || Ok(self.signature.returns.clone());
        let ty = match (method, arguments) {
            ("newReturnUDTValue" | "newReturnTupleValue", []) => returns(),
            ("newArgUDTValue" | "newArgTupleValue", [which]) => self.argument(which),
            ("newUDTValue", [Value::String(name)]) => self.types.user_type(name).ok_or_else(|| {
                Failure::thrown(
                    "java.lang.IllegalArgumentException",
                    format!("No UDT named {name} in keyspace"),
                )
            }),
            ("newTupleValue", [Value::String(definition)]) => self.types.named(definition).ok_or_else(|| {
                Failure::thrown(
                    "java.lang.IllegalStateException",
                    format!("Invalid CQL type: {definition}"),
                )
            }),
            _ => Err(Failure::thrown(
                "java.lang.IllegalArgumentException",
                format!("udfContext has no method {method}({})", arguments.len()),
            )),
        }?;
        match (&ty, method.contains("UDT")) {
            (CqlType::Udt { .. }, true) | (CqlType::Tuple(_), false) => {
                Ok(Value::Fields(Rc::new(Fields::new(ty))))
            }
            _ => Err(Failure::thrown(
                "java.lang.IllegalArgumentException",
                format!("{ty} is not what {method} makes"),
            )),
        }
    }

    fn argument(&self, which: &Value) -> Result<CqlType, Failure> {
        let arguments = &self.signature.arguments;
        let found = match which {
            Value::String(name) => arguments
                .iter()
                .find(|(argument, _)| argument.as_str() == name.as_ref()),
            other => usize::try_from(other.to_int()?)
                .ok()
                .and_then(|at| arguments.get(at)),
        };
        let unknown = || {
            Failure::thrown(
                "java.lang.IllegalArgumentException",
                "Function does not declare an argument like that",
            )
        };
        found.map(|(_, ty)| ty.clone()).ok_or_else(unknown)
    }
}
