//! The declaration of constraints (CHECK): the checks of each condition, and of several together.

use helenus_cql::ast::{self, Operator};
use helenus_cql::error::CqlError;
use helenus_cql::types::{CqlType, NativeType};
use helenus_cql::value;

use super::functions::number::NUMERIC;
use crate::schema::constraint::{Constraint, ConstraintKind};
use crate::schema::{Column, is_text};

const COMPARISONS: [Operator; 6] = [
    Operator::Eq,
    Operator::Neq,
    Operator::Gte,
    Operator::Gt,
    Operator::Lte,
    Operator::Lt,
];

/// Returns the constraints that a statement declares for a column. `table` is the table's full name.
///
/// # Errors
/// Cassandra's, for constraints that the column's type does not allow, or that no value meets.
pub(crate) fn declared(
    table: &str,
    column: &Column,
    conditions: &[ast::ColumnConstraint],
) -> Result<Vec<Constraint>, CqlError> {
    if conditions.is_empty() {
        return Ok(Vec::new());
    }
    if !matches!(&column.ty, CqlType::Native(native) if *native != NativeType::Counter) {
        return Err(CqlError::invalid(format!(
            "Constraint cannot be defined on the column {} of type {} for the table {table}",
            column.name, column.ty
        )));
    }
    let constraints = conditions.iter().map(|condition| one(column, condition));
    let constraints = constraints.collect::<Result<Vec<_>, _>>()?;
    check_together(column, &constraints)?;
    Ok(constraints)
}

fn one(column: &Column, condition: &ast::ColumnConstraint) -> Result<Constraint, CqlError> {
    let (kind, comparison) = match condition {
        ast::ColumnConstraint::NotNull => (ConstraintKind::NotNull, None),
        ast::ColumnConstraint::Compare {
            column: name,
            operator,
            term,
        } => {
            if *name != *column.name.as_str() {
                return Err(CqlError::invalid(format!(
                    "Parameter of value constraint should be the column name ({})",
                    column.name
                )));
            }
            (ConstraintKind::Compare, Some((*operator, term.text.to_string())))
        }
        ast::ColumnConstraint::Function {
            name,
            arguments,
            comparison,
        } => {
            let kind = function(name.as_str(), comparison.is_some())?;
            if !arguments.is_empty() {
                return Err(CqlError::invalid(format!(
                    "Constraint {kind} does not accept any arguments."
                )));
            }
            let comparison = comparison.as_ref();
            (
                kind,
                comparison.map(|(operator, term)| (*operator, term.text.to_string())),
            )
        }
    };
    check_type(column, kind)?;
    if kind == ConstraintKind::NotNull && column.is_primary_key() {
        let key = match column.kind {
            crate::schema::ColumnKind::PartitionKey => "partition",
            _ => "clustering",
        };
        return Err(CqlError::invalid(format!(
            "{kind} constraint can not be specified on a {key} key column '{}'",
            column.name
        )));
    }
    if let Some((operator, _)) = &comparison
        && !operators(kind).contains(operator)
    {
        let known: Vec<&str> = operators(kind).iter().map(|one| one.symbol()).collect();
        return Err(CqlError::invalid(format!(
            "{kind} constraint of relation '{}' is not supported. Only these are: [{}]",
            operator.symbol(),
            known.join(", ")
        )));
    }
    Constraint::new(&column.name, &column.ty, kind, comparison)
}

/// Returns the kind of a constraint that is written as a function.
fn function(name: &str, has_comparison: bool) -> Result<ConstraintKind, CqlError> {
    let kind = ConstraintKind::named(&name.to_ascii_uppercase());
    let compares = |kind: &ConstraintKind| !matches!(kind, ConstraintKind::NotNull | ConstraintKind::Json);
    match kind.filter(|kind| *kind != ConstraintKind::Compare) {
        Some(kind) if compares(&kind) == has_comparison => Ok(kind),
        Some(kind) => Err(CqlError::invalid(match has_comparison {
            true => format!("Constraint {kind} has no comparison: write {kind}() alone"),
            false => format!("Constraint {kind} needs a comparison, as in {kind}() = …"),
        })),
        None => Err(CqlError::invalid(format!(
            "Unknown constraint function {name}: there are LENGTH(), OCTET_LENGTH(), JSON(), REGEXP(), and NOT NULL"
        ))),
    }
}

fn operators(kind: ConstraintKind) -> &'static [Operator] {
    match kind {
        ConstraintKind::Regexp => &[Operator::Eq, Operator::Neq],
        _ => &COMPARISONS,
    }
}

fn check_type(column: &Column, kind: ConstraintKind) -> Result<(), CqlError> {
    let is_number = matches!(&column.ty, CqlType::Native(native) if NUMERIC.contains(native));
    let allowed = match kind {
        ConstraintKind::NotNull => return Ok(()),
        ConstraintKind::Compare if is_number => return Ok(()),
        ConstraintKind::Compare => {
            return Err(CqlError::invalid(format!(
                "Column '{}' is not a number type.",
                column.name
            )));
        }
        ConstraintKind::Length | ConstraintKind::OctetLength if column.ty == CqlType::BLOB => return Ok(()),
        ConstraintKind::Length | ConstraintKind::OctetLength => "[blob, text, ascii]",
        ConstraintKind::Json | ConstraintKind::Regexp => "[text, ascii]",
    };
    match is_text(&column.ty) {
        true => Ok(()),
        false => Err(CqlError::invalid(format!(
            "Constraint '{kind}' can be used only for columns of type {allowed} but it was {}",
            column.ty
        ))),
    }
}

/// Checks the constraints of each kind together.
fn check_together(column: &Column, constraints: &[Constraint]) -> Result<(), CqlError> {
    for (at, constraint) in constraints.iter().enumerate() {
        let is_twin = |other: &&Constraint| {
            other.kind == constraint.kind && symbol(other) == symbol(constraint) && !is_inequality(other)
        };
        if constraints.iter().take(at).any(|other| is_twin(&other)) {
            return Err(duplicate(column, &full_name(constraint)));
        }
    }
    let mut checked: Vec<ConstraintKind> = Vec::new();
    for constraint in constraints {
        if constraint.comparison.is_none() || checked.contains(&constraint.kind) {
            continue;
        }
        checked.push(constraint.kind);
        let of_kind = constraints.iter().filter(|other| other.kind == constraint.kind);
        check_kind(column, &of_kind.collect::<Vec<_>>())?;
    }
    Ok(())
}

/// Checks comparisons of one kind (Cassandra's `AbstractFunctionSatisfiabilityChecker`).
fn check_kind(column: &Column, constraints: &[&Constraint]) -> Result<(), CqlError> {
    let inequalities: Vec<&&Constraint> = constraints.iter().filter(|one| is_inequality(one)).collect();
    if constraints.len() - inequalities.len() > 2 {
        return Err(CqlError::invalid(format!(
            "There can not be more than 2 constraints (not including non-equal relations) on a column '{}' \
             but you have specified {}",
            column.name,
            constraints.len()
        )));
    }
    for (at, constraint) in inequalities.iter().enumerate() {
        if inequalities.iter().take(at).any(|other| other == constraint) {
            return Err(duplicate(column, &constraint.to_cql(&column.name)));
        }
    }
    let [first, second] = constraints else {
        return Ok(());
    };
    check_pair(column, first, second)
}

/// Checks that two comparisons of one kind make sense together.
fn check_pair(column: &Column, first: &Constraint, second: &Constraint) -> Result<(), CqlError> {
    use Operator::{Eq, Gt, Gte, Lt, Lte, Neq};
    let (Some((one, one_term)), Some((two, two_term))) = (&first.comparison, &second.comparison) else {
        return Ok(());
    };
    let what = match first.kind {
        ConstraintKind::Compare => &column.name,
        kind => kind.name(),
    };
    let shown = format!(
        "{name} {} {one_term}, {name} {} {two_term}",
        one.symbol(),
        two.symbol(),
        name = column.name
    );
    if matches!(
        (one, two),
        (Gt, Gte) | (Gte, Gt) | (Lt, Lte) | (Lte, Lt) | (Eq, _) | (_, Eq)
    ) {
        return Err(CqlError::invalid(format!(
            "Constraints combination of {what} is not supported: {shown}"
        )));
    }
    if *one == Neq || *two == Neq {
        return Ok(());
    }
    let ty = match first.kind {
        ConstraintKind::Compare => &column.ty,
        _ => &CqlType::INT,
    };
    let (Ok(low), Ok(high)) = (value::from_string(ty, one_term), value::from_string(ty, two_term)) else {
        return Ok(());
    };
    let order = value::compare(ty, &high, &low);
    match one.accepts(order) && two.accepts(order.reverse()) {
        true => Ok(()),
        false => Err(CqlError::invalid(format!(
            "Constraints of {what} are not satisfiable: {shown}"
        ))),
    }
}

fn is_inequality(constraint: &Constraint) -> bool {
    matches!(constraint.comparison, Some((Operator::Neq, _)))
}

fn symbol(constraint: &Constraint) -> Option<&'static str> {
    constraint
        .comparison
        .as_ref()
        .map(|(operator, _)| operator.symbol())
}

/// Returns the name of a constraint with its operator.
fn full_name(constraint: &Constraint) -> String {
    match symbol(constraint) {
        Some(symbol) => format!("{} {symbol}", constraint.kind),
        None => constraint.kind.to_string(),
    }
}

fn duplicate(column: &Column, what: &str) -> CqlError {
    CqlError::invalid(format!(
        "There are duplicate constraint definitions on column '{}': {what}",
        column.name
    ))
}
