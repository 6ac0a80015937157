//! The statements that read the rows of a table.

use helenus_cql::identifier::quote_identifier;
use helenus_import::TableName;

/// A column outside of the primary key.
pub struct ReadColumn<'a> {
    pub name: &'a str,
    /// True if its write time and its TTL come before its value.
    pub has_times: bool,
}

/// The statements of a table. All select the primary key, and then the columns.
#[derive(Clone, Debug)]
pub struct ReadStatements {
    /// Reads the rows between two tokens. The first one is exclusive.
    pub range: String,
    /// Reads one row by its key.
    pub row: String,
    /// Reads the first row of a partition, which has the static columns.
    pub first_row: String,
    /// Read the first row of the first 1, 2, … clustering columns, but not of all of them. Rows of compact tables may lack the last ones.
    pub prefixes: Vec<String>,
}

impl ReadStatements {
    /// Returns the statements of a table. The first `partition_len` columns of the key are the partition key.
    pub fn new<'a>(
        table: &TableName,
        key: impl Iterator<Item = &'a str>,
        partition_len: usize,
        columns: impl Iterator<Item = ReadColumn<'a>>,
    ) -> ReadStatements {
        let key: Vec<String> = key.map(quote_identifier).collect();
        let mut selected = key.clone();
        for column in columns {
            let name = quote_identifier(column.name);
            if column.has_times {
                selected.push(format!("writetime({name}), ttl({name})"));
            }
            selected.push(name);
        }
        let select = format!("SELECT {} FROM {table} WHERE", selected.join(", "));
        let partition = key.get(..partition_len).unwrap_or(&key);
        let token = format!("token({})", partition.join(", "));
        let equal = |names: &[String]| {
            let terms: Vec<String> = names.iter().map(|name| format!("{name} = ?")).collect();
            terms.join(" AND ")
        };
        ReadStatements {
            range: format!("{select} {token} > ? AND {token} <= ?"),
            row: format!("{select} {}", equal(&key)),
            first_row: format!("{select} {} LIMIT 1", equal(partition)),
            prefixes: (partition_len + 1..key.len())
                .filter_map(|len| Some(format!("{select} {} LIMIT 1", equal(key.get(..len)?))))
                .collect(),
        }
    }
}
