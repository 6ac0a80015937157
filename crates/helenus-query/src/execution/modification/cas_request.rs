//! The combined conditions of a request's statements, row by row (Cassandra's `CQL3CasRequest`).

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use helenus_cql::error::CqlError;

use crate::analysis::EvalContext;
use crate::analysis::modification::BoundModification;
use crate::analysis::modification::bound::RowsBound;
use crate::analysis::modification::conditions::{ColumnCondition, Conditions};
use crate::java_order::{bucket, hash_of_bytes};
use crate::schema::Table;

/// The conditions on one row.
pub(crate) enum RowCondition<'b> {
    Exists,
    NotExists,
    Columns(Vec<(&'b ColumnCondition, EvalContext<'b>)>),
}

/// The conditions of a request: those on rows, by encoded clustering, and those on the static row.
#[derive(Default)]
pub(crate) struct Request<'b> {
    pub rows: BTreeMap<Bytes, RowCondition<'b>>,
    pub statics: Option<RowCondition<'b>>,
    pub updates_regular: bool,
    pub updates_static: bool,
}

/// Returns the conditions on a row in the order in which Cassandra tests them. It is the order of a Java `HashMap` with 16 buckets, keyed
/// by the column's name and the element's key.
pub(crate) fn in_order_of_tests<'c, 'b>(
    table: &Table,
    conditions: &'c [(&'b ColumnCondition, EvalContext<'b>)],
) -> Result<Vec<&'c (&'b ColumnCondition, EvalContext<'b>)>, CqlError> {
    let place = |(condition, eval): &(&ColumnCondition, EvalContext<'_>)| {
        let name = table
            .columns
            .get(condition.column)
            .map_or("", |column| &column.name);
        let element = condition.element_key(eval)?;
        let parts = [
            hash_of_bytes(name.as_bytes()),
            element.as_deref().map_or(0, hash_of_bytes),
        ];
        let add = |hash: i32, part: &i32| hash.wrapping_mul(31).wrapping_add(*part);
        Ok(bucket(parts.iter().fold(1, add), 16))
    };
    let mut placed = conditions
        .iter()
        .map(|condition| Ok((place(condition)?, condition)))
        .collect::<Result<Vec<_>, CqlError>>()?;
    placed.sort_by_key(|(place, _)| *place);
    Ok(placed.into_iter().map(|(_, condition)| condition).collect())
}

impl<'b> Request<'b> {
    /// Adds the conditions of a statement.
    ///
    /// # Errors
    /// The conditions cannot be combined with earlier ones, or a value is invalid.
    pub fn add(&mut self, bound: &'b BoundModification<'b>) -> Result<(), CqlError> {
        self.updates_regular |= bound.updates_regular_rows();
        // If the conditions do not hold, the answer shows only static columns that statements with conditions write.
        self.updates_static |= bound.plan.is_conditional() && bound.updates_static_row();
        let table = &bound.plan.table;
        let clustering = match &bound.rows {
            RowsBound::Names(names) => names.first().map(|name| name.clustering.clone()),
            RowsBound::None | RowsBound::Ranges(_) | RowsBound::Null(_) => None,
        };
        match &bound.plan.conditions {
            Conditions::None => Ok(()),
            Conditions::Exists => self.add_existence(clustering, RowCondition::Exists),
            Conditions::NotExists => self.add_existence(clustering, RowCondition::NotExists),
            Conditions::Columns(conditions) => {
                for condition in conditions {
                    let is_static = table
                        .columns
                        .get(condition.column)
                        .is_some_and(|column| column.is_static());
                    let slot = match (&clustering, is_static) {
                        (Some(clustering), false) => Some(clustering.clone()),
                        _ => None,
                    };
                    self.add_column(slot, condition, bound.eval)?;
                }
                Ok(())
            }
        }
    }

    fn add_existence(
        &mut self,
        clustering: Option<Bytes>,
        condition: RowCondition<'b>,
    ) -> Result<(), CqlError> {
        let previous = match &clustering {
            Some(clustering) => self.rows.get(clustering),
            None => self.statics.as_ref(),
        };
        let name = if matches!(condition, RowCondition::Exists) {
            "EXISTS"
        } else {
            "NOT EXISTS"
        };
        match (previous, &condition) {
            (Some(RowCondition::Columns(_)), _) => {
                return Err(CqlError::invalid(format!(
                    "Cannot mix IF conditions and IF {name} for the same row"
                )));
            }
            (Some(RowCondition::Exists), RowCondition::NotExists)
            | (Some(RowCondition::NotExists), RowCondition::Exists) => {
                return Err(CqlError::invalid(
                    "Cannot mix IF EXISTS and IF NOT EXISTS conditions for the same row",
                ));
            }
            _ => {}
        }
        match clustering {
            Some(clustering) => {
                self.rows.insert(clustering, condition);
            }
            None => self.statics = Some(condition),
        }
        Ok(())
    }

    fn add_column(
        &mut self,
        clustering: Option<Bytes>,
        condition: &'b ColumnCondition,
        eval: EvalContext<'b>,
    ) -> Result<(), CqlError> {
        let empty = || RowCondition::Columns(Vec::new());
        let slot = match clustering {
            Some(clustering) => self.rows.entry(clustering).or_insert_with(empty),
            None => self.statics.get_or_insert_with(empty),
        };
        match slot {
            RowCondition::Columns(conditions) => {
                condition.check_terms(&eval)?;
                conditions.push((condition, eval));
                Ok(())
            }
            // Cassandra's message names NOT EXISTS in both cases.
            RowCondition::NotExists | RowCondition::Exists => Err(CqlError::invalid(
                "Cannot mix IF conditions and IF NOT EXISTS for the same row",
            )),
        }
    }

    /// Returns the indexes of the columns with conditions.
    pub fn condition_columns(&self) -> BTreeSet<usize> {
        let columns = |condition: &RowCondition<'_>| match condition {
            RowCondition::Columns(conditions) => conditions.iter().map(|(one, _)| one.column).collect(),
            RowCondition::Exists | RowCondition::NotExists => Vec::new(),
        };
        self.rows
            .values()
            .chain(&self.statics)
            .flat_map(columns)
            .collect()
    }
}
