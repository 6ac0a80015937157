//! The choice of the overload for a call (Cassandra's `FunctionResolver`).

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use helenus_cql::ast::FunctionName;
use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;
use helenus_cql::value::{Assignment, test_assignment};

use super::generic_functions::{self, GenericFunction};
use super::{Function, aggregate, blob, cast, length, math, operation, time, token, user};
use crate::analysis::PlanContext;
use crate::analysis::assignable::{Assignable, test_strictly};
use crate::response::ColumnSpec;

/// Name of the function whose arguments have the types of a table's partition key.
const TOKEN: &str = "token";

struct Registry {
    functions: HashMap<String, Vec<Function>>,
    factories: HashMap<String, GenericFunction>,
}

static REGISTRY: LazyLock<Registry> = LazyLock::new(|| {
    let mut functions: HashMap<String, Vec<Function>> = HashMap::new();
    let scalars = [
        time::functions(),
        blob::functions(),
        length::functions(),
        cast::functions(),
        math::functions(),
        operation::functions(),
    ];
    for function in scalars.into_iter().flatten() {
        let name = function.short_name().to_owned();
        functions
            .entry(name)
            .or_default()
            .push(Function::Scalar(Arc::new(function)));
    }
    for function in aggregate::functions() {
        let name = function.short_name().to_owned();
        functions
            .entry(name)
            .or_default()
            .push(Function::Aggregate(Arc::new(function)));
    }
    let factories = generic_functions::factories();
    let factories = factories
        .into_iter()
        .map(|factory| (factory.short_name().to_owned(), factory));
    Registry {
        functions,
        factories: factories.collect(),
    }
});

/// Returns the function that adds or concatenates two values of a type. `None` if there is no such function.
pub fn sum_of(ty: &CqlType) -> Option<Arc<dyn super::ScalarFunction>> {
    function_of("_add", ty)
}

/// Returns the function that subtracts two numbers of a type. `None` if there is no such function.
pub fn difference_of(ty: &CqlType) -> Option<Arc<dyn super::ScalarFunction>> {
    function_of("_substract", ty)
}

/// Returns the function of that name whose arguments are all of one type.
fn function_of(name: &str, ty: &CqlType) -> Option<Arc<dyn super::ScalarFunction>> {
    REGISTRY
        .functions
        .get(name)?
        .iter()
        .find_map(|function| match function {
            Function::Scalar(function) if function.arg_types().iter().all(|arg| arg == ty) => {
                Some(function.clone())
            }
            _ => None,
        })
}

/// Returns true if the function makes its overloads from the arguments.
pub fn has_factory(name: &FunctionName) -> bool {
    let short_name = name.name.as_str();
    is_native(name) && (short_name == TOKEN || REGISTRY.factories.contains_key(short_name))
}

fn is_native(name: &FunctionName) -> bool {
    name.keyspace.as_ref().is_none_or(|keyspace| keyspace == "system")
}

/// The context of a call: the table of `token`, and the receiver of the result.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallSite<'a> {
    pub keyspace: &'a str,
    pub table: &'a str,
    /// Type of the receiver. `None` in a select clause, where the type is unknown.
    pub receiver: Option<&'a CqlType>,
}

/// Returns the function of a call. `None` if there is no function of that name.
///
/// # Errors
/// `Invalid call to function …`, `Ambiguous call to function …`, `Type error: …` and the like.
pub fn resolve(
    ctx: &PlanContext<'_>,
    name: &FunctionName,
    args: &[&dyn Assignable],
    site: CallSite<'_>,
) -> Result<Option<Function>, CqlError> {
    let candidates = candidates(ctx, name, args, site)?;
    let function = match candidates.as_slice() {
        [] => return Ok(None),
        [only] => {
            validate_types(ctx, only, args, site)?;
            only.clone()
        }
        several => best_match(ctx, name, args, site, several)?,
    };
    ctx.executes(function.executed());
    Ok(Some(function))
}

fn candidates(
    ctx: &PlanContext<'_>,
    name: &FunctionName,
    args: &[&dyn Assignable],
    site: CallSite<'_>,
) -> Result<Vec<Function>, CqlError> {
    let short_name = name.name.as_str();
    // Functions of the statement's keyspace come before native ones.
    let keyspace = match &name.keyspace {
        Some(keyspace) => keyspace.as_str(),
        None if site.keyspace.is_empty() => ctx.keyspace.unwrap_or_default(),
        None => site.keyspace,
    };
    let mut candidates = user::named(ctx.schema, keyspace, short_name)?;
    if !is_native(name) {
        return Ok(candidates);
    }
    if short_name == TOKEN {
        candidates.push(token_of(ctx, site)?);
        return Ok(candidates);
    }
    candidates.extend(REGISTRY.functions.get(short_name).into_iter().flatten().cloned());
    if let Some(factory) = REGISTRY.factories.get(short_name) {
        candidates.push(factory.function(ctx, args, site.receiver)?);
    }
    Ok(candidates)
}

fn token_of(ctx: &PlanContext<'_>, site: CallSite<'_>) -> Result<Function, CqlError> {
    let name = "system.token";
    if site.keyspace.is_empty() {
        return Err(CqlError::invalid(format!(
            "No receiver keyspace has been specified for function {name}"
        )));
    }
    if site.table.is_empty() {
        return Err(CqlError::invalid(format!(
            "No receiver table has been specified for function {name}"
        )));
    }
    let table = ctx.schema.table(site.keyspace, site.table).ok_or_else(|| {
        CqlError::invalid(format!(
            "The receiver table {}.{} specified by call to function {name} hasn't been found",
            site.keyspace, site.table
        ))
    })?;
    Ok(Function::Scalar(Arc::new(token::function(table))))
}

/// Returns the specification of a parameter, as messages name it.
pub fn argument_spec(function: &Function, position: usize, site: CallSite<'_>) -> ColumnSpec {
    let ty = function
        .arg_types()
        .get(position)
        .cloned()
        .unwrap_or(CqlType::BLOB);
    let name = format!("arg{position}({})", function.name().to_lowercase());
    ColumnSpec::new(site.keyspace, site.table, name, ty)
}

fn validate_types(
    ctx: &PlanContext<'_>,
    function: &Function,
    args: &[&dyn Assignable],
    site: CallSite<'_>,
) -> Result<(), CqlError> {
    let (name, expected) = (function.name(), function.arg_types().len());
    if args.len() != expected {
        return Err(CqlError::invalid(format!(
            "Invalid number of arguments in call to function {name}: {expected} required but {} provided",
            args.len()
        )));
    }
    for (position, arg) in args.iter().enumerate() {
        let spec = argument_spec(function, position, site);
        if !test_strictly(ctx, *arg, &spec)?.is_assignable() {
            return Err(CqlError::invalid(format!(
                "Type error: {} cannot be passed as argument {position} of function {name} of type {}",
                arg.text(),
                spec.ty
            )));
        }
    }
    Ok(())
}

fn match_arguments(
    ctx: &PlanContext<'_>,
    function: &Function,
    args: &[&dyn Assignable],
    site: CallSite<'_>,
) -> Result<Assignment, CqlError> {
    if args.len() != function.arg_types().len() {
        return Ok(Assignment::NotAssignable);
    }
    let mut worst = Assignment::ExactMatch;
    for (position, arg) in args.iter().enumerate() {
        let fit = test_strictly(ctx, *arg, &argument_spec(function, position, site))?;
        if !fit.is_assignable() {
            return Ok(fit);
        }
        worst = Assignment::worst([worst, fit]);
    }
    Ok(worst)
}

fn best_match(
    ctx: &PlanContext<'_>,
    name: &FunctionName,
    args: &[&dyn Assignable],
    site: CallSite<'_>,
    candidates: &[Function],
) -> Result<Function, CqlError> {
    let returns_what_is_wanted = |function: &Function| {
        site.receiver
            .is_none_or(|receiver| test_assignment(function.return_type(), receiver).is_assignable())
    };
    let mut compatible = Vec::new();
    for function in candidates
        .iter()
        .filter(|function| returns_what_is_wanted(function))
    {
        match match_arguments(ctx, function, args, site)? {
            Assignment::ExactMatch => return Ok(function.clone()),
            Assignment::WeaklyAssignable => compatible.push(function.clone()),
            Assignment::NotAssignable => {}
        }
    }
    match compatible.as_slice() {
        [] => Err(no_match(name, args, candidates)),
        [only] => Ok(only.clone()),
        several => disambiguate(name, args, site, several),
    }
}

fn operator_of(name: &FunctionName) -> Option<char> {
    let symbol = operation::symbol_of(name.name.as_str())?;
    is_of_system(name).then_some(symbol)
}

/// Returns true if the name is qualified by the keyspace `system`, as the names of operators are. A user-defined function may have an
/// operator's name in another keyspace.
fn is_of_system(name: &FunctionName) -> bool {
    name.keyspace
        .as_ref()
        .is_some_and(|keyspace| *keyspace == "system")
}

fn texts(args: &[&dyn Assignable]) -> (String, String) {
    let text = |position: usize| args.get(position).map(|arg| arg.text()).unwrap_or_default();
    (text(0), text(1))
}

fn signatures(functions: &[Function]) -> String {
    functions
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

fn no_match(name: &FunctionName, args: &[&dyn Assignable], candidates: &[Function]) -> CqlError {
    let (left, right) = texts(args);
    CqlError::invalid(match operator_of(name) {
        Some(symbol) => format!("the '{symbol}' operation is not supported between {left} and {right}"),
        None => format!(
            "Invalid call to function {name}, none of its type signatures match (known type signatures: {})",
            signatures(candidates)
        ),
    })
}

fn disambiguate(
    name: &FunctionName,
    args: &[&dyn Assignable],
    site: CallSite<'_>,
    compatible: &[Function],
) -> Result<Function, CqlError> {
    if let Some(symbol) = operator_of(name) {
        if let Some(receiver) = site.receiver
            && !args.iter().any(|arg| arg.is_marker())
            && let Some(function) = compatible
                .iter()
                .find(|function| function.arg_types().iter().all(|ty| ty == receiver))
        {
            return Ok(function.clone());
        }
        let (left, right) = texts(args);
        return Err(CqlError::invalid(format!(
            "Ambiguous '{symbol}' operation with args {left} and {right}: use type hint to disambiguate, example '(int) ?'"
        )));
    }
    if name.name == "_negate" && is_of_system(name) {
        return Err(CqlError::invalid(
            "Ambiguous negation: use type casts to disambiguate",
        ));
    }
    Err(CqlError::invalid(format!(
        "Ambiguous call to function {name} (can be matched by following signatures: {}): use type casts to disambiguate",
        signatures(compatible)
    )))
}
