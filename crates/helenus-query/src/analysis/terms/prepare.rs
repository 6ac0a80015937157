//! Preparation of raw terms, with Cassandra's checks and messages (`Constants`, `Lists`, `Sets`, `Maps`, `Tuples`, `UserTypes`, `Vectors`,
//! `TypeCast`, `FunctionCall`).

use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;
use helenus_cql::{ast, value};

use super::assignment::{ReturnTypeCacheGuard, resolve_call};
use super::{RawTerm, Term};
use crate::analysis::assignable::{Assignable, not_an_array, part_spec, test_strictly};
use crate::analysis::functions::ScalarFunction;
use crate::analysis::types::{qualified_type_name, resolve_type};
use crate::analysis::{EvalContext, PlanContext};
use crate::clock::SystemClock;
use crate::java_order;
use crate::response::ColumnSpec;

impl Term {
    /// Types a raw term for its receiver. Markers in it take the receiver's type.
    pub fn prepare(
        ctx: &mut PlanContext<'_>,
        term: &ast::Term,
        receiver: &ColumnSpec,
    ) -> Result<Term, CqlError> {
        match term {
            ast::Term::Null if receiver.ty.is_counter() => Err(CqlError::invalid(
                "Invalid null value for counter increment/decrement",
            )),
            ast::Term::Null => Ok(Term::Constant(None)),
            ast::Term::Literal(literal) => prepare_literal(literal, receiver),
            ast::Term::Marker(index) => {
                ctx.markers.set(*index, receiver.clone());
                Ok(Term::Marker {
                    index: *index,
                    ty: receiver.ty.clone(),
                })
            }
            ast::Term::List(elements) => match &receiver.ty {
                CqlType::Vector { .. } => prepare_vector(ctx, elements, receiver),
                _ => prepare_list(ctx, elements, receiver),
            },
            ast::Term::Set(elements) => match &receiver.ty {
                CqlType::Map { .. } if elements.is_empty() => prepare_map(ctx, &[], receiver),
                _ => prepare_set(ctx, elements, receiver),
            },
            ast::Term::Map(entries) => prepare_map(ctx, entries, receiver),
            ast::Term::UserType(fields) => prepare_user_type(ctx, fields, receiver),
            // A value in parentheses.
            ast::Term::Tuple(elements)
                if elements.len() == 1 && !matches!(receiver.ty, CqlType::Tuple(_) | CqlType::Udt { .. }) =>
            {
                let value = elements.first().unwrap_or(&ast::Term::Null);
                Term::prepare(ctx, value, receiver)
            }
            ast::Term::Tuple(elements) => prepare_tuple(ctx, elements, receiver),
            ast::Term::Function { .. }
            | ast::Term::Cast { .. }
            | ast::Term::Operation { .. }
            | ast::Term::Negation(_) => prepare_call(ctx, term, receiver),
            ast::Term::Reference(reference) => Ok(Term::Marker {
                index: ctx.add_reference(reference, receiver)?,
                ty: receiver.ty.clone(),
            }),
            ast::Term::TypeHint { ty, term: inner } => {
                let hinted = resolve_type(ctx.schema, &receiver.keyspace, ty)?;
                let spec = part_spec(receiver, term.to_string(), hinted.clone());
                if !is_assignable(ctx, inner, &spec)? {
                    return Err(CqlError::invalid(format!(
                        "Cannot cast value {inner} to type {}",
                        qualified_type_name(ty, &receiver.keyspace)
                    )));
                }
                if !RawTerm(term).test(ctx, receiver).is_assignable() {
                    return Err(CqlError::invalid(format!(
                        "Cannot assign value ({}){inner} to {} of type {}",
                        qualified_type_name(ty, &receiver.keyspace),
                        receiver.name,
                        receiver.ty
                    )));
                }
                // The hint is only a check: it does not change the value.
                Term::prepare(ctx, inner, receiver)
            }
        }
    }
}

/// Computes a term whose parts are constant. Other terms stay as they are.
fn fold(term: Term, parts_are_constant: bool) -> Result<Term, CqlError> {
    if !parts_are_constant {
        return Ok(term);
    }
    let ctx = EvalContext {
        values: &[],
        clock: &SystemClock,
        protocol_version: 5,
    };
    Ok(Term::Constant(term.value(&ctx)?))
}

fn is_assignable(ctx: &PlanContext<'_>, term: &ast::Term, receiver: &ColumnSpec) -> Result<bool, CqlError> {
    Ok(test_strictly(ctx, &RawTerm(term), receiver)?.is_assignable())
}

fn prepare_literal(literal: &ast::Literal, receiver: &ColumnSpec) -> Result<Term, CqlError> {
    let bytes = value::parse_literal(literal.kind, &literal.text, &receiver.ty, &receiver.name)
        .map_err(CqlError::Invalid)?;
    Ok(Term::Constant(Some(bytes)))
}

/// Prepares the elements of a collection, in which markers are refused.
fn prepare_elements<'t>(
    ctx: &mut PlanContext<'_>,
    elements: impl IntoIterator<Item = &'t ast::Term>,
    receiver: &ColumnSpec,
    element: &ColumnSpec,
    kind: &str,
    role: &str,
) -> Result<Vec<Term>, CqlError> {
    let elements: Vec<&ast::Term> = elements.into_iter().collect();
    for term in &elements {
        check_element(ctx, term, receiver, element, (kind, role))?;
    }
    let prepare = |term| prepare_element(ctx, term, receiver, element, kind);
    elements.into_iter().map(prepare).collect()
}

fn check_element(
    ctx: &mut PlanContext<'_>,
    term: &ast::Term,
    receiver: &ColumnSpec,
    element: &ColumnSpec,
    (kind, role): (&str, &str),
) -> Result<(), CqlError> {
    match is_assignable(ctx, term, element)? {
        true => Ok(()),
        false => Err(CqlError::invalid(format!(
            "Invalid {kind} literal for {}: {role} {term} is not of type {}",
            receiver.name, element.ty
        ))),
    }
}

fn prepare_element(
    ctx: &mut PlanContext<'_>,
    term: &ast::Term,
    receiver: &ColumnSpec,
    element: &ColumnSpec,
    kind: &str,
) -> Result<Term, CqlError> {
    let prepared = Term::prepare(ctx, term, element)?;
    match kind != "vector" && prepared.has_markers() {
        true => Err(markers_within(kind, receiver)),
        false => Ok(prepared),
    }
}

fn markers_within(kind: &str, receiver: &ColumnSpec) -> CqlError {
    CqlError::invalid(format!(
        "Invalid {kind} literal for {}: bind variables are not supported inside collection literals",
        receiver.name
    ))
}

fn not_of_kind(kind: &str, receiver: &ColumnSpec) -> CqlError {
    CqlError::invalid(format!(
        "Invalid {kind} literal for {} of type {}",
        receiver.name, receiver.ty
    ))
}

fn prepare_list(
    ctx: &mut PlanContext<'_>,
    elements: &[ast::Term],
    receiver: &ColumnSpec,
) -> Result<Term, CqlError> {
    let CqlType::List { element, .. } = &receiver.ty else {
        return Err(not_an_array(receiver));
    };
    let spec = part_spec(
        receiver,
        format!("value({})", receiver.name),
        CqlType::clone(element),
    );
    let terms = prepare_elements(ctx, elements, receiver, &spec, "list", "value")?;
    let constant = terms.iter().all(Term::is_constant);
    fold(Term::List(terms), constant)
}

fn prepare_vector(
    ctx: &mut PlanContext<'_>,
    elements: &[ast::Term],
    receiver: &ColumnSpec,
) -> Result<Term, CqlError> {
    let CqlType::Vector { element, dimension } = &receiver.ty else {
        return Err(not_of_kind("vector", receiver));
    };
    if elements.len() != *dimension as usize {
        return Err(CqlError::invalid(format!(
            "Invalid vector literal for {} of type {}; expected {} elements, but given {}",
            receiver.name,
            receiver.ty,
            dimension,
            elements.len()
        )));
    }
    let spec = part_spec(
        receiver,
        format!("value({})", receiver.name),
        CqlType::clone(element),
    );
    let terms = prepare_elements(ctx, elements, receiver, &spec, "vector", "value")?;
    let constant = terms.iter().all(Term::is_constant);
    fold(
        Term::Vector {
            elements: terms,
            ty: element.clone(),
        },
        constant,
    )
}

fn prepare_set(
    ctx: &mut PlanContext<'_>,
    elements: &[ast::Term],
    receiver: &ColumnSpec,
) -> Result<Term, CqlError> {
    let CqlType::Set { element, .. } = &receiver.ty else {
        return Err(not_of_kind("set", receiver));
    };
    let spec = part_spec(
        receiver,
        format!("value({})", receiver.name),
        CqlType::clone(element),
    );
    let terms = prepare_elements(ctx, elements, receiver, &spec, "set", "value")?;
    let constant = terms.iter().all(Term::is_constant);
    fold(
        Term::Set {
            elements: terms,
            ty: element.clone(),
        },
        constant,
    )
}

fn prepare_map(
    ctx: &mut PlanContext<'_>,
    entries: &[(ast::Term, ast::Term)],
    receiver: &ColumnSpec,
) -> Result<Term, CqlError> {
    let CqlType::Map { key, value, .. } = &receiver.ty else {
        return Err(not_of_kind("map", receiver));
    };
    let key_spec = part_spec(receiver, format!("key({})", receiver.name), CqlType::clone(key));
    let value_spec = part_spec(
        receiver,
        format!("value({})", receiver.name),
        CqlType::clone(value),
    );
    for (key, value) in entries {
        check_element(ctx, key, receiver, &key_spec, ("map", "key"))?;
        check_element(ctx, value, receiver, &value_spec, ("map", "value"))?;
    }
    let mut prepared = Vec::with_capacity(entries.len());
    for (key, value) in entries {
        // Key and value are both prepared before either is checked for markers.
        let key = Term::prepare(ctx, key, &key_spec)?;
        let value = Term::prepare(ctx, value, &value_spec)?;
        if key.has_markers() || value.has_markers() {
            return Err(markers_within("map", receiver));
        }
        prepared.push((key, value));
    }
    let constant = prepared
        .iter()
        .all(|(key, value)| key.is_constant() && value.is_constant());
    let entries = prepared;
    fold(
        Term::Map {
            entries,
            key_ty: key.clone(),
        },
        constant,
    )
}

fn prepare_tuple(
    ctx: &mut PlanContext<'_>,
    elements: &[ast::Term],
    receiver: &ColumnSpec,
) -> Result<Term, CqlError> {
    // The checks treat a user type as a tuple.
    let types: Vec<CqlType> = match &receiver.ty {
        CqlType::Tuple(types) => types.to_vec(),
        CqlType::Udt { definition, .. } => definition.fields.iter().map(|field| field.ty.clone()).collect(),
        _ => Vec::new(),
    };
    if !matches!(receiver.ty, CqlType::Tuple(_) | CqlType::Udt { .. }) {
        return Err(CqlError::invalid(format!(
            "Invalid tuple type literal for {} of type {}",
            receiver.name, receiver.ty
        )));
    }
    let spec = |position: usize, ty: &CqlType| {
        part_spec(receiver, format!("{}[{position}]", receiver.name), ty.clone())
    };
    for (position, term) in elements.iter().enumerate() {
        let Some(ty) = types.get(position) else {
            return Err(CqlError::invalid(format!(
                "Invalid tuple literal for {}: too many elements. Type {} expects {} but got {}",
                receiver.name,
                receiver.ty,
                types.len(),
                elements.len()
            )));
        };
        if !is_assignable(ctx, term, &spec(position, ty))? {
            return Err(CqlError::invalid(format!(
                "Invalid tuple literal for {}: component {position} is not of type {ty}",
                receiver.name
            )));
        }
    }
    let mut terms = Vec::with_capacity(elements.len());
    for (position, (term, ty)) in elements.iter().zip(&types).enumerate() {
        terms.push(Term::prepare(ctx, term, &spec(position, ty))?);
    }
    let constant = terms.iter().all(Term::is_constant);
    fold(Term::Tuple(terms), constant)
}

fn prepare_user_type(
    ctx: &mut PlanContext<'_>,
    fields: &[(ast::Ident, ast::Term)],
    receiver: &ColumnSpec,
) -> Result<Term, CqlError> {
    let CqlType::Udt { definition, frozen } = &receiver.ty else {
        return Err(CqlError::invalid(format!(
            "Invalid user type literal for {} of type {}",
            receiver.name, receiver.ty
        )));
    };
    let mut terms: Vec<Option<Term>> = vec![None; definition.fields.len()];
    let by_hash = java_order::by_name(fields.iter().collect(), |(name, _)| name.as_str());
    let mut by_hash = by_hash.into_iter();
    let unknown = by_hash.find(|(name, _)| definition.field_index(name.as_str()).is_none());
    for (position, field) in definition.fields.iter().enumerate() {
        let Some((_, term)) = fields.iter().find(|(name, _)| name == field.name.as_str()) else {
            continue;
        };
        let spec = part_spec(
            receiver,
            format!("{}.{}", receiver.name, field.name),
            field.ty.clone(),
        );
        if !is_assignable(ctx, term, &spec)? {
            return Err(CqlError::invalid(format!(
                "Invalid user type literal for {}: field {} is not of type {}",
                receiver.name, field.name, field.ty
            )));
        }
        if let Some(slot) = terms.get_mut(position) {
            *slot = Some(Term::prepare(ctx, term, &spec)?);
        }
    }
    if let Some((name, _)) = unknown {
        return Err(CqlError::invalid(format!(
            "Unknown field '{name}' in value of user defined type {}",
            definition.name
        )));
    }
    let constant = terms.iter().flatten().all(Term::is_constant);
    fold(
        Term::UserType {
            fields: terms,
            definition: definition.clone(),
            frozen: *frozen,
        },
        constant,
    )
}

fn prepare_call(
    ctx: &mut PlanContext<'_>,
    term: &ast::Term,
    receiver: &ColumnSpec,
) -> Result<Term, CqlError> {
    let _remembering = ReturnTypeCacheGuard::start();
    let (function, args) = resolve_call(ctx, term, Some(receiver))?;
    let function = function.into_scalar()?;
    // A frozen receiver takes a value that is not frozen, but not the other way round.
    let returned = match receiver.ty.is_multicell() {
        true => function.return_type().clone(),
        false => function.return_type().freeze(),
    };
    if returned != receiver.ty && !value::is_value_compatible_with(&receiver.ty, &returned) {
        return Err(call_type_error(term, function.as_ref(), receiver));
    }
    let mut prepared = Vec::with_capacity(args.len());
    for (position, (arg, ty)) in args.iter().zip(function.arg_types()).enumerate() {
        let name = format!("arg{position}({})", function.name().to_lowercase());
        let spec = part_spec(receiver, name, ty.clone());
        prepared.push(Term::prepare(ctx, arg, &spec)?);
    }
    ctx.is_volatile |= !function.is_pure();
    // The call is never computed here, even with constant arguments, because its errors are those of the running statement.
    Ok(Term::Function {
        function,
        args: prepared,
    })
}

fn call_type_error(term: &ast::Term, function: &dyn ScalarFunction, receiver: &ColumnSpec) -> CqlError {
    match term {
        ast::Term::Operation {
            operator,
            left,
            right,
        } => CqlError::invalid(format!(
            "Type error: cannot assign result of operation '{left} {} {right}' (type {}) to {} (type {})",
            operator.symbol(),
            function.return_type(),
            receiver.name,
            receiver.ty
        )),
        _ => CqlError::invalid(format!(
            "Type error: cannot assign result of function {} (type {}) to {} (type {})",
            function.name(),
            function.return_type(),
            receiver.name,
            receiver.ty
        )),
    }
}
