//! Filters on stored rows: most rows that a filter rejects are recognized without being decoded.
//!
//! A packed filter has those expressions of a [`Filter`] that can be tested on serialized values. Tests on elements of collections, patterns
//! and analyzed text are left out. So a packed filter accepts every row that the filter accepts, and maybe more.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::ast::Operator;
use helenus_cql::error::CqlError;
use helenus_cql::types::{CqlType, NativeType};
use helenus_row::key::{append_partition_key, partition_key_component};
use helenus_row::read::{RowState, row_state_with};
use helenus_row::{ColumnId, Deletion};

use super::Filter;
use crate::rows::{corrupt, corrupt_key};
use crate::schema::expression::accepts_value;
use crate::schema::{Column, ColumnKind, Expression, Operand, Table};

/// Tests of the columns of packed rows, for one request.
#[derive(Clone)]
pub struct PackedFilter {
    table: Arc<Table>,
    now_s: i64,
    /// True if the filter has no other tests.
    is_complete: bool,
    /// Tests of partition key columns, with their positions in the key.
    key: Vec<(usize, ValueTest)>,
    /// Tests of static columns, ascending by column. Below those of regular columns.
    statics: Vec<(ColumnId, ValueTest)>,
    regular: Vec<(ColumnId, ValueTest)>,
    /// Tests of clustering columns, with their positions.
    clustering: Vec<(usize, ValueTest)>,
    /// Number of clustering columns up to the last tested one.
    clustering_columns: usize,
    /// Decoded key columns. The memory is used again for each key.
    values: Vec<u8>,
    parts: Vec<Range<usize>>,
}

impl PackedFilter {
    /// Returns the tests of a filter. `None` if the filter has a test on partitions that needs decoded values.
    pub fn new(table: &Arc<Table>, filter: &Filter, now_s: i64) -> Option<PackedFilter> {
        let mut packed = PackedFilter {
            table: table.clone(),
            now_s,
            is_complete: true,
            key: Vec::new(),
            statics: Vec::new(),
            regular: Vec::new(),
            clustering: Vec::new(),
            clustering_columns: 0,
            values: Vec::new(),
            parts: Vec::new(),
        };
        for expression in &filter.partition {
            if !packed.push(expression) {
                return None;
            }
        }
        for expression in &filter.row {
            packed.is_complete &= packed.push(expression);
        }
        packed.statics.sort_by_key(|(id, _)| *id);
        packed.regular.sort_by_key(|(id, _)| *id);
        Some(packed)
    }

    /// Adds an expression. Returns false if it cannot be tested on serialized values.
    fn push(&mut self, expression: &Expression) -> bool {
        let Some(column) = self.table.columns.get(expression.column) else {
            return false;
        };
        let Some(test) = ValueTest::new(column, expression) else {
            return false;
        };
        match column.kind {
            ColumnKind::PartitionKey => self.key.push((column.position, test)),
            ColumnKind::Static => self.statics.push((column.id, test)),
            ColumnKind::Regular => self.regular.push((column.id, test)),
            ColumnKind::Clustering => {
                self.clustering_columns = self.clustering_columns.max(column.position + 1);
                self.clustering.push((column.position, test));
            }
        }
        true
    }

    /// Returns the time of the request.
    pub fn now_s(&self) -> i64 {
        self.now_s
    }

    /// Returns true if every row that passes also passes the filter.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Returns true if there are no tests.
    pub fn is_empty(&self) -> bool {
        self.key.is_empty()
            && self.statics.is_empty()
            && self.regular.is_empty()
            && self.clustering.is_empty()
    }

    /// Returns true if the partition key in a key prefix passes.
    ///
    /// # Errors
    /// The stored key is damaged.
    pub fn accepts_key(&mut self, partition_prefix: &[u8]) -> Result<bool, CqlError> {
        if self.key.is_empty() {
            return Ok(true);
        }
        self.values.clear();
        append_partition_key(partition_prefix, &mut self.values).map_err(corrupt_key)?;
        for (position, test) in &self.key {
            let count = self.table.partition_key_count;
            let value = partition_key_component(&self.values, count, *position).map_err(corrupt_key)?;
            if !test.accepts(value) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns true if the static row passes. `packed` is `None` if the partition has none.
    ///
    /// # Errors
    /// The stored row is damaged.
    pub fn accepts_static(&self, packed: Option<&[u8]>, shadow: Option<Deletion>) -> Result<bool, CqlError> {
        match packed {
            _ if self.statics.is_empty() => Ok(true),
            None => Ok(false),
            Some(packed) => Ok(self.test(&self.statics, packed, shadow)?.1),
        }
    }

    /// Returns the state of a row, and true if its regular columns pass.
    ///
    /// # Errors
    /// The stored row is damaged.
    pub fn test_row(&self, packed: &[u8], shadow: Option<Deletion>) -> Result<(RowState, bool), CqlError> {
        self.test(&self.regular, packed, shadow)
    }

    /// Returns true if the encoded clustering passes.
    ///
    /// # Errors
    /// The stored key is damaged.
    pub fn accepts_clustering(&mut self, encoded: &[u8]) -> Result<bool, CqlError> {
        if self.clustering.is_empty() {
            return Ok(true);
        }
        self.values.clear();
        self.parts.clear();
        let (values, parts) = (&mut self.values, &mut self.parts);
        let layout = &self.table.layout;
        layout
            .append_leading(encoded, self.clustering_columns, values, parts)
            .map_err(corrupt_key)?;
        // Values that are equal but differ from the written bytes give the same result.
        Ok(self.clustering.iter().all(|(position, test)| {
            let part = parts.get(*position).and_then(|part| values.get(part.clone()));
            part.is_some_and(|value| test.accepts(value))
        }))
    }

    #[inline]
    fn test(
        &self,
        tests: &[(ColumnId, ValueTest)],
        packed: &[u8],
        shadow: Option<Deletion>,
    ) -> Result<(RowState, bool), CqlError> {
        let (mut left, mut fits) = (tests, true);
        let state = row_state_with(packed, shadow, &self.table.cell_rules, self.now_s, |id, value| {
            while fits
                && let Some(((column, test), rest)) = left.split_first()
                && *column <= id
            {
                fits = *column == id && test.accepts(value);
                left = rest;
            }
        });
        // The columns of the tests that are left are null.
        Ok((state.map_err(corrupt)?, fits && left.is_empty()))
    }
}

/// A test of one column's serialized value.
#[derive(Clone)]
struct ValueTest {
    ty: CqlType,
    expression: Expression,
    /// The only bytes that pass. `None` if there may be others.
    only: Option<Bytes>,
}

impl ValueTest {
    /// Returns the test of an expression. `None` if the test needs the cells of a collection, or another form of the value.
    fn new(column: &Column, expression: &Expression) -> Option<ValueTest> {
        let is_on_value = match &expression.operand {
            Operand::Value(_) | Operand::List(_) | Operand::Entry { .. } => true,
            Operand::Like(_) => false,
        };
        if !is_on_value || expression.analysis.is_some() || column.ty.is_multicell() {
            return None;
        }
        let only = match &expression.operand {
            Operand::Value(value) if expression.operator == Operator::Eq && has_one_form(&column.ty) => {
                Some(value.clone())
            }
            _ => None,
        };
        Some(ValueTest {
            ty: column.ty.clone(),
            expression: expression.clone(),
            only,
        })
    }

    #[inline]
    fn accepts(&self, found: &[u8]) -> bool {
        let expression = &self.expression;
        if expression.skips_empty && found.is_empty() {
            return false;
        }
        match &self.only {
            Some(only) => found == only,
            None => accepts_value(&self.ty, expression.operator, &expression.operand, found),
        }
    }
}

/// Returns true if two values of the type are equal only if their bytes are.
fn has_one_form(ty: &CqlType) -> bool {
    matches!(
        ty,
        CqlType::Native(
            NativeType::Ascii
                | NativeType::Text
                | NativeType::Blob
                | NativeType::Inet
                | NativeType::Date
                | NativeType::Time
                | NativeType::Duration
                | NativeType::Tinyint
                | NativeType::Smallint
                | NativeType::Int
                | NativeType::Bigint
                | NativeType::Counter
                | NativeType::Timestamp
                | NativeType::Uuid
                | NativeType::Timeuuid
        )
    )
}
