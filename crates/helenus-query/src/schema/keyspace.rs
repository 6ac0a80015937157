//! Keyspaces.

use std::collections::BTreeMap;
use std::sync::Arc;

use helenus_cql::types::UserType;
use uuid::Uuid;

use super::{Index, Table, UserAggregate, UserFunction};

/// A keyspace and what it holds.
#[derive(Clone, Debug)]
pub struct Keyspace {
    pub name: String,
    /// Tells the keyspace apart from those that had its name before and after. `None` if a version without such ids has created it, and
    /// for keyspaces of the server.
    pub id: Option<Uuid>,
    pub replication: Replication,
    /// When false, writes are acknowledged from memory.
    pub durable_writes: bool,
    /// True for `system_virtual_schema`, `system_views` and whatever else is computed, not stored.
    pub is_virtual: bool,
    pub types: BTreeMap<String, Arc<UserType>>,
    /// Tables and materialized views, by name.
    pub tables: BTreeMap<String, Arc<Table>>,
    /// By their signatures: [`UserFunction::signature`].
    pub functions: BTreeMap<String, Arc<UserFunction>>,
    /// By their signatures, none of which is a function's.
    pub aggregates: BTreeMap<String, Arc<UserAggregate>>,
}

/// Replication as it was declared: the strategy's class (short name) and its options, shown back to drivers.
/// One owner serves each partition whatever is declared here; drivers use it to route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replication {
    /// `SimpleStrategy`, `NetworkTopologyStrategy` or `LocalStrategy`.
    pub class: String,
    /// `replication_factor` or a factor for each data centre.
    pub options: BTreeMap<String, String>,
    /// How many replicas each row would have, in all data centres.
    pub replicas: i32,
}

impl Replication {
    pub fn new(class: String, options: BTreeMap<String, String>) -> Replication {
        let replicas = match class.as_str() {
            "SimpleStrategy" | "NetworkTopologyStrategy" => {
                // Of `3/1` one is transient.
                let factor = |text: &String| text.split('/').next()?.parse::<i32>().ok();
                options.values().filter_map(factor).sum()
            }
            _ => 1,
        };
        Replication {
            class,
            options,
            replicas,
        }
    }
}

impl Keyspace {
    /// Returns the index of that name and the table that it is on; index names are unique in a keyspace.
    pub fn index(&self, name: &str) -> Option<(&Arc<Table>, &Arc<Index>)> {
        self.tables.values().find_map(|table| {
            table
                .indexes
                .iter()
                .find(|index| index.name == name)
                .map(|index| (table, index))
        })
    }
}
