//! CREATE FUNCTION, and DROP FUNCTION and DROP AGGREGATE (Cassandra's `CreateFunctionStatement`, `DropFunctionStatement`,
//! `DropAggregateStatement`).

use std::sync::Arc;

use helenus_cql::ast::{self, FunctionName, TypeName};
use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;
use helenus_cql::value::is_compatible_with;

use super::{Applied, Change, DdlContext, Effect, system_keyspace, unchanged};
use crate::analysis::types::resolve_type;
use crate::request::no_keyspace;
use crate::response::{ChangeKind, SchemaTarget};
use crate::schema::{Keyspace, UserAggregate, UserFunction, signature};

pub fn create(ctx: &DdlContext<'_>, statement: &ast::CreateFunction) -> Applied {
    let keyspace_name = keyspace_to_change(ctx, &statement.name)?;
    check_directives(statement.or_replace, statement.if_not_exists)?;
    if statement.language != "java" {
        return Err(CqlError::invalid(
            "Currently only Java UDFs are available in Cassandra. For more information - CASSANDRA-18252 and CASSANDRA-17281",
        ));
    }
    check_name(Kind::Function, statement.name.name.as_str())?;
    check_argument_names(statement)?;
    let (name, count) = (statement.name.name.as_str(), statement.args.len());
    let has_overload = |keyspace: &Arc<Keyspace>| has_overload(keyspace, name, count);
    // Messages show the types as they were written. If there is an overload, Cassandra has resolved them before, and shows their keyspace.
    let qualifier = ctx.schema.keyspace(keyspace_name).is_some_and(has_overload);
    for (_, ty) in &statement.args {
        check_not_frozen("Argument", ty, qualifier.then_some(keyspace_name))?;
    }
    check_not_frozen("Return type", &statement.returns, None)?;
    let keyspace = ctx.keyspace_to_change(keyspace_name)?;
    let function = compiled(ctx, keyspace_name, statement)?;
    let signature = function.signature();
    let existing = keyspace.functions.get(&signature);
    if keyspace.aggregates.contains_key(&signature) {
        return Err(CqlError::invalid(format!(
            "Function '{}' cannot replace an aggregate",
            function.name
        )));
    }
    let clauses = (statement.or_replace, statement.if_not_exists);
    let change = change_of(
        Kind::Function,
        name,
        &function,
        existing,
        clauses,
        check_replacement,
    )?;
    let Some(change) = change else { return unchanged() };
    let target = SchemaTarget::Function {
        name: function.name.clone(),
        arg_types: raw_types(statement.args.iter().map(|(_, ty)| ty), Some(keyspace_name)),
    };
    let mut keyspace = Keyspace::clone(keyspace);
    keyspace.functions.insert(signature, Arc::new(function));
    let schema = ctx.schema.with_keyspace(keyspace);
    Ok(Effect::Changed(Change::new(
        schema,
        change,
        keyspace_name,
        target,
    )))
}

/// Returns the effect of a CREATE on a function or an aggregate. `None` if the existing one stays. `clauses` are OR REPLACE and IF NOT
/// EXISTS.
pub(crate) fn change_of<T: PartialEq>(
    kind: Kind,
    name: &str,
    new: &T,
    existing: Option<&Arc<T>>,
    (or_replace, if_not_exists): (bool, bool),
    check_replacement: impl FnOnce(&T, &T) -> Result<(), CqlError>,
) -> Result<Option<ChangeKind>, CqlError> {
    let Some(existing) = existing else {
        return Ok(Some(ChangeKind::Created));
    };
    if if_not_exists {
        return Ok(None);
    }
    if !or_replace {
        return Err(CqlError::invalid(format!(
            "{} '{name}' already exists",
            kind.word()
        )));
    }
    check_replacement(existing, new)?;
    Ok((**existing != *new).then_some(ChangeKind::Updated))
}

fn has_overload(keyspace: &Keyspace, name: &str, count: usize) -> bool {
    let is_function =
        |function: &Arc<UserFunction>| function.name == name && function.arguments.len() == count;
    let is_aggregate =
        |aggregate: &Arc<UserAggregate>| aggregate.name == name && aggregate.arg_types.len() == count;
    keyspace.functions.values().any(is_function) || keyspace.aggregates.values().any(is_aggregate)
}

fn check_argument_names(statement: &ast::CreateFunction) -> Result<(), CqlError> {
    let names: Vec<&str> = statement.args.iter().map(|(name, _)| name.as_str()).collect();
    let is_known = |(position, name): (usize, &&str)| names.iter().take(position).any(|known| known == name);
    if !names.iter().enumerate().any(is_known) {
        return Ok(());
    }
    Err(CqlError::invalid(format!(
        "Duplicate argument names for given function {} with argument names [{}]",
        statement.name.name,
        names.join(", ")
    )))
}

/// Refuses an argument name that is no Java name, because arguments are parameters of a Java method.
fn check_java_name(name: &str) -> Result<(), CqlError> {
    match helenus_java::is_name(name) {
        true => Ok(()),
        false => Err(CqlError::invalid(format!(
            "Java source compilation failed:\nGENERATED SOURCE ERROR: '{name}' can't be the name of a parameter\n"
        ))),
    }
}

/// Returns the function with its body compiled.
fn compiled(
    ctx: &DdlContext<'_>,
    keyspace: &str,
    statement: &ast::CreateFunction,
) -> Result<UserFunction, CqlError> {
    let mut arguments = Vec::with_capacity(statement.args.len());
    for (name, ty) in &statement.args {
        arguments.push((name.0.clone(), resolve_type(ctx.schema, keyspace, ty)?));
    }
    let function = UserFunction::new(
        keyspace,
        statement.name.name.as_str(),
        arguments,
        resolve_type(ctx.schema, keyspace, &statement.returns)?,
        statement.called_on_null_input,
        &statement.language,
        &statement.body,
    );
    for (name, _) in &statement.args {
        check_java_name(name.as_str())?;
    }
    match function.code() {
        Ok(_) => Ok(function),
        Err(error) => Err(CqlError::invalid(error.to_string())),
    }
}

fn check_replacement(existing: &UserFunction, function: &UserFunction) -> Result<(), CqlError> {
    let name = &function.name;
    if function.is_called_on_null != existing.is_called_on_null {
        // Cassandra's message names the directive of the new function, not the one that it should have.
        let directive = match function.is_called_on_null {
            true => "CALLED ON NULL INPUT",
            false => "RETURNS NULL ON NULL INPUT",
        };
        return Err(CqlError::invalid(format!(
            "Function '{name}' must have {directive} directive"
        )));
    }
    match is_compatible_with(&function.returns, &existing.returns) {
        true => Ok(()),
        false => Err(CqlError::invalid(format!(
            "Cannot replace function '{name}', the new return type {} is not compatible with the return type {} of \
             existing function",
            function.returns, existing.returns
        ))),
    }
}

/// Kind of a routine with a name and argument types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Function,
    Aggregate,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Kind::Function => "Function",
            Kind::Aggregate => "Aggregate",
        }
    }

    fn has(self, keyspace: &Keyspace, signature: &str) -> bool {
        match self {
            Kind::Function => keyspace.functions.contains_key(signature),
            Kind::Aggregate => keyspace.aggregates.contains_key(signature),
        }
    }
}

pub fn drop(ctx: &DdlContext<'_>, statement: &ast::DropFunction, kind: Kind) -> Applied {
    let keyspace_name = keyspace_to_change(ctx, &statement.name)?;
    let keyspace = ctx.schema.keyspace(keyspace_name);
    let overloads = keyspace.map(|keyspace| overloads(keyspace, statement.name.name.as_str()));
    let overloads = overloads.unwrap_or_default();
    // Cassandra resolves the types when it checks permissions on overloads, so they are shown with their keyspace.
    let qualifier = (!overloads.is_empty()).then_some(keyspace_name);
    let mut shown = format!("{keyspace_name}.{}", statement.name.name);
    if let Some(types) = &statement.arg_types {
        shown = format!("{shown}({})", raw_types(types, qualifier).join(", "));
    }
    let found = match keyspace {
        Some(keyspace) => {
            let signature = meant(ctx, statement, kind, keyspace, &overloads, qualifier)?;
            signature.map(|signature| (keyspace, signature))
        }
        None => None,
    };
    let Some((keyspace, signature)) = found else {
        return match statement.if_exists {
            true => unchanged(),
            false => Err(CqlError::invalid(format!(
                "{} '{shown}' doesn't exist",
                kind.word()
            ))),
        };
    };
    let mut without = Keyspace::clone(keyspace);
    let target = match kind {
        Kind::Function => {
            check_unused(keyspace, &signature, &shown)?;
            check_masks_nothing(keyspace, &signature, &shown)?;
            let dropped = without.functions.remove(&signature);
            dropped.map(|function| target_of(&function))
        }
        Kind::Aggregate => {
            let dropped = without.aggregates.remove(&signature);
            dropped.map(|aggregate| target_of_aggregate(&aggregate))
        }
    };
    let Some(target) = target else {
        return unchanged();
    };
    let schema = ctx.schema.with_keyspace(without);
    Ok(Effect::Changed(Change::new(
        schema,
        ChangeKind::Dropped,
        keyspace_name,
        target,
    )))
}

/// Returns the target of events about a function.
pub(crate) fn target_of(function: &UserFunction) -> SchemaTarget {
    SchemaTarget::Function {
        name: function.name.clone(),
        arg_types: function.arg_types().map(ToString::to_string).collect(),
    }
}

/// Returns the signatures of the functions and aggregates of that name.
fn overloads(keyspace: &Keyspace, name: &str) -> Vec<(Kind, String)> {
    let functions = keyspace.functions.iter();
    let functions = functions.filter(|(_, function)| function.name == name);
    let aggregates = keyspace.aggregates.iter();
    let aggregates = aggregates.filter(|(_, aggregate)| aggregate.name == name);
    functions
        .map(|(signature, _)| (Kind::Function, signature.clone()))
        .chain(aggregates.map(|(signature, _)| (Kind::Aggregate, signature.clone())))
        .collect()
}

/// Returns the signature of the function or aggregate to drop. `None` if it does not exist.
fn meant(
    ctx: &DdlContext<'_>,
    statement: &ast::DropFunction,
    kind: Kind,
    keyspace: &Keyspace,
    overloads: &[(Kind, String)],
    qualifier: Option<&str>,
) -> Result<Option<String>, CqlError> {
    let name = statement.name.name.as_str();
    let Some(types) = &statement.arg_types else {
        if overloads.len() > 1 {
            let word = kind.word().to_uppercase();
            return Err(CqlError::invalid(format!(
                "'DROP {word} {name}' matches multiple function definitions; specify the argument types by issuing a \
                 statement like 'DROP {word} {name} (type, type, ...)'. You can use cqlsh 'DESCRIBE {word} {name}' \
                 command to find all overloads"
            )));
        }
        let only = overloads.iter().find(|(found, _)| *found == kind);
        return Ok(only.map(|(_, signature)| signature.clone()));
    };
    for ty in types {
        check_not_frozen("Argument", ty, qualifier)?;
    }
    let types = types
        .iter()
        .map(|ty| resolve_type(ctx.schema, &keyspace.name, ty));
    let types = types.collect::<Result<Vec<CqlType>, CqlError>>()?;
    let signature = signature(name, &types);
    Ok(kind.has(keyspace, &signature).then_some(signature))
}

/// Refuses to drop a function that an aggregate needs.
fn check_unused(keyspace: &Keyspace, signature: &str, shown: &str) -> Result<(), CqlError> {
    let users: Vec<String> = keyspace
        .aggregates
        .values()
        .filter(|aggregate| aggregate.calls(signature))
        .map(|aggregate| format!("{}.{}", keyspace.name, aggregate.name))
        .collect();
    match users.is_empty() {
        true => Ok(()),
        false => Err(CqlError::invalid(format!(
            "Function '{shown}' is still referenced by aggregates {}",
            users.join(", ")
        ))),
    }
}

/// Refuses to drop a function that a column mask needs.
fn check_masks_nothing(keyspace: &Keyspace, function: &str, shown: &str) -> Result<(), CqlError> {
    let tables = keyspace.tables.values().filter(|table| !table.is_view());
    let masked = tables.filter(|table| table.is_masked_by(&keyspace.name, function));
    let names: Vec<&str> = masked.map(|table| table.name.as_str()).collect();
    match names.is_empty() {
        true => Ok(()),
        false => Err(CqlError::invalid(format!(
            "Function '{shown}' is still referenced by column masks in tables {}",
            names.join(", ")
        ))),
    }
}

pub(crate) fn check_directives(or_replace: bool, if_not_exists: bool) -> Result<(), CqlError> {
    match or_replace && if_not_exists {
        true => Err(CqlError::invalid(
            "Cannot use both 'OR REPLACE' and 'IF NOT EXISTS' directives",
        )),
        false => Ok(()),
    }
}

/// Refuses names that could not be part of the name of a permission's resource.
pub(crate) fn check_name(kind: Kind, name: &str) -> Result<(), CqlError> {
    match name.contains(['/', '[', ']']) {
        true => Err(CqlError::invalid(format!(
            "{} name '{name}' is invalid",
            kind.word()
        ))),
        false => Ok(()),
    }
}

/// Returns the keyspace of a function. It must not be one of the server's own.
pub(crate) fn keyspace_to_change<'a>(
    ctx: &DdlContext<'a>,
    name: &'a FunctionName,
) -> Result<&'a str, CqlError> {
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

/// Refuses `frozen` on types for which it has no meaning. Tuples and vectors may have it, since they are always frozen.
pub(crate) fn check_not_frozen(what: &str, ty: &TypeName, qualifier: Option<&str>) -> Result<(), CqlError> {
    let mut inner = ty;
    while let TypeName::Frozen(within) = inner {
        inner = within;
    }
    if std::ptr::eq(inner, ty) || matches!(inner, TypeName::Tuple(_) | TypeName::Vector { .. }) {
        return Ok(());
    }
    let shown = raw_type(ty, qualifier, false);
    Err(CqlError::invalid(format!(
        "{what} '{shown}' cannot be frozen; remove frozen<> modifier from '{shown}'"
    )))
}

/// Returns types as Cassandra shows parsed types: all types within a frozen one are shown as frozen, except tuples and vectors. User types
/// have the keyspace `qualifier` if they have been resolved.
pub(crate) fn raw_types<'a>(
    types: impl IntoIterator<Item = &'a TypeName>,
    qualifier: Option<&str>,
) -> Vec<String> {
    let types = types.into_iter();
    types.map(|ty| raw_type(ty, qualifier, false)).collect()
}

fn raw_type(ty: &TypeName, qualifier: Option<&str>, is_frozen: bool) -> String {
    let within = |ty: &TypeName| raw_type(ty, qualifier, is_frozen);
    let text = match ty {
        TypeName::Native(_) | TypeName::Custom(_) => return ty.to_string(),
        TypeName::Frozen(inner) => return raw_type(inner, qualifier, true),
        TypeName::Tuple(elements) => {
            let elements: Vec<String> = elements.iter().map(|ty| raw_type(ty, qualifier, true)).collect();
            return format!("tuple<{}>", elements.join(", "));
        }
        TypeName::Vector { element, dimension } => {
            return format!("vector<{}, {dimension}>", raw_type(element, qualifier, false));
        }
        TypeName::List(element) => format!("list<{}>", within(element)),
        TypeName::Set(element) => format!("set<{}>", within(element)),
        TypeName::Map(key, value) => format!("map<{}, {}>", within(key), within(value)),
        TypeName::UserType(name) => match (&name.keyspace, qualifier) {
            (None, Some(keyspace)) => format!("{keyspace}.{name}"),
            _ => name.to_string(),
        },
    };
    match is_frozen {
        true => format!("frozen<{text}>"),
        false => text,
    }
}

/// Returns the target of events about an aggregate.
pub(crate) fn target_of_aggregate(aggregate: &UserAggregate) -> SchemaTarget {
    SchemaTarget::Aggregate {
        name: aggregate.name.clone(),
        arg_types: aggregate.arg_types.iter().map(ToString::to_string).collect(),
    }
}
