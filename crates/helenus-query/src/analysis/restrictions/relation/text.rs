//! Relations as CQL, for the errors that quote them.

use helenus_cql::ast::{Compared, Ident, InValues, Relation, Term};
use helenus_cql::error::CqlError;

/// Returns the error for a LIKE that no index answers.
pub fn unindexed_like(relation: &Relation) -> CqlError {
    CqlError::invalid(format!(
        "LIKE restriction is only supported on properly indexed columns. {} is not valid.",
        relation_text(relation)
    ))
}

/// Returns the relation as CQL, as Cassandra shows it (`Relation.toCQLString`). Quotes in strings are not escaped.
pub fn relation_text(relation: &Relation) -> String {
    written(relation, &|term| term.to_string())
}

/// Returns the relation as CQL that can be parsed.
pub fn relation_source(relation: &Relation) -> String {
    written(relation, &|term| format!("{term:#}"))
}

fn written(relation: &Relation, show: &dyn Fn(&Term) -> String) -> String {
    let column_list = |columns: &[Ident]| list(columns, &Ident::to_cql);
    let in_list = |values: &InValues| match values {
        InValues::Marker(_) => "?".to_owned(),
        InValues::Values(terms) => list(terms, show),
    };
    match relation {
        Relation::Column {
            column,
            operator,
            term,
        } => {
            format!("{} {} {}", column.to_cql(), operator.symbol(), show(term))
        }
        Relation::ColumnIn {
            column,
            is_negated,
            values,
        } => format!("{} {} {}", column.to_cql(), in_word(*is_negated), in_list(values)),
        Relation::IsNotNull { column } => format!("{} IS NOT NULL", column.to_cql()),
        Relation::Element {
            column,
            key,
            operator,
            term,
        } => {
            format!(
                "{}[{}] {} {}",
                column.to_cql(),
                show(key),
                operator.symbol(),
                show(term)
            )
        }
        Relation::Token {
            columns,
            operator,
            term,
        } => {
            format!(
                "token{} {} {}",
                column_list(columns),
                operator.symbol(),
                show(term)
            )
        }
        Relation::Tuple {
            columns,
            operator,
            term,
        } => {
            format!("{} {} {}", column_list(columns), operator.symbol(), show(term))
        }
        Relation::TupleIn {
            columns,
            is_negated,
            values,
        } => format!(
            "{} {} {}",
            column_list(columns),
            in_word(*is_negated),
            in_list(values)
        ),
        Relation::Between {
            compared,
            first,
            second,
        } => {
            let left = match compared {
                Compared::Column(column) => column.to_cql(),
                Compared::Tuple(columns) => column_list(columns),
                Compared::Token(columns) => format!("token{}", column_list(columns)),
            };
            format!("{left} BETWEEN {} AND {}", show(first), show(second))
        }
        Relation::CustomIndex { index, term } => format!("expr({index}, {})", show(term)),
    }
}

fn in_word(is_negated: bool) -> &'static str {
    if is_negated { "NOT IN" } else { "IN" }
}

fn list<T>(items: &[T], show: &dyn Fn(&T) -> String) -> String {
    format!("({})", items.iter().map(show).collect::<Vec<_>>().join(", "))
}
