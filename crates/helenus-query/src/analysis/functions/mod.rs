//! Native functions, aggregates and casts, and the choice of the overload for a call.

pub mod aggregate;
pub mod aggregate_state;
pub(crate) mod blob;
pub(crate) mod cast;
pub(crate) mod collection;
pub(crate) mod decimal_math;
pub(crate) mod format;
pub(crate) mod generic_functions;
pub mod json;
pub(crate) mod length;
pub(crate) mod masking;
pub(crate) mod math;
pub(crate) mod native;
pub(crate) mod number;
pub(crate) mod operation;
pub(crate) mod parameter;
pub(crate) mod resolve;
pub(crate) mod sums;
pub(crate) mod time;
pub(crate) mod token;
pub(crate) mod user;
pub(crate) mod vector;

#[cfg(test)]
mod functions_tests;

use std::fmt::{self, Debug};
use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::ast::FunctionName;
use helenus_cql::error::CqlError;
use helenus_cql::identifier::quote_identifier;
use helenus_cql::types::{CqlType, NativeType};

use super::PlanContext;
use crate::analysis::EvalContext;
use crate::analysis::assignable::Assignable;
use crate::response::ColumnSpec;
use crate::schema::roles::Resource;

pub use aggregate::{AggregateFunction, AggregateState};
pub use native::NativeFunction;
pub use operation::symbol_of;
pub use resolve::{CallSite, argument_spec, difference_of, has_factory, resolve, sum_of};
pub use time::{next_timeuuid, random_uuid};

/// A function of values with the types of one overload (Cassandra's `ScalarFunction`).
pub trait ScalarFunction: Debug + Send + Sync {
    /// Returns the qualified name, for example `system.now`.
    fn name(&self) -> &str;
    fn arg_types(&self) -> &[CqlType];
    fn return_type(&self) -> &CqlType;
    /// Returns true if equal arguments always give equal results. A call with constants is then computed once.
    fn is_pure(&self) -> bool {
        true
    }
    /// Returns the user-defined functions that this function calls. A role needs the permission to execute them.
    fn executed(&self) -> Vec<Resource> {
        Vec::new()
    }
    /// Returns false if the sets and maps of the result may not be in the order of their elements. User-defined functions leave them in any
    /// order.
    fn sorts_elements(&self) -> bool {
        true
    }
    /// Computes the result. `args` has one value for each of [`ScalarFunction::arg_types`]; each may be null.
    ///
    /// # Errors
    /// The function refuses an argument, or an operation fails (`FunctionFailure`).
    fn call(&self, args: &[Option<Bytes>], ctx: &EvalContext<'_>) -> Result<Option<Bytes>, CqlError>;
    /// Returns true if the function refuses some constants even when no row is read.
    fn checks_constants(&self) -> bool {
        false
    }
    /// Checks the arguments that are constants. The other arguments are null.
    ///
    /// # Errors
    /// The function refuses a constant.
    fn check_constants(&self, _args: &[Option<Bytes>]) -> Result<(), CqlError> {
        Ok(())
    }
    /// Returns the name of the result's column, given those of the arguments.
    fn column_name(&self, args: &[String]) -> String {
        format!("{}({})", self.name(), args.join(", "))
    }
}

/// A scalar function or an aggregate.
#[derive(Clone, Debug)]
pub enum Function {
    Scalar(Arc<dyn ScalarFunction>),
    Aggregate(Arc<dyn AggregateFunction>),
}

impl Function {
    /// Returns the user-defined functions that this function calls. A role needs the permission to execute them.
    fn executed(&self) -> Vec<Resource> {
        match self {
            Function::Scalar(function) => function.executed(),
            Function::Aggregate(function) => function.executed(),
        }
    }

    /// Returns the qualified name, for example `system.now`.
    pub fn name(&self) -> &str {
        match self {
            Function::Scalar(function) => function.name(),
            Function::Aggregate(function) => function.name(),
        }
    }

    pub fn arg_types(&self) -> &[CqlType] {
        match self {
            Function::Scalar(function) => function.arg_types(),
            Function::Aggregate(function) => function.arg_types(),
        }
    }

    pub fn return_type(&self) -> &CqlType {
        match self {
            Function::Scalar(function) => function.return_type(),
            Function::Aggregate(function) => function.return_type(),
        }
    }

    /// Returns the scalar function. An aggregate is refused: a term may use its type, but not its value.
    pub fn into_scalar(self) -> Result<Arc<dyn ScalarFunction>, CqlError> {
        match self {
            Function::Scalar(function) => Ok(function),
            Function::Aggregate(_) => Err(CqlError::invalid(
                "Aggregation function are not supported in the where clause",
            )),
        }
    }

    /// Returns the name of the result's column, given those of the arguments.
    pub fn column_name(&self, args: &[String]) -> String {
        match self {
            Function::Scalar(function) => function.column_name(args),
            Function::Aggregate(function) => function.column_name(args),
        }
    }
}

impl fmt::Display for Function {
    /// Writes the signature as messages show it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&signature(self.name(), self.arg_types(), self.return_type()))
    }
}

/// Returns a signature such as `system.sum : (int) -> int`.
fn signature(name: &str, arg_types: &[CqlType], return_type: &CqlType) -> String {
    let args: Vec<String> = arg_types
        .iter()
        .map(|ty| match ty {
            // A tuple is shown without `frozen`, because tuples are always frozen.
            CqlType::Tuple(_) => {
                let text = ty.to_string();
                text.strip_prefix("frozen<")
                    .and_then(|text| text.strip_suffix('>'))
                    .unwrap_or(&text)
                    .to_owned()
            }
            other => other.to_string(),
        })
        .collect();
    let (keyspace, name) = name.split_once('.').unwrap_or(("system", name));
    let name = quote_identifier(name);
    format!("{keyspace}.{name} : ({}) -> {return_type}", args.join(", "))
}

/// Returns the overload of a function that fits the arguments of a term (Cassandra's `FunctionResolver`).
///
/// # Errors
/// `Unknown function f called`, and those of [`resolve`].
pub fn resolve_for_term(
    ctx: &PlanContext<'_>,
    name: &FunctionName,
    args: &[&dyn Assignable],
    receiver: Option<&ColumnSpec>,
) -> Result<Function, CqlError> {
    let site = match receiver {
        Some(spec) => CallSite {
            keyspace: &spec.keyspace,
            table: &spec.table,
            receiver: Some(&spec.ty),
        },
        None => CallSite::default(),
    };
    resolve(ctx, name, args, site)?
        .ok_or_else(|| CqlError::invalid(format!("Unknown function {name} called")))
}

/// Returns the aggregate `count(*)`.
pub fn count_rows() -> Arc<dyn AggregateFunction> {
    Arc::new(aggregate::count_rows())
}

/// Returns the name of the native function that computes CAST to a type.
pub fn cast_function(to: NativeType) -> FunctionName {
    FunctionName::native(&cast::function_name(to))
}
