//! Masks of columns (Cassandra's `ColumnMask`): their declaration, and the function that applies them.

use std::sync::Arc;

use helenus_cql::ast;
use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;
use helenus_cql::types::class_name::class_name;
use helenus_cql::value::{Assignment, test_assignment};

use crate::analysis::assignable::Assignable;
use crate::analysis::functions::{CallSite, Function, ScalarFunction, argument_spec, resolve};
use crate::analysis::terms::Term;
use crate::analysis::terms::assignment::RawTerm;
use crate::analysis::{EvalContext, PlanContext};
use crate::clock::SystemClock;
use crate::request::{BoundValue, Markers};
use crate::response::ColumnSpec;
use crate::schema::{ColumnMask, Schema};

/// An unspecified value of a type.
struct OfType<'a>(&'a CqlType);

impl Assignable for OfType<'_> {
    fn test(&self, _: &PlanContext<'_>, receiver: &ColumnSpec) -> Assignment {
        test_assignment(self.0, &receiver.ty)
    }

    fn exact_type(&self, _: &PlanContext<'_>) -> Option<CqlType> {
        Some(self.0.clone())
    }

    fn text(&self) -> String {
        class_name(self.0)
    }
}

/// The column that a mask is declared for.
pub(crate) struct MaskedColumn<'a> {
    pub keyspace: &'a str,
    pub table: &'a str,
    pub name: &'a str,
    pub ty: &'a CqlType,
}

/// Returns the mask that a statement declares for a column.
///
/// # Errors
/// Cassandra's, for functions that don't exist, hide nothing, or return another type.
pub(crate) fn declared(
    schema: &Schema,
    column: &MaskedColumn<'_>,
    mask: &ast::ColumnMask,
) -> Result<ColumnMask, CqlError> {
    let mut ctx = PlanContext::new(schema, Some(column.keyspace), Markers::new(Vec::new()));
    let site = CallSite {
        keyspace: column.keyspace,
        table: column.table,
        receiver: Some(column.ty),
    };
    let value = OfType(column.ty);
    let terms: Vec<RawTerm<'_>> = mask.args.iter().map(RawTerm).collect();
    let mut args: Vec<&dyn Assignable> = vec![&value];
    args.extend(terms.iter().map(|term| term as &dyn Assignable));
    let function = resolve(&ctx, &mask.function, &args, site)?;
    let (function, keyspace, name) = checked(column, mask, function)?;
    let mut arguments = Vec::with_capacity(mask.args.len());
    for (position, term) in mask.args.iter().enumerate() {
        let spec = argument_spec(&function, position + 1, site);
        let value = constant(&Term::prepare(&mut ctx, term, &spec)?)?;
        arguments.push((spec.ty, value));
    }
    Ok(ColumnMask {
        keyspace,
        name,
        arguments,
    })
}

/// Returns the function with its keyspace and name, if it can mask the column.
fn checked(
    column: &MaskedColumn<'_>,
    mask: &ast::ColumnMask,
    function: Option<Function>,
) -> Result<(Function, String, String), CqlError> {
    let shown = shown(mask);
    let Some(function) = function else {
        return Err(CqlError::invalid(format!(
            "Unable to find masking function for {}, no declared function matches the signature {shown}",
            column.name
        )));
    };
    if let Function::Aggregate(_) = function {
        return Err(CqlError::invalid(format!(
            "Aggregate function {shown} cannot be used for masking table columns"
        )));
    }
    let (keyspace, name) = function
        .name()
        .split_once('.')
        .unwrap_or(("system", function.name()));
    if keyspace == "system" && !name.starts_with("mask_") {
        return Err(CqlError::invalid(format!(
            "Not-masking function {shown} cannot be used for masking table columns"
        )));
    }
    if keyspace != "system" && keyspace != column.keyspace {
        return Err(CqlError::invalid(format!(
            "Masking function {shown} doesn't belong to the same keyspace as the table {}.{}",
            column.keyspace, column.table
        )));
    }
    if function.return_type() != column.ty {
        return Err(CqlError::invalid(format!(
            "Masking function {shown} return type is {}. This is different to the type of the masked column {} of type {}. \
             Masking functions can only be attached to table columns if they return the same data type as the masked column.",
            function.return_type(),
            column.name,
            column.ty
        )));
    }
    let (keyspace, name) = (keyspace.to_owned(), name.to_owned());
    Ok((function, keyspace, name))
}

fn shown(mask: &ast::ColumnMask) -> String {
    let args: Vec<String> = mask.args.iter().map(ToString::to_string).collect();
    format!("{}({})", mask.function, args.join(", "))
}

fn constant(term: &Term) -> Result<Option<bytes::Bytes>, CqlError> {
    let ctx = EvalContext {
        values: &[],
        clock: &SystemClock,
        protocol_version: 5,
    };
    Ok(match term.bind(&ctx)? {
        BoundValue::Set(value) => Some(value),
        BoundValue::Null | BoundValue::Unset => None,
    })
}

/// Returns the function of a mask on a column of a type. Unlike a function in a statement, it needs no permission.
///
/// # Errors
/// If the function no longer exists.
pub(crate) fn function(
    schema: &Schema,
    ty: &CqlType,
    mask: &ColumnMask,
) -> Result<Arc<dyn ScalarFunction>, CqlError> {
    let ctx = PlanContext::new(schema, Some(&mask.keyspace), Markers::new(Vec::new()));
    let name = ast::FunctionName {
        keyspace: Some(ast::Ident(mask.keyspace.clone())),
        name: ast::Ident(mask.name.clone()),
    };
    let types: Vec<OfType<'_>> = std::iter::once(ty)
        .chain(mask.arguments.iter().map(|(ty, _)| ty))
        .map(OfType)
        .collect();
    let args: Vec<&dyn Assignable> = types.iter().map(|arg| arg as &dyn Assignable).collect();
    let site = CallSite {
        keyspace: &mask.keyspace,
        table: "",
        receiver: Some(ty),
    };
    let found = resolve(&ctx, &name, &args, site)?;
    let gone = || CqlError::Server(format!("the masking function {} is gone", mask.function_name()));
    found.ok_or_else(gone)?.into_scalar()
}
