//! Deleted ranges as DELETE statements.
//!
//! The bounds of a range are prefixes of the clustering values, and clustering columns may be in ascending or in descending order. So a range
//! becomes several deletions, each with equations and comparisons of one column: the rows between the first values in which the bounds
//! differ, those with the start's first value and a later second one, and so on.

use bytes::Bytes;
use helenus_cql::frame::BoundValue;
use helenus_cql::identifier::quote_identifier;
use helenus_row::transfer::TransferBound;

use super::super::columns::{PlannedColumn, equations};
use super::super::plan::TablePlan;
use super::super::state::bigint;
use crate::node_session::Execution;

/// A side of a comparison: the value, and whether rows with the value are deleted.
type Side<'v> = Option<(&'v Bytes, bool)>;

/// Adds the statements that delete a range.
pub(super) fn delete(
    plan: &TablePlan,
    partition: &[Bytes],
    (start, end): (&TransferBound, &TransferBound),
    written_us: i64,
    executions: &mut Vec<Execution>,
) {
    let pairs = start.values.iter().zip(&end.values);
    let shared = pairs.take_while(|(start, end)| start == end).count();
    let mut add = |equal: &[Bytes], after: Side<'_>, before: Side<'_>| {
        executions.push(statement(plan, partition, equal, (after, before), written_us));
    };
    let side = |bound: &'_ TransferBound, place: usize| {
        let is_last = place + 1 == bound.values.len();
        let value = bound.values.get(place).cloned();
        value.map(|value| (value, is_last && bound.is_inclusive))
    };
    let prefix = |bound: &TransferBound, len: usize| bound.values.get(..len).unwrap_or_default().to_vec();
    let (first, last) = (side(start, shared), side(end, shared));
    add(&prefix(start, shared), borrowed(&first), borrowed(&last));
    for place in shared + 1..start.values.len() {
        add(&prefix(start, place), borrowed(&side(start, place)), None);
    }
    for place in shared + 1..end.values.len() {
        add(&prefix(end, place), None, borrowed(&side(end, place)));
    }
}

fn borrowed(side: &Option<(Bytes, bool)>) -> Side<'_> {
    side.as_ref().map(|(value, is_inclusive)| (value, *is_inclusive))
}

/// Returns the statement that deletes the rows with some first clustering values, whose next value lies between two sides in the order of
/// its column.
fn statement(
    plan: &TablePlan,
    partition: &[Bytes],
    equal: &[Bytes],
    (after, before): (Side<'_>, Side<'_>),
    written_us: i64,
) -> Execution {
    let mut terms = vec![equations(plan.partition_key.iter(), " AND ")];
    let mut values = vec![bigint(written_us)];
    values.extend_from_slice(partition);
    if !equal.is_empty() {
        terms.push(equations(plan.clustering.iter().take(equal.len()), " AND "));
        values.extend_from_slice(equal);
    }
    if let Some(column) = plan.clustering.get(equal.len()) {
        for (side, is_after) in [(after, true), (before, false)] {
            if let Some((value, is_inclusive)) = side {
                let operator = operator(column, is_after, is_inclusive);
                terms.push(format!("{} {operator} ?", quote_identifier(&column.name)));
                values.push(value.clone());
            }
        }
    }
    let text = format!(
        "DELETE FROM {} USING TIMESTAMP ? WHERE {}",
        plan.name,
        terms.join(" AND ")
    );
    Execution {
        statement: text.into(),
        values: values.into_iter().map(BoundValue::Set).collect(),
    }
}

/// Returns the comparison with a side. In descending order, rows after a value have smaller ones.
fn operator(column: &PlannedColumn, is_after: bool, is_inclusive: bool) -> &'static str {
    match (is_after != column.is_descending, is_inclusive) {
        (true, true) => ">=",
        (true, false) => ">",
        (false, true) => "<=",
        (false, false) => "<",
    }
}

#[cfg(test)]
mod tests {
    use helenus_cql::types::CqlType;
    use helenus_import::TableName;
    use helenus_import::schema::{ColumnRole, ColumnShape, TableShape};

    use super::*;

    /// Returns the conditions of a range's statements, in a table whose second clustering column is in descending order.
    fn conditions(start: (&[&'static str], bool), end: (&[&'static str], bool)) -> Vec<String> {
        let column = |role, is_descending| ColumnShape {
            role,
            ty: CqlType::TEXT,
            is_descending,
        };
        let columns = [
            ("p", column(ColumnRole::PartitionKey(0), false)),
            ("a", column(ColumnRole::Clustering(0), false)),
            ("b", column(ColumnRole::Clustering(1), true)),
        ];
        let shape = TableShape {
            columns: columns.map(|(name, column)| (name.to_owned(), column)).into(),
            ..TableShape::default()
        };
        let plan = TablePlan::new(&TableName::new("ks", "t"), &shape, 0, 0);
        let bound = |(values, is_inclusive): (&[&'static str], bool)| TransferBound {
            values: values
                .iter()
                .map(|value| Bytes::from_static(value.as_bytes()))
                .collect(),
            is_inclusive,
        };
        let mut found = Vec::new();
        let partition = [Bytes::from_static(b"p")];
        delete(&plan, &partition, (&bound(start), &bound(end)), 1, &mut found);
        let shown = found.iter().map(|execution| {
            let mut text = execution.statement.rsplit_once("p = ?").unwrap().1.to_owned();
            for value in execution.values.iter().skip(2) {
                let BoundValue::Set(value) = value else { panic!() };
                text = text.replacen('?', std::str::from_utf8(value).unwrap(), 1);
            }
            text.trim_start_matches(" AND ").to_owned()
        });
        shown.collect()
    }

    #[test]
    fn ranges_of_one_column_are_one_statement() {
        assert_eq!(conditions((&["1"], true), (&["1"], true)), ["a = 1"]);
        assert_eq!(conditions((&["1"], false), (&["3"], true)), ["a > 1 AND a <= 3"]);
        assert_eq!(conditions((&[], true), (&["3"], false)), ["a < 3"]);
        assert_eq!(
            conditions((&["1", "x"], false), (&["1"], true)),
            ["a = 1 AND b < x"]
        );
        assert_eq!(
            conditions((&["1", "y"], true), (&["1", "x"], false)),
            ["a = 1 AND b <= y AND b > x"]
        );
    }

    #[test]
    fn ranges_over_both_orders_are_several_statements() {
        assert_eq!(
            conditions((&["1", "x"], true), (&["3", "y"], false)),
            ["a > 1 AND a < 3", "a = 1 AND b <= x", "a = 3 AND b > y"]
        );
        assert_eq!(
            conditions((&["1", "x"], false), (&[], true)),
            ["a > 1", "a = 1 AND b < x"]
        );
    }
}
