//! The conditions of CHECK.

use super::{Ident, Literal, Operator};

/// One condition on the values of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnConstraint {
    /// `NOT NULL`
    NotNull,
    /// `column < 5`
    Compare {
        column: Ident,
        operator: Operator,
        term: Literal,
    },
    /// `LENGTH() < 5`, or `JSON()` without a comparison.
    Function {
        name: Ident,
        arguments: Vec<Literal>,
        comparison: Option<(Operator, Literal)>,
    },
}
