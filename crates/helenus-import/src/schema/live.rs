//! The target's schema, as its system tables show it.

use std::collections::{BTreeMap, BTreeSet};

use super::resolve::UserTypes;
use super::shape::TableShape;
use crate::table_name::TableName;

/// The parts of a target's schema that an import needs.
#[derive(Clone, Debug, Default)]
pub struct LiveSchema {
    pub keyspaces: BTreeSet<String>,
    pub data_centers: BTreeSet<String>,
    pub types: UserTypes,
    pub tables: BTreeMap<TableName, TableShape>,
    pub views: BTreeSet<TableName>,
    /// Keyspaces and names of indexes.
    pub indexes: BTreeSet<(String, String)>,
    /// Keyspaces and names of functions and aggregates.
    pub functions: BTreeSet<(String, String)>,
}
