//! Notifications to clients about changes of the schema (Cassandra's `SchemaChangeNotifier`). Every element that differs is reported,
//! whichever statement on whichever node has changed it.
//!
//! A drop of a keyspace also reports its types, tables, views, functions and aggregates. A change of a type or table also reports all elements
//! that change with it, such as views.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use helenus_cql::types::UserType;

use super::function;
use crate::response::{ChangeKind, SchemaChange, SchemaTarget};
use crate::schema::{Keyspace, Schema, Table, TableKind, UserAggregate, UserFunction};

/// Maximum number of elements in a dropped keyspace that are reported one by one. The queues of events have a limited length, and drivers
/// forget the elements with the keyspace anyway.
const CONTENTS_MAX: usize = 256;

/// Returns the changes from one schema to the other, in the order in which Cassandra reports them.
pub(crate) fn events(before: &Schema, after: &Schema) -> Vec<SchemaChange> {
    let mut events = Vec::new();
    for (old, new) in differing(&before.keyspaces, &after.keyspaces) {
        match (old, new) {
            (Some(old), None) => {
                let count = old.tables.len() + old.types.len() + old.functions.len() + old.aggregates.len();
                if count <= CONTENTS_MAX {
                    KeyspaceDiff::new(Some(old), None).dropped(&mut events);
                }
                events.push(event(ChangeKind::Dropped, &old.name, SchemaTarget::Keyspace));
            }
            (None, Some(new)) => {
                events.push(event(ChangeKind::Created, &new.name, SchemaTarget::Keyspace));
                KeyspaceDiff::new(None, Some(new)).changed(ChangeKind::Created, &mut events);
            }
            (Some(old), Some(new)) => {
                let contents = KeyspaceDiff::new(Some(old), Some(new));
                contents.dropped(&mut events);
                contents.changed(ChangeKind::Created, &mut events);
                if old.replication != new.replication || old.durable_writes != new.durable_writes {
                    events.push(event(ChangeKind::Updated, &new.name, SchemaTarget::Keyspace));
                }
                contents.changed(ChangeKind::Updated, &mut events);
            }
            (None, None) => {}
        }
    }
    events
}

fn event(change: ChangeKind, keyspace: &str, target: SchemaTarget) -> SchemaChange {
    SchemaChange {
        change,
        keyspace: keyspace.to_owned(),
        target,
    }
}

type Pair<'a, T> = (Option<&'a Arc<T>>, Option<&'a Arc<T>>);

/// Returns the elements that are not the same object in both maps, as pairs of the old and the new one.
fn differing<'a, T>(
    before: &'a BTreeMap<String, Arc<T>>,
    after: &'a BTreeMap<String, Arc<T>>,
) -> Vec<Pair<'a, T>> {
    let (mut olds, mut news) = (before.iter().peekable(), after.iter().peekable());
    let mut found = Vec::new();
    loop {
        let order = match (olds.peek(), news.peek()) {
            (None, None) => return found,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            // Most of the many elements are the same object, so their names need not be compared.
            (Some((_, old)), Some((_, new))) if Arc::ptr_eq(old, new) => {
                olds.next();
                news.next();
                continue;
            }
            (Some((old, _)), Some((new, _))) => old.cmp(new),
        };
        let old = if order.is_le() { olds.next() } else { None };
        let new = if order.is_ge() { news.next() } else { None };
        found.push((old.map(|(_, old)| old), new.map(|(_, new)| new)));
    }
}

/// The differences within a keyspace.
struct KeyspaceDiff<'a> {
    keyspace: &'a str,
    types: Vec<Pair<'a, UserType>>,
    tables: Vec<Pair<'a, Table>>,
    functions: Vec<Pair<'a, UserFunction>>,
    aggregates: Vec<Pair<'a, UserAggregate>>,
}

/// Returns the differences in one of a keyspace's maps. The keyspace may have been created or dropped too.
fn differing_in<'a, T>(
    old: Option<&'a Arc<Keyspace>>,
    new: Option<&'a Arc<Keyspace>>,
    map: fn(&'a Keyspace) -> &'a BTreeMap<String, Arc<T>>,
) -> Vec<Pair<'a, T>> {
    match (old, new) {
        (Some(old), Some(new)) => differing(map(old), map(new)),
        (Some(old), None) => map(old).values().map(|old| (Some(old), None)).collect(),
        (None, Some(new)) => map(new).values().map(|new| (None, Some(new))).collect(),
        (None, None) => Vec::new(),
    }
}

impl<'a> KeyspaceDiff<'a> {
    fn new(old: Option<&'a Arc<Keyspace>>, new: Option<&'a Arc<Keyspace>>) -> KeyspaceDiff<'a> {
        KeyspaceDiff {
            keyspace: new.or(old).map_or("", |keyspace| keyspace.name.as_str()),
            types: differing_in(old, new, |keyspace| &keyspace.types),
            tables: differing_in(old, new, |keyspace| &keyspace.tables),
            functions: differing_in(old, new, |keyspace| &keyspace.functions),
            aggregates: differing_in(old, new, |keyspace| &keyspace.aggregates),
        }
    }

    fn dropped(&self, events: &mut Vec<SchemaChange>) {
        self.emit(
            &self.aggregates,
            function::target_of_aggregate,
            ChangeKind::Dropped,
            events,
        );
        self.emit(&self.functions, function::target_of, ChangeKind::Dropped, events);
        self.report_tables(ChangeKind::Dropped, true, events);
        self.report_tables(ChangeKind::Dropped, false, events);
        self.emit(&self.types, type_target, ChangeKind::Dropped, events);
    }

    /// Reports the elements that were created, or those that were updated.
    fn changed(&self, change: ChangeKind, events: &mut Vec<SchemaChange>) {
        self.emit(&self.types, type_target, change, events);
        self.report_tables(change, false, events);
        self.report_tables(change, true, events);
        self.emit(&self.functions, function::target_of, change, events);
        self.emit(&self.aggregates, function::target_of_aggregate, change, events);
    }

    /// Reports elements that are not tables.
    fn emit<T: PartialEq>(
        &self,
        pairs: &[Pair<'a, T>],
        target: fn(&T) -> SchemaTarget,
        change: ChangeKind,
        events: &mut Vec<SchemaChange>,
    ) {
        let reported = pairs.iter().filter_map(|pair| match (change, pair) {
            (ChangeKind::Dropped, (Some(of), None)) | (ChangeKind::Created, (None, Some(of))) => Some(of),
            (ChangeKind::Updated, (Some(old), Some(new))) if old != new => Some(new),
            _ => None,
        });
        events.extend(reported.map(|of| event(change, self.keyspace, target(of))));
    }

    /// Reports the tables, or the views. A table with the same name but another id is one that was dropped and created again.
    fn report_tables(&self, change: ChangeKind, views: bool, events: &mut Vec<SchemaChange>) {
        let is_other = |old: &Table, new: &Table| old.id != new.id;
        let named = self.tables.iter().filter_map(|pair| match (change, pair) {
            (ChangeKind::Dropped, (Some(old), None)) => Some(old),
            (ChangeKind::Created, (None, Some(new))) => Some(new),
            (ChangeKind::Dropped, (Some(old), Some(new))) if is_other(old, new) => Some(old),
            (ChangeKind::Created, (Some(old), Some(new))) if is_other(old, new) => Some(new),
            (ChangeKind::Updated, (Some(old), Some(new))) if !is_other(old, new) && !looks_same(old, new) => {
                Some(new)
            }
            _ => None,
        });
        let named = named.filter(|table| (table.kind == TableKind::View) == views);
        events
            .extend(named.map(|table| event(change, self.keyspace, SchemaTarget::Table(table.name.clone()))));
    }
}

fn type_target(ty: &UserType) -> SchemaTarget {
    SchemaTarget::Type(ty.name.clone())
}

/// Returns true if clients see the same table. Clients are not notified when an index or a view is complete.
fn looks_same(old: &Table, new: &Table) -> bool {
    let indexes = |table: &Table| -> Vec<_> {
        let index = |index: &Arc<crate::schema::Index>| (index.name.clone(), index.options.clone());
        table.indexes.iter().map(index).collect()
    };
    old.columns == new.columns
        && old.options == new.options
        && old.compact == new.compact
        && indexes(old) == indexes(new)
}
