//! Relations as CQL, for the errors that quote them.

use helenus_cql::ast::{Ident, InValues, Relation};
use helenus_cql::error::CqlError;

/// What is said of LIKE where no index answers it.
pub fn unindexed_like(relation: &Relation) -> CqlError {
    CqlError::invalid(format!(
        "LIKE restriction is only supported on properly indexed columns. {} is not valid.",
        relation_text(relation)
    ))
}

/// The relation as CQL (Cassandra's `Relation.toCQLString`).
pub fn relation_text(relation: &Relation) -> String {
    match relation {
        Relation::Column {
            column,
            operator,
            term,
        } => {
            format!("{} {} {term}", column.to_cql(), operator.symbol())
        }
        Relation::ColumnIn { column, values } => format!("{} IN {}", column.to_cql(), in_text(values)),
        Relation::IsNotNull { column } => format!("{} IS NOT NULL", column.to_cql()),
        Relation::Element {
            column,
            key,
            operator,
            term,
        } => {
            format!("{}[{key}] {} {term}", column.to_cql(), operator.symbol())
        }
        Relation::Token {
            columns,
            operator,
            term,
        } => {
            format!(
                "token{} {} {term}",
                list_text(columns, Ident::to_cql),
                operator.symbol()
            )
        }
        Relation::Tuple {
            columns,
            operator,
            term,
        } => {
            format!(
                "{} {} {term}",
                list_text(columns, Ident::to_cql),
                operator.symbol()
            )
        }
        Relation::TupleIn { columns, values } => {
            format!("{} IN {}", list_text(columns, Ident::to_cql), in_text(values))
        }
        Relation::CustomIndex { index, term } => format!("expr({index}, {term})"),
    }
}

fn in_text(values: &InValues) -> String {
    match values {
        InValues::Marker(_) => "?".to_owned(),
        InValues::Values(terms) => list_text(terms, ToString::to_string),
    }
}

fn list_text<T>(items: &[T], text: impl Fn(&T) -> String) -> String {
    format!("({})", items.iter().map(text).collect::<Vec<_>>().join(", "))
}
