//! Restrictions that one or more relations make on one column, or on several clustering columns as a tuple (Cassandra's
//! `SingleColumnRestriction` and `MultiColumnRestriction`).

mod exclusion;
mod in_list;

use bytes::Bytes;
use helenus_cql::ast::Operator;
use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;
use helenus_cql::value;
use smallvec::{SmallVec, smallvec};

use crate::analysis::EvalContext;
use crate::analysis::terms::Term;
use crate::index::choice::IndexUse;
use crate::request::BoundValue;
use crate::schema::Table;

pub use exclusion::Exclusion;
pub(super) use exclusion::complete;
pub use in_list::InList;

/// A restriction on one column or on consecutive clustering columns.
#[derive(Clone, Debug)]
pub struct Restriction {
    /// Indexes in [`Table::columns`].
    pub columns: Vec<usize>,
    /// True if the restriction was written as a tuple, or was merged with one that was.
    pub is_multi: bool,
    pub test: Test,
}

/// The test that the columns must pass.
#[derive(Clone, Debug)]
pub enum Test {
    Eq(Tuple),
    In(InList),
    Slice(Slice),
    Contains(Contains),
    Like(Term),
    IsNotNull,
}

/// One value for each column of a restriction.
#[derive(Clone, Debug)]
pub enum Tuple {
    Value(Term),
    Elements(Vec<Term>),
    /// A marker for the whole tuple.
    Marker {
        index: usize,
        ty: CqlType,
        name: String,
    },
}

/// Lower and upper bound in the order of values, regardless of the clustering order.
#[derive(Clone, Debug, Default)]
pub struct Slice {
    pub start: Option<SliceBound>,
    pub end: Option<SliceBound>,
    /// True for BETWEEN: the bounds may be in any order, and null is refused.
    pub is_between: bool,
    /// The values of each NOT IN, which are not in the slice.
    pub excluded: Vec<Exclusion>,
}

impl Slice {
    /// Returns true if the slice has an operator of Cassandra 6, whose error texts differ.
    fn is_of_new_operator(&self) -> bool {
        self.is_between || !self.excluded.is_empty()
    }
}

#[derive(Clone, Debug)]
pub struct SliceBound {
    pub tuple: Tuple,
    pub is_inclusive: bool,
}

/// The values, keys and entries that a collection must contain or must not contain, all of them.
#[derive(Clone, Debug, Default)]
pub struct Contains {
    pub values: Vec<Term>,
    pub keys: Vec<Term>,
    pub entries: Vec<(Term, Term)>,
    /// Values that the collection must not contain (NOT CONTAINS).
    pub absent_values: Vec<Term>,
    /// Keys that the map must not contain (NOT CONTAINS KEY).
    pub absent_keys: Vec<Term>,
}

impl Restriction {
    /// Returns the columns and operators that an index must support to answer the restriction.
    pub fn index_use(&self) -> IndexUse<'_> {
        let operators = match &self.test {
            Test::Eq(_) => smallvec![Operator::Eq],
            Test::In(_) => smallvec![Operator::In],
            Test::Slice(slice) => slice_operators(slice).collect(),
            Test::Contains(contains) => contains_operators(contains).collect(),
            Test::Like(_) => smallvec![Operator::Like],
            Test::IsNotNull => SmallVec::new(),
        };
        IndexUse {
            columns: &self.columns,
            operators,
            is_multi: self.is_multi,
            has_several_elements: matches!(&self.test, Test::Contains(contains) if contains.count() > 1),
        }
    }
}

/// Returns the operators of a slice's bounds. No index answers NOT IN.
fn slice_operators(slice: &Slice) -> impl Iterator<Item = Operator> {
    let start = slice.start.as_ref().map(|bound| {
        if bound.is_inclusive {
            Operator::Gte
        } else {
            Operator::Gt
        }
    });
    let end = slice.end.as_ref().map(|bound| {
        if bound.is_inclusive {
            Operator::Lte
        } else {
            Operator::Lt
        }
    });
    start.into_iter().chain(end)
}

fn contains_operators(contains: &Contains) -> impl Iterator<Item = Operator> {
    let values = (!contains.values.is_empty()).then_some(Operator::Contains);
    let keys = (!contains.keys.is_empty()).then_some(Operator::ContainsKey);
    let entries = (!contains.entries.is_empty()).then_some(Operator::Eq);
    [values, keys, entries].into_iter().flatten()
}

impl Contains {
    /// Returns the number of values, keys and entries together.
    pub fn count(&self) -> usize {
        self.values.len() + self.keys.len() + self.entries.len()
    }
}

/// The bound values of a tuple. `None` is a null.
pub type BoundTuple = Vec<Option<Bytes>>;

impl Tuple {
    /// Returns the values for one request; `columns` are the columns that the tuple is compared with.
    pub fn bind(
        &self,
        table: &Table,
        columns: &[usize],
        ctx: &EvalContext<'_>,
    ) -> Result<BoundTuple, CqlError> {
        match self {
            Tuple::Value(term) => match term.bind(ctx)? {
                BoundValue::Set(value) => Ok(vec![Some(value)]),
                BoundValue::Null => Ok(vec![None]),
                BoundValue::Unset => Err(unset_column(table, columns)),
            },
            Tuple::Elements(terms) => terms
                .iter()
                .enumerate()
                .map(|(at, term)| bind_element(term, at, ctx))
                .collect(),
            Tuple::Marker { index, ty, name } => match marker(ctx, *index)? {
                BoundValue::Set(bytes) => {
                    value::validate(ty, &bytes).map_err(CqlError::Invalid)?;
                    split_tuple(ty, &bytes)
                }
                BoundValue::Null => Ok(columns.iter().map(|_| None).collect()),
                BoundValue::Unset => Err(CqlError::invalid(format!("Invalid unset value for tuple {name}"))),
            },
        }
    }
}

fn bind_element(term: &Term, position: usize, ctx: &EvalContext<'_>) -> Result<Option<Bytes>, CqlError> {
    match term.bind(ctx)? {
        BoundValue::Set(value) => Ok(Some(value)),
        BoundValue::Null => Ok(None),
        BoundValue::Unset => Err(CqlError::invalid(format!(
            "Invalid unset value for tuple field number {position}"
        ))),
    }
}

fn marker(ctx: &EvalContext<'_>, index: usize) -> Result<BoundValue, CqlError> {
    ctx.values
        .get(index)
        .cloned()
        .ok_or_else(|| CqlError::invalid("Invalid amount of bind variables"))
}

/// Returns the fields of a bound tuple. Fields that it omits at its end are omitted here too.
fn split_tuple(ty: &CqlType, bytes: &Bytes) -> Result<BoundTuple, CqlError> {
    let fields = value::read_tuple(ty, bytes).map_err(CqlError::Invalid)?;
    let mut left = bytes.len();
    let mut values = Vec::with_capacity(fields.len());
    for field in fields {
        if left == 0 {
            break;
        }
        left = left.saturating_sub(4 + field.map_or(0, <[u8]>::len));
        values.push(field.map(|part| bytes.slice_ref(part)));
    }
    Ok(values)
}

/// Returns the error `Invalid unset value for column c`.
pub fn unset_column(table: &Table, columns: &[usize]) -> CqlError {
    CqlError::invalid(format!(
        "Invalid unset value for column {}",
        first_name(table, columns)
    ))
}

/// Returns the error `Invalid null value in condition for column c`.
pub fn null_column(table: &Table, columns: &[usize]) -> CqlError {
    CqlError::invalid(format!(
        "Invalid null value in condition for column {}",
        first_name(table, columns)
    ))
}

fn first_name<'t>(table: &'t Table, columns: &[usize]) -> &'t str {
    columns.first().map_or("", |at| column_name(table, *at))
}

/// Returns the name of the column at that index.
pub fn column_name(table: &Table, column: usize) -> &str {
    table
        .columns
        .get(column)
        .map_or("", |column| column.name.as_str())
}

/// Returns the names of columns, joined.
pub fn names(table: &Table, columns: &[usize], separator: &str) -> String {
    columns
        .iter()
        .map(|at| column_name(table, *at))
        .collect::<Vec<_>>()
        .join(separator)
}

impl Restriction {
    /// Returns a restriction on a single column.
    pub fn single(column: usize, test: Test) -> Restriction {
        Restriction {
            columns: vec![column],
            is_multi: false,
            test,
        }
    }

    /// Returns a restriction written as a tuple.
    pub fn multi(columns: Vec<usize>, test: Test) -> Restriction {
        Restriction {
            columns,
            is_multi: true,
            test,
        }
    }

    pub fn first_column(&self) -> usize {
        self.columns.first().copied().unwrap_or(0)
    }

    pub fn last_column(&self) -> usize {
        self.columns.last().copied().unwrap_or(0)
    }

    pub fn is_eq(&self) -> bool {
        matches!(self.test, Test::Eq(_))
    }

    pub fn is_in(&self) -> bool {
        matches!(self.test, Test::In(_))
    }

    pub fn is_slice(&self) -> bool {
        matches!(self.test, Test::Slice(_))
    }

    pub fn is_contains(&self) -> bool {
        matches!(self.test, Test::Contains(_))
    }

    pub fn is_like(&self) -> bool {
        matches!(self.test, Test::Like(_))
    }

    fn may_become_multi(&self) -> bool {
        !self.is_contains() && !self.is_like()
    }

    /// Merges two restrictions into one (`SingleRestriction.mergeWith`).
    ///
    /// # Errors
    /// The relations can't be combined. The errors are Cassandra's.
    pub fn merge(&self, other: &Restriction, table: &Table) -> Result<Restriction, CqlError> {
        let mut left = self.clone();
        let mut right = other.clone();
        if right.is_multi && !left.is_multi && left.may_become_multi() {
            left.is_multi = true;
        }
        if left.is_multi && !right.is_multi && right.may_become_multi() {
            right.is_multi = true;
        }
        left.merge_same_kind(right, table)
    }

    fn merge_same_kind(self, other: Restriction, table: &Table) -> Result<Restriction, CqlError> {
        let common = if self.is_multi {
            self.common_names(&other, table)
        } else {
            names(table, &self.columns, "")
        };
        let once = |what: &str| {
            Err(CqlError::invalid(format!(
                "{common} cannot be restricted by more than one relation if it includes {what}"
            )))
        };
        match (&self.test, &other.test) {
            (Test::Eq(_), _) => once("an Equal"),
            (Test::In(_), _) => once("a IN"),
            (Test::Like(_), _) => once("a LIKE"),
            (Test::IsNotNull, _) => Err(CqlError::invalid(format!(
                "{common} cannot be restricted by a relation if it includes an IS NOT NULL{}",
                if self.is_multi { " clause" } else { "" }
            ))),
            (Test::Slice(slice), Test::Slice(other_slice)) => {
                self.merge_slices(slice, &other, other_slice, &common, table)
            }
            (Test::Slice(slice), Test::Eq(_)) if slice.is_of_new_operator() => once("an Equal"),
            (Test::Slice(slice), Test::In(_)) if slice.is_of_new_operator() => once("a IN"),
            (Test::Slice(_), _) => Err(CqlError::invalid(format!(
                "Column \"{common}\" cannot be restricted by both an equality and an inequality relation"
            ))),
            (Test::Contains(contains), Test::Contains(more)) => {
                let mut merged = contains.clone();
                merged.values.extend(more.values.iter().cloned());
                merged.keys.extend(more.keys.iter().cloned());
                merged.entries.extend(more.entries.iter().cloned());
                merged.absent_values.extend(more.absent_values.iter().cloned());
                merged.absent_keys.extend(more.absent_keys.iter().cloned());
                Ok(Restriction {
                    test: Test::Contains(merged),
                    ..self.clone()
                })
            }
            (Test::Contains(_), _) => Err(CqlError::invalid(format!(
                "Collection column {common} can only be restricted by CONTAINS, CONTAINS KEY, or map-entry equality"
            ))),
        }
    }

    fn merge_slices(
        &self,
        slice: &Slice,
        other: &Restriction,
        other_slice: &Slice,
        common: &str,
        table: &Table,
    ) -> Result<Restriction, CqlError> {
        if self.first_column() != other.first_column() {
            let column = self.first_column().max(other.first_column());
            return Err(CqlError::invalid(format!(
                "Column \"{}\" cannot be restricted by two inequalities not starting with the same column",
                column_name(table, column)
            )));
        }
        let twice = |side: &str| {
            Err(CqlError::invalid(format!(
                "More than one restriction was found for the {side} bound on {common}"
            )))
        };
        if slice.start.is_some() && other_slice.start.is_some() {
            return twice("start");
        }
        if slice.end.is_some() && other_slice.end.is_some() {
            return twice("end");
        }
        let columns = if self.columns.len() >= other.columns.len() {
            &self.columns
        } else {
            &other.columns
        };
        Ok(Restriction {
            columns: columns.clone(),
            is_multi: self.is_multi,
            test: Test::Slice(Slice {
                start: slice.start.clone().or_else(|| other_slice.start.clone()),
                end: slice.end.clone().or_else(|| other_slice.end.clone()),
                is_between: slice.is_between || other_slice.is_between,
                excluded: [slice.excluded.as_slice(), other_slice.excluded.as_slice()].concat(),
            }),
        })
    }

    fn common_names(&self, other: &Restriction, table: &Table) -> String {
        let common: Vec<usize> = self
            .columns
            .iter()
            .filter(|at| other.columns.contains(at))
            .copied()
            .collect();
        names(table, &common, " ,")
    }
}
