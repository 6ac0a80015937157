//! CREATE AGGREGATE (Cassandra's `CreateAggregateStatement`).

use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::ast;
use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;
use helenus_cql::value::{is_compatible_with, is_empty_meaningless};

use super::function::{self, Kind, raw_types};
use super::{Applied, Change, DdlContext, Effect, unchanged};
use crate::analysis::terms::Term;
use crate::analysis::types::resolve_type;
use crate::analysis::{EvalContext, PlanContext};
use crate::clock::SystemClock;
use crate::request::Markers;
use crate::response::{ColumnSpec, SchemaTarget};
use crate::schema::{Keyspace, UserAggregate, UserFunction, signature};

pub fn create(ctx: &DdlContext<'_>, statement: &ast::CreateAggregate) -> Applied {
    let keyspace_name = function::keyspace_to_change(ctx, &statement.name)?;
    // Cassandra resolves the types first, in order to check permissions on the functions.
    if ctx.schema.keyspace(keyspace_name).is_none() {
        return Err(CqlError::invalid(format!(
            "Keyspace {keyspace_name} doesn't exist"
        )));
    }
    let resolve = |ty| resolve_type(ctx.schema, keyspace_name, ty);
    let state_type = resolve(&statement.state_type)?;
    let arg_types = statement.arg_types.iter().map(resolve);
    let arg_types = arg_types.collect::<Result<Vec<CqlType>, CqlError>>()?;
    function::check_directives(statement.or_replace, statement.if_not_exists)?;
    function::check_name(Kind::Aggregate, statement.name.name.as_str())?;
    for ty in &statement.arg_types {
        function::check_not_frozen("Argument", ty, Some(keyspace_name))?;
    }
    function::check_not_frozen("State type", &statement.state_type, Some(keyspace_name))?;
    let keyspace = ctx.keyspace_to_change(keyspace_name)?;
    let aggregate = resolved(ctx, keyspace, statement, arg_types, state_type)?;
    let signature = aggregate.signature();
    if keyspace.functions.contains_key(&signature) {
        return Err(CqlError::invalid(format!(
            "Aggregate '{}' cannot replace a function",
            aggregate.name
        )));
    }
    let existing = keyspace.aggregates.get(&signature);
    let clauses = (statement.or_replace, statement.if_not_exists);
    let name = aggregate.name.as_str();
    let change = function::change_of(
        Kind::Aggregate,
        name,
        &aggregate,
        existing,
        clauses,
        check_replacement,
    )?;
    let Some(change) = change else { return unchanged() };
    let target = SchemaTarget::Aggregate {
        name: aggregate.name.clone(),
        arg_types: raw_types(&statement.arg_types, Some(keyspace_name)),
    };
    let mut keyspace = Keyspace::clone(keyspace);
    keyspace.aggregates.insert(signature, Arc::new(aggregate));
    let schema = ctx.schema.with_keyspace(keyspace);
    Ok(Effect::Changed(Change::new(
        schema,
        change,
        keyspace_name,
        target,
    )))
}

fn check_replacement(existing: &UserAggregate, aggregate: &UserAggregate) -> Result<(), CqlError> {
    match is_compatible_with(&aggregate.returns, &existing.returns) {
        true => Ok(()),
        false => Err(CqlError::invalid(format!(
            "Cannot replace aggregate '{}', the new return type {} isn't compatible with the return type {} of existing \
             function",
            aggregate.name, aggregate.returns, existing.returns
        ))),
    }
}

/// Returns the aggregate with its functions resolved.
fn resolved(
    ctx: &DdlContext<'_>,
    keyspace: &Keyspace,
    statement: &ast::CreateAggregate,
    arg_types: Vec<CqlType>,
    state_type: CqlType,
) -> Result<UserAggregate, CqlError> {
    let state_function = statement.state_function.as_str();
    let raw = std::iter::once(&statement.state_type).chain(&statement.arg_types);
    let types = std::iter::once(&state_type).chain(&arg_types);
    let state = scalar(keyspace, "State", state_function, raw.clone(), types)?;
    if state.returns != state_type {
        return Err(CqlError::invalid(format!(
            "State function {} return type must be the same as the first argument type - check STYPE, argument and \
             return types",
            shown(keyspace, state_function, raw)
        )));
    }
    let mut returns = state.returns.clone();
    if let Some(name) = &statement.final_function {
        let last = scalar(
            keyspace,
            "Final",
            name.as_str(),
            std::iter::once(&statement.state_type),
            std::iter::once(&state_type),
        )?;
        returns = last.returns.clone();
    }
    let initial = match &statement.initial_condition {
        Some(term) => initial(ctx, keyspace, term, &state_type)?,
        None => None,
    };
    if !state.is_called_on_null && initial.is_none() {
        return Err(CqlError::invalid(format!(
            "Cannot create aggregate '{}' without INITCOND because state function {}.{state_function} does not accept \
             'null' arguments",
            statement.name.name, keyspace.name
        )));
    }
    Ok(UserAggregate {
        keyspace: keyspace.name.clone(),
        name: statement.name.name.0.clone(),
        arg_types,
        state_function: state_function.to_owned(),
        state_type,
        final_function: statement.final_function.as_ref().map(|name| name.0.clone()),
        initial,
        returns,
    })
}

/// Returns the function of that name and these types. It must exist, and must not be an aggregate.
fn scalar<'a>(
    keyspace: &'a Keyspace,
    what: &str,
    name: &str,
    raw: impl Iterator<Item = &'a ast::TypeName>,
    types: impl Iterator<Item = &'a CqlType>,
) -> Result<&'a UserFunction, CqlError> {
    let signature = signature(name, types);
    if let Some(function) = keyspace.functions.get(&signature) {
        return Ok(function);
    }
    let why = match keyspace.aggregates.contains_key(&signature) {
        true => "isn't a scalar function",
        false => "doesn't exist",
    };
    let shown = shown(keyspace, name, raw);
    Err(CqlError::invalid(format!("{what} function {shown} {why}")))
}

fn shown<'a>(keyspace: &Keyspace, name: &str, raw: impl Iterator<Item = &'a ast::TypeName>) -> String {
    let types = raw_types(raw, Some(&keyspace.name));
    format!("{}.{name}({})", keyspace.name, types.join(", "))
}

/// Returns the serialized INITCOND. `None` if it is null.
fn initial(
    ctx: &DdlContext<'_>,
    keyspace: &Keyspace,
    term: &ast::Term,
    ty: &CqlType,
) -> Result<Option<Bytes>, CqlError> {
    let receiver = ColumnSpec::new(keyspace.name.as_str(), "--dummy--", "(dummy)", ty.clone());
    let mut plan = PlanContext::new(ctx.schema, Some(&keyspace.name), Markers::default());
    let value = Term::prepare(&mut plan, term, &receiver)?.value(&EvalContext {
        values: &[],
        clock: &SystemClock,
        protocol_version: 5,
    })?;
    let is_nothing = match &value {
        Some(value) => value.is_empty() && is_empty_meaningless(ty),
        None => true,
    };
    if is_nothing && *term != ast::Term::Null {
        return Err(CqlError::invalid(
            "INITCOND must not be empty for all types except TEXT, ASCII, BLOB",
        ));
    }
    Ok(value)
}
