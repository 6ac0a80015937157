//! Changes as statements of CQL, for clusters other than Helenus. `USING TIMESTAMP` keeps the write times.
//!
//! A row becomes one statement for each write time and TTL in it. An INSERT stands for the write of a whole row, and UPDATE for single cells.
//! Elements of maps and sets are added and removed one by one, as their clients did.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use bytes::Bytes;
use helenus_cql::frame::BoundValue;
use helenus_cql::types::CqlType;
use helenus_cql::value::{pack_map, pack_set};
use helenus_row::key::split_partition_key;
use helenus_row::row::{CellKind, ColumnData, Complex, Expiry, Row};
use helenus_row::transfer::TransferItem;

use super::super::changes::Change;
use super::super::columns::PlannedColumn;
use super::super::cql_statements::ManyStatements;
use super::super::plan::TablePlan;
use super::super::state::{bigint, int};
use super::ranges;
use crate::node_session::Execution;

/// Write time in µs, and the rest of the TTL in seconds, which is 0 for cells that do not expire.
type Times = (i64, i32);

/// Adds the statements of a change.
pub(super) fn add(
    plan: &TablePlan,
    change: &Change,
    now_s: i64,
    executions: &mut Vec<Execution>,
) -> Result<()> {
    let damaged = |problem: &dyn std::fmt::Display| anyhow!("{}: a change is damaged: {problem}", plan.name);
    let partition = split_partition_key(&change.partition, plan.partition_key.len());
    let partition = partition.map_err(|error| damaged(&error))?;
    let statements = &plan.cql;
    match &change.item {
        TransferItem::Partition(_) => {}
        TransferItem::PartitionDeletion(deletion) => executions.push(execution(
            &statements.delete_partition,
            [set(bigint(deletion.timestamp_us))],
            partition,
        )),
        TransferItem::RangeDeletion { start, end, deletion } => {
            ranges::delete(plan, &partition, (start, end), deletion.timestamp_us, executions);
        }
        TransferItem::StaticRow(packed) => {
            let row = Row::decode(packed).map_err(|error| damaged(&error))?;
            add_row(plan, &row, partition, true, now_s, executions);
        }
        TransferItem::Row { clustering, row } => {
            let row = Row::decode(row).map_err(|error| damaged(&error))?;
            let mut key = partition;
            key.extend(clustering.iter().cloned());
            add_row(plan, &row, key, false, now_s, executions);
        }
    }
    Ok(())
}

/// Adds the statements of a row.
fn add_row(
    plan: &TablePlan,
    row: &Row,
    key: Vec<Bytes>,
    is_static: bool,
    now_s: i64,
    executions: &mut Vec<Execution>,
) {
    let statements = &plan.cql;
    if let Some(deletion) = row.deletion {
        let times = [set(bigint(deletion.timestamp_us))];
        executions.push(execution(&statements.delete_row, times, key.clone()));
    }
    let mut groups: BTreeMap<Times, BTreeMap<usize, BoundValue>> = BTreeMap::new();
    let inserted = row
        .liveness
        .map(|liveness| (liveness.timestamp_us, ttl_s(liveness.expiry, now_s)));
    if let Some(times) = inserted {
        groups.entry(times).or_default();
    }
    for (id, data) in &row.columns {
        let position = id.0 as usize;
        match data {
            ColumnData::Simple(cell) => {
                let (times, value) = match cell.kind {
                    CellKind::Tombstone { .. } => ((cell.timestamp_us, 0), BoundValue::Null),
                    CellKind::Expiring(expiry) => {
                        let times = (cell.timestamp_us, ttl_s(Some(expiry), now_s));
                        (times, set(cell.value.clone()))
                    }
                    CellKind::Live | CellKind::Counter => ((cell.timestamp_us, 0), set(cell.value.clone())),
                };
                groups.entry(times).or_default().insert(position, value);
            }
            ColumnData::Complex(complex) => {
                if let (Some(column), Some(many)) =
                    (plan.columns.get(position), statements.many.get(&position))
                {
                    add_elements(column, many, complex, &key, now_s, executions);
                }
            }
        }
    }
    let single: Vec<usize> = (0..plan.columns.len())
        .filter(|position| {
            let column = plan.columns.get(*position);
            column.is_some_and(|column| column.is_static == is_static && !column.ty.is_multicell())
        })
        .collect();
    for (times, mut group) in groups {
        let values = single
            .iter()
            .map(|position| group.remove(position).unwrap_or(BoundValue::Unset));
        let using = using(times);
        let key = key.iter().cloned().map(BoundValue::Set);
        let (statement, values): (_, Vec<BoundValue>) = match (inserted == Some(times), is_static) {
            (true, _) => (&statements.insert, key.chain(values).chain(using).collect()),
            (false, false) => (
                &statements.update,
                using.into_iter().chain(values).chain(key).collect(),
            ),
            (false, true) => (
                &statements.update_static,
                using.into_iter().chain(values).chain(key).collect(),
            ),
        };
        executions.push(Execution {
            statement: statement.clone(),
            values,
        });
    }
}

/// Adds the statements for the elements of a column.
fn add_elements(
    column: &PlannedColumn,
    many: &ManyStatements,
    complex: &Complex,
    key: &[Bytes],
    now_s: i64,
    executions: &mut Vec<Execution>,
) {
    if let Some(deletion) = complex.deletion {
        let times = [set(bigint(deletion.timestamp_us))];
        executions.push(execution(&many.delete, times, key.to_vec()));
    }
    // Elements and their values by write time. Those without a value are removed.
    let mut added: BTreeMap<Times, Vec<(&[u8], &[u8])>> = BTreeMap::new();
    let mut removed: BTreeMap<Times, Vec<&[u8]>> = BTreeMap::new();
    for (path, cell) in &complex.cells {
        let (times, value) = match cell.kind {
            CellKind::Tombstone { .. } => ((cell.timestamp_us, 0), None),
            CellKind::Expiring(expiry) => (
                (cell.timestamp_us, ttl_s(Some(expiry), now_s)),
                Some(&*cell.value),
            ),
            CellKind::Live | CellKind::Counter => ((cell.timestamp_us, 0), Some(&*cell.value)),
        };
        if let CqlType::Udt { .. } = &column.ty {
            let position = path.as_ref().try_into().map(u16::from_be_bytes);
            let field = position
                .ok()
                .and_then(|position| many.fields.get(usize::from(position)));
            if let Some(statement) = field {
                let value = value.map_or(BoundValue::Null, |_| set(cell.value.clone()));
                let values = using(times).into_iter().chain([value]);
                executions.push(execution(statement, values, key.to_vec()));
            }
            continue;
        }
        match value {
            Some(value) => added.entry(times).or_default().push((path.as_ref(), value)),
            None => removed.entry(times).or_default().push(path.as_ref()),
        }
    }
    for (times, elements) in added {
        let value = match &column.ty {
            CqlType::Map { key, .. } => pack_map(key, elements),
            CqlType::Set { element, .. } => pack_set(element, elements.into_iter().map(|(path, _)| path)),
            _ => continue,
        };
        let values = using(times).into_iter().chain([set(value)]);
        executions.push(execution(&many.add, values, key.to_vec()));
    }
    for (times, paths) in removed {
        let value = match &column.ty {
            CqlType::Map { key, .. } => pack_set(key, paths),
            CqlType::Set { element, .. } => pack_set(element, paths),
            _ => continue,
        };
        let values = using(times).into_iter().chain([set(value)]);
        executions.push(execution(&many.remove, values, key.to_vec()));
    }
}

/// Returns the values of `USING TIMESTAMP ? AND TTL ?`.
fn using((written_us, ttl_s): Times) -> [BoundValue; 2] {
    [set(bigint(written_us)), set(int(ttl_s))]
}

/// Returns the rest of a TTL. Cells that have expired get a TTL of one second, because they hide older ones.
fn ttl_s(expiry: Option<Expiry>, now_s: i64) -> i32 {
    expiry.map_or(0, |expiry| {
        let left_s = (expiry.expires_at_s - now_s).clamp(1, i64::from(expiry.ttl_s.max(1)));
        i32::try_from(left_s).unwrap_or(1)
    })
}

fn set(bytes: Bytes) -> BoundValue {
    BoundValue::Set(bytes)
}

/// Returns a statement with values, the last of which are those of a key.
pub(super) fn execution(
    statement: &Arc<str>,
    values: impl IntoIterator<Item = BoundValue>,
    key: Vec<Bytes>,
) -> Execution {
    Execution {
        statement: statement.clone(),
        values: values
            .into_iter()
            .chain(key.into_iter().map(BoundValue::Set))
            .collect(),
    }
}
