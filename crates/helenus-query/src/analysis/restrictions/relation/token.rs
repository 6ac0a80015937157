//! Relations on the partition key's token: `token(a, b) > 1`.

use helenus_cql::ast::{Ident, Operator, Relation, Term as RawTerm};
use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;

use super::unsupported_neq;
use crate::analysis::PlanContext;
use crate::analysis::restrictions::require_column;
use crate::analysis::restrictions::restriction::names;
use crate::analysis::restrictions::token::TokenRestriction;
use crate::analysis::terms::Term;
use crate::response::ColumnSpec;
use crate::schema::Table;

pub(crate) fn compare(
    ctx: &mut PlanContext<'_>,
    table: &Table,
    relation: &Relation,
    columns: &[Ident],
    operator: Operator,
    term: &RawTerm,
) -> Result<TokenRestriction, CqlError> {
    match operator {
        Operator::Eq | Operator::Lt | Operator::Lte | Operator::Gt | Operator::Gte => {}
        Operator::Neq => return Err(unsupported_neq(relation)),
        Operator::In
        | Operator::NotIn
        | Operator::Between
        | Operator::Contains
        | Operator::NotContains
        | Operator::ContainsKey
        | Operator::NotContainsKey
        | Operator::Like
        | Operator::IsNot => {
            return Err(CqlError::invalid(format!(
                "{} cannot be used with the token function",
                operator.symbol()
            )));
        }
    }
    check_columns(table, &places(table, columns)?)?;
    let term = Term::prepare(ctx, term, &token_spec(table))?;
    let is_inclusive = matches!(operator, Operator::Gte | Operator::Lte);
    Ok(match operator {
        Operator::Eq => TokenRestriction::Eq(term),
        Operator::Gt | Operator::Gte => TokenRestriction::Slice {
            start: Some((term, is_inclusive)),
            end: None,
            is_between: false,
        },
        _ => TokenRestriction::Slice {
            start: None,
            end: Some((term, is_inclusive)),
            is_between: false,
        },
    })
}

pub(crate) fn between(
    ctx: &mut PlanContext<'_>,
    table: &Table,
    columns: &[Ident],
    bounds: [&RawTerm; 2],
) -> Result<TokenRestriction, CqlError> {
    check_columns(table, &places(table, columns)?)?;
    let spec = token_spec(table);
    let [first, second] = bounds;
    Ok(TokenRestriction::Slice {
        start: Some((Term::prepare(ctx, first, &spec)?, true)),
        end: Some((Term::prepare(ctx, second, &spec)?, true)),
        is_between: true,
    })
}

fn places(table: &Table, columns: &[Ident]) -> Result<Vec<usize>, CqlError> {
    let places = columns
        .iter()
        .map(|name| require_column(table, name).map(|(place, _)| place));
    places.collect()
}

/// Returns the receiver of a token.
fn token_spec(table: &Table) -> ColumnSpec {
    ColumnSpec::new(
        table.keyspace.as_str(),
        table.name.as_str(),
        "partition key token",
        CqlType::BIGINT,
    )
}

fn check_columns(table: &Table, places: &[usize]) -> Result<(), CqlError> {
    let key: Vec<usize> = (0..table.partition_key_count).collect();
    if places == key {
        return Ok(());
    }
    if !key.iter().all(|place| places.contains(place)) {
        return Err(CqlError::invalid(
            "The token() function must be applied to all partition key components or none of them",
        ));
    }
    if places
        .iter()
        .enumerate()
        .any(|(at, place)| places.iter().take(at).any(|earlier| earlier == place))
    {
        return Err(CqlError::invalid(
            "The token() function contains duplicate partition key components",
        ));
    }
    if places.iter().any(|place| !key.contains(place)) {
        return Err(CqlError::invalid(
            "The token() function must contains only partition key components",
        ));
    }
    Err(CqlError::invalid(format!(
        "The token function arguments must be in the partition key order: {}",
        names(table, &key, ", ")
    )))
}
