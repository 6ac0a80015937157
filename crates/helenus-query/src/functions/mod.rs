//! Native functions, aggregates and casts, and how a call finds its overload.

use std::fmt::Debug;
use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::ast::FunctionName;
use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;

use crate::plan::PlanContext;
use crate::response::ColumnSpec;
use crate::term::{Assignable, EvalContext};

/// A function of values (Cassandra's `ScalarFunction`), with the types of one overload.
pub trait ScalarFunction: Debug + Send + Sync {
    /// The qualified name, for example `system.now`.
    fn name(&self) -> &str;
    fn arg_types(&self) -> &[CqlType];
    fn return_type(&self) -> &CqlType;
    /// True if equal arguments always give equal results, so that a call with constants is computed once.
    fn is_pure(&self) -> bool {
        true
    }
    /// Computes the result. `args` has one value for each of [`ScalarFunction::arg_types`]; none is null.
    fn call(&self, args: &[Option<Bytes>], ctx: &EvalContext<'_>) -> Result<Option<Bytes>, CqlError>;
}

/// The overload of a scalar function that fits the arguments (Cassandra's `FunctionResolver`).
pub fn resolve_scalar(
    _ctx: &PlanContext<'_>,
    name: &FunctionName,
    _args: &[&dyn Assignable],
    _receiver: Option<&ColumnSpec>,
) -> Result<Arc<dyn ScalarFunction>, CqlError> {
    Err(CqlError::invalid(format!("Unknown function '{name}'")))
}

/// The conversion that CAST makes between two types (Cassandra's `CastFcts`).
pub fn cast(from: &CqlType, to: &CqlType) -> Result<Arc<dyn ScalarFunction>, CqlError> {
    Err(CqlError::invalid(format!("{from} cannot be cast to {to}")))
}
