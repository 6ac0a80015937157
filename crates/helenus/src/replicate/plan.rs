//! The plan of one table: its columns, and the statements that read its rows and its log.

use std::sync::Arc;

use helenus_cql::identifier::{quote_identifier, quote_qualified};
use helenus_import::TableName;
use helenus_import::schema::{ColumnRole, TableShape};

use super::columns::PlannedColumn;
use super::cql_statements::CqlStatements;

/// The plan of a table.
#[derive(Clone, Debug)]
pub struct TablePlan {
    pub name: TableName,
    pub partition_key: Vec<PlannedColumn>,
    pub clustering: Vec<PlannedColumn>,
    /// Columns outside of the primary key, static ones last. The position of a column is its id in rows in transfer.
    pub columns: Vec<PlannedColumn>,
    /// Reads the rows of a range of tokens, packed.
    pub copy: String,
    /// Number of columns that are not static.
    pub regulars: usize,
    /// Reads the log of a stream between two times. The first one is exclusive.
    pub log: String,
    /// Writes rows to Helenus.
    pub insert_rows: Arc<str>,
    /// Statements that write to other clusters.
    pub cql: CqlStatements,
    /// Number of the plan. A changed schema makes a new plan with another number.
    pub number: u64,
    /// Time in seconds for which the log keeps changes. 0 if it keeps them for ever.
    pub log_ttl_s: i64,
}

impl TablePlan {
    /// Plans the replication of a table.
    pub fn new(name: &TableName, shape: &TableShape, log_ttl_s: i64, number: u64) -> TablePlan {
        let key = |is_clustering| {
            let columns = shape.key_columns(is_clustering).into_iter();
            let columns = columns.map(|(name, column)| PlannedColumn {
                name: name.clone(),
                ty: column.ty.clone(),
                is_static: false,
                is_descending: column.is_descending,
            });
            columns.collect::<Vec<_>>()
        };
        let (partition_key, clustering) = (key(false), key(true));
        let columns = shape.columns.iter().filter(|(_, column)| !column.role.is_key());
        let mut columns: Vec<PlannedColumn> = columns
            .map(|(name, column)| PlannedColumn {
                name: name.clone(),
                ty: column.ty.clone(),
                is_static: column.role == ColumnRole::Static,
                is_descending: false,
            })
            .collect();
        columns.sort_by_key(|column| column.is_static);
        TablePlan {
            copy: copy_statement(name, &partition_key, &clustering, &columns),
            regulars: columns.iter().filter(|column| !column.is_static).count(),
            log: log_statement(name, &partition_key, &clustering, &columns),
            insert_rows: format!(
                "INSERT INTO {name} ({}) ROWS ? WITHOUT CDC",
                names(columns.iter().map(|column| &column.name))
            )
            .into(),
            cql: CqlStatements::new(name, &partition_key, &clustering, &columns),
            name: name.clone(),
            partition_key,
            clustering,
            columns,
            number,
            log_ttl_s,
        }
    }
}

fn names<'n>(names: impl Iterator<Item = &'n String>) -> String {
    let quoted: Vec<String> = names.map(|name| quote_identifier(name)).collect();
    quoted.join(", ")
}

fn copy_statement(
    name: &TableName,
    partition_key: &[PlannedColumn],
    clustering: &[PlannedColumn],
    columns: &[PlannedColumn],
) -> String {
    let key = names(partition_key.iter().chain(clustering).map(|column| &column.name));
    let packed = |is_static| {
        let columns = columns.iter().filter(|column| column.is_static == is_static);
        format!("packed_row({})", names(columns.map(|column| &column.name)))
    };
    let mut selected = vec![key, packed(false)];
    if columns.iter().any(|column| column.is_static) {
        selected.push(packed(true));
    }
    let token = names(partition_key.iter().map(|column| &column.name));
    format!(
        "SELECT {} FROM {name} WHERE token({token}) > ? AND token({token}) <= ?",
        selected.join(", ")
    )
}

fn log_statement(
    name: &TableName,
    partition_key: &[PlannedColumn],
    clustering: &[PlannedColumn],
    columns: &[PlannedColumn],
) -> String {
    let mut selected: Vec<String> = [
        "\"cdc$time\"",
        "\"cdc$batch_seq_no\"",
        "\"cdc$operation\"",
        "writetime(\"cdc$operation\")",
        "\"cdc$ttl\"",
    ]
    .map(str::to_owned)
    .to_vec();
    let keys = partition_key.iter().chain(clustering);
    selected.extend(keys.map(|column| quote_identifier(&column.name)));
    for column in columns {
        selected.push(quote_identifier(&column.name));
        selected.push(quote_identifier(&format!("cdc$deleted_{}", column.name)));
        if column.has_elements() {
            selected.push(quote_identifier(&format!("cdc$deleted_elements_{}", column.name)));
        }
    }
    let log = quote_qualified(&name.keyspace, &format!("{}_scylla_cdc_log", name.table));
    format!(
        "SELECT {} FROM {log} WHERE \"cdc$stream_id\" = ? AND \"cdc$time\" > ? AND \"cdc$time\" <= ?",
        selected.join(", ")
    )
}
