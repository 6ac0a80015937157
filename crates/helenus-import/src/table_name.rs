//! The name of a table.

use std::fmt;

use helenus_cql::identifier::quote_qualified;

/// A table or view, as `keyspace` and `table` without quotes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableName {
    pub keyspace: String,
    pub table: String,
}

impl TableName {
    pub fn new(keyspace: impl Into<String>, table: impl Into<String>) -> TableName {
        TableName {
            keyspace: keyspace.into(),
            table: table.into(),
        }
    }
}

impl TableName {
    /// Returns true for the log of a table's captured changes. Each cluster has its own.
    pub fn is_cdc_log(&self) -> bool {
        self.table.ends_with("_scylla_cdc_log")
    }

    /// Returns true if an option's value is this name, with or without quotes.
    pub fn is_given_as(&self, given: &str) -> bool {
        given == format!("{}.{}", self.keyspace, self.table) || given == self.to_string()
    }
}

impl fmt::Display for TableName {
    /// Writes the name as CQL, quoted where necessary.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&quote_qualified(&self.keyspace, &self.table))
    }
}
