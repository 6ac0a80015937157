//! Tests whether a raw term fits a receiver (Cassandra's `AssignmentTestable`).

use std::cell::RefCell;
use std::collections::HashMap;

use helenus_cql::ast;
use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;
use helenus_cql::value::{self, Assignment};

use crate::analysis::PlanContext;
use crate::analysis::assignable::{Assignable, part_spec};
use crate::analysis::functions::{self, Function, has_factory};
use crate::analysis::types::resolve_type;
use crate::response::ColumnSpec;

/// A raw term as an assignable value.
pub struct RawTerm<'a>(pub &'a ast::Term);

impl Assignable for RawTerm<'_> {
    fn test(&self, ctx: &PlanContext<'_>, receiver: &ColumnSpec) -> Assignment {
        test_term(ctx, self.0, receiver)
    }

    fn exact_type(&self, ctx: &PlanContext<'_>) -> Option<CqlType> {
        exact_term_type(ctx, self.0)
    }

    fn compatible_type(&self, ctx: &PlanContext<'_>) -> Option<CqlType> {
        compatible_term_type(ctx, self.0)
    }

    fn text(&self) -> String {
        self.0.to_string()
    }

    fn is_marker(&self) -> bool {
        matches!(self.0, ast::Term::Marker(_))
    }

    fn is_array(&self) -> bool {
        matches!(self.0, ast::Term::List(_))
    }
}

fn test_term(ctx: &PlanContext<'_>, term: &ast::Term, receiver: &ColumnSpec) -> Assignment {
    let part = |ty: &CqlType| part_spec(receiver, "", ty.clone());
    match term {
        ast::Term::Null if receiver.ty.is_counter() => Assignment::NotAssignable,
        ast::Term::Null | ast::Term::Marker(_) => Assignment::WeaklyAssignable,
        ast::Term::Literal(literal) => literal.kind.test_assignment(&literal.text, &receiver.ty),
        ast::Term::List(elements) => match &receiver.ty {
            CqlType::List { element, .. } => test_all(ctx, elements, &part(element)),
            CqlType::Vector { element, dimension } if *dimension as usize == elements.len() => {
                test_all(ctx, elements, &part(element))
            }
            _ => Assignment::NotAssignable,
        },
        ast::Term::Set(elements) => match &receiver.ty {
            CqlType::Set { element, .. } => test_all(ctx, elements, &part(element)),
            CqlType::Map { .. } if elements.is_empty() => Assignment::WeaklyAssignable,
            _ => Assignment::NotAssignable,
        },
        ast::Term::Map(entries) => match &receiver.ty {
            CqlType::Map { key, value, .. } => {
                let (key, value) = (part(key), part(value));
                let weak = if entries.is_empty() {
                    Assignment::WeaklyAssignable
                } else {
                    Assignment::ExactMatch
                };
                Assignment::worst(
                    entries
                        .iter()
                        .flat_map(|(k, v)| [test_term(ctx, k, &key), test_term(ctx, v, &value)])
                        .chain([weak]),
                )
            }
            _ => Assignment::NotAssignable,
        },
        ast::Term::UserType(fields) => match &receiver.ty {
            CqlType::Udt { definition, .. } => {
                // A field that the type lacks is reported when the literal is prepared.
                let fits = |(name, term): &(ast::Ident, ast::Term)| {
                    definition
                        .fields
                        .iter()
                        .find(|field| field.name == name.as_str())
                        .is_none_or(|field| test_term(ctx, term, &part(&field.ty)).is_assignable())
                };
                if fields.iter().all(fits) {
                    Assignment::WeaklyAssignable
                } else {
                    Assignment::NotAssignable
                }
            }
            _ => Assignment::NotAssignable,
        },
        ast::Term::Tuple(elements) => match &receiver.ty {
            CqlType::Tuple(types) if elements.len() <= types.len() => {
                test_components(ctx, elements, types.iter(), receiver)
            }
            // A user type is a tuple too.
            CqlType::Udt { definition, .. } if elements.len() <= definition.fields.len() => {
                let types = definition.fields.iter().map(|field| &field.ty);
                test_components(ctx, elements, types, receiver)
            }
            CqlType::Tuple(_) | CqlType::Udt { .. } => Assignment::NotAssignable,
            // A value in parentheses.
            _ => match elements.as_slice() {
                [value] => test_term(ctx, value, receiver),
                _ => Assignment::NotAssignable,
            },
        },
        ast::Term::Function { .. }
        | ast::Term::Cast { .. }
        | ast::Term::Operation { .. }
        | ast::Term::Negation(_) => match call_return_type(ctx, term, Some(receiver)) {
            // The result type follows from the arguments. Whether it fits is checked when the term is prepared.
            Ok(_) if is_made_by_factory(term) => Assignment::WeaklyAssignable,
            Ok(ty) => fit(&ty, &receiver.ty),
            // The error is reported when the term is prepared.
            Err(_) => Assignment::WeaklyAssignable,
        },
        // The type is checked when the term is prepared.
        ast::Term::Reference(_) => Assignment::WeaklyAssignable,
        ast::Term::TypeHint { ty, .. } => match resolve_type(ctx.schema, &receiver.keyspace, ty) {
            Ok(ty) => fit(&ty, &receiver.ty),
            Err(_) => Assignment::NotAssignable,
        },
    }
}

fn is_made_by_factory(term: &ast::Term) -> bool {
    matches!(term, ast::Term::Function { name, .. } if has_factory(name))
}

/// Returns how well a type fits a receiver. Frozen types are distinguished from types that are not frozen.
fn fit(ty: &CqlType, receiver: &CqlType) -> Assignment {
    if ty == receiver {
        Assignment::ExactMatch
    } else if value::is_value_compatible_with(receiver, ty) {
        Assignment::WeaklyAssignable
    } else {
        Assignment::NotAssignable
    }
}

fn test_all(ctx: &PlanContext<'_>, elements: &[ast::Term], receiver: &ColumnSpec) -> Assignment {
    if elements.is_empty() {
        return Assignment::WeaklyAssignable;
    }
    Assignment::worst(elements.iter().map(|element| test_term(ctx, element, receiver)))
}

/// Returns the type of a raw term. `None` if the type depends on a receiver (Cassandra's `Term.Raw.getExactTypeIfKnown`).
pub fn exact_term_type(ctx: &PlanContext<'_>, term: &ast::Term) -> Option<CqlType> {
    let keyspace = ctx.keyspace.unwrap_or_default();
    let exact = |term: &ast::Term| exact_term_type(ctx, term);
    match term {
        ast::Term::Null
        | ast::Term::Marker(_)
        | ast::Term::UserType(_)
        | ast::Term::Literal(_)
        | ast::Term::List(_) => None,
        ast::Term::Set(elements) => elements.iter().find_map(exact).map(|ty| CqlType::set(ty, true)),
        ast::Term::Map(entries) => {
            let key = entries.iter().find_map(|(key, _)| exact(key))?;
            let value = entries.iter().find_map(|(_, value)| exact(value))?;
            Some(CqlType::map(key, value, true))
        }
        ast::Term::Tuple(elements) => {
            let types = elements.iter().map(exact);
            Some(CqlType::tuple(types.collect::<Option<Vec<_>>>()?))
        }
        ast::Term::Function { .. }
        | ast::Term::Cast { .. }
        | ast::Term::Operation { .. }
        | ast::Term::Negation(_) => call_return_type(ctx, term, None).ok(),
        ast::Term::Reference(_) => None,
        ast::Term::TypeHint { ty, .. } => resolve_type(ctx.schema, keyspace, ty).ok(),
    }
}

fn test_components<'t>(
    ctx: &PlanContext<'_>,
    elements: &[ast::Term],
    types: impl Iterator<Item = &'t CqlType>,
    receiver: &ColumnSpec,
) -> Assignment {
    let fits = |(term, ty): (&ast::Term, &CqlType)| {
        let spec = part_spec(receiver, receiver.name.clone(), ty.clone());
        test_term(ctx, term, &spec).is_assignable()
    };
    match elements.iter().zip(types).all(fits) {
        true => Assignment::WeaklyAssignable,
        false => Assignment::NotAssignable,
    }
}

/// Returns the exact type of a raw term, or else a type that it is compatible with (`Term.Raw.getCompatibleTypeIfKnown`).
fn compatible_term_type(ctx: &PlanContext<'_>, term: &ast::Term) -> Option<CqlType> {
    let compatible = |term: &ast::Term| compatible_term_type(ctx, term);
    match term {
        ast::Term::Literal(literal) => Some(literal.kind.preferred_type(&literal.text)),
        ast::Term::Set(elements) => {
            common_type(elements.iter().map(compatible)).map(|ty| CqlType::set(ty, true))
        }
        ast::Term::Map(entries) => {
            let key = common_type(entries.iter().map(|(key, _)| compatible(key)))?;
            let value = common_type(entries.iter().map(|(_, value)| compatible(value)))?;
            Some(CqlType::map(key, value, true))
        }
        ast::Term::Tuple(elements) => {
            let types = elements.iter().map(compatible);
            Some(CqlType::tuple(types.collect::<Option<Vec<_>>>()?))
        }
        other => exact_term_type(ctx, other),
    }
}

/// Returns the first of the types that all other types are compatible with.
pub fn common_type(types: impl Iterator<Item = Option<CqlType>>) -> Option<CqlType> {
    let types: Vec<CqlType> = types.flatten().collect();
    let takes_all = |ty: &&CqlType| {
        types
            .iter()
            .all(|other| value::test_assignment(other, ty).is_assignable())
    };
    types.iter().find(takes_all).cloned()
}

/// Returns the function of a call, a cast or an operation, and its arguments.
pub(crate) fn resolve_call<'t>(
    ctx: &PlanContext<'_>,
    term: &'t ast::Term,
    receiver: Option<&ColumnSpec>,
) -> Result<(Function, Vec<&'t ast::Term>), CqlError> {
    match term {
        ast::Term::Function { name, args } => {
            let args: Vec<&ast::Term> = args.iter().collect();
            Ok((resolve_named(ctx, name, &args, receiver)?, args))
        }
        ast::Term::Operation {
            operator,
            left,
            right,
        } => {
            let name = ast::FunctionName::native(operator.function_name());
            let args = vec![left.as_ref(), right.as_ref()];
            Ok((resolve_named(ctx, &name, &args, receiver)?, args))
        }
        ast::Term::Negation(inner) => {
            let name = ast::FunctionName::native("_negate");
            let args = vec![inner.as_ref()];
            Ok((resolve_named(ctx, &name, &args, receiver)?, args))
        }
        ast::Term::Cast { term: inner, ty } => {
            let args = vec![inner.as_ref()];
            Ok((
                resolve_named(ctx, &functions::cast_function(*ty), &args, receiver)?,
                args,
            ))
        }
        other => Err(CqlError::Server(format!("not a call: {other}"))),
    }
}

fn resolve_named(
    ctx: &PlanContext<'_>,
    name: &ast::FunctionName,
    args: &[&ast::Term],
    receiver: Option<&ColumnSpec>,
) -> Result<Function, CqlError> {
    let raw: Vec<RawTerm<'_>> = args.iter().map(|arg| RawTerm(arg)).collect();
    let assignable: Vec<&dyn Assignable> = raw.iter().map(|arg| arg as &dyn Assignable).collect();
    functions::resolve_for_term(ctx, name, &assignable, receiver)
}

/// Result types of the calls that are being resolved, by the term's address and the receiver's type. Without them, each tried overload
/// would resolve its arguments again, in a time that is exponential in the nesting.
#[derive(Default)]
struct ReturnTypes {
    depth: usize,
    known: HashMap<(usize, Option<CqlType>), Result<CqlType, CqlError>>,
}

thread_local! {
    static RETURN_TYPES: RefCell<ReturnTypes> = RefCell::default();
}

/// A guard that keeps the cache of result types. The terms must live as long as the guard, because the cache has their addresses.
pub(crate) struct ReturnTypeCacheGuard;

impl ReturnTypeCacheGuard {
    pub fn start() -> ReturnTypeCacheGuard {
        RETURN_TYPES.with_borrow_mut(|types| types.depth += 1);
        ReturnTypeCacheGuard
    }
}

impl Drop for ReturnTypeCacheGuard {
    fn drop(&mut self) {
        RETURN_TYPES.with_borrow_mut(|types| {
            types.depth -= 1;
            if types.depth == 0 {
                types.known.clear();
            }
        });
    }
}

/// Returns the type that a call, a cast or an operation returns.
fn call_return_type(
    ctx: &PlanContext<'_>,
    term: &ast::Term,
    receiver: Option<&ColumnSpec>,
) -> Result<CqlType, CqlError> {
    let _remembering = ReturnTypeCacheGuard::start();
    let key = (
        std::ptr::from_ref(term) as usize,
        receiver.map(|spec| spec.ty.clone()),
    );
    if let Some(known) = RETURN_TYPES.with_borrow(|types| types.known.get(&key).cloned()) {
        return known;
    }
    let result = resolve_call(ctx, term, receiver).map(|(function, _)| function.return_type().clone());
    RETURN_TYPES.with_borrow_mut(|types| types.known.insert(key, result.clone()));
    result
}
