//! What another node has changed, as its clients would have been told.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::response::{ChangeKind, SchemaChange, SchemaTarget};
use crate::schema::{Keyspace, Schema, Table};

/// The changes that lead from one schema to the other.
pub(super) fn events(before: &Schema, after: &Schema) -> Vec<SchemaChange> {
    let mut events = Vec::new();
    for (change, name) in changes(&before.keyspaces, &after.keyspaces, |a, b| {
        a.replication == b.replication && a.durable_writes == b.durable_writes
    }) {
        events.push(event(change, name, SchemaTarget::Keyspace));
    }
    for (name, new) in &after.keyspaces {
        if let Some(old) = before.keyspaces.get(name) {
            within(old, new, &mut events);
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

fn within(old: &Arc<Keyspace>, new: &Arc<Keyspace>, events: &mut Vec<SchemaChange>) {
    for (change, name) in changes(&old.types, &new.types, |a, b| a == b) {
        events.push(event(change, &new.name, SchemaTarget::Type(name.to_owned())));
    }
    for (change, name) in changes(&old.tables, &new.tables, is_same_table) {
        events.push(event(change, &new.name, SchemaTarget::Table(name.to_owned())));
    }
}

fn is_same_table(a: &Arc<Table>, b: &Arc<Table>) -> bool {
    if Arc::ptr_eq(a, b) {
        return true;
    }
    let indexes = |table: &Table| -> Vec<_> {
        let index = |index: &Arc<crate::schema::Index>| (index.name.clone(), index.options.clone());
        table.indexes.iter().map(index).collect()
    };
    a.id == b.id && a.columns == b.columns && a.options == b.options && indexes(a) == indexes(b)
}

/// Names that were created, dropped, or have changed.
fn changes<'a, T>(
    before: &'a BTreeMap<String, T>,
    after: &'a BTreeMap<String, T>,
    is_same: impl Fn(&T, &T) -> bool,
) -> Vec<(ChangeKind, &'a str)> {
    let mut changes = Vec::new();
    for (name, new) in after {
        match before.get(name) {
            None => changes.push((ChangeKind::Created, name.as_str())),
            Some(old) if !is_same(old, new) => changes.push((ChangeKind::Updated, name.as_str())),
            Some(_) => {}
        }
    }
    let gone = before.keys().filter(|name| !after.contains_key(*name));
    changes.extend(gone.map(|name| (ChangeKind::Dropped, name.as_str())));
    changes
}
