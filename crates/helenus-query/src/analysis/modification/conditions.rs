//! The IF clause: its conditions planned and tested (Cassandra's `ColumnCondition` and `Conditions`).

#[cfg(test)]
mod explain;
pub(crate) mod part;
pub(crate) mod target;

use std::borrow::Cow;

use bytes::Bytes;
use helenus_cql::ast::{self, Operator};
use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;
use helenus_cql::value;

use super::attributes::Attributes;
use super::columns::existing;
use super::operation::{key_spec, value_spec};
use crate::analysis::assignable::part_spec;
use crate::analysis::terms::{MarkerList, Term};
use crate::analysis::{EvalContext, PlanContext, column_spec};
use crate::request::BoundValue;
use crate::response::ColumnSpec;
use crate::schema::{Column, Table};
use part::{Part, plan_part};
use target::Target;

/// The IF clause of a modification.
#[derive(Clone, Debug, Default)]
pub enum Conditions {
    #[default]
    None,
    Exists,
    NotExists,
    Columns(Vec<ColumnCondition>),
}

/// One condition on a column or a part of it.
#[derive(Clone, Debug)]
pub struct ColumnCondition {
    /// Index in [`Table::columns`].
    pub column: usize,
    part: Part,
    test: Test,
}

#[derive(Clone, Debug)]
enum Test {
    Compare(Operator, Term),
    InMarker { index: usize, element: CqlType },
    InValues(Box<[Term]>),
    InMarkers(MarkerList),
}

impl Test {
    /// Returns the values of a list as written. Empty for other tests.
    fn values(&self) -> Box<dyn Iterator<Item = Cow<'_, Term>> + '_> {
        match self {
            Test::InValues(terms) => Box::new(terms.iter().map(Cow::Borrowed)),
            Test::InMarkers(list) => Box::new(list.terms().map(Cow::Owned)),
            Test::Compare(..) | Test::InMarker { .. } => Box::new(std::iter::empty()),
        }
    }
}

impl Conditions {
    pub fn plan(
        ctx: &mut PlanContext<'_>,
        table: &Table,
        clause: &ast::IfClause,
        attributes: &Attributes,
    ) -> Result<Conditions, CqlError> {
        Ok(match clause {
            ast::IfClause::None => Conditions::None,
            ast::IfClause::Exists => Conditions::Exists,
            ast::IfClause::NotExists => Conditions::NotExists,
            ast::IfClause::Conditions(conditions) => {
                if attributes.has_timestamp() {
                    return Err(CqlError::invalid(
                        "Cannot provide custom timestamp for conditional updates",
                    ));
                }
                let planned = conditions
                    .iter()
                    .map(|condition| ColumnCondition::plan(ctx, table, condition));
                Conditions::Columns(planned.collect::<Result<_, _>>()?)
            }
        })
    }

    pub fn is_empty(&self) -> bool {
        matches!(self, Conditions::None)
    }

    fn any(&self, table: &Table, test: impl Fn(&Column) -> bool) -> bool {
        match self {
            Conditions::Columns(conditions) => conditions
                .iter()
                .filter_map(|condition| table.columns.get(condition.column))
                .any(|column| test(column)),
            Conditions::None | Conditions::Exists | Conditions::NotExists => false,
        }
    }

    pub fn applies_to_static(&self, table: &Table) -> bool {
        self.any(table, Column::is_static)
    }

    pub fn applies_to_regular(&self, table: &Table) -> bool {
        self.any(table, |column| !column.is_static())
    }
}

fn invalid<T>(message: String) -> Result<T, CqlError> {
    Err(CqlError::invalid(message))
}

impl ColumnCondition {
    /// Refuses terms without a value, and values that are no lists, before any other check.
    pub fn check_terms(&self, eval: &EvalContext<'_>) -> Result<(), CqlError> {
        if let Part::Element(element) = &self.part {
            element.bind(eval)?;
        }
        match &self.test {
            Test::Compare(_, term) => term.bind(eval).map(drop),
            Test::InValues(_) | Test::InMarkers(_) => {
                let mut values = self.test.values();
                values.try_for_each(|term| term.bind(eval).map(drop))
            }
            Test::InMarker { index, element } => listed(*index, element, eval).map(drop),
        }
    }

    /// Returns the key of the tested element. `None` if the condition is not on an element.
    pub fn element_key(&self, eval: &EvalContext<'_>) -> Result<Option<Bytes>, CqlError> {
        Ok(match &self.part {
            Part::Element(key) => match key.bind(eval)? {
                BoundValue::Set(key) => Some(key),
                BoundValue::Null | BoundValue::Unset => None,
            },
            Part::Whole | Part::Field(_) => None,
        })
    }

    fn plan(
        ctx: &mut PlanContext<'_>,
        table: &Table,
        condition: &ast::Condition,
    ) -> Result<ColumnCondition, CqlError> {
        let (place, column) = existing(table, &condition.column)?;
        if column.ty.is_counter() {
            return invalid("Conditions on counters are not supported".to_owned());
        }
        let receiver = column_spec(table, column);
        let (part, spec) = plan_part(ctx, column, &receiver, &condition.target)?;
        let test = plan_test(ctx, column, &spec, &condition.test)?;
        if column.is_primary_key() {
            return invalid(format!(
                "PRIMARY KEY column '{}' cannot have IF conditions",
                column.name
            ));
        }
        Ok(ColumnCondition {
            column: place,
            part,
            test,
        })
    }
}

fn plan_test(
    ctx: &mut PlanContext<'_>,
    column: &Column,
    spec: &ColumnSpec,
    test: &ast::ConditionTest,
) -> Result<Test, CqlError> {
    match test {
        ast::ConditionTest::Compare(operator, term) => {
            let spec = match operator {
                Operator::Contains | Operator::ContainsKey => contained_spec(column, spec, *operator)?,
                _ => {
                    check_durations(&spec.ty, *operator)?;
                    spec.clone()
                }
            };
            Ok(Test::Compare(*operator, Term::prepare(ctx, term, &spec)?))
        }
        ast::ConditionTest::In(ast::InValues::Marker(index)) => {
            let list = CqlType::list(spec.ty.clone(), false);
            ctx.markers
                .set(*index, part_spec(spec, format!("in({})", spec.name), list));
            Ok(Test::InMarker {
                index: *index,
                element: spec.ty.clone(),
            })
        }
        ast::ConditionTest::In(ast::InValues::Values(terms)) => {
            let prepared = terms.iter().map(|term| Term::prepare(ctx, term, spec));
            let terms = prepared.collect::<Result<Vec<_>, _>>()?;
            Ok(match MarkerList::of(terms.iter().map(std::slice::from_ref)) {
                Some(list) => Test::InMarkers(list),
                None => Test::InValues(terms.into_boxed_slice()),
            })
        }
    }
}

/// Returns the receiver of a value that a collection is tested to contain.
fn contained_spec(column: &Column, spec: &ColumnSpec, operator: Operator) -> Result<ColumnSpec, CqlError> {
    let name = &column.name;
    match (&column.ty, operator) {
        (CqlType::Map { key, .. }, Operator::ContainsKey) => Ok(key_spec(spec, key)),
        (_, Operator::ContainsKey) => invalid(format!("Cannot use CONTAINS KEY on non-map column {name}")),
        (CqlType::List { element, .. } | CqlType::Set { element, .. }, _) => Ok(value_spec(spec, element)),
        (CqlType::Map { value, .. }, _) => Ok(value_spec(spec, value)),
        _ => invalid(format!("Cannot use CONTAINS on non-collection column {name}")),
    }
}

pub(crate) fn check_durations(ty: &CqlType, operator: Operator) -> Result<(), CqlError> {
    if !operator.is_slice() || !ty.references_duration() {
        return Ok(());
    }
    invalid(match ty {
        ty if ty.is_collection() => {
            "Slice conditions are not supported on collections containing durations".to_owned()
        }
        CqlType::Tuple(_) => "Slice conditions are not supported on tuples containing durations".to_owned(),
        CqlType::Udt { .. } => "Slice conditions are not supported on UDTs containing durations".to_owned(),
        _ => format!(
            "Slice conditions ( {} ) are not supported on durations",
            operator.symbol()
        ),
    })
}

const UNSET: &str = "Invalid 'unset' value in condition";

impl ColumnCondition {
    /// Returns true if the condition holds for the column's value. A `value` of `None` is null.
    ///
    /// # Errors
    /// Cassandra's, for invalid bound values.
    pub fn holds(
        &self,
        table: &Table,
        value: Option<Bytes>,
        eval: &EvalContext<'_>,
    ) -> Result<bool, CqlError> {
        let Some(column) = table.columns.get(self.column) else {
            return Ok(false);
        };
        let (ty, value) = self.part.of(&column.ty, value, eval)?;
        let is_multicell = matches!(self.part, Part::Whole) && ty.is_multicell() && ty.is_collection();
        let target = Target {
            ty: &ty,
            value: value.as_deref(),
            is_multicell,
        };
        match &self.test {
            Test::Compare(operator, term) => match term.bind(eval)? {
                BoundValue::Set(bound) => target.compare(*operator, &bound),
                BoundValue::Null => target.compare_null(*operator),
                // Cassandra looks for an empty value if the bound value is unset.
                BoundValue::Unset
                    if is_multicell && matches!(operator, Operator::Contains | Operator::ContainsKey) =>
                {
                    target.compare(*operator, &[])
                }
                BoundValue::Unset => invalid(UNSET.to_owned()),
            },
            Test::InMarker { index, element } => {
                let mut any = false;
                for bound in listed(*index, element, eval)? {
                    any |= target.equals(bound.as_deref())?;
                }
                Ok(any)
            }
            Test::InValues(_) | Test::InMarkers(_) => {
                let mut any = false;
                for term in self.test.values() {
                    any |= match term.bind(eval)? {
                        BoundValue::Set(bound) => target.equals(Some(&bound))?,
                        BoundValue::Null => target.equals(None)?,
                        BoundValue::Unset => false,
                    };
                }
                Ok(any)
            }
        }
    }
}

/// Returns the values of a list that is bound for an IN. An element without bytes is null, unless its type has an empty value.
fn listed(index: usize, element: &CqlType, eval: &EvalContext<'_>) -> Result<Vec<Option<Bytes>>, CqlError> {
    let list = match eval.values.get(index) {
        Some(BoundValue::Set(list)) => list,
        Some(BoundValue::Null) => return invalid("Invalid null list in IN condition".to_owned()),
        Some(BoundValue::Unset) | None => return invalid(UNSET.to_owned()),
    };
    let values = value::read_bound_list(element, list).map_err(CqlError::Invalid)?;
    let is_value = |value: &&[u8]| !(value.is_empty() && value::is_empty_meaningless(element));
    let in_order = |value: &[u8]| value::in_order(element, &list.slice_ref(value));
    let values = values.into_iter().map(|value| value.filter(is_value));
    Ok(values.map(|value| value.map(in_order)).collect())
}
