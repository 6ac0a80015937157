//! Functions and aggregates of users: there are none, and none can be made. Answers are those of a Cassandra that has
//! them switched off, as it is by default.

use helenus_cql::ast::{self, FunctionName, TypeName};
use helenus_cql::error::CqlError;

use super::{DdlContext, no_keyspace, system_keyspace};
use crate::term::{qualified_type_name, resolve_type};

/// What CREATE FUNCTION is answered.
pub(super) fn refusal(ctx: &DdlContext<'_>, statement: &ast::CreateFunction) -> CqlError {
    if let Err(error) = keyspace_to_change(ctx, &statement.name) {
        return error;
    }
    if statement.or_replace && statement.if_not_exists {
        return both_directives();
    }
    CqlError::invalid(
        "User-defined functions are disabled in cassandra.yaml - set user_defined_functions_enabled=true to enable",
    )
}

/// What CREATE AGGREGATE is answered: Cassandra looks for the function of its state whether functions may be made or not.
pub(super) fn aggregate_refusal(ctx: &DdlContext<'_>, statement: &ast::CreateAggregate) -> CqlError {
    check_aggregate(ctx, statement).err().unwrap_or_else(|| {
        let keyspace = statement.name.keyspace.as_ref();
        let keyspace = keyspace
            .map(|name| name.as_str())
            .or(ctx.keyspace)
            .unwrap_or_default();
        let types = std::iter::once(&statement.state_type).chain(&statement.arg_types);
        let types: Vec<String> = types.map(|ty| qualified_type_name(ty, keyspace)).collect();
        CqlError::invalid(format!(
            "State function {keyspace}.{}({}) doesn't exist",
            statement.state_function,
            types.join(", ")
        ))
    })
}

fn check_aggregate(ctx: &DdlContext<'_>, statement: &ast::CreateAggregate) -> Result<(), CqlError> {
    let keyspace = keyspace_to_change(ctx, &statement.name)?;
    if ctx.schema.keyspace(keyspace).is_none() {
        return Err(CqlError::invalid(format!("Keyspace {keyspace} doesn't exist")));
    }
    if statement.or_replace && statement.if_not_exists {
        return Err(both_directives());
    }
    for ty in &statement.arg_types {
        check_not_frozen("Argument", ty, keyspace)?;
    }
    check_not_frozen("State type", &statement.state_type, keyspace)?;
    for ty in statement.arg_types.iter().chain([&statement.state_type]) {
        resolve_type(ctx.schema, keyspace, ty)?;
    }
    Ok(())
}

fn both_directives() -> CqlError {
    CqlError::invalid("Cannot use both 'OR REPLACE' and 'IF NOT EXISTS' directives")
}

/// The keyspace of a function, which must not be one of the server's own.
fn keyspace_to_change<'a>(ctx: &DdlContext<'a>, name: &'a FunctionName) -> Result<&'a str, CqlError> {
    const LOCAL: [&str; 4] = ["system", "system_schema", "system_views", "system_virtual_schema"];
    let keyspace = match &name.keyspace {
        Some(keyspace) => keyspace.as_str(),
        None => ctx.keyspace.ok_or_else(no_keyspace)?,
    };
    match LOCAL.contains(&keyspace) {
        true => Err(system_keyspace(keyspace)),
        false => Ok(keyspace),
    }
}

fn check_not_frozen(what: &str, ty: &TypeName, keyspace: &str) -> Result<(), CqlError> {
    if !matches!(ty, TypeName::Frozen(_)) {
        return Ok(());
    }
    let shown = qualified_type_name(ty, keyspace);
    Err(CqlError::invalid(format!(
        "{what} '{shown}' cannot be frozen; remove frozen<> modifier from '{shown}'"
    )))
}

/// What messages call a function that is to be dropped, after what Cassandra checks before it looks for it.
pub(super) fn to_drop(ctx: &DdlContext<'_>, statement: &ast::DropFunction) -> Result<String, CqlError> {
    let name = &statement.name;
    let keyspace = keyspace_to_change(ctx, name)?;
    let Some(types) = &statement.arg_types else {
        return Ok(format!("{keyspace}.{}", name.name));
    };
    if ctx.schema.keyspace(keyspace).is_some() {
        for ty in types {
            check_not_frozen("Argument", ty, keyspace)?;
            resolve_type(ctx.schema, keyspace, ty)?;
        }
    }
    let types: Vec<String> = types.iter().map(ToString::to_string).collect();
    Ok(format!("{keyspace}.{}({})", name.name, types.join(", ")))
}
