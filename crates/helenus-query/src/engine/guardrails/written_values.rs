//! The guardrails of written values (the calls in Cassandra's `UpdateParameters`, `Lists`, `Sets`, `Maps` and `StorageAttachedIndex`).
//! Sizes are those of the protocol.

use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;
use helenus_cql::value::pack::collection_size;
use helenus_cql::value::{read_elements, read_tuple};

use super::count;
use crate::analysis::EvalContext;
use crate::analysis::modification::ModificationPlan;
use crate::analysis::modification::operation::{Action, Operation};
use crate::analysis::terms::Term;
use crate::index::kinds::sai::is_storage_attached;
use crate::limits::guardrails::{Guard, ThresholdKind};
use crate::schema::{Column, Index, IndexTargetKind, Table};

const SAI_KINDS: [ThresholdKind; 3] = [
    ThresholdKind::SaiFrozenTermSize,
    ThresholdKind::SaiStringTermSize,
    ThresholdKind::SaiVectorTermSize,
];
/// Thresholds of the values of all columns.
const KINDS: [ThresholdKind; 3] = [
    ThresholdKind::CollectionSize,
    ThresholdKind::ColumnValueSize,
    ThresholdKind::ItemsPerCollection,
];

/// Checks the values of a statement. Invalid values are refused where they are used.
///
/// # Errors
/// A guardrail refuses a value.
pub(super) fn check(
    guard: &mut Guard,
    plan: &ModificationPlan,
    eval: &EvalContext<'_>,
) -> Result<(), CqlError> {
    let is_guarded = |kind: &ThresholdKind| guard.guardrails.guards(*kind);
    if !KINDS.iter().chain(&SAI_KINDS).any(is_guarded) {
        return Ok(());
    }
    match &plan.json {
        None => check_operations(guard, &plan.table, &plan.operations, eval),
        Some(document) => match document.row(&plan.table, eval) {
            Ok(row) => check_operations(guard, &plan.table, &row.operations, eval),
            Err(_) => Ok(()),
        },
    }
}

fn check_operations(
    guard: &mut Guard,
    table: &Table,
    operations: &[Operation],
    eval: &EvalContext<'_>,
) -> Result<(), CqlError> {
    for operation in operations {
        let Some(column) = table.columns.get(operation.column) else {
            continue;
        };
        let sizes = CellSizes::of(&operation.action, column, eval);
        if let Some((items, bytes)) = sizes.collection {
            guard.check(ThresholdKind::ItemsPerCollection, &column.name, count(items))?;
            guard.check(ThresholdKind::CollectionSize, &column.name, count(bytes))?;
        }
        for size in sizes.keys.iter().chain(&sizes.values) {
            guard.check(ThresholdKind::ColumnValueSize, &column.name, count(*size))?;
        }
        let indexes = table.indexes.iter().filter(|index| {
            !sizes.are_deleted && index.target.column == column.name && is_storage_attached(index)
        });
        for index in indexes {
            check_terms(guard, index, column, &sizes)?;
        }
    }
    Ok(())
}

/// Checks the terms that an index takes from a column.
fn check_terms(guard: &mut Guard, index: &Index, column: &Column, sizes: &CellSizes) -> Result<(), CqlError> {
    let (takes_keys, takes_values) = match index.target.kind {
        IndexTargetKind::Simple | IndexTargetKind::Full => (false, true),
        IndexTargetKind::Keys => (true, false),
        // Elements of a set are keys.
        IndexTargetKind::Values => (matches!(column.ty, CqlType::Set { .. }), true),
        IndexTargetKind::KeysAndValues => (true, true),
    };
    let keys = sizes.keys.iter().filter(|_| takes_keys);
    let values = sizes.values.iter().filter(|_| takes_values);
    let (key_type, value_type) = cell_types(&column.ty);
    let keys = keys.map(|size| (key_type, size));
    let mut terms = keys.chain(values.map(|size| (value_type, size)));
    terms.try_for_each(|(ty, size)| guard.check(term_kind(ty), &column.name, count(*size)))
}

/// Returns the types of the keys and the values in a column's cells.
fn cell_types(ty: &CqlType) -> (&CqlType, &CqlType) {
    match ty {
        CqlType::Map {
            key,
            value,
            frozen: false,
        } => (key, value),
        CqlType::List {
            element,
            frozen: false,
        }
        | CqlType::Set {
            element,
            frozen: false,
        } => (element, element),
        whole => (whole, whole),
    }
}

/// Returns the guardrail for terms of a type.
fn term_kind(ty: &CqlType) -> ThresholdKind {
    match ty {
        CqlType::Vector { .. } => ThresholdKind::SaiVectorTermSize,
        CqlType::Native(_) | CqlType::Custom(_) => ThresholdKind::SaiStringTermSize,
        _ => ThresholdKind::SaiFrozenTermSize,
    }
}

/// Sizes in bytes of the cells that an operation writes.
#[derive(Debug, Default)]
struct CellSizes {
    /// Number of elements of a collection, and its bytes. `None` if no collection is written as a whole.
    collection: Option<(usize, usize)>,
    /// Sizes of elements of sets and of keys of maps.
    keys: Vec<usize>,
    values: Vec<usize>,
    /// True if the operation deletes the cells.
    are_deleted: bool,
}

impl CellSizes {
    fn of(action: &Action, column: &Column, eval: &EvalContext<'_>) -> CellSizes {
        let size = |term: &Term| term.value(eval).ok().flatten().map(|value| value.len());
        let one = |term: &Term| Vec::from_iter(size(term));
        match action {
            Action::Set(term) | Action::Add(term) | Action::Prepend(term) => {
                let value = term.value(eval).ok().flatten();
                value.map_or_else(CellSizes::default, |value| {
                    CellSizes::of_value(&column.ty, &value)
                })
            }
            Action::SetIndex { value, .. } | Action::SetField { value, .. } => CellSizes {
                values: one(value),
                ..CellSizes::default()
            },
            Action::SetKey { key, value } => CellSizes {
                keys: one(key),
                values: one(value),
                ..CellSizes::default()
            },
            Action::DeleteKey(key) => CellSizes {
                keys: one(key),
                are_deleted: true,
                ..CellSizes::default()
            },
            Action::DiscardKeys { keys, ty } => {
                let keys = keys.value(eval).ok().flatten();
                CellSizes {
                    keys: keys.map_or_else(Vec::new, |keys| lengths(read_elements(ty, &keys))),
                    are_deleted: true,
                    ..CellSizes::default()
                }
            }
            _ => CellSizes::default(),
        }
    }

    /// Returns the sizes of a whole value of a column.
    fn of_value(ty: &CqlType, value: &[u8]) -> CellSizes {
        /// Bytes of the number of elements, which is not stored.
        const COUNT_LEN: usize = 4;
        let mut sizes = CellSizes {
            collection: ty
                .is_collection()
                .then(|| (collection_size(value), value.len().saturating_sub(COUNT_LEN))),
            ..CellSizes::default()
        };
        match ty {
            _ if !ty.is_multicell() => sizes.values.push(value.len()),
            CqlType::Map { .. } => {
                let parts = lengths(read_elements(ty, value));
                let (pairs, _) = parts.as_chunks::<2>();
                (sizes.keys, sizes.values) = pairs.iter().map(|[key, value]| (*key, *value)).unzip();
            }
            CqlType::Set { .. } => sizes.keys = lengths(read_elements(ty, value)),
            CqlType::List { .. } => sizes.values = lengths(read_elements(ty, value)),
            _ => {
                let fields = read_tuple(ty, value).unwrap_or_default();
                sizes.values = fields.into_iter().flatten().map(<[u8]>::len).collect();
            }
        }
        sizes
    }
}

fn lengths(parts: Result<Vec<&[u8]>, String>) -> Vec<usize> {
    parts.unwrap_or_default().into_iter().map(<[u8]>::len).collect()
}

#[cfg(test)]
#[path = "written_values_tests.rs"]
mod tests;
