//! What clients are told when the schema changes (Cassandra's `SchemaChangeNotifier`): each thing that is not as it was, whichever statement
//! of whichever node did it. The types, tables, views, functions and aggregates of a keyspace that is dropped are told of as well, and so are
//! the views that grow with their table and what holds a type that was altered.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use helenus_cql::types::UserType;

use super::function;
use crate::response::{ChangeKind, SchemaChange, SchemaTarget};
use crate::schema::{Keyspace, Schema, Table, TableKind, UserAggregate, UserFunction};

/// A keyspace that holds more is dropped in one word. Events wait in queues of limited length; and what drivers know of a keyspace they
/// forget with it.
const CONTENTS_MAX: usize = 256;

/// Returns the changes that lead from one schema to the other, in the order in which Cassandra tells of them.
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

/// What is not the very same in both, by name, as it was and as it is.
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
            // Most of thousands are: their names need not be compared.
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

/// What differs within a keyspace.
struct KeyspaceDiff<'a> {
    keyspace: &'a str,
    types: Vec<Pair<'a, UserType>>,
    tables: Vec<Pair<'a, Table>>,
    functions: Vec<Pair<'a, UserFunction>>,
    aggregates: Vec<Pair<'a, UserAggregate>>,
}

/// What differs in one of the maps of a keyspace, which may have been made or dropped with it.
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
        self.tell_tables(ChangeKind::Dropped, true, events);
        self.tell_tables(ChangeKind::Dropped, false, events);
        self.emit(&self.types, type_target, ChangeKind::Dropped, events);
    }

    /// Tells of what was created, or updated.
    fn changed(&self, change: ChangeKind, events: &mut Vec<SchemaChange>) {
        self.emit(&self.types, type_target, change, events);
        self.tell_tables(change, false, events);
        self.tell_tables(change, true, events);
        self.emit(&self.functions, function::target_of, change, events);
        self.emit(&self.aggregates, function::target_of_aggregate, change, events);
    }

    /// Tells of all but tables.
    fn emit<T: PartialEq>(
        &self,
        pairs: &[Pair<'a, T>],
        target: fn(&T) -> SchemaTarget,
        change: ChangeKind,
        events: &mut Vec<SchemaChange>,
    ) {
        let told = pairs.iter().filter_map(|pair| match (change, pair) {
            (ChangeKind::Dropped, (Some(of), None)) | (ChangeKind::Created, (None, Some(of))) => Some(of),
            (ChangeKind::Updated, (Some(old), Some(new))) if old != new => Some(new),
            _ => None,
        });
        events.extend(told.map(|of| event(change, self.keyspace, target(of))));
    }

    /// Tells of the tables, or of the views. Another one of the same name was created after the first was dropped.
    fn tell_tables(&self, change: ChangeKind, views: bool, events: &mut Vec<SchemaChange>) {
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

/// Whether clients see the same table. That an index or a view is complete by now is nothing that they are told.
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
