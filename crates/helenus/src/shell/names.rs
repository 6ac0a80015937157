//! The names of the schema, for completion and hints.

use std::collections::BTreeMap;

use helenus_cql::identifier::quote_identifier;

use super::statement::code_words;

/// Names of the schema in CQL's form: keyspaces with their tables and types, and tables with their columns.
#[derive(Debug, Default)]
pub struct Names {
    tables: BTreeMap<String, BTreeMap<String, Vec<String>>>,
    types: BTreeMap<String, Vec<String>>,
}

/// Queries that return all columns. Their results are added in this order.
pub const COLUMN_QUERIES: [&str; 2] = [
    "SELECT keyspace_name, table_name, column_name FROM system_schema.columns",
    "SELECT keyspace_name, table_name, column_name FROM system_virtual_schema.columns",
];
pub const KEYSPACE_QUERY: &str = "SELECT keyspace_name FROM system_schema.keyspaces";
pub const TYPE_QUERY: &str = "SELECT keyspace_name, type_name FROM system_schema.types";

impl Names {
    pub fn add_keyspace(&mut self, keyspace: &str) {
        self.tables.entry(quote_identifier(keyspace)).or_default();
    }

    pub fn add_type(&mut self, keyspace: &str, name: &str) {
        let types = self.types.entry(quote_identifier(keyspace)).or_default();
        types.push(quote_identifier(name));
    }

    pub fn add_column(&mut self, keyspace: &str, table: &str, column: &str) {
        let tables = self.tables.entry(quote_identifier(keyspace)).or_default();
        let columns = tables.entry(quote_identifier(table)).or_default();
        columns.push(quote_identifier(column));
    }

    pub fn keyspaces(&self) -> Vec<String> {
        self.tables.keys().cloned().collect()
    }

    /// Returns the tables and views of a keyspace.
    pub fn tables(&self, keyspace: &str) -> Vec<String> {
        let tables = self.tables.get(keyspace);
        tables.map_or(Vec::new(), |tables| tables.keys().cloned().collect())
    }

    pub fn types(&self, keyspace: &str) -> Vec<String> {
        self.types.get(keyspace).cloned().unwrap_or_default()
    }

    /// Returns the columns of the table after FROM, INTO, UPDATE or COPY. Without a table, returns those of all tables of the keyspace.
    pub fn columns_of_statement(&self, statement: &str, keyspace: Option<&str>) -> Vec<String> {
        let all = |keyspace: &str| {
            let tables = self.tables.get(keyspace).into_iter().flat_map(BTreeMap::values);
            tables.flatten().cloned().collect()
        };
        match (table_of(statement), keyspace) {
            (Some(name), keyspace) => {
                let (keyspace, table) = name
                    .split_once('.')
                    .unwrap_or((keyspace.unwrap_or_default(), name));
                let columns = self.tables.get(keyspace).and_then(|tables| tables.get(table));
                columns.cloned().unwrap_or_default()
            }
            (None, Some(keyspace)) => all(keyspace),
            (None, None) => Vec::new(),
        }
    }

    #[cfg(test)]
    pub fn of(tables: &[(&str, &str, &[&str])]) -> Names {
        let mut names = Names::default();
        for (keyspace, table, columns) in tables {
            for column in *columns {
                names.add_column(keyspace, table, column);
            }
        }
        names
    }
}

/// Returns the table after FROM, INTO, UPDATE or COPY.
pub fn table_of(statement: &str) -> Option<&str> {
    let words = code_words(statement);
    let is_before_table = |word: &str| {
        ["FROM", "INTO", "UPDATE", "COPY"]
            .iter()
            .any(|keyword| keyword.eq_ignore_ascii_case(word))
    };
    let before = words.iter().position(|word| is_before_table(word))?;
    words.get(before + 1).copied()
}
