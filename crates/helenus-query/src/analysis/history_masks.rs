//! Masks on tables as of an earlier time. A column is masked if it was masked at that time or is masked now.
//!
//! Columns are matched by their ids, so a key column keeps its mask under an earlier name. A dropped column has its last mask. A dropped
//! table has the masks of its newest snapshot.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use helenus_cql::types::CqlType;
use helenus_row::ColumnId;

use crate::schema::{Column, ColumnMask, Keyspace, Schema, Table, UserFunction, View, signature};

/// A current mask, if it can mask the values of an earlier time. Otherwise a mask that replaces them by null.
struct CurrentMask {
    mask: Arc<ColumnMask>,
    /// The user-defined function that the mask calls. `None` if the function is native.
    function: Option<Arc<UserFunction>>,
}

impl CurrentMask {
    /// Returns true if the column has another mask, or if the keyspace lacks the mask's function.
    fn is_new(&self, keyspace: &Keyspace, table: &Table, column: ColumnId) -> bool {
        let column = table.column_by_id(column).map(|(_, column)| column);
        let is_known = |function: &Arc<UserFunction>| {
            let functions = &keyspace.functions;
            functions.get(&function.signature()) == Some(function)
        };
        column.is_some_and(|column| column.mask.as_ref() != Some(&self.mask))
            || !self.function.iter().all(is_known)
    }
}

type CurrentMasks = BTreeMap<ColumnId, CurrentMask>;

/// Returns a keyspace as of an earlier time, with the current masks. With `only`, masks are added only to the table of that name and its
/// base table.
pub(crate) fn with_current_masks(
    today: &Schema,
    earlier: &Arc<Keyspace>,
    only: Option<&str>,
) -> Arc<Keyspace> {
    let mut masked = Cow::Borrowed(earlier.as_ref());
    let view_of = |name: &str| earlier.tables.get(name).and_then(|table| table.view.as_deref());
    let base = only.and_then(view_of).map(|view| view.base_table.as_str());
    let is_wanted = |table: &&Arc<Table>| {
        only.is_none_or(|only| only == table.name || base.is_some_and(|base| base == table.name))
    };
    let (views, bases): (Vec<_>, Vec<_>) = earlier
        .tables
        .values()
        .filter(is_wanted)
        .partition(|table| table.is_view());
    for table in bases {
        hide(&mut masked, table, current_masks(today, table));
    }
    for table in views {
        let mut masks = current_masks(today, table);
        if let Some(view) = &table.view {
            add_masks_of_base(&masked, table, view, &mut masks);
        }
        hide(&mut masked, table, masks);
    }
    match masked {
        Cow::Borrowed(_) => earlier.clone(),
        Cow::Owned(masked) => Arc::new(masked),
    }
}

/// Gives a table's columns their current masks, and gives the keyspace the functions that these masks call.
fn hide(keyspace: &mut Cow<'_, Keyspace>, table: &Arc<Table>, mut masks: CurrentMasks) {
    masks.retain(|column, current| current.is_new(keyspace, table, *column));
    if masks.is_empty() {
        return;
    }
    let mut builder = table.to_builder();
    for column in &mut builder.columns {
        let Some(CurrentMask { mask, function }) = masks.get(&column.id) else {
            continue;
        };
        column.mask = Some(mask.clone());
        if let Some(function) = function {
            let functions = &mut keyspace.to_mut().functions;
            functions.insert(function.signature(), function.clone());
        }
    }
    let table = Arc::new(builder.build());
    keyspace.to_mut().tables.insert(table.name.clone(), table);
}

fn current_masks(today: &Schema, earlier: &Table) -> CurrentMasks {
    let Some((keyspace, known)) = today.last_known(earlier) else {
        return CurrentMasks::new();
    };
    let masks = earlier.columns.iter().filter_map(|column| {
        let (mask, ty) = current_mask(known, earlier, column)?;
        Some((column.id, applicable(keyspace, mask, ty, column)))
    });
    masks.collect()
}

/// Returns the latest mask of a column, and the type that the mask is for.
fn current_mask<'t>(
    known: &'t Table,
    earlier: &Table,
    column: &Column,
) -> Option<(&'t Arc<ColumnMask>, &'t CqlType)> {
    let current = known.column_by_id(column.id).map(|(_, column)| column);
    if let Some((mask, ty)) = current.and_then(|column| Some((column.mask.as_ref()?, &column.ty))) {
        return Some((mask, ty));
    }
    // A column that was dropped and added again keeps its id.
    let mut dropped = known.dropped_columns.values();
    let dropped = dropped.find(|dropped| dropped.id == Some(column.id))?;
    let before = earlier.dropped_columns.get(&dropped.name);
    match before.is_some_and(|before| before.dropped_time_us == dropped.dropped_time_us) {
        true => None,
        false => Some((dropped.mask.as_ref()?, &dropped.ty)),
    }
}

/// Returns a mask for the values of an earlier time: the current mask, or null if a user type or a function has changed since.
fn applicable(keyspace: &Keyspace, mask: &Arc<ColumnMask>, ty: &CqlType, earlier: &Column) -> CurrentMask {
    let null = || CurrentMask {
        mask: Arc::new(ColumnMask::null()),
        function: None,
    };
    if *ty != earlier.ty {
        return null();
    }
    if mask.keyspace == "system" {
        return CurrentMask {
            mask: mask.clone(),
            function: None,
        };
    }
    let types = std::iter::once(ty).chain(mask.arguments.iter().map(|(ty, _)| ty));
    let function = keyspace.functions.get(&signature(&mask.name, types));
    match function.filter(|function| function.returns == *ty) {
        Some(function) => CurrentMask {
            mask: mask.clone(),
            function: Some(function.clone()),
        },
        None => null(),
    }
}

/// Adds the masks of the base table's columns. A view has these columns under the same names.
fn add_masks_of_base(keyspace: &Keyspace, table: &Table, view: &View, masks: &mut CurrentMasks) {
    let Some(base) = keyspace.tables.get(&view.base_table) else {
        return;
    };
    for column in &table.columns {
        let of_base = base.column(&column.name).map(|(_, column)| column);
        let mask = of_base.and_then(|column| column.mask.clone());
        if let Some(mask) = mask.filter(|mask| column.mask.as_ref() != Some(mask)) {
            masks
                .entry(column.id)
                .or_insert(CurrentMask { mask, function: None });
        }
    }
}
