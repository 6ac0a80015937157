//! Keyspaces.

use std::collections::BTreeMap;
use std::sync::Arc;

use helenus_cql::types::UserType;
use uuid::Uuid;

use super::{Index, Table, UserAggregate, UserFunction};

/// A keyspace with its tables, types and functions.
#[derive(Clone, Debug)]
pub struct Keyspace {
    pub name: String,
    /// An id that distinguishes the keyspace from earlier and later ones of the same name. `None` for keyspaces of the server, and if an
    /// older version without such ids created it.
    pub id: Option<Uuid>,
    pub replication: Replication,
    /// False if writes are acknowledged before they are durable.
    pub durable_writes: bool,
    /// True for `system_virtual_schema`, `system_views` and all other keyspaces whose rows are computed.
    pub is_virtual: bool,
    pub types: BTreeMap<String, Arc<UserType>>,
    /// Tables and materialized views, by name.
    pub tables: BTreeMap<String, Arc<Table>>,
    /// Functions by signature ([`UserFunction::signature`]).
    pub functions: BTreeMap<String, Arc<UserFunction>>,
    /// Aggregates by signature. No function has the same signature.
    pub aggregates: BTreeMap<String, Arc<UserAggregate>>,
}

/// The declared replication: the short name of the strategy's class and its options, as drivers see them. Each partition has one owner,
/// whatever is declared. Drivers use the replication for routing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replication {
    /// `SimpleStrategy`, `NetworkTopologyStrategy` or `LocalStrategy`.
    pub class: String,
    /// The option `replication_factor`, or a factor for each data centre.
    pub options: BTreeMap<String, String>,
    /// Number of declared replicas of a row, in all data centres.
    pub replicas: i32,
}

impl Replication {
    pub fn new(class: String, options: BTreeMap<String, String>) -> Replication {
        let replicas = match class.as_str() {
            "SimpleStrategy" | "NetworkTopologyStrategy" => {
                // The number after the slash is that of transient replicas: `3/1` is three replicas, one of them transient.
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
    /// Returns the index of that name, with its table. Index names are unique in a keyspace.
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
