//! Conditions of a transaction (Cassandra 6's `ConditionStatement`). A comparison with a null never holds.

use bytes::Bytes;
use helenus_cql::ast::{self, Operator, TransactionTest};
use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;

use super::check::invalid;
use super::reference::{self, KnownRow, Reference};
use crate::analysis::modification::conditions::check_durations;
use crate::analysis::modification::conditions::target::Target;
use crate::analysis::terms::Term;
use crate::analysis::{EvalContext, PlanContext};
use crate::request::BoundValue;

const NULL_COMPARISON: &str = "Invalid comparison with null for operator; use IS NULL or IS NOT NULL instead";

/// One condition.
#[derive(Debug)]
pub(crate) struct Condition {
    subject: Subject,
    test: Test,
}

/// The tested value.
#[derive(Debug)]
enum Subject {
    /// A row, by its index in [`super::TransactionPlan::reads`].
    Row(usize),
    Value(Reference),
}

#[derive(Debug)]
enum Test {
    IsNull,
    IsNotNull,
    /// The type is that of the reference.
    Compare(Operator, Term, CqlType),
}

/// The rows that a transaction has read.
pub(crate) trait ReadValues {
    /// Returns true if the row exists.
    fn exists(&self, read: usize) -> bool;

    /// Returns the value of a column. `None` if it is null, or the row does not exist.
    fn column(&self, read: usize, column: usize) -> Option<Bytes>;
}

impl Condition {
    pub(super) fn plan(
        ctx: &mut PlanContext<'_>,
        rows: &[KnownRow],
        condition: &ast::TransactionCondition,
    ) -> Result<Condition, CqlError> {
        let resolved = reference::resolve(ctx, rows, &condition.reference)?;
        let (subject, compared) = match resolved {
            Some(resolved) => (Subject::Value(resolved.reference), Some(resolved.spec)),
            None => (
                Subject::Row(reference::row(rows, &condition.reference.row)?),
                None,
            ),
        };
        let test = match (&condition.test, compared) {
            (TransactionTest::IsNull, _) => Test::IsNull,
            (TransactionTest::IsNotNull, _) => Test::IsNotNull,
            (TransactionTest::Compare(..), None) => {
                return invalid(format!(
                    "Row reference ({}) can only be used with IS NULL/IS NOT NULL conditions",
                    condition.reference
                ));
            }
            (TransactionTest::Compare(operator, term), Some(spec)) => {
                if matches!(&subject, Subject::Value(reference) if reference.is_member()) {
                    return invalid(format!(
                        "Element selection not supported for column {} of type SET",
                        condition.reference.column.as_ref().map_or("", ast::Ident::as_str)
                    ));
                }
                check_durations(&spec.ty, *operator)?;
                if matches!(term, ast::Term::Null) {
                    return invalid(NULL_COMPARISON);
                }
                Test::Compare(*operator, Term::prepare(ctx, term, &spec)?, spec.ty)
            }
        };
        Ok(Condition { subject, test })
    }

    /// Returns the tested column. `None` if the condition is on a whole row.
    pub(super) fn reference(&self) -> Option<&Reference> {
        match &self.subject {
            Subject::Row(_) => None,
            Subject::Value(reference) => Some(reference),
        }
    }

    /// Returns true if the condition holds.
    ///
    /// # Errors
    /// Cassandra's, for a value that cannot be compared.
    pub(crate) fn holds(&self, rows: &dyn ReadValues, eval: &EvalContext<'_>) -> Result<bool, CqlError> {
        let (is_there, value) = match &self.subject {
            Subject::Row(read) => (rows.exists(*read), None),
            Subject::Value(reference) => {
                let column = rows.column(reference.read, reference.column);
                let value = reference.value(column, eval)?;
                (value.is_some(), value.map(|value| (reference.is_whole(), value)))
            }
        };
        let (operator, term, ty) = match &self.test {
            Test::IsNull => return Ok(!is_there),
            Test::IsNotNull => return Ok(is_there),
            Test::Compare(operator, term, ty) => (*operator, term, ty),
        };
        // An invalid value is an error, whatever the row contains.
        let bound = match term.bind(eval)? {
            BoundValue::Set(bound) => bound,
            BoundValue::Null => return invalid(NULL_COMPARISON),
            BoundValue::Unset => return invalid("Invalid 'unset' value in condition"),
        };
        let Some((is_whole, value)) = &value else {
            return Ok(false);
        };
        let target = Target {
            ty,
            value: Some(value),
            is_multicell: *is_whole && ty.is_multicell() && ty.is_collection(),
        };
        target.compare(operator, &bound)
    }
}
