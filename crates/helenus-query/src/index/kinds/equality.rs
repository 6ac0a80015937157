//! Ordinary indexes, from CREATE INDEX without USING (Cassandra's `CassandraIndex`).

use helenus_cql::ast::Operator;

use super::{Kind, is_equality};
use crate::schema::{Column, Index};

/// An index that finds equal values.
pub struct Equality;

impl Kind for Equality {
    fn supports(&self, index: &Index, column: &Column, operator: Operator) -> bool {
        is_equality(index, column, operator)
    }
}
